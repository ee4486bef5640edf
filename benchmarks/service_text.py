"""Question: what does everything but the engine cost a sentence?"""

from __future__ import annotations

from benchmarks.natural_mix import read_natural_mix
from benchmarks.service_answers import Answer, answer
from benchmarks.service_clients import Conditions, connected, percentile, post, serve, translate_body

_SENTENCES = 32
_REQUESTS = 20  # different ones, each computed once before anything is timed


def measure_text(conditions: Conditions) -> list[Answer]:
    """Time requests of 32 sentences on a server without a cache whose engine remembers what it computed.

    Such a request is read, segmented, protected, looked up, tokenised, queued, decoded, put together and written like
    any other.
    """
    texts = read_natural_mix()
    starts = range(0, _REQUESTS * _SENTENCES, _SENTENCES)
    bodies = [translate_body(texts[start : start + _SENTENCES]) for start in starts]
    rounds = []
    with (
        serve("benchmarks.replaying:create_app()", THREADS=str(conditions.threads)) as port,
        connected(port) as connection,
    ):
        for number in range(conditions.rounds + 2):
            answers = [post(connection, "/translate", body) for body in bodies]
            if number >= 2:  # the first computes, the second warms up
                rounds.append(percentile([elapsed_ms for _, elapsed_ms in answers], 0.5) / _SENTENCES)
    return [answer("text", f"ms a sentence of a request of {_SENTENCES}, without the engine", rounds, "<= 0.5")]
