"""The one table of languages: codes, their many spellings, names in English and Chinese."""

from __future__ import annotations

from dataclasses import dataclass

from tandem.core.errors import UnprocessableError

AUTO = "auto"
SIMPLIFIED, TRADITIONAL = "Hans", "Hant"


@dataclass(frozen=True, slots=True)
class Language:
    """A language as the service knows it.

    Attributes:
        code: What the models and every answer call it.
        name: In English.
        chinese_name: In Chinese.
        aliases: Further spellings, lower case, with "-".
        spaceless: Its words and sentences stand without spaces between them.
    """

    code: str
    name: str
    chinese_name: str
    aliases: tuple[str, ...]
    spaceless: bool = False


@dataclass(frozen=True, slots=True)
class Locale:
    """A language and, for Chinese, how it is written.

    Attributes:
        language: Code of a known language.
        script: "Hans", "Hant", or "" where the code does not say.
    """

    language: str
    script: str = ""


@dataclass(frozen=True, slots=True)
class Direction:
    """From which language into which.

    Attributes:
        source: Code of a known language.
        target: Code of a known language.
        target_script: "Hant" writes a Chinese translation in traditional characters.
    """

    source: str
    target: str
    target_script: str = ""


LANGUAGES = (
    Language(
        "zh",
        "Chinese",
        "中文",
        ("chinese", "chi", "zho", "cmn", "zhs", "zht", "cn", "tw", "hk", "zh-chs", "zh-cht", "中文", "汉语", "漢語"),
        spaceless=True,
    ),
    Language("en", "English", "英语", ("english", "eng", "英语", "英文", "英語")),
    Language("es", "Spanish", "西班牙语", ("spanish", "spa", "español", "西班牙语")),
    Language("fr", "French", "法语", ("french", "fra", "fre", "français", "法语")),
)
_BY_CODE = {language.code: language for language in LANGUAGES}
_BY_ALIAS = {alias: language for language in LANGUAGES for alias in (language.code, *language.aliases)}
_TRADITIONAL_PARTS = frozenset({"hant", "tw", "hk", "mo", "cht", "zht"})
_SIMPLIFIED_PARTS = frozenset({"hans", "cn", "sg", "my", "chs", "zhs"})


def parse_locale(code: str) -> Locale:
    """Read a language code in any of its spellings: "zh", "zh_CN", "ZH-Hant-TW", "zht", "en-US", "Chinese".

    Raises:
        UnprocessableError: The language is not known; the message names those that are.
    """
    spelling = code.strip().replace("_", "-").lower()
    language = _BY_ALIAS.get(spelling) or _BY_ALIAS.get(spelling.split("-", 1)[0])
    if language is None or not _are_subtags(spelling):
        known = ", ".join(f"{known.code} ({known.name})" for known in LANGUAGES)
        raise UnprocessableError(f"The language {code[:40]!r} is not known. Known are: {known}; and auto for a source.")
    return Locale(language.code, _script(spelling) if language.code == "zh" else "")


def parse_language(code: str) -> str:
    """Return the code of a language given in any of its spellings; "auto" stays "auto".

    Raises:
        UnprocessableError: The language is not known; the message names those that are.
    """
    if code.strip().lower() == AUTO:
        return AUTO
    return parse_locale(code).language


def language_info(code: str) -> Language:
    """Return the table's entry for a known code."""
    return _BY_CODE[code]


def is_spaceless(code: str) -> bool:
    """Say whether a language is written without spaces between sentences."""
    known = _BY_CODE.get(code)
    return known is not None and known.spaceless


def _script(spelling: str) -> str:
    parts = frozenset(spelling.split("-"))
    if parts & _TRADITIONAL_PARTS:
        return TRADITIONAL
    return SIMPLIFIED if parts & _SIMPLIFIED_PARTS else ""


def _are_subtags(spelling: str) -> bool:
    """Say whether what follows the language looks like a script, a region or a variant."""
    return all(1 < len(part) <= 8 and part.isalnum() for part in spelling.split("-")[1:])
