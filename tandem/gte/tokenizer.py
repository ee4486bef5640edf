"""Texts into token ids, with their marks, cut at the model's limit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer

from tandem.core.errors import ModelError

TOKENIZER_FILE = "tokenizer.json"
_PROBES = ("a", "的", "1")

EncodeBatch = Callable[[list[str]], list[list[int]]]


@dataclass(frozen=True, slots=True)
class TokenizedText:
    """A text as the encoder reads it.

    Attributes:
        ids: Token ids with the opening and closing marks ([CLS] and [SEP]).
        truncated: True when the end of the text did not fit.
    """

    ids: tuple[int, ...]
    truncated: bool = False


class TextTokenizer:
    """Cuts texts into tokens; safe to use from several threads.

    Args:
        encode_batch: Texts -> token ids with marks, as long as the texts are.
        max_tokens: Longest result, marks included.
    """

    def __init__(self, encode_batch: EncodeBatch, max_tokens: int) -> None:
        """Find out how many marks close a text."""
        self._encode_batch = encode_batch
        self.max_tokens = max_tokens
        self._closing = _count_closing_marks(encode_batch)

    def encode(self, text: str) -> TokenizedText:
        """Return the tokens of a text; an empty text is its marks alone."""
        return self.encode_many([text])[0]

    def encode_many(self, texts: Sequence[str]) -> list[TokenizedText]:
        """Return the tokens of every text, in order."""
        return [self._cut(ids) for ids in self._encode_batch([_without_surrogates(text) for text in texts])]

    def _cut(self, ids: list[int]) -> TokenizedText:
        if len(ids) <= self.max_tokens:
            return TokenizedText(tuple(ids))
        end = len(ids) - self._closing
        return TokenizedText((*ids[: self.max_tokens - self._closing], *ids[end:]), truncated=True)


def load_tokenizer(model_dir: Path, max_tokens: int) -> TextTokenizer:
    """Load a model's tokenizer: `tokenizer.json` where there is one, else whatever transformers reads.

    Truncation and padding that are stored in the file are switched off: the limit is ours, and padding the engine's.

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
    return TextTokenizer(_fast(tokenizer), max_tokens)


def _fast(tokenizer: Tokenizer) -> EncodeBatch:
    tokenizer.no_truncation()
    tokenizer.no_padding()

    def encode_batch(texts: list[str]) -> list[list[int]]:
        return [encoding.ids for encoding in tokenizer.encode_batch_fast(texts)]

    return encode_batch


def _load_through_transformers(model_dir: Path) -> EncodeBatch:
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
        return _fast(loaded.backend_tokenizer)

    def encode_batch(texts: list[str]) -> list[list[int]]:
        ids: list[list[int]] = loaded(texts, truncation=False, padding=False)["input_ids"]
        return ids

    return encode_batch


def _count_closing_marks(encode_batch: EncodeBatch) -> int:
    """Return how many marks follow a text, by comparing texts with the empty text."""
    marks, *probes = encode_batch(["", *_PROBES])
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
