"""Calls that threads leave for a busy hub: many, while its timers come and go."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

from tests.conftest import ROOT

_GREENLETS = 20
_BURST = 100

# By gevent's `run_callback_threadsafe` the count of references drifts by hundreds in this time; in twice as long it
# ends the loop.
_SCENARIO = """
import gevent.monkey
gevent.monkey.patch_all()
import gevent, json, os, sys, time
from tandem.core.loops import get_mailbox

sys.setswitchinterval(0.0005)
mailbox, hub, counts, posted = get_mailbox(), gevent.get_hub(), [], []

def post():
    while time.monotonic() < end_s:
        posted.append(1)
        mailbox.post(counts.append, 1)
        sum(range(300))

def tick():
    while time.monotonic() < end_s:
        gevent.sleep(0.0001)

end_s = time.monotonic() + 4
for _ in range(2):
    gevent.monkey.get_original("_thread", "start_new_thread")(post, ())
for _ in range(int(sys.argv[1])):
    gevent.spawn(tick)
while time.monotonic() < end_s:
    gevent.sleep(0.01)
gevent.sleep(0.5)
print(json.dumps({"posted": len(posted), "run": len(counts), "references": hub.loop.activecnt}))
sys.stdout.flush()
os._exit(0)
"""

# What is short is asked for over a socket while a burst of calls, each of which keeps the hub busy, is under way.
_BURST_SCENARIO = """
import gevent.monkey
gevent.monkey.patch_all()
import gevent, json, os, socket, sys, time
from tandem.core.loops import get_mailbox

ours, theirs = socket.socketpair()
order = []

def answer():
    ours.recv(1)
    order.append("socket")

def call(number):
    if number == 0:
        theirs.send(b"?")
    order.append(number)

waiting = gevent.spawn(answer)
gevent.sleep(0)
mailbox, count = get_mailbox(), int(sys.argv[1])
for number in range(count):
    mailbox.post(call, number)
while len(order) <= count:
    gevent.sleep(0.01)
print(json.dumps(order))
sys.stdout.flush()
os._exit(0)
"""


def _run(scenario: str, argument: int) -> Any:
    command = [sys.executable, "-c", scenario, str(argument)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout)


def test_every_call_arrives_and_the_loop_keeps_count_of_what_it_waits_for() -> None:
    seen = _run(_SCENARIO, _GREENLETS)
    assert seen["posted"] == seen["run"] > 10_000
    assert 0 <= seen["references"] <= _GREENLETS


def test_a_socket_does_not_wait_for_a_burst_of_calls_and_they_keep_their_order() -> None:
    order = _run(_BURST_SCENARIO, _BURST)
    assert order.index("socket") < 10
    assert [call for call in order if call != "socket"] == list(range(_BURST))
