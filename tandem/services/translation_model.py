"""A loaded direction with its queue and its cache: strings in, the model's outputs out."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from cache import cache_key
from tandem.core.threads import run_native
from tandem.core.types import Hypothesis, Item, Link
from tandem.services.computing import Codec, Computation, Errand, Pending
from tandem.services.ports import Cache, Scheduler, SentenceTokenizer
from tandem.text.profile import build_profile
from tandem.text.solving import Request

HEAVY_CHARS = 400  # text work on more than this leaves the event loop
_SOURCE_PER_TARGET = 0.6  # source tokens whose translation surely fits the model's output limit


@dataclass(frozen=True, slots=True)
class ModelCall:
    """One string for the model.

    Attributes:
        request: The string, whether the repetition guard is on, what the translation must begin with, whether it is
            aligned.
        n_best: Translations wanted.
        key: Cache key.
    """

    request: Request
    n_best: int
    key: str


@dataclass(frozen=True, slots=True)
class ModelOutput:
    """What the model made of a string.

    Attributes:
        texts: Translations, best first; "" alone for a string without tokens.
        scores: Theirs.
        truncated: The output limit ended the best one.
        links: Which of its words came from where, when that was asked for.
    """

    texts: tuple[str, ...]
    scores: tuple[float, ...]
    truncated: bool
    links: tuple[Link, ...] = ()


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """What the service must know of a model.

    Attributes:
        fingerprint: Of everything that decides an output.
        beam_size: K.
        max_target_tokens: Output limit.
    """

    fingerprint: str
    beam_size: int
    max_target_tokens: int


class TranslationModel:
    """One loaded direction with its queue and cache.

    Args:
        tokenizer: Text handling.
        scheduler: Batches items into the engine.
        cache: Keeps outputs.
        facts: About the model.
        ttl_s: How long outputs are kept, in seconds.
    """

    def __init__(
        self,
        tokenizer: SentenceTokenizer,
        scheduler: Scheduler[list[Hypothesis]],
        cache: Cache,
        facts: ModelFacts,
        ttl_s: float,
    ) -> None:
        """Plug the parts together."""
        self.tokenizer = tokenizer
        self.source, self.target = tokenizer.source_lang, tokenizer.target_lang
        self.facts = facts
        codec = Codec(self._build_items, self._finish, _pack, _unpack)
        self.outputs = Computation(scheduler, cache, codec, ttl_s)
        longest = max(int(facts.max_target_tokens * _SOURCE_PER_TARGET), 1)
        self.profile = build_profile(self.source, tokenizer.tokenize, tokenizer.source_ids, longest)

    def call(self, request: Request, n_best: int = 1) -> ModelCall:
        """Return the call for a string."""
        how = f"{int(request.strict)} {n_best}{' aligned' * request.align}"
        return ModelCall(request, n_best, cache_key(self.facts.fingerprint, request.text, how, request.target_prefix))

    def _build_items(self, calls: Sequence[ModelCall]) -> list[Item]:
        if sum(len(call.request.text) for call in calls) > HEAVY_CHARS:
            return run_native(self._tokenize, calls)
        return self._tokenize(calls)

    def _tokenize(self, calls: Sequence[ModelCall]) -> list[Item]:
        prepare = self.tokenizer.prepare_prefix
        return [
            Item(
                self.tokenizer.encode(call.request.text) or (0,),
                target_prefix=prepare(call.request.target_prefix) if call.request.target_prefix else "",
                n_best=call.n_best,
                strict=call.request.strict,
                align=call.request.align,
            )
            for call in calls
        ]

    def _finish(self, call: ModelCall, _: Item, hypotheses: list[Hypothesis]) -> ModelOutput:
        prefix, tokenizer = call.request.target_prefix, self.tokenizer
        texts = tuple(
            tokenizer.decode_with_prefix(hypothesis.ids, prefix) if prefix else tokenizer.decode(hypothesis.ids)
            for hypothesis in hypotheses
        )
        scores, best = tuple(hypothesis.score for hypothesis in hypotheses), hypotheses[0]
        links = tokenizer.link(call.request.text, texts[0], best) if call.request.align else ()
        return ModelOutput(texts, scores, best.truncated, links)


def _pack(output: ModelOutput) -> bytes:
    return json.dumps([output.texts, output.scores, output.truncated, output.links]).encode()


def _unpack(stored: bytes) -> ModelOutput:
    texts, scores, truncated, links = json.loads(stored)
    linked = tuple(Link(int(a), int(b), int(c), int(d), float(weight)) for a, b, c, d, weight in links)
    return ModelOutput(tuple(map(str, texts)), tuple(map(float, scores)), bool(truncated), linked)


OutputPending = Pending[ModelCall, list[Hypothesis], ModelOutput]
OutputErrand = Errand[ModelCall, list[Hypothesis], ModelOutput]
