"""From subwords to the characters they stand for, and from attention between subwords to links between words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from html import unescape

from tandem.core.types import Link
from tandem.csanmt.bpe import CONTINUATION

Place = tuple[int, int]
Spelled = tuple[Sequence[str], str]
_FAINTEST = 0.05  # links below are left out
_DASH = "@-@"  # how Moses writes a dash within a word


def find_links(source: Spelled, target: Spelled, alignment: Sequence[Sequence[float]]) -> tuple[Link, ...]:
    """Return which words of a translation came from which subwords of its source.

    Args:
        source: Subwords and the text they were made from.
        target: Subwords and the text that was made of them.
        alignment: Attention of each target subword to each source subword, and to more at the end of each row, [T, S].
    """
    places = locate(*source)
    found = []
    spots = locate(*target)
    for word in group_words(target[0]):
        rows = [alignment[token] for token in word if token < len(alignment)]
        start, end = _hull([spots[token] for token in word])
        if not rows or start == end:
            continue
        means = [sum(column) / len(rows) for column in zip(*rows, strict=True)]
        for place, weight in zip(places, means, strict=False):
            if weight >= _FAINTEST and place[0] < place[1]:
                found.append(Link(*place, start, end, round(weight, 3)))
    return tuple(found)


def locate(tokens: Sequence[str], text: str) -> list[Place]:
    """Return where each subword stands in a text, as offsets of its first character and behind its last.

    The text holds the subwords' characters in their order. Blanks do not count; escapes are read; what a normalizer
    changed, dropped or added is passed over, and a subword of which nothing is left has an empty place.
    """
    units = list(_spell(tokens))
    at = [index for index, character in enumerate(text) if not character.isspace()]
    spelled = "".join(characters for _, characters in units)
    offsets = _match(spelled, "".join(text[index] for index in at))
    places = [(0, 0)] * len(tokens)
    done = 0
    for token_indexes, characters in units:
        found = [at[offset] for offset in offsets[done : done + len(characters)] if offset is not None]
        done += len(characters)
        if found:
            places[token_indexes[0] : token_indexes[-1] + 1] = [(found[0], found[-1] + 1)] * len(token_indexes)
    return places


def group_words(tokens: Sequence[str]) -> Iterator[list[int]]:
    """Yield the indexes of the subwords of each word."""
    word: list[int] = []
    for index, token in enumerate(tokens):
        word.append(index)
        if not token.endswith(CONTINUATION):
            yield word
            word = []
    if word:
        yield word


def _spell(tokens: Sequence[str]) -> Iterator[tuple[list[int], str]]:
    """Yield subwords with their characters; those of a word with an escape, which may be split anywhere, together."""
    for word in group_words(tokens):
        pieces = [tokens[index].removesuffix(CONTINUATION) for index in word]
        whole = "".join(pieces)
        plain = unescape(whole).replace(_DASH, "-")
        if plain == whole:
            yield from (([index], piece) for index, piece in zip(word, pieces, strict=True))
        else:
            yield word, "".join(plain.split())


def _match(spelled: str, text: str) -> list[int | None]:
    """Return for each character of the first string its offset in the second, None for one that is not there."""
    if spelled == text:
        return list(range(len(text)))
    offsets: list[int | None] = [None] * len(spelled)
    for block in SequenceMatcher(None, spelled, text, autojunk=False).get_matching_blocks():
        offsets[block.a : block.a + block.size] = range(block.b, block.b + block.size)
    return offsets


def _hull(places: Sequence[Place]) -> Place:
    """Return the stretch from the first place that is not empty to the last."""
    real = [place for place in places if place[0] < place[1]]
    return (real[0][0], real[-1][1]) if real else (0, 0)
