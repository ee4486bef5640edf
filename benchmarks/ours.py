"""Our engines, loaded and driven as the service does it, without threads and HTTP."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from tandem.core.planning import BatchPolicy, plan_batch
from tandem.core.types import Engine, Finished, Hypothesis, Item, Priority
from tandem.csanmt.backend import make_kernels
from tandem.csanmt.checkpoint import load_config, load_model
from tandem.csanmt.constraints import PrefixIndex
from tandem.csanmt.engine import EngineLimits, TranslationEngine
from tandem.csanmt.kernel_search import Kernels
from tandem.csanmt.live import DecodingOptions
from tandem.csanmt.modeling import CsanmtForConditionalGeneration
from tandem.csanmt.packing import pack_model
from tandem.nn.precision import Precision, has_fast_bfloat16

CPU = torch.device("cpu")


def precisions() -> list[Precision]:
    """Return what is measured on this processor: bfloat16 only where it multiplies it in hardware."""
    fast = [Precision.BFLOAT16] if has_fast_bfloat16() else []
    return [Precision.FLOAT32, *fast, Precision.INT8]


class NoSemanticEncoder(nn.Module):
    """Takes the place of the semantic encoder in a model whose augmentation is zero anyway."""

    def forward(self, embedded: Tensor, mask: Tensor) -> Tensor:  # noqa: ARG002 - the replaced module's signature
        """[B, S, D] -> [B, 1, D] of zeros."""
        return embedded.new_zeros(len(embedded), 1, embedded.shape[2])


def load_packed(model_dir: Path, precision: Precision, device: torch.device = CPU) -> CsanmtForConditionalGeneration:
    """Load a translation model of either layout and pack it for a precision."""
    model = load_model(model_dir, precision.dtype if device.type == "cuda" else torch.float32).to(device)
    pack_model(model, precision, device)
    return model


@dataclass(frozen=True, slots=True)
class Ours:
    """A worker's translation model as the service has it on a CPU.

    Attributes:
        model_dir: Where it came from.
        model: Packed.
        precision: What it computes in.
        kernels: For it; None where torch computes.
    """

    model_dir: Path
    model: CsanmtForConditionalGeneration
    precision: Precision
    kernels: Kernels | None


def load_for_worker() -> Ours:
    """Load what a worker's command line names: a model, a precision, how many threads."""
    parser = argparse.ArgumentParser()
    parser.add_argument("model", type=Path)
    parser.add_argument("precision", type=Precision)
    parser.add_argument("threads", type=int)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    model = load_model(arguments.model)
    kernels = make_kernels(model, arguments.precision, EngineLimits().source_tokens, arguments.threads)
    pack_model(model, arguments.precision, CPU)
    return Ours(arguments.model, model, arguments.precision, kernels)


def build_translator(
    model: CsanmtForConditionalGeneration,
    precision: Precision,
    kernels: Kernels | None = None,
    limits: EngineLimits | None = None,
) -> TranslationEngine:
    """Build an engine around a packed model, with the model's own decoding options."""
    config = model.config
    options = DecodingOptions(config.beam_size, config.lp_rate, config.max_decoded_trg_len)
    return TranslationEngine(
        model, prefix_index=lambda: PrefixIndex([], 0), options=options, limits=limits or EngineLimits(),
        precision=precision, kernels=kernels,
    )  # fmt: skip


def translate(engine: TranslationEngine, sources: Sequence[Sequence[int]]) -> list[Hypothesis]:
    """Translate token ids, all admitted together; return the best hypothesis of each, in order."""
    items = [Item(tuple(ids)) for ids in sources]
    finished = {id(done.item): done for done in [*engine.admit(items), *_drain(engine)]}
    return [_result(finished[id(item)])[0] for item in items]


def embed(engine: Engine[Any], texts: Sequence[Sequence[int]], limit: int) -> list[Any]:
    """Compute the vectors of tokenised texts, batched by the scheduler's planner; in order.

    Args:
        engine: An embedder.
        texts: Token ids with their marks.
        limit: Tokens of a batch.
    """
    policy = BatchPolicy(max_batch_size=len(texts), max_batch_tokens=limit)
    waiting = [Item(tuple(ids)) for ids in texts]
    order = [id(item) for item in waiting]
    finished: dict[int, Finished[Any]] = {}
    while waiting:
        room = {priority: engine.room(priority) for priority in Priority}
        batch = plan_batch(waiting, policy, room, idle=True)
        planned = set(map(id, batch))
        waiting = [item for item in waiting if id(item) not in planned]
        finished |= {id(done.item): done for done in [*engine.admit(batch), *_drain(engine)]}
    return [_result(finished[key]) for key in order]


def translation_config(model_dir: Path) -> Any:
    """Return the configuration of a translation model of either layout."""
    return load_config(model_dir)


def _drain(engine: Engine[Any]) -> list[Finished[Any]]:
    finished: list[Finished[Any]] = []
    while engine.live():
        finished += engine.step(Priority.BULK)
    return finished


def _result(done: Finished[Any]) -> Any:
    if done.error is not None:
        raise done.error
    return done.result
