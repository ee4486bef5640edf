"""Checkpoints with random values."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from benchmarks.harness import WorkerError
from benchmarks.made_up import LARGE_SIZES, MadeUpVariables, write_official_twin
from benchmarks.real_size import slots
from benchmarks.starting import free_port, serving
from tandem.csanmt.bundle import Bundle
from tandem.csanmt.checkpoint import CHECKPOINT_PREFIX, load_model
from tandem.csanmt.configuration import CsanmtConfig
from tests.conftest import MODELS

SMALL = {
    **LARGE_SIZES, "hidden_size": 32, "filter_size": 64, "num_heads": 4, "num_encoder_layers": 2,
    "num_decoder_layers": 1, "num_semantic_encoder_layers": 1, "src_vocab_size": 12000, "trg_vocab_size": 12000,
}  # fmt: skip


def test_the_real_size_is_the_released_models() -> None:
    config = CsanmtConfig(**LARGE_SIZES)
    variables = MadeUpVariables(config, slots)
    sizes = {name: int(np.prod(variables.shape(name))) for name in variables}
    weights = sum(size for name, size in sizes.items() if not name.endswith(("/Adam", "/Adam_1", "/Accumulated")))
    assert weights == pytest.approx(569.6e6, rel=1e-3)
    assert 4 * sum(sizes.values()) == pytest.approx(7.9e9, rel=5e-3)


def test_a_made_up_checkpoint_loads_and_its_slots_are_passed_over(tmp_path: Path) -> None:
    write_official_twin(tmp_path, MODELS / "demo-zh2en", SMALL, target_tokens=77, slots=slots)
    bundle = Bundle(tmp_path / CHECKPOINT_PREFIX)
    name = "NmtModel/decoder/layer_0/ffn_layer/input_layer/linear/matrix"
    weights, slot = bundle.read(name), bundle.read(f"{name}/Accumulated")
    assert weights.shape == slot.shape == (32, 64)
    assert not np.array_equal(weights, slot)
    model = load_model(tmp_path)
    assert model.config.max_decoded_trg_len == 77
    assert np.array_equal(model.decoder.stack[0].feed_forward.input.weight.numpy(), weights.T)


def test_values_are_the_same_whenever_they_are_asked_for() -> None:
    variables = MadeUpVariables(CsanmtConfig(**SMALL))
    name = next(iter(variables))
    assert np.array_equal(variables[name], variables[name])
    assert len(list(variables)) == len(variables)


def test_a_server_that_ends_at_once_is_an_error_with_its_log(tmp_path: Path) -> None:
    command = [sys.executable, "-c", "raise SystemExit('no such model')"]
    with (
        pytest.raises(WorkerError, match="no such model"),
        serving(command, {}, free_port(), "/ready", tmp_path / "server.log"),
    ):
        raise AssertionError("it is not ready")


def test_a_servers_time_counts_from_its_start(tmp_path: Path) -> None:
    program = (
        "import sys; from http.server import *; ThreadingHTTPServer(('127.0.0.1', int(sys.argv[1])), "
        "SimpleHTTPRequestHandler).serve_forever()"
    )
    port = free_port()
    with serving([sys.executable, "-c", program, str(port)], {}, port, "/", tmp_path / "server.log") as server:
        assert 0 < server.ready_s < 60
        assert server.process.poll() is None
    assert server.process.poll() is not None
