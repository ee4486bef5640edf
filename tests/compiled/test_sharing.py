"""Threads that share out work while they compute."""

from __future__ import annotations

import threading

import numpy as np

from tandem.compiled.linear import Integers, kernel
from tandem.compiled.sharing import take
from tandem.compiled.team import Team

COUNT = 200_000


@kernel
def _count_all(taken: Integers, visits: Integers) -> int:
    """Add one to every entry that this thread takes; return how many those are."""
    own, first = 0, take(taken, 3)
    while first < visits.shape[0]:
        for place in range(first, min(first + 3, visits.shape[0])):
            visits[place] += 1
            own += 1
        first = take(taken, 3)
    return own


def test_every_entry_is_taken_once() -> None:
    _count_all(np.zeros(1, np.int64), np.zeros(1, np.int64))  # compiled before threads need it
    meeting, shares = threading.Barrier(3), []
    taken, visits = np.zeros(1, np.int64), np.zeros(COUNT, np.int64)

    def part() -> None:
        meeting.wait(20)
        shares.append(_count_all(taken, visits))

    Team(3).run([part] * 3)
    assert (visits == 1).all()
    assert sum(shares) == COUNT


def test_a_thread_that_is_held_up_leaves_the_rest_to_the_others() -> None:
    _count_all(np.zeros(1, np.int64), np.zeros(1, np.int64))
    done, shares = threading.Event(), []
    taken, visits = np.zeros(1, np.int64), np.zeros(COUNT, np.int64)

    def quick() -> None:
        shares.append(_count_all(taken, visits))
        done.set()

    def held_up() -> None:
        assert done.wait(20)
        shares.append(_count_all(taken, visits))

    Team(2).run([held_up, quick])
    assert shares == [COUNT, 0]
