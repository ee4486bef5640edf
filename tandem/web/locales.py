"""How each product spells the languages that the loaded models know."""

from __future__ import annotations

from collections.abc import Sequence

from tandem.text.detection import Detection
from tandem.text.languages import TRADITIONAL, language_info, parse_locale

Direction = tuple[str, str]

_LIBRETRANSLATE = {"zh": (("zh-Hans", "Chinese"), ("zh-Hant", "Chinese (traditional)"))}
_DEEPL_TARGETS = {
    "zh": (
        ("ZH", "Chinese (simplified)"),
        ("ZH-HANS", "Chinese (simplified)"),
        ("ZH-HANT", "Chinese (traditional)"),
    ),
    "en": (("EN-GB", "English (British)"), ("EN-US", "English (American)")),
}


def libretranslate_codes(language: str) -> Sequence[tuple[str, str]]:
    """Return codes and names by which LibreTranslate's clients know a language."""
    return _LIBRETRANSLATE.get(language) or ((language, language_info(language).name),)


def libretranslate_code(detection: Detection) -> str:
    """Return the code of a detected language."""
    if detection.language != "zh":
        return detection.language
    return "zh-Hant" if _is_traditional(detection) else "zh-Hans"


def deepl_sources(directions: Sequence[Direction]) -> list[tuple[str, str]]:
    """Return codes and names of the languages that can be translated from."""
    sources = dict.fromkeys(source for source, _ in directions)
    return [(source.upper(), language_info(source).name) for source in sources]


def deepl_targets(directions: Sequence[Direction]) -> list[tuple[str, str]]:
    """Return codes and names of the languages that can be translated into; DeepL's client refuses a plain EN."""
    targets = dict.fromkeys(target for _, target in directions)
    return [
        pair
        for target in targets
        for pair in _DEEPL_TARGETS.get(target) or ((target.upper(), language_info(target).name),)
    ]


def browser_code(detection: Detection) -> str:
    """Return the code that browser extensions use for a detected language: zh-CN, zh-TW, en."""
    if detection.language != "zh":
        return detection.language
    return "zh-TW" if _is_traditional(detection) else "zh-CN"


def _is_traditional(detection: Detection) -> bool:
    return parse_locale(detection.variant).script == TRADITIONAL
