"""Which sources are computed together."""

from __future__ import annotations

from collections.abc import Sequence

from tandem.core.types import Item

_LENGTH_RATIO = 1.25  # longest over shortest source that are still encoded together


def group_by_length(items: Sequence[Item]) -> list[list[Item]]:
    """Split items into groups that are encoded together with little padding, shortest first."""
    groups: list[list[Item]] = []
    for item in sorted(items, key=lambda item: item.length):
        if groups and item.length <= groups[-1][0].length * _LENGTH_RATIO:
            groups[-1].append(item)
        else:
            groups.append([item])
    return groups
