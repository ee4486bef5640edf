"""Texts into token ids, with their marks, cut at the model's limit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from tokenizers import Tokenizer

from tandem.core.errors import ModelError

TOKENIZER_FILE = "tokenizer.json"
_PROBES = ("a", "的", "1")
_STRANGE_SHARE = 16  # one id in so many may be another than the tokenizer's own: texts are cut within words


@dataclass(frozen=True, slots=True)
class TokenizedText:
    """A text as the encoder reads it.

    Attributes:
        ids: Token ids with the opening and closing marks ([CLS] and [SEP]).
        truncated: True when the end of the text did not fit.
    """

    ids: tuple[int, ...]
    truncated: bool = False


@dataclass(frozen=True, slots=True)
class Token:
    """One token of a text, for who wants to look at it.

    Attributes:
        id: Its number.
        text: What stands in the text there; the token's name for a mark.
        is_mark: It does not come from the text.
        start: Offset in the text, in characters; None for marks, and where the tokenizer does not tell.
        stop: Behind its last character; None likewise.
    """

    id: int
    text: str
    is_mark: bool
    start: int | None = None
    stop: int | None = None


class Vocabulary(Protocol):
    """Another library's tokenizer, without limit and padding."""

    @property
    def size(self) -> int:
        """Token ids are below it."""
        ...

    def encode_batch(self, texts: list[str]) -> list[list[int]]:
        """Return token ids with marks, as long as the texts are."""
        ...

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of token ids, marks included."""
        ...

    def spell(self, text: str, *, marks: bool) -> list[Token]:
        """Return the tokens of a text, with or without marks."""
        ...


class TextTokenizer:
    """Cuts texts into tokens; safe to use from several threads.

    Args:
        vocabulary: Does the work.
        max_tokens: Longest result, marks included.
    """

    def __init__(self, vocabulary: Vocabulary, max_tokens: int) -> None:
        """Find out which marks open and close a text."""
        self._vocabulary = vocabulary
        self.max_tokens = max_tokens
        marks, *probes = vocabulary.encode_batch(["", *_PROBES])
        opening = len(marks) - _count_closing_marks(marks, probes)
        self._opening, self._closing = tuple(marks[:opening]), tuple(marks[opening:])

    @property
    def vocabulary_size(self) -> int:
        """Token ids are below it."""
        return self._vocabulary.size

    def encode(self, text: str) -> TokenizedText:
        """Return the tokens of a text; an empty text is its marks alone."""
        return self.encode_many([text])[0]

    def encode_many(self, texts: Sequence[str]) -> list[TokenizedText]:
        """Return the tokens of every text, in order."""
        return [self._cut(ids) for ids in self._encode_whole(texts)]

    def frame(self, ids: Sequence[int]) -> TokenizedText:
        """Return token ids as those of a text: marks are put round them where there are none."""
        return self._cut([*self._opening, *self._bare(ids), *self._closing])

    def recognises(self, ids: Sequence[int]) -> bool:
        """Say whether token ids are such as this tokenizer makes of texts, rather than another tokenizer's.

        They are when their text gives the same ids again. A few may differ: texts are cut within words.
        """
        if any(not 0 <= token < self.vocabulary_size for token in ids):
            return False
        bare = self._bare(ids)
        [again] = self._encode_whole([self._vocabulary.decode(bare)])
        strange = Counter(bare) - Counter(self._bare(again))
        return strange.total() <= len(bare) // _STRANGE_SHARE

    def spell(self, text: str, *, marks: bool = True) -> list[Token]:
        """Return the tokens of a text one by one, however long it is."""
        return self._vocabulary.spell(_without_surrogates(text), marks=marks)

    def _encode_whole(self, texts: Sequence[str]) -> list[list[int]]:
        return self._vocabulary.encode_batch([_without_surrogates(text) for text in texts])

    def _bare(self, ids: Sequence[int]) -> list[int]:
        start = len(self._opening) if tuple(ids[: len(self._opening)]) == self._opening else 0
        stop = len(ids) - len(self._closing)
        return list(ids[start:stop] if stop >= start and tuple(ids[stop:]) == self._closing else ids[start:])

    def _cut(self, ids: Sequence[int]) -> TokenizedText:
        if len(ids) <= self.max_tokens:
            return TokenizedText(tuple(ids))
        return TokenizedText((*ids[: self.max_tokens - len(self._closing)], *self._closing), truncated=True)


class _FastVocabulary:
    """A tokenizer of the library `tokenizers`.

    Truncation and padding that are stored in its file are switched off: the limit is ours, and padding the engine's.
    """

    def __init__(self, tokenizer: Tokenizer) -> None:
        tokenizer.no_truncation()
        tokenizer.no_padding()
        self._tokenizer = tokenizer

    @property
    def size(self) -> int:
        return int(self._tokenizer.get_vocab_size())

    def encode_batch(self, texts: list[str]) -> list[list[int]]:
        return [encoding.ids for encoding in self._tokenizer.encode_batch_fast(texts)]

    def decode(self, ids: Sequence[int]) -> str:
        return str(self._tokenizer.decode(list(ids), skip_special_tokens=False))

    def spell(self, text: str, *, marks: bool) -> list[Token]:
        found = self._tokenizer.encode(text, add_special_tokens=marks)
        return [
            Token(token, name, True) if mark else Token(token, text[start:stop], False, start, stop)
            for token, name, mark, (start, stop) in zip(
                found.ids, found.tokens, found.special_tokens_mask, found.offsets, strict=True
            )
        ]


class _SlowVocabulary:
    """A tokenizer that only transformers knows."""

    def __init__(self, loaded: Any) -> None:
        self._loaded = loaded

    @property
    def size(self) -> int:
        return len(self._loaded)

    def encode_batch(self, texts: list[str]) -> list[list[int]]:
        ids: list[list[int]] = self._loaded(texts, truncation=False, padding=False)["input_ids"]
        return ids

    def decode(self, ids: Sequence[int]) -> str:
        return str(self._loaded.decode(list(ids), skip_special_tokens=False))

    def spell(self, text: str, *, marks: bool) -> list[Token]:
        ids = self._loaded(text, truncation=False, add_special_tokens=marks)["input_ids"]
        special = set(self._loaded.all_special_ids)
        names = self._loaded.convert_ids_to_tokens(ids)
        return [Token(token, name, token in special) for token, name in zip(ids, names, strict=True)]


def load_tokenizer(model_dir: Path, max_tokens: int) -> TextTokenizer:
    """Load a model's tokenizer: `tokenizer.json` where there is one, else whatever transformers reads.

    Args:
        model_dir: The model's directory.
        max_tokens: Longest result in tokens, marks included.

    Raises:
        ModelError: There is no vocabulary, or it is damaged; the message names it.
    """
    path = model_dir / TOKENIZER_FILE
    if not path.is_file():
        return TextTokenizer(_load_through_transformers(model_dir), max_tokens)
    try:
        tokenizer = Tokenizer.from_file(str(path))
    except Exception as error:  # the library raises nothing narrower
        raise ModelError(f"{path} is damaged: {error}") from error
    return TextTokenizer(_FastVocabulary(tokenizer), max_tokens)


def _load_through_transformers(model_dir: Path) -> Vocabulary:
    """Load vocab.txt, sentencepiece and other vocabularies; slow to import, so only when needed."""
    from transformers import AutoTokenizer

    try:
        loaded: Any = AutoTokenizer.from_pretrained(str(model_dir), local_files_only=True)
    except Exception as error:  # anything from a missing file to a missing package
        raise ModelError(f"{model_dir} has no {TOKENIZER_FILE} and no vocabulary that can be read: {error}") from error
    names = set(type(loaded).vocab_files_names.values())
    if not any((model_dir / name).is_file() for name in names) and not any(model_dir.glob("*.model")):
        # transformers 5 makes an empty vocabulary of nothing, where every text is unknown
        raise ModelError(f"{model_dir} has no vocabulary: none of {', '.join(sorted(names))}")
    if getattr(loaded, "is_fast", False):
        return _FastVocabulary(loaded.backend_tokenizer)
    return _SlowVocabulary(loaded)


def _count_closing_marks(marks: Sequence[int], probes: Sequence[Sequence[int]]) -> int:
    """Return how many marks follow a text, by comparing texts with the empty text."""
    longest = max(probes, key=len)
    closing = 0
    while closing < min(len(marks), len(longest) - 1) and marks[-1 - closing] == longest[-1 - closing]:
        closing += 1
    return closing


def _without_surrogates(text: str) -> str:
    """Replace lone surrogates, which the tokenizer refuses, by U+FFFD."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text
