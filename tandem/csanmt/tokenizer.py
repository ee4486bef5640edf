"""Text to token ids and back, exactly as the official pipeline does it.

Source: modelscope 1.40.2, `pipelines/nlp/translation_pipeline.py`.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from functools import cached_property
from itertools import takewhile
from pathlib import Path
from typing import Any

import jieba
from sacremoses import MosesPunctNormalizer, MosesTokenizer

from tandem.core.errors import ModelError
from tandem.core.types import Hypothesis, Link
from tandem.csanmt.bpe import CONTINUATION, BytePairEncoder
from tandem.csanmt.configuration import CsanmtConfig
from tandem.csanmt.constraints import PrefixConstraint, PrefixIndex
from tandem.csanmt.modeling import EOS_ID
from tandem.csanmt.offsets import find_links
from tandem.csanmt.words import WordJoiner, WordSplitter

UNKNOWN = "<unk>"
_SPACELESS = ("zh", "ja")
_EUROPEAN = ("es", "fr")

jieba.setLogLevel(logging.WARNING)
_SPLITTER = WordSplitter()


class Tokenizer:
    """The text handling of one model: words, subwords, ids; and back.

    Args:
        model_dir: Where the vocabularies and codes are, in either layout.
        config: Names the files and languages.

    Raises:
        ModelError: A file is missing or damaged.
    """

    def __init__(self, model_dir: Path, config: CsanmtConfig) -> None:
        """Read vocabularies and codes; the word splitter's dictionary is loaded at first use."""
        self.source_lang = config.src_lang
        self.target_lang = config.tgt_lang
        self.source_ids = {token: i for i, token in enumerate(_read_vocabulary(model_dir / config.src_vocab_file))}
        self._target_tokens = _read_vocabulary(model_dir / config.trg_vocab_file)
        for tokens, size, name in (
            (self.source_ids, config.src_vocab_size, config.src_vocab_file),
            (self._target_tokens, config.trg_vocab_size, config.trg_vocab_file),
        ):
            if len(tokens) > size:
                raise ModelError(f"{model_dir / name} has {len(tokens)} lines, but the vocabulary size is {size}")
        self._unknown_source_id = config.src_vocab_size - 1
        self._unknown_target_id = config.trg_vocab_size - 1
        self._encoder = BytePairEncoder(model_dir / config.src_bpe_file)
        self._normalizer = MosesPunctNormalizer(lang=self.source_lang)
        self._joiner = WordJoiner(self.target_lang)

    def tokenize(self, text: str) -> list[str]:
        """Split one sentence into source subwords."""
        return self._encoder.split_line(self._split_words(text))

    def encode(self, text: str) -> tuple[int, ...]:
        """Return the source ids of one sentence, without an end mark; empty for a blank text."""
        return tuple(self.source_id(token) for token in self.tokenize(text))

    def source_id(self, token: str) -> int:
        """Return the id of a source subword; unknown ones share the last id of the vocabulary."""
        return self.source_ids.get(token, self._unknown_source_id)

    def target_token(self, token_id: int) -> str:
        """Return the target subword of an id, "<unk>" where the vocabulary file has none."""
        return self._target_tokens[token_id] if 0 <= token_id < len(self._target_tokens) else UNKNOWN

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of target ids, up to the first end mark."""
        return self.join_tokens([self.target_token(token_id) for token_id in _until_end(ids)])

    def join_tokens(self, tokens: Sequence[str]) -> str:
        """Return the text of target subwords."""
        words = " ".join(tokens).replace(CONTINUATION + " ", "").replace(CONTINUATION, "")
        return self._joiner.join(words.split())

    def prepare_prefix(self, text: str) -> str:
        """Bring the beginning of a target text into the form that `prefix_index` spells.

        A trailing space says that the last word is finished; without one it may go on.
        """
        if self.target_lang in _SPACELESS:
            return "".join(text.split())
        words: str = self._moses_target.tokenize(text, return_str=True, aggressive_dash_splits=self._splits_dashes)
        return words + " " if words and text[-1].isspace() else words

    def decode_with_prefix(self, ids: Sequence[int], prefix: str) -> str:
        """Return the text of target ids that were decoded under a prefix; it begins with exactly that string."""
        ids = _until_end(ids)
        tokens = [self.target_token(token_id) for token_id in ids]
        unknown = PrefixConstraint(self.prefix_index, self.prepare_prefix(prefix), 1).spell_unknown(ids)
        for place, spelling in unknown.items():
            tokens[place] = spelling.rstrip() + ("" if spelling[-1:].isspace() else CONTINUATION)
        text = self.join_tokens(tokens)
        if text.startswith(prefix):
            return text
        spelled = len("".join(prefix.split()))
        at = 0
        while spelled and at < len(text):
            spelled -= not text[at].isspace()
            at += 1
        return prefix + (text[at:].lstrip() if prefix[-1:].isspace() else text[at:])

    def link(self, source: str, target: str, hypothesis: Hypothesis) -> tuple[Link, ...]:
        """Return which words of a translation came from which subwords of its source, by characters of both.

        Args:
            source: The text that `encode` was given.
            target: What `decode` made of the hypothesis.
            hypothesis: With its alignment; without one there are no links.
        """
        tokens = [self.target_token(token_id) for token_id in _until_end(hypothesis.ids)]
        return find_links((self.tokenize(source), source), (tokens, target), hypothesis.alignment)

    @cached_property
    def prefix_index(self) -> PrefixIndex:
        """The target vocabulary by surfaces, for decoding with a given beginning."""
        word_end = "" if self.target_lang in _SPACELESS else " "
        surfaces = [
            token.removesuffix(CONTINUATION) if token.endswith(CONTINUATION) else token + word_end
            for token in self._target_tokens
        ]
        surfaces[EOS_ID] = ""
        return PrefixIndex(surfaces, self._unknown_target_id)

    @cached_property
    def _moses_in(self) -> Any:
        """Splits words of the source; compiling Chinese or Japanese takes seconds, and Chinese needs it never."""
        return MosesTokenizer(lang=self.source_lang)

    @cached_property
    def _moses_target(self) -> Any:
        """Splits words of a given beginning; as slow, and a language without spaces needs it never."""
        return MosesTokenizer(lang=self.target_lang)

    @property
    def _splits_dashes(self) -> bool:
        languages = {self.source_lang, self.target_lang}
        return not ("en" in languages and languages & set(_EUROPEAN))

    def _split_words(self, text: str) -> str:
        if self.source_lang == "zh":
            return " ".join(_SPLITTER.cut(text))
        words: str = self._moses_in.tokenize(
            self._normalizer.normalize(text), return_str=True, aggressive_dash_splits=self._splits_dashes
        )
        return words


def keep_dictionary(folder: Path) -> None:
    """Have the word splitter keep its dictionary in a folder, made ready: making it anew takes longer.

    Without this it keeps it among the system's temporary files, which a restarted machine or container no longer has.
    """
    folder.mkdir(parents=True, exist_ok=True)
    _SPLITTER.tmp_dir = str(folder)


def _until_end(ids: Sequence[int]) -> list[int]:
    return list(takewhile(lambda token_id: token_id != EOS_ID, ids))


def _read_vocabulary(path: Path) -> list[str]:
    """Read one subword a line; the id is the line number."""
    try:
        with path.open(encoding="utf-8") as lines:
            return [line.strip() for line in lines]
    except (OSError, UnicodeDecodeError) as error:
        raise ModelError(f"{path} cannot be read: {error}") from error
