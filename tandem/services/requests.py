"""What goes into and comes out of a translation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tandem.services.computing import Times
from tandem.text.detection import Detection
from tandem.text.languages import AUTO


@dataclass(frozen=True, slots=True)
class TranslateRequest:
    """A translation request, checked for its form.

    Attributes:
        texts: At least one.
        source: A language code in any spelling, or "auto".
        target: A language code in any spelling; "" for the one there is.
        format: "text", "html" or "xml".
        alternatives: Further translations wanted of each segment.
        target_prefix: What the translation must begin with; "" for nothing.
        glossary: Terms and their translations.
    """

    texts: tuple[str, ...]
    source: str = AUTO
    target: str = ""
    format: str = "text"
    alternatives: int = 0
    target_prefix: str = ""
    glossary: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TranslatedSegment:
    """A segment with its translation.

    Attributes:
        index: From 0 over all texts of the request.
        item: Which text it is of.
        source: As it stands there.
        target: Its translation, as it stands in the translated text.
        source_span: Start and end in the source text, in UTF-16 units, as a browser counts.
        target_span: Start and end in the translated text, in UTF-16 units.
        score: Length-normalised log-prob of the model's translation.
        alternatives: Further translations with their scores, best first.
        warnings: What the reader should know, see `tandem.text.plan.Translated`.
    """

    index: int
    item: int
    source: str
    target: str
    source_span: tuple[int, int]
    target_span: tuple[int, int]
    score: float
    alternatives: tuple[tuple[str, float], ...] = ()
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TranslateResult:
    """A finished request.

    Attributes:
        translations: One a text, in order.
        detections: What each text was taken for.
        target: The target language's code.
        segments: All segments in order.
        times: Where the time went.
    """

    translations: tuple[str, ...]
    detections: tuple[Detection, ...]
    target: str
    segments: tuple[TranslatedSegment, ...]
    times: Times
