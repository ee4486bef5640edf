"""Threads, locks and futures without gevent here, and with gevent's patches in a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tandem.core import native
from tandem.core.device_lock import DeviceLock
from tandem.core.errors import CancelledError
from tandem.core.futures import Future
from tandem.core.loops import new_waker
from tandem.core.native import NativeCondition, NativeEvent
from tandem.core.threads import NativeThread, run_native
from tests.support.clock import FakeClock
from tests.support.waiting import TIMEOUT_S, eventually

SECRET = "secret user text"
ROOT = Path(__file__).resolve().parents[2]


# Futures


def test_a_future_gives_its_result_to_everybody_who_waits():
    future = Future()
    with ThreadPoolExecutor(4) as pool:
        waiting = [pool.submit(future.result, TIMEOUT_S) for _ in range(4)]
        eventually(lambda: len(future._wakers) == 4)
        assert future.set_result(7)
        assert [waiter.result(TIMEOUT_S) for waiter in waiting] == [7] * 4


def test_a_future_raises_its_error_in_everybody_who_waits():
    future = Future()
    future.set_exception(KeyError("k"))
    for _ in range(2):
        with pytest.raises(KeyError):
            future.result(0)
    assert isinstance(future.exception(0), KeyError)


def test_the_first_of_many_resolutions_stays():
    for _ in range(50):
        future, start = Future(), threading.Barrier(4)

        def resolve(value, future=future, start=start):
            start.wait(TIMEOUT_S)
            return future.cancel() if value == 0 else future.set_result(value)

        with ThreadPoolExecutor(4) as pool:
            won = list(pool.map(resolve, range(4)))
        assert won.count(True) == 1
        winner = won.index(True)
        assert future.cancelled() if winner == 0 else future.result(0) == winner


def test_waiting_for_a_future_ends_with_the_time_and_leaves_nothing_behind():
    future = Future()
    for timeout in (0, -1, 0.001):
        with pytest.raises(TimeoutError):
            future.result(timeout)
    assert future._wakers == []
    future.set_result("late")
    assert future.result() == "late"


def test_a_cancelled_future_tells_its_maker_once():
    told = []
    future = Future(on_cancel=lambda: told.append("cancelled"))
    assert future.cancel() and not future.cancel()
    assert told == ["cancelled"] and future.cancelled() and future.done()
    with pytest.raises(CancelledError):
        future.result()
    assert not future.set_result(1)


def test_a_resolved_future_does_not_tell_of_a_late_cancellation():
    told = []
    future = Future(on_cancel=lambda: told.append("cancelled"))
    future.set_result(None)
    assert not future.cancel()
    assert told == [] and not future.cancelled() and future.result(0) is None


def test_done_callbacks_run_once_each_before_and_after_the_result_and_one_may_raise(caplog):
    seen, future = [], Future()
    future.add_done_callback(lambda f: seen.append(("early", f.result(0))))
    future.add_done_callback(lambda f: {}[SECRET])
    future.add_done_callback(lambda f: seen.append(("second", f.result(0))))
    future.set_result(3)
    future.add_done_callback(lambda f: seen.append(("late", f.result(0))))
    assert seen == [("early", 3), ("second", 3), ("late", 3)]
    assert "KeyError" in caplog.text and "secret" not in caplog.text


def test_an_error_raised_by_many_waiters_does_not_gather_their_frames():
    future = Future()
    future.set_exception(ValueError())
    depths = []
    for _ in range(3):
        with pytest.raises(ValueError) as caught:
            future.result(0)
        depths.append(len(caught.traceback))
    assert len(set(depths)) == 1


# Native primitives


def test_engines_that_used_the_device_alike_get_it_in_the_order_of_asking():
    lock, order = DeviceLock(FakeClock()), []
    holder = lock.share()
    lock.acquire(holder)
    threads = []
    for number in range(8):

        def take_turn(number=number, share=lock.share()):  # noqa: B008 - one for each
            with share:
                order.append(number)

        threads.append(NativeThread(take_turn))
        threads[-1].start()
        eventually(lambda number=number: lock.waiting == number + 1)
    holder.used_s = 1.0  # as if it had computed meanwhile
    lock.release(holder)
    assert all(thread.join(TIMEOUT_S) for thread in threads)
    assert order == list(range(8)) and not lock.is_held


def test_an_engine_of_short_steps_gets_as_much_of_the_device_as_one_of_long_ones():
    lock, until_s = DeviceLock(), time.monotonic() + 1.0
    short, long = lock.share(), lock.share()

    def work(share, step_s):
        while time.monotonic() < until_s:
            with share:
                time.sleep(step_s)

    threads = [NativeThread(lambda: work(short, 0.002)), NativeThread(lambda: work(long, 0.03))]
    for thread in threads:
        thread.start()
    assert all(thread.join(TIMEOUT_S) for thread in threads)
    assert 0.5 < short.used_s / long.used_s < 2.0, (short.used_s, long.used_s)  # by turns it would be 0.07


def test_an_engine_of_a_higher_cost_gets_less_of_the_device():
    clock = FakeClock()
    lock = DeviceLock(clock)
    cheap, dear = lock.share(), lock.share(2.0)
    for share in (cheap, dear):
        with share:
            clock.advance(0.01)
    assert (cheap.used_s, dear.used_s) == (pytest.approx(0.01), pytest.approx(0.02))


def test_an_engine_that_was_idle_is_next_but_does_not_lock_the_other_out():
    clock = FakeClock()
    lock = DeviceLock(clock)
    busy, idle = lock.share(), lock.share()
    with busy:
        clock.advance(1000.0)
    with idle:
        assert idle.used_s == pytest.approx(busy.used_s - 0.1)
        clock.advance(0.2)
    assert idle.used_s > busy.used_s


def test_an_engine_that_does_not_come_back_is_not_waited_for():
    lock = DeviceLock()
    gone, other = lock.share(), lock.share()
    other.used_s = 1.0
    with gone:
        thread = NativeThread(other.__enter__)
        thread.start()
        eventually(lambda: lock.waiting == 1)
    assert thread.join(TIMEOUT_S) and lock.is_held


def test_the_device_lock_excludes():
    lock, inside, most = DeviceLock(), [0], [0]

    def work():
        share = lock.share()
        for _ in range(300):
            with share:
                inside[0] += 1
                most[0] = max(most[0], inside[0])
                inside[0] -= 1

    threads = [NativeThread(work) for _ in range(4)]
    for thread in threads:
        thread.start()
    assert all(thread.join(TIMEOUT_S) for thread in threads)
    assert most[0] == 1


def test_releasing_a_device_that_an_engine_does_not_hold_is_an_error():
    lock = DeviceLock()
    with lock.share(), pytest.raises(RuntimeError):
        lock.release(lock.share())


def test_a_condition_wakes_everybody_who_waits_and_a_timeout_leaves_nothing_behind():
    condition, woken = NativeCondition(), []
    with condition:
        assert not condition.wait(0.001)
    assert not condition._waiters

    def wait():
        with condition:
            woken.append(condition.wait(TIMEOUT_S))

    threads = [NativeThread(wait) for _ in range(3)]
    for thread in threads:
        thread.start()
    eventually(lambda: len(condition._waiters) == 3)
    with condition:
        condition.notify_all()
    assert all(thread.join(TIMEOUT_S) for thread in threads)
    assert woken == [True] * 3


def test_an_event_that_is_set_before_the_wait_is_not_lost():
    event = NativeEvent()
    assert not event.wait(0)
    event.set()
    assert event.is_set() and event.wait(0)
    event.clear()
    assert not event.wait(0.001)


def test_a_waker_woken_before_the_wait_does_not_block():
    waker = new_waker()
    assert not waker.wait(0)
    waker.wake()
    waker.wake()
    assert waker.wait()


def test_a_native_thread_runs_once_and_its_error_is_logged_without_the_message(caplog):
    thread = NativeThread(lambda: {}[SECRET])
    assert not thread.is_alive()
    thread.start()
    assert thread.join(TIMEOUT_S) and not thread.is_alive()
    assert "KeyError" in caplog.text and "secret" not in caplog.text
    with pytest.raises(RuntimeError):
        thread.start()


def test_joining_a_running_thread_ends_with_the_time():
    event = NativeEvent()
    thread = NativeThread(lambda: event.wait(TIMEOUT_S))
    thread.start()
    assert not thread.join(0) and thread.is_alive()
    event.set()
    assert thread.join(TIMEOUT_S)


def test_without_gevent_native_work_runs_in_the_calling_thread():
    assert run_native(threading.get_ident) == threading.get_ident()
    assert run_native(lambda a, b: a + b, 1, b=2) == 3
    with pytest.raises(ZeroDivisionError):
        run_native(lambda: 1 / 0)


def test_importing_the_module_does_not_import_gevent():
    code = "import sys, batch_scheduler, tandem.core.native as c; print('gevent' in sys.modules, c.is_patched())"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.split() == ["False", "False"]


def test_this_process_is_not_patched():
    assert not native.is_patched()


# Under gevent


@pytest.fixture(scope="module", params=["imported-before-patching", "imported-after-patching"])
def under_gevent(request):
    """Run the scenario in a patched process and return what it saw."""
    pytest.importorskip("gevent")
    command = [sys.executable, "-X", "faulthandler", "-m", "tests.support.gevent_scenario", request.param]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr, done.stderr
    return json.loads(done.stdout)


def test_the_loop_stays_responsive_while_the_engine_computes(under_gevent):
    gaps_ms = sorted(under_gevent["gaps_ms"])
    # Each step computes for about 100 ms: on the loop's thread, hardly a tick would come in between.
    assert under_gevent["burnt_ms"] > 500
    assert len(gaps_ms) > 20
    assert gaps_ms[int(len(gaps_ms) * 0.9)] < 50


def test_greenlets_get_their_results(under_gevent):
    assert under_gevent["results"] == [["done", [n], 2] for n in range(20)]


def test_the_engine_runs_on_another_operating_system_thread(under_gevent):
    assert under_gevent["engine_threads"] == 1
    assert under_gevent["engine_on_loop"] is False


def test_callbacks_and_events_run_on_the_loops_thread_and_may_wait_there(under_gevent):
    assert under_gevent["callback_on_loop"] is True
    assert under_gevent["events_on_loop"] is True


def test_native_work_leaves_the_loop_running_and_brings_back_results_and_errors(under_gevent):
    assert under_gevent["native_on_loop"] is False
    assert under_gevent["ticks_during_native"] > 2
    assert under_gevent["native_error"] == "KeyError"


def test_waiting_greenlets_time_out_while_the_engine_is_busy(under_gevent):
    assert under_gevent["timed_out"] is True


def test_a_large_request_trickles_in_while_other_greenlets_run(under_gevent):
    assert under_gevent["trickled"] == 40
    assert under_gevent["ticks_during_trickle"] > 2


def test_a_killed_greenlet_takes_its_request_along(under_gevent):
    assert under_gevent["killed_request_cancelled"] is True


def test_a_native_thread_may_wait_for_the_scheduler_too(under_gevent):
    assert under_gevent["native_waiter"] == ["done", [777], 2]


def test_a_scheduler_made_on_a_native_thread_reports_to_the_loop(under_gevent):
    assert under_gevent["inherited_loop"] is True


def test_draining_waits_without_stopping_the_loop(under_gevent):
    assert under_gevent["drained"] is True
    assert under_gevent["closed"] is True
