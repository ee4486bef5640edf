"""Threads that share a call."""

from __future__ import annotations

import threading

import pytest

from tandem.compiled.team import Team, get_team

TIMEOUT_S = 20


def test_parts_run_at_the_same_time_and_all_are_done() -> None:
    meeting, done = threading.Barrier(3), []

    def part() -> None:
        meeting.wait(TIMEOUT_S)
        done.append(threading.get_ident())

    for _ in range(20):
        done.clear()
        Team(3).run([part, part, part])
        assert len(set(done)) == 3


def test_fewer_parts_than_threads_and_none() -> None:
    done: list[int] = []
    get_team(4).run([])
    get_team(4).run([lambda: done.append(1)])
    assert done == [1]


@pytest.mark.parametrize("failing", [0, 1])
def test_an_error_of_a_part_is_raised_when_all_are_done_and_the_team_goes_on(failing: int) -> None:
    team, done = get_team(2), []

    def part(number: int) -> None:
        if number == failing:
            raise ValueError("of a part")
        done.append(number)

    with pytest.raises(ValueError, match="of a part"):
        team.run([lambda: part(0), lambda: part(1)])
    assert done == [1 - failing]
    team.run([lambda: done.append(7), lambda: done.append(7)])
    assert done.count(7) == 2


def test_callers_take_turns() -> None:
    team, inside, most = get_team(2), [], []

    def part() -> None:
        inside.append(1)
        most.append(len(inside))
        inside.pop()

    callers = [threading.Thread(target=lambda: [team.run([part]) for _ in range(50)]) for _ in range(4)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join(TIMEOUT_S)
    assert max(most) == 1
