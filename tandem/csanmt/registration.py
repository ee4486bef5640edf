"""Make transformers' Auto classes know CSANMT, whether they are imported before or after this package.

What the Auto classes need takes longer to import than everything else a server does until it is ready, and a server
never asks them. So each learns of the model when its own module is imported.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType

_AUTO = "transformers.models.auto"


def _register_config(module: ModuleType) -> None:
    from tandem.csanmt.hub_configuration import CsanmtHubConfig

    module.AutoConfig.register(CsanmtHubConfig.model_type, CsanmtHubConfig, exist_ok=True)


def _register_model(module: ModuleType) -> None:
    from tandem.csanmt.auto import CsanmtForConditionalGeneration
    from tandem.csanmt.hub_configuration import CsanmtHubConfig

    module.AutoModelForSeq2SeqLM.register(CsanmtHubConfig, CsanmtForConditionalGeneration, exist_ok=True)


def _register_tokenizer(module: ModuleType) -> None:
    from tandem.csanmt.auto import CsanmtTokenizer
    from tandem.csanmt.hub_configuration import CsanmtHubConfig

    module.AutoTokenizer.register(CsanmtHubConfig, tokenizer_class=CsanmtTokenizer, exist_ok=True)


_ACTIONS: dict[str, Callable[[ModuleType], None]] = {
    f"{_AUTO}.configuration_auto": _register_config,
    f"{_AUTO}.modeling_auto": _register_model,
    f"{_AUTO}.tokenization_auto": _register_tokenizer,
}


class _AfterImport(MetaPathFinder):
    """Finds the watched modules where they are, and has them followed by their action once they are imported."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the spec of a watched module; None leaves any other to the finders that come after."""
        if fullname not in _ACTIONS:
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module

            def execute_and_register(module: ModuleType) -> None:
                execute(module)
                _ACTIONS[fullname](module)

            spec.loader.exec_module = execute_and_register  # type: ignore[method-assign]
        return spec


def register() -> None:
    """Make transformers know the model; safe to call again."""
    for name, action in _ACTIONS.items():
        if name in sys.modules:
            action(sys.modules[name])
    if not any(isinstance(finder, _AfterImport) for finder in sys.meta_path):
        sys.meta_path.insert(0, _AfterImport())
