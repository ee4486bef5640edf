"""A process with gevent's patches: schedulers and threads at work beside greenlets; prints what it saw as JSON."""

from __future__ import annotations

import sys

if sys.argv[1] == "imported-before-patching":
    import batch_scheduler

import gevent.monkey

gevent.monkey.patch_all()

import hashlib  # noqa: E402
import json  # noqa: E402
import time  # noqa: E402

import gevent  # noqa: E402

import batch_scheduler  # noqa: E402
from tandem.core.device_lock import DeviceLock  # noqa: E402
from tandem.core.native import NativeEvent  # noqa: E402
from tandem.core.threads import NativeThread, run_native  # noqa: E402
from tandem.core.types import Item  # noqa: E402
from tests.support.engines import FakeEngine  # noqa: E402

native_ident = gevent.monkey.get_original("_thread", "get_ident")
LOOP_THREAD = native_ident()
BLOCK = bytes(1 << 20)


def burn(seconds: float) -> None:
    """Compute without the interpreter's lock, as an engine does."""
    limit_s = time.perf_counter() + seconds
    while time.perf_counter() < limit_s:
        hashlib.sha256(BLOCK).digest()


class Ticker:
    """Measures how long the loop takes to come round."""

    def __init__(self) -> None:
        """Start ticking."""
        self.gaps_ms: list[float] = []
        self._greenlet = gevent.spawn(self._tick)

    def _tick(self) -> None:
        while True:
            before_s = time.perf_counter()
            gevent.sleep(0.005)
            self.gaps_ms.append((time.perf_counter() - before_s) * 1000)

    def stop(self) -> list[float]:
        """Stop and return the gaps in milliseconds."""
        self._greenlet.kill()
        return self.gaps_ms


def scheduler_with(engine: FakeEngine, **policy: int) -> batch_scheduler.BatchScheduler:
    scheduler = batch_scheduler.BatchScheduler(
        engine, batch_scheduler.BatchPolicy(**policy), name="test", device=DeviceLock().share(), on_event=on_event
    )
    scheduler.start()
    return scheduler


event_threads: set[int] = set()


def on_event(event: batch_scheduler.SchedulerEvent) -> None:
    gevent.sleep(0)
    event_threads.add(native_ident())


def many_greenlets(saw: dict) -> None:
    engine, threads = FakeEngine(steps=2), []
    engine.before_step = lambda: (threads.append(native_ident()), burn(0.1))
    scheduler = scheduler_with(engine, max_batch_size=5, max_queue=100)
    ticker, started_s = Ticker(), time.perf_counter()
    callback_threads = []

    def client(n: int) -> object:
        future = scheduler.submit(Item(ids=(n,)))
        future.add_done_callback(lambda f: (gevent.sleep(0.001), callback_threads.append(native_ident())))
        return future.result(20).result

    greenlets = [gevent.spawn(client, n) for n in range(20)]
    gevent.joinall(greenlets, timeout=30, raise_error=True)
    gevent.sleep(0.05)
    saw["burnt_ms"] = (time.perf_counter() - started_s) * 1000
    saw["gaps_ms"] = ticker.stop()
    saw["results"] = [greenlet.value for greenlet in greenlets]
    saw["engine_threads"], saw["engine_on_loop"] = len(set(threads)), LOOP_THREAD in threads
    saw["callback_on_loop"] = callback_threads == [LOOP_THREAD] * 20
    saw["drained"], saw["closed"] = scheduler.drain(5), scheduler.close(5)


def text_work(saw: dict) -> None:
    ticker = Ticker()
    saw["native_on_loop"] = run_native(lambda: (burn(0.2), native_ident())[1]) == LOOP_THREAD
    saw["ticks_during_native"] = len(ticker.stop())
    try:
        run_native(lambda: {}["missing"])
    except KeyError as error:
        saw["native_error"] = type(error).__name__


def trickle(saw: dict) -> None:
    engine = FakeEngine()
    engine.before_step = lambda: burn(0.01)
    scheduler = scheduler_with(engine, max_queue=8, max_batch_size=4)
    ticker = Ticker()
    futures = scheduler.submit_many([Item(ids=(n,)) for n in range(40)])
    saw["ticks_during_trickle"] = len(ticker.stop())
    saw["trickled"] = len({future.result(10).result for future in futures})
    scheduler.close(5)


def kill_and_time_out(saw: dict) -> None:
    engine, entered, leave = FakeEngine(), NativeEvent(), NativeEvent()
    engine.before_step = lambda: (entered.set(), leave.wait(10))
    scheduler = scheduler_with(engine, max_queue=4, max_batch_size=1)
    first = scheduler.submit(Item(ids=(1,)))
    run_native(entered.wait, 10)
    request = [Item(ids=(n,)) for n in range(10, 20)]
    greenlet = gevent.spawn(scheduler.submit_many, request)
    try:
        first.result(0.02)
    except TimeoutError:
        saw["timed_out"] = True
    greenlet.kill()
    stats = scheduler.stats()
    is_gone = (stats.waiting, stats.backlog, stats.cancelled) == (0, 0, 10)
    saw["killed_request_cancelled"] = is_gone and all(item.cancelled for item in request)
    leave.set()
    first.result(10)
    scheduler.close(5)


def native_threads(saw: dict) -> None:
    scheduler = scheduler_with(FakeEngine(steps=2))
    answers: list = []
    thread = NativeThread(lambda: answers.append(scheduler.submit(Item(ids=(777,))).result(10).result))
    thread.start()
    assert thread.join(10)
    saw["native_waiter"] = answers[0]
    scheduler.close(5)

    heard: list = []
    thread = NativeThread(lambda: heard.append(made_here()))
    thread.start()
    assert thread.join(10)
    gevent.sleep(0.05)
    saw["inherited_loop"] = heard[0] == {LOOP_THREAD}


def made_here() -> set:
    threads: set = set()
    scheduler = batch_scheduler.BatchScheduler(
        FakeEngine(), batch_scheduler.BatchPolicy(), name="late", on_event=lambda event: threads.add(native_ident())
    )
    scheduler.start()
    scheduler.submit(Item(ids=(1,))).result(10)
    scheduler.close(5)
    return threads


def main() -> None:
    saw: dict = {}
    for part in (many_greenlets, text_work, trickle, kill_and_time_out, native_threads):
        part(saw)
    saw["events_on_loop"] = event_threads == {LOOP_THREAD}
    print(json.dumps(saw))


if __name__ == "__main__":
    main()
