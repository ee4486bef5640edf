"""What the services need of the layers beside them, as protocols; `app.py` plugs in the real ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol, TypeVar

from tandem.core.futures import Future
from tandem.core.queueing import Outcome
from tandem.core.types import Hypothesis, Item, Link

ResultT = TypeVar("ResultT")


class Scheduler(Protocol[ResultT]):
    """Batches items into an engine; see `batch_scheduler.BatchScheduler`."""

    def submit_many(self, items: Sequence[Item], *, is_follow_up: bool = False) -> list[Future[Outcome[ResultT]]]:
        """Accept a request's items; those of a request that was accepted before are not refused."""
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

    @property
    def source_ids(self) -> Mapping[str, int]:
        """Source subwords and their ids."""
        ...

    def tokenize(self, text: str) -> list[str]:
        """Split one sentence into source subwords."""
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

    def link(self, source: str, target: str, hypothesis: Hypothesis) -> tuple[Link, ...]:
        """Return which words of a translation came from which of its source."""
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


class Token(Protocol):
    """One token of a text; see `tandem.gte.tokenizer.Token`."""

    @property
    def id(self) -> int:
        """Its number."""
        ...

    @property
    def text(self) -> str:
        """What stands in the text there."""
        ...

    @property
    def is_mark(self) -> bool:
        """True when it does not come from the text."""
        ...

    @property
    def start(self) -> int | None:
        """Offset in the text, in characters."""
        ...

    @property
    def stop(self) -> int | None:
        """Behind its last character."""
        ...


class TextTokenizer(Protocol):
    """The text handling of an embedding model; see `tandem.gte.tokenizer.TextTokenizer`."""

    max_tokens: int

    @property
    def vocabulary_size(self) -> int:
        """Token ids are below it."""
        ...

    def encode_many(self, texts: Sequence[str]) -> Sequence[TokenizedText]:
        """Return the tokens of texts, cut at the model's limit."""
        ...

    def frame(self, ids: Sequence[int]) -> TokenizedText:
        """Put marks round token ids that have none, and cut them at the model's limit."""
        ...

    def recognises(self, ids: Sequence[int]) -> bool:
        """Say whether token ids are such as this tokenizer makes."""
        ...

    def spell(self, text: str, *, marks: bool = True) -> Sequence[Token]:
        """Return the tokens of a text one by one."""
        ...
