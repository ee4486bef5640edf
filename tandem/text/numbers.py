"""Numbers and dates that the other language writes otherwise: 3.5万 is 35,000, 2026年12月1日 is December 1, 2026.

A model that copies the digits would be wrong by a factor of ten thousand, so these are rewritten, not translated.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import Decimal

from tandem.text.spans import Finder, Kind, Span

_MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
    "December",
)  # fmt: skip
_POWERS = {"万亿": 12, "百亿": 10, "千亿": 11, "十亿": 9, "亿": 8, "千万": 7, "百万": 6, "十万": 5, "万": 4}
_WORDS = ((12, "trillion"), (9, "billion"), (6, "million"))
_MONTH_DIGITS, _DAY_DIGITS = "1[0-2]|0?[1-9]", r"3[01]|[12]\d|0?[1-9]"
_CHINESE = re.compile(
    rf"(?<![\d.年月])(?P<year>\d{{4}}) ?年"
    rf"(?: ?(?P<month>{_MONTH_DIGITS}) ?月(?:份| ?(?P<day>{_DAY_DIGITS}) ?[日号])?)?(?![初末底代])"
    rf"|(?<![\d.年月])(?P<month2>{_MONTH_DIGITS}) ?月 ?(?P<day2>{_DAY_DIGITS}) ?[日号]"
    rf"|(?<![\d.,])(?P<amount>\d{{1,12}}(?:,\d{{3}})*(?:\.\d{{1,6}})?) ?(?P<power>{'|'.join(_POWERS)})"
    r"(?![\d分一二三四五六七八九十])(?P<money>美元|欧元|英镑|日元|元)?"
)
_MONTH = "|".join(f"{name[:3]}(?:{name[3:]})?\\.?" if len(name) > 3 else name for name in _MONTHS)
_CURRENCIES = {"美元": "US dollars", "欧元": "euros", "英镑": "pounds", "日元": "yen", "元": "yuan"}
_CURRENCY_SIGNS = {"$": "美元", "US$": "美元", "€": "欧元", "£": "英镑", "¥": "元"}
_ENGLISH = re.compile(
    rf"\b(?P<month>{_MONTH}) (?P<day>3[01]|[12]\d|0?[1-9])(?:st|nd|rd|th)?, (?P<year>\d{{4}})\b"
    r"|(?<![\d.,$€£])(?P<sign>(?:US)?\$|[€£¥])?"
    r"(?P<amount>\d{1,6}(?:\.\d{1,6})?) (?P<word>trillion|billion|million)\b"
    r"|(?<![\d.,:])(?P<hour>1[0-2]|0?[1-9])(?::(?P<minute>[0-5]\d))?"
    r" ?(?P<half>[ap])(?:m\b|\.m(?:\.(?=\s+[a-z(]|[,;:)]))?)"
)


def number_finder(source: str, target: str) -> Finder | None:
    """Return what finds the numbers and dates that the target language writes otherwise; None where none is known."""
    known: dict[tuple[str, str], Finder] = {("zh", "en"): _find_chinese, ("en", "zh"): _find_english}
    return known.get((source, target))


def _find_chinese(text: str, start: int, end: int) -> Iterator[Span]:
    for match in _CHINESE.finditer(text, start, end):
        yield Span(match.start(), match.end(), Kind.TERM, _english(match))


def _find_english(text: str, start: int, end: int) -> Iterator[Span]:
    for match in _ENGLISH.finditer(text, start, end):
        yield Span(match.start(), match.end(), Kind.TERM, _chinese(match))


def _english(match: re.Match[str]) -> str:
    if match["amount"]:
        amount = _english_amount(Decimal(match["amount"].replace(",", "")), _POWERS[match["power"]])
        return f"{amount} {_CURRENCIES[match['money']]}" if match["money"] else amount
    if match["month2"]:
        return f"{_MONTHS[int(match['month2']) - 1]} {int(match['day2'])}"
    if not match["month"]:
        return match["year"]
    month = _MONTHS[int(match["month"]) - 1]
    return f"{month} {int(match['day'])}, {match['year']}" if match["day"] else f"{month} {match['year']}"


def _english_amount(amount: Decimal, power: int) -> str:
    value = amount.scaleb(power)
    for exponent, word in _WORDS:
        if value >= Decimal(10) ** exponent:
            return f"{_plain(value.scaleb(-exponent))} {word}"
    return f"{_plain(value)}" if value % 1 else f"{int(value):,}"


def _chinese(match: re.Match[str]) -> str:
    if match["hour"]:
        half = "上午" if match["half"] == "a" else "下午"
        return f"{half}{int(match['hour'])}" + (f":{match['minute']}" if match["minute"] else "点")
    if match["amount"]:
        return _chinese_amount(match) + _CURRENCY_SIGNS.get(match["sign"] or "", "")
    month = next(i for i, name in enumerate(_MONTHS, 1) if match["month"].startswith(name[:3]))
    return f"{match['year']}年{month}月{int(match['day'])}日"


def _chinese_amount(match: re.Match[str]) -> str:
    exponent = next(exponent for exponent, word in _WORDS if word == match["word"])
    value = Decimal(match["amount"]).scaleb(exponent)
    for power, word in ((12, "万亿"), (8, "亿"), (4, "万")):
        if value >= Decimal(10) ** power:
            return _plain(value.scaleb(-power)) + word
    return _plain(value)


def _plain(value: Decimal) -> str:
    """Return a number without an exponent or needless zeros."""
    return f"{value:f}".rstrip("0").rstrip(".") if "." in f"{value:f}" else f"{value:f}"
