"""Which language a text is in, from its characters and its commonest words; no model, nothing to download."""

from __future__ import annotations

import re
from dataclasses import dataclass

from tandem.text.chinese import chinese_script
from tandem.text.scripts import ARABIC, CYRILLIC, DEVANAGARI, GREEK, HAN, HANGUL, HEBREW, KANA, LATIN, THAI
from tandem.text.spans import find_spans

_SAMPLE = 5_000  # characters; a longer text is judged by its beginning
_HAN_PER_WORD = 1.5  # Chinese characters that weigh as much as a word in letters
_FALLBACK = "en"

_WORDS = {
    "zh": re.compile(f"[{HAN}]"),
    "latin": re.compile(f"[{LATIN}]+(?:['’][{LATIN}]+)?"),
    "ja": re.compile(f"[{KANA}]"),
    "ko": re.compile(f"[{HANGUL}]+"),
    "ru": re.compile(f"[{CYRILLIC}]+"),
    "el": re.compile(f"[{GREEK}]+"),
    "ar": re.compile(f"[{ARABIC}]+"),
    "he": re.compile(f"[{HEBREW}]+"),
    "th": re.compile(f"[{THAI}]+"),
    "hi": re.compile(f"[{DEVANAGARI}]+"),
}

_COMMON_WORDS = {
    "en": frozenset(
        "the of and to in is you that it he was for on are as with his they at be this have from or had by but not"
        " what all were we when your can said there use an each which she do how their if will up about out then"
        " them these so some her would make like him has my than been who its now did get may open file please".split()
    ),
    "fr": frozenset(
        "le la les des et est un une du que qui dans pour pas sur avec ce il elle nous vous je au aux en ne se son sa"
        " ses sont mais ou où par plus être fait cette ces leur bonjour merci votre notre c'est d'une l'on très".split()
    ),
    "es": frozenset(
        "el los las y es un una que del en por para con no se su al lo como más pero sus le ya este sí porque esta"
        " son entre cuando muy sin sobre también me hasta hay donde está gracias hola usted nosotros todo".split()
    ),
}
_MARKS_OF = {"fr": re.compile("[àâçèêëîïôœùûÿ]", re.I), "es": re.compile("[ñ¿¡áíóú]", re.I)}


@dataclass(frozen=True, slots=True)
class Detection:
    """What a text seems to be written in.

    Attributes:
        language: A code; it may be of a language that no model knows.
        confidence: 0 to 1; 0 when the text has no words.
        variant: "zh-Hans" or "zh-Hant" where the characters tell, else the language's code.
    """

    language: str
    confidence: float
    variant: str


def detect_language(text: str) -> Detection:
    """Say which language a text is in, short texts included; what is not language (URLs, code, ...) does not count."""
    sample = text[:_SAMPLE]
    prose = _drop_spans(sample)
    weights = _weigh(prose) or _weigh(sample)
    if not weights:
        return Detection(_FALLBACK, 0.0, _FALLBACK)
    total = sum(weights.values())
    script, weight = max(weights.items(), key=lambda item: item[1])
    share = weight / total
    if script == "latin":
        return _detect_latin(prose, share)
    if script == "zh":
        written = chinese_script(prose)
        return Detection("zh", _confidence(share, weight), f"zh-{written}" if written else "zh")
    return Detection(script, _confidence(share, weight), script)


def _drop_spans(text: str) -> str:
    """Return a text without its protected spans; names in letters stay, for they are words of some language."""
    parts: list[str] = []
    at = 0
    for span in find_spans(text):
        parts += (text[at : span.start], " ")
        at = span.end
    return "".join(parts) + text[at:]


def _weigh(text: str) -> dict[str, float]:
    """Count words by script; Chinese characters weigh less, and kana makes them Japanese."""
    counts = {name: float(len(words.findall(text))) for name, words in _WORDS.items()}
    counts["zh"] /= _HAN_PER_WORD
    counts["ja"] /= _HAN_PER_WORD
    if counts["ja"] * 8 > counts["zh"]:
        counts["ja"] += counts.pop("zh")
    return {name: count for name, count in counts.items() if count > 0}


def _confidence(share: float, words: float) -> float:
    """Return more the larger the script's share is, and a little less for a text of one or two words."""
    return round(min(share, 1.0) * (1.0 if words >= 2 else 0.9), 3)


def _detect_latin(text: str, share: float) -> Detection:
    words = [word.lower().replace("’", "'") for word in _WORDS["latin"].findall(text)]
    scores = {language: float(sum(word in common for word in words)) for language, common in _COMMON_WORDS.items()}
    for language, marks in _MARKS_OF.items():
        scores[language] += 1.5 * len(marks.findall(text))
    best = max(scores, key=lambda language: scores[language])
    found = sum(scores.values())
    if not found:
        return Detection("en", round(0.6 * share, 3), "en")
    return Detection(best, round(share * (0.5 + 0.5 * scores[best] / found), 3), best)
