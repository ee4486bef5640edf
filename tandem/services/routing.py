"""Which model translates a text, into which language."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tandem.core.errors import UnprocessableError
from tandem.services.requests import TranslateRequest
from tandem.services.translation_model import TranslationModel
from tandem.text.detection import Detection, detect_language
from tandem.text.languages import AUTO, Direction, parse_locale


@dataclass(frozen=True, slots=True)
class Route:
    """How one text is translated.

    Attributes:
        text: The text.
        detection: What it was taken for.
        target: Code of the target language.
        model: What translates it; None when it is in the target language already and comes back as it is.
        direction: For the text layer.
    """

    text: str
    detection: Detection
    target: str
    model: TranslationModel | None
    direction: Direction


class Router:
    """Knows the loaded directions.

    Args:
        models: One a direction; the first one's target is the default for a source that no model knows.
    """

    def __init__(self, models: Sequence[TranslationModel]) -> None:
        """Index the directions."""
        self._models = {(model.source, model.target): model for model in models}

    @property
    def directions(self) -> list[tuple[str, str]]:
        """Source and target of every loaded model."""
        return list(self._models)

    def route(self, request: TranslateRequest, text: str) -> Route:
        """Decide which model translates a text.

        Raises:
            UnprocessableError: A language is unknown, or no loaded model has the direction; the message names those
                there are.
        """
        is_auto = request.source.lower() == AUTO
        target = parse_locale(request.target) if request.target else None
        detection = detect_language(text) if is_auto else _told(request.source)
        wanted = target.language if target else self._default_target(detection.language)
        if is_auto and detection.language == wanted:
            return Route(text, detection, wanted, None, Direction(wanted, wanted))
        model = self._models.get((detection.language, wanted))
        if model is None and is_auto:
            # What a text without words, or in a language no model knows, is taken for.
            model = next((model for (_, to), model in self._models.items() if to == wanted), None)
        if model is None:
            raise UnprocessableError(f"No loaded model translates {detection.language} to {wanted}. {self._offer()}")
        return Route(text, detection, wanted, model, Direction(model.source, wanted, target.script if target else ""))

    def _default_target(self, source: str) -> str:
        targets = [target for start, target in self._models if start == source]
        return targets[0] if targets else next(iter(self._models))[1]

    def _offer(self) -> str:
        pairs = ", ".join(f"{source} to {target}" for source, target in self._models)
        return f"There are: {pairs}. Load another with TRANSLATION_MODEL."


def _told(source: str) -> Detection:
    """Return a language that the caller names, as if it had been detected."""
    locale = parse_locale(source)
    return Detection(locale.language, 1.0, f"{locale.language}-{locale.script}" if locale.script else locale.language)
