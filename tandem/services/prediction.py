"""What a prediction request means. One task is served by the model itself, embedding; the others need a head."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ParamSpec, TypeVar

import numpy as np
import numpy.typing as npt

from cache import cache_key
from tandem.core.errors import InvalidRequestError, TooLargeError, UnprocessableError
from tandem.core.threads import run_native
from tandem.core.types import Item
from tandem.services.computing import Codec, Computation, Times
from tandem.services.patience import Patience
from tandem.services.ports import Cache, Scheduler, TextTokenizer, Token, TokenizedText

P = ParamSpec("P")
T = TypeVar("T")

EMBEDDING = "embedding"
TASKS = ("embedding", "ner", "relation", "event", "sentiment", "classification", "qa")
_HEAVY_CHARS = 2000  # tokenising more than this leaves the event loop

Vector = npt.NDArray[np.float32]
Content = str | tuple[int, ...]  # a text, or the token ids of one


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
        content: The text, or its token ids.
        key: Cache key.
    """

    content: Content
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

    @property
    def max_tokens(self) -> int:
        """Longest text in tokens, marks included."""
        return self._tokenizer.max_tokens

    def embed(self, contents: Sequence[Content], patience: Patience) -> tuple[list[Embedding], Times]:
        """Return the vector of every text, in order, and where the time went.

        Args:
            contents: Texts, or the token ids of texts, which `check_ids` has seen.
            patience: The caller's.

        Raises:
            OverloadedError: There is no room.
            DeadlineError: It took too long.
            TandemError: The engine's error of a text.
        """
        times = Times()
        calls = [EmbeddingCall(content, self._key(content)) for content in contents]
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

    def check_ids(self, ids: Sequence[int]) -> None:
        """Refuse token ids that another tokenizer made.

        Raises:
            InvalidRequestError: They are not within the vocabulary, or no text gives them.
        """
        if not self._in_text_time(len(ids), self._tokenizer.recognises, ids):
            raise InvalidRequestError(
                f"These token ids are not this model's own (its vocabulary has {self._tokenizer.vocabulary_size}; POST "
                "/tokenize shows a text's ids): another tokenizer, such as OpenAI's, made them. Send the text itself; "
                "with langchain's OpenAIEmbeddings, set check_embedding_ctx_length=False."
            )

    def check_lengths(self, texts: Sequence[str]) -> None:
        """Refuse texts that would be cut.

        Raises:
            TooLargeError: Naming the first one and the limit.
        """
        for index, text in enumerate(self._encode(texts)):
            if text.truncated:
                raise TooLargeError(
                    f"inputs[{index}] has more than {self.max_tokens} tokens, the model's limit. Shorten it, or send "
                    '"truncate": true.'
                )

    def spell(self, texts: Sequence[str], *, marks: bool = True) -> list[Sequence[Token]]:
        """Return the tokens of every text one by one.

        Args:
            texts: The texts.
            marks: With those that open and close a text.
        """
        return self._in_text_time(
            sum(map(len, texts)), lambda: [self._tokenizer.spell(text, marks=marks) for text in texts]
        )

    def _key(self, content: Content) -> str:
        if isinstance(content, str):
            return cache_key(self._fingerprint, content)
        return cache_key(self._fingerprint, "ids", *map(str, content))

    def _build_items(self, calls: Sequence[EmbeddingCall]) -> list[Item]:
        encoded = iter(self._encode([call.content for call in calls if isinstance(call.content, str)]))
        tokenized = [
            next(encoded) if isinstance(call.content, str) else self._tokenizer.frame(call.content) for call in calls
        ]
        return [Item(text.ids, truncated=text.truncated) for text in tokenized]

    def _encode(self, texts: Sequence[str]) -> Sequence[TokenizedText]:
        return self._in_text_time(sum(map(len, texts)), self._tokenizer.encode_many, texts)

    def _in_text_time(self, size: int, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Do text work here when it is little, off the event loop when it is much."""
        if size > _HEAVY_CHARS:
            return run_native(work, *args, **kwargs)
        return work(*args, **kwargs)


def _finish(_: EmbeddingCall, item: Item, vector: Vector) -> Embedding:
    return Embedding(vector, item.truncated, len(item.ids))


def _pack(embedding: Embedding) -> bytes:
    head = embedding.tokens << 1 | embedding.truncated
    return head.to_bytes(4, "little") + embedding.vector.astype("<f4").tobytes()


def _unpack(stored: bytes) -> Embedding:
    head = int.from_bytes(stored[:4], "little")
    return Embedding(np.frombuffer(stored, "<f4", offset=4), bool(head & 1), head >> 1)
