"""The service with an engine that answers at once what it computed before; gunicorn serves `create_app`.

What is left of a request's time is HTTP, parsing, segmentation, tokenisation, the queue, and putting together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from flask import Flask

import app
import model_loader
from tandem.core.settings import Settings
from tandem.core.types import Budget, Engine, Finished, Hypothesis, Item, Priority

Result = Finished[list[Hypothesis]]


class ReplayingEngine:
    """Remembers the hypotheses of every item; implements `tandem.core.types.Engine`.

    Args:
        engine: Computes what was never asked before.
    """

    def __init__(self, engine: Engine[list[Hypothesis]]) -> None:
        """Start with nothing to remember."""
        self._engine = engine
        self._known: dict[tuple[object, ...], list[Hypothesis]] = {}
        self._ready: list[Item] = []

    def admit(self, items: Sequence[Item]) -> list[Result]:
        """Take items in; only the unknown ones cost anything."""
        self._ready += [item for item in items if item.key() in self._known]
        unknown = [item for item in items if item.key() not in self._known]
        return self._engine.admit(unknown) if unknown else []

    def step(self, at_least: Priority) -> list[Result]:
        """Give back all that is known, and advance the rest."""
        finished = [Finished(item, self._known[item.key()]) for item in self._ready]
        self._ready = []
        computed = self._engine.step(at_least) if self._engine.live() else []
        self._known.update((done.item.key(), done.result) for done in computed if done.result is not None)
        return [*finished, *computed]

    def room(self, priority: Priority) -> Budget:
        """Return the engine's."""
        return self._engine.room(priority)

    def live(self) -> Sequence[Item]:
        """Return what was not given back yet."""
        return [*self._ready, *self._engine.live()]

    def cancel(self, items: Sequence[Item]) -> None:
        """Drop items."""
        gone = set(items)
        self._ready = [item for item in self._ready if item not in gone]
        self._engine.cancel(items)

    def reset(self) -> list[Item]:
        """Drop everything."""
        items, self._ready = self._ready, []
        return [*items, *self._engine.reset()]

    def is_out_of_memory(self, error: BaseException) -> bool:
        """Ask the engine."""
        return self._engine.is_out_of_memory(error)


def create_app() -> Flask:
    """Make the application around replaying engines."""
    load = model_loader.get_models

    def load_replaying(settings: Settings, on_stage: model_loader.Stage = lambda _: None) -> model_loader.LoadedModels:
        models = load(settings, on_stage)
        # The scheduler asks for no more than the contract.
        translators = [
            replace(one, engine=ReplayingEngine(one.engine))  # type: ignore[arg-type]
            for one in models.translators
        ]
        return replace(models, translators=tuple(translators))

    model_loader.get_models = load_replaying
    return app.create_app()
