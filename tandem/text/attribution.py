"""Which words of a translation came from a term of its source.

A term gets the word that pays it the most attention, and the words beside it that look at nothing else as much. Words
that only hold a sentence together (articles, marks) look at their neighbours' sources and are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from tandem.core.types import Link
from tandem.text.languages import is_spaceless

Place = tuple[int, int]

_LEAST = 0.1  # attention that a word must pay to a term to be taken for its translation
_HELPER_SHARE = 0.5  # what the attention of a helping word counts
_NEIGHBOUR_SHARE = 2.0  # how much more a further word of a term must look at it than at anything else
_GLUE = frozenset(
    "a an the of to and or in on at by for from with as it 的 地 得 和 与 或 了 着 一个 一 个 在 中 上 下 里".split()
)
_HELPERS = frozenset(
    "is are was were be been being am has have had do does did will would can could may might must shall should if its"
    " this that these those you your we our i my they their he she his her not no please there than then also when"
    " 是 有 把 被 将 会 请 您 你 我 他 她 它 您的 你的 我们 他们 这 那 该 此 这个 那个 到 从 为 对 时 也 都 就 不 没有"
    " 可以 能 要 以 并 而 且 等".split()
)


@dataclass(frozen=True, slots=True)
class _Word:
    """A word of the translation.

    Attributes:
        place: Its offsets.
        masses: The attention it pays to each term.
        rivals: The most attention that it pays to a single piece of the source outside each term.
        worth: What its attention counts: 1 for a word of its own meaning, less for one that helps others.
    """

    place: Place
    masses: tuple[float, ...]
    rivals: tuple[float, ...]
    worth: float

    def belongs(self, term: int) -> bool:
        """Say whether it looks at a term and at nothing else as much."""
        return self.worth == 1 and self.masses[term] >= max(_NEIGHBOUR_SHARE * self.rivals[term], _LEAST)


def move_links(links: Sequence[Link], output: str, cleaned: str, clean: Callable[[str], str]) -> tuple[Link, ...]:
    """Return links to where their words stand in an output after it was cleaned; those of lost words are dropped.

    Args:
        links: To the output.
        output: As it was.
        cleaned: As it is now.
        clean: What was done to it, or nearly: a stretch of the output -> that stretch of the other.
    """
    if output == cleaned:
        return tuple(links)
    places: dict[Place, Place | None] = {}
    for link in links:
        place = (link.target_start, link.target_end)
        if place not in places:
            word = clean(output[slice(*place)])
            start = cleaned.find(word, len(clean(output[: place[0]]))) if word else -1
            places[place] = (start, start + len(word)) if start >= 0 else None
    return tuple(
        link._replace(target_start=moved[0], target_end=moved[1])
        for link in links
        if (moved := places[link.target_start, link.target_end]) is not None
    )


def attribute(
    output: str, links: Sequence[Link], terms: Sequence[Place], taken: Sequence[Place], target: str
) -> list[Place | None]:
    """Return where in a translation each term is, None for one that no word can be attributed to.

    Args:
        output: The translation.
        links: Which of its words came from where.
        terms: Where in the source the terms are.
        taken: Places in the translation that belong to something else.
        target: Code of the target language.
    """
    words = list(_build_words(output, links, terms, taken))
    owners = _choose(words, len(terms))
    found: list[Place | None] = []
    for term in range(len(terms)):
        seed = next((index for index, owner in owners.items() if owner == term), None)
        found.append(None if seed is None else _extend(seed, term, words, owners, output, target))
    return found


def _build_words(output: str, links: Sequence[Link], terms: Sequence[Place], taken: Sequence[Place]) -> Iterator[_Word]:
    """Yield the words that may be a term's, in the order of the translation."""
    linked: dict[Place, list[Link]] = {}
    for link in links:
        linked.setdefault((link.target_start, link.target_end), []).append(link)
    for place, own in sorted(linked.items()):
        text = output[slice(*place)].lower()
        is_free = not any(place[0] < end and start < place[1] for start, end in taken)
        worth = _HELPER_SHARE if text in _HELPERS else 1.0
        if is_free and text not in _GLUE and any(map(str.isalnum, text)):
            yield _Word(
                place,
                tuple(sum(link.weight * _share(link, term) for link in own) for term in terms),
                tuple(max((link.weight * (1 - _share(link, term)) for link in own), default=0.0) for term in terms),
                worth,
            )


def _share(link: Link, term: Place) -> float:
    """Return how much of a link's piece of the source lies in a term, from 0 to 1."""
    common = min(link.source_end, term[1]) - max(link.source_start, term[0])
    return max(common, 0) / (link.source_end - link.source_start)


def _choose(words: Sequence[_Word], terms: int) -> dict[int, int]:
    """Return the term of each word that is one's best, by index; the strongest claims are met first."""
    claims = sorted(
        (
            (word.masses[term] * word.worth, -index, term)
            for index, word in enumerate(words)
            for term in range(terms)
            if word.masses[term] * word.worth >= _LEAST
        ),
        reverse=True,
    )
    owners: dict[int, int] = {}
    for _, negative, term in claims:
        if -negative not in owners and term not in owners.values():
            owners[-negative] = term
    return owners


def _extend(seed: int, term: int, words: Sequence[_Word], owners: Mapping[int, int], output: str, target: str) -> Place:
    """Return the run of words around a term's best one that belong to it too."""
    first = last = seed
    while first > 0 and _joins(first - 1, first, words, owners, output) and words[first - 1].belongs(term):
        first -= 1
    while last + 1 < len(words) and _joins(last, last + 1, words, owners, output) and words[last + 1].belongs(term):
        last += 1
    start, end = words[first].place[0], words[last].place[1]
    if is_spaceless(target):
        return start, end
    while start > 0 and output[start - 1].isalnum():
        start -= 1
    while end < len(output) and output[end].isalnum():
        end += 1
    return start, end


def _joins(left: int, right: int, words: Sequence[_Word], owners: Mapping[int, int], output: str) -> bool:
    """Say whether nothing but blanks stands between two neighbours, one of them without a term of its own."""
    between = output[words[left].place[1] : words[right].place[0]]
    return not between.strip() and not (left in owners and right in owners)
