"""Which texts share a padded rectangle: pure decisions about lengths."""

from __future__ import annotations

from collections.abc import Sequence

PADDING_SHARE = 0.08


def plan_groups(lengths: Sequence[int], budget: int, padding_share: float = PADDING_SHARE) -> list[list[int]]:
    """Split texts into groups of similar length.

    Args:
        lengths: Tokens of each text; positive.
        budget: Padded tokens of a group, longest x count; a single text may exceed it.
        padding_share: Largest share of a group's padded tokens that is padding; 0 puts only equal lengths together.

    Returns:
        Indices of the texts, longest group first; every index once, equal lengths in order of arrival.
    """
    groups: list[list[int]] = []
    longest = real = 0
    for index in sorted(range(len(lengths)), key=lambda index: -lengths[index]):
        length = lengths[index]
        padded = longest * (len(groups[-1]) + 1) if groups else 0
        if groups and padded <= budget and padded - real - length <= padding_share * padded:
            groups[-1].append(index)
            real += length
        else:
            groups.append([index])
            longest = real = length
    return groups
