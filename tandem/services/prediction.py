"""What a prediction request means. One task is served by the model itself, embedding; the others need a head."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from cache import cache_key
from tandem.core.concurrency import run_native
from tandem.core.errors import UnprocessableError
from tandem.core.types import Item
from tandem.services.computing import Codec, Computation, Times
from tandem.services.patience import Patience
from tandem.services.ports import Cache, Scheduler, TextTokenizer

EMBEDDING = "embedding"
TASKS = ("embedding", "ner", "relation", "event", "sentiment", "classification", "qa")
_HEAVY_CHARS = 2000  # tokenising more than this leaves the event loop

Vector = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Embedding:
    """A text's vector.

    Attributes:
        vector: float32 [D].
        truncated: The text was longer than the model's limit, and only its beginning counts.
        tokens: Tokens it counts for, marks included.
    """

    vector: Vector
    truncated: bool
    tokens: int


@dataclass(frozen=True, slots=True)
class EmbeddingCall:
    """One text to be embedded.

    Attributes:
        text: The text.
        key: Cache key.
    """

    text: str
    key: str


class PredictionService:
    """Embeds texts.

    Args:
        tokenizer: Text handling of the embedding model.
        scheduler: Batches items into the engine.
        cache: Keeps vectors.
        fingerprint: Of everything that decides a vector.
        ttl_s: How long vectors are kept, in seconds.
        bulk_texts: A request with more uncached texts than this is bulk work.
    """

    def __init__(
        self,
        tokenizer: TextTokenizer,
        scheduler: Scheduler[Any],
        cache: Cache,
        *,
        fingerprint: str,
        ttl_s: float,
        bulk_texts: int,
    ) -> None:
        """Plug the parts together."""
        self._tokenizer = tokenizer
        self._fingerprint = fingerprint
        self._bulk_texts = bulk_texts
        codec = Codec(self._build_items, _finish, _pack, _unpack)
        self._vectors: Computation[EmbeddingCall, Vector, Embedding] = Computation(scheduler, cache, codec, ttl_s)

    def embed(self, texts: Sequence[str], patience: Patience) -> tuple[list[Embedding], Times]:
        """Return the vector of every text, in order, and where the time went.

        Raises:
            OverloadedError: There is no room.
            DeadlineError: It took too long.
            TandemError: The engine's error of a text.
        """
        times = Times()
        calls = [EmbeddingCall(text, cache_key(self._fingerprint, text)) for text in texts]
        with self._vectors.open(patience, times) as errand:
            if errand.look_up(calls) > self._bulk_texts:
                patience.become_bulk()
            pending = errand.start(calls)
            return [errand.finish(one) for one in pending], times

    def check_task(self, task: str) -> None:
        """Refuse a task that no installed head does.

        Raises:
            UnprocessableError: Naming those there are.
        """
        if task == EMBEDDING:
            return
        if task in TASKS:
            raise UnprocessableError(f"No head for the task {task} is installed. Installed is: {EMBEDDING}.")
        raise UnprocessableError(f"The task {task[:40]!r} is not known. Known are: {', '.join(TASKS)}.")

    def _build_items(self, calls: Sequence[EmbeddingCall]) -> list[Item]:
        texts = [call.text for call in calls]
        encode = self._tokenizer.encode_many
        is_heavy = sum(map(len, texts)) > _HEAVY_CHARS
        tokenized = run_native(encode, texts) if is_heavy else encode(texts)
        return [Item(text.ids, truncated=text.truncated) for text in tokenized]


def _finish(_: EmbeddingCall, item: Item, vector: Vector) -> Embedding:
    return Embedding(vector, item.truncated, len(item.ids))


def _pack(embedding: Embedding) -> bytes:
    head = embedding.tokens << 1 | embedding.truncated
    return head.to_bytes(4, "little") + embedding.vector.astype("<f4").tobytes()


def _unpack(stored: bytes) -> Embedding:
    head = int.from_bytes(stored[:4], "little")
    return Embedding(np.frombuffer(stored, "<f4", offset=4), bool(head & 1), head >> 1)
