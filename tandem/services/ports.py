"""What the services need of the layers beside them, as protocols; `app.py` plugs in the real ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol, TypeVar

from tandem.core.concurrency import Future
from tandem.core.queueing import Outcome
from tandem.core.types import Item

ResultT = TypeVar("ResultT")


class Scheduler(Protocol[ResultT]):
    """Batches items into an engine; see `batch_scheduler.BatchScheduler`."""

    def submit_many(self, items: Sequence[Item]) -> list[Future[Outcome[ResultT]]]:
        """Accept a request's items."""
        ...

    def cancel(self, item: Item) -> bool:
        """Stop working for an item."""
        ...

    def raise_priority(self, item: Item) -> None:
        """Make an item interactive."""
        ...


class Cache(Protocol):
    """Keeps finished results; see `cache.Cache`. Never raises."""

    def get_many(self, keys: Sequence[str]) -> list[bytes | None]:
        """Look keys up in one round trip."""
        ...

    def set_many(self, values: Mapping[str, bytes], ttl_s: float) -> None:
        """Keep values for a while."""
        ...


class SentenceTokenizer(Protocol):
    """The text handling of a translation model; see `tandem.csanmt.tokenizer.Tokenizer`."""

    source_lang: str
    target_lang: str

    def encode(self, text: str) -> tuple[int, ...]:
        """Return the source ids of one sentence."""
        ...

    def knows(self, text: str) -> bool:
        """Say whether every subword of a text is in the source vocabulary."""
        ...

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of target ids."""
        ...

    def prepare_prefix(self, text: str) -> str:
        """Bring the beginning of a target text into the engine's form."""
        ...

    def decode_with_prefix(self, ids: Sequence[int], prefix: str) -> str:
        """Return the text of target ids decoded under a prefix."""
        ...


class TokenizedText(Protocol):
    """A text as an embedding model sees it."""

    @property
    def ids(self) -> tuple[int, ...]:
        """Token ids, marks included."""
        ...

    @property
    def truncated(self) -> bool:
        """True when the text was longer than the model's limit."""
        ...


class TextTokenizer(Protocol):
    """The text handling of an embedding model; see `tandem.gte.tokenizer.TextTokenizer`."""

    def encode_many(self, texts: Sequence[str]) -> Sequence[TokenizedText]:
        """Return the tokens of texts, cut at the model's limit."""
        ...
