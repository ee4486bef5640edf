"""Which sources are computed together."""

from __future__ import annotations

from collections.abc import Sequence

from tandem.core.types import Item

_LENGTH_RATIO = 1.25  # longest over shortest source that are still encoded together
MOST_PAIRS = 1 << 20  # of positions that look at each other in one group; the memory of an attention's weights


def group_by_length(items: Sequence[Item]) -> list[list[Item]]:
    """Split items into groups that are encoded together with little padding, shortest first.

    Long ones are kept apart: attention weighs every position of a sentence against every other.
    """
    groups: list[list[Item]] = []
    for item in sorted(items, key=lambda item: item.length):
        if groups and _belongs(item, groups[-1]):
            groups[-1].append(item)
        else:
            groups.append([item])
    return groups


def _belongs(item: Item, group: Sequence[Item]) -> bool:
    is_similar = item.length <= group[0].length * _LENGTH_RATIO
    return is_similar and (len(group) + 1) * item.length**2 <= MOST_PAIRS
