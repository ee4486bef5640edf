"""Words as jieba and sacremoses find and join them, where the libraries themselves take longer than need be."""

from __future__ import annotations

import re
from math import log
from typing import Any

import jieba
from sacremoses import MosesDetokenizer

# Texts for which joining words means no more than: punctuation stands at the word before it.
_PLAIN = re.compile(r"[A-Za-z0-9 ,.?!:;%-]+")
_LONELY_PUNCTUATION = re.compile(r" (?=[,.?!:;%]+(?: |$))")
_WITHOUT_RULES_OF_THEIR_OWN = ("en", "zh")  # target languages for which these marks and words are like any other


class WordJoiner:
    """sacremoses' detokenizer; plain texts are joined by one substitution.

    Args:
        language: The target's code.
    """

    def __init__(self, language: str) -> None:
        """Compile nothing yet."""
        self._moses = MosesDetokenizer(lang=language)
        self._knows_plain = language in _WITHOUT_RULES_OF_THEIR_OWN

    def join(self, words: list[str]) -> str:
        """Return the text of words."""
        text = " ".join(words)
        if self._knows_plain and _PLAIN.fullmatch(text):
            return _LONELY_PUNCTUATION.sub("", text).strip()
        joined: str = self._moses.detokenize(words)
        return joined


class WordSplitter(jieba.Tokenizer):
    """jieba's tokenizer; what it does for every character looks each word up once and keeps the logarithms.

    The sums are formed in the same order, so that the words are the same to the last tie.
    """

    def __init__(self) -> None:
        """Load nothing yet."""
        super().__init__()
        self._weights: dict[str, float] = {}  # of words that occurred; no more than the dictionary and all characters

    def get_DAG(self, sentence: str) -> dict[int, list[int]]:  # noqa: N802 - jieba's name
        """Return where the words that begin at each character may end."""
        self.check_initialized()
        frequency = self.FREQ.get
        ends: dict[int, list[int]] = {}
        size = len(sentence)
        for begin in range(size):
            found = []
            end = begin
            count = frequency(sentence[begin])
            while count is not None:
                if count:
                    found.append(end)
                end += 1
                count = frequency(sentence[begin : end + 1]) if end < size else None
            ends[begin] = found or [begin]
        return ends

    def calc(self, sentence: str, DAG: dict[int, list[int]], route: dict[int, Any]) -> None:  # noqa: N803
        """Write the most probable way from each character to the end: its log-prob, and where its first word ends."""
        log_total, weights, frequency = log(self.total), self._weights, self.FREQ.get
        size = len(sentence)
        route[size] = (0, 0)
        for begin in range(size - 1, -1, -1):
            best, best_end = float("-inf"), begin
            for end in DAG[begin]:
                word = sentence[begin : end + 1]
                weight = weights.get(word)
                if weight is None:
                    weight = weights[word] = log(frequency(word) or 1) - log_total
                score = weight + route[end + 1][0]
                if score >= best:
                    best, best_end = score, end
            route[begin] = (best, best_end)
