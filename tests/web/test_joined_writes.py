"""A response's head and body in one packet; real sockets."""

from __future__ import annotations

import socket

import pytest

from tandem.web.joined_writes import JoinedWrites


@pytest.fixture
def pair():
    ours, theirs = socket.socketpair()
    theirs.setblocking(False)
    yield JoinedWrites(ours), theirs
    ours.close()
    theirs.close()


def _arrived(connection: socket.socket) -> bytes:
    try:
        return connection.recv(4096)
    except BlockingIOError:
        return b""


def test_the_head_waits_for_the_first_bytes_of_the_body(pair):
    joined, other = pair
    joined.sendall(b"head ")
    assert _arrived(other) == b""
    joined.sendall(b"body")
    assert _arrived(other) == b"head body"


def test_what_follows_leaves_at_once(pair):
    joined, other = pair
    for part in (b"head ", b"first event", b"second event"):
        joined.sendall(part)
    assert _arrived(other) == b"head first eventsecond event"
    joined.sendall(b"third event")
    assert _arrived(other) == b"third event"


def test_a_response_without_a_body_leaves_when_it_ends(pair):
    joined, other = pair
    joined.sendall(b"head")
    joined.flush()
    joined.flush()
    assert _arrived(other) == b"head"


def test_any_other_use_of_the_socket_finds_sent_what_was_written_before(pair):
    joined, other = pair
    joined.sendall(b"head ")
    joined.send(b"file")
    joined.sendall(b" end")
    assert _arrived(other) == b"head file end"
    joined.shutdown(socket.SHUT_WR)
    other.setblocking(True)
    assert other.recv(1) == b""
