"""How models are placed, measured and loaded, and what is said when that fails."""

from __future__ import annotations

import logging
import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pytest
import torch

import model_loader
from model_loader import Singleton, load_models
from tandem.core.errors import ModelError, SettingsError
from tandem.nn.device import choose_device, choose_precision, choose_threads
from tandem.nn.precision import Precision
from tests.conftest import MODELS, ROOT
from tests.support.settings import settings_in

CPU = torch.device("cpu")


# -- devices and precisions ------------------------------------------------------------------------------------------


def test_cuda_without_cuda_is_an_error_and_not_a_silent_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(SettingsError, match="DEVICE=cuda, but torch finds no CUDA device"):
        choose_device("cuda")
    assert choose_device("auto").type == choose_device("cpu").type == "cpu"


def test_int8_on_cuda_is_an_error_at_the_start(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="PRECISION=int8 runs on a CPU only"):
        choose("int8", torch.device("cuda"), tmp_path)


def choose(wanted: str, device: torch.device, folder: Path, seconds: dict[Precision, float] | None = None) -> Precision:
    def measure(precision: Precision) -> float:
        assert seconds is not None, "nothing is to be measured"
        return seconds[precision]

    return choose_precision(wanted, device, model="m", notes=folder / "precision.json", measure=measure)


def test_auto_is_float16_on_cuda(tmp_path: Path) -> None:
    assert choose("auto", torch.device("cuda"), tmp_path) is Precision.FLOAT16


def test_auto_is_float32_where_the_processor_has_no_bfloat16(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tandem.nn.device.has_fast_bfloat16", lambda: False)
    assert choose("auto", CPU, tmp_path) is Precision.FLOAT32


@pytest.mark.parametrize(
    ("seconds", "expected"), [(0.5, Precision.BFLOAT16), (0.95, Precision.FLOAT32), (2.0, Precision.FLOAT32)]
)
def test_auto_takes_bfloat16_where_it_measures_faster_and_remembers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seconds: float, expected: Precision
) -> None:
    monkeypatch.setattr("tandem.nn.device.has_fast_bfloat16", lambda: True)
    times = {Precision.FLOAT32: 1.0, Precision.BFLOAT16: seconds}
    assert choose("auto", CPU, tmp_path, times) is expected
    assert choose("auto", CPU, tmp_path, None) is expected


def test_damaged_notes_are_measured_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tandem.nn.device.has_fast_bfloat16", lambda: True)
    (tmp_path / "precision.json").write_text("not JSON")
    assert choose("auto", CPU, tmp_path, {Precision.FLOAT32: 1.0, Precision.BFLOAT16: 0.1}) is Precision.BFLOAT16


# -- loading ---------------------------------------------------------------------------------------------------------


def test_the_demo_loads_and_the_log_says_what_and_where(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    stages: list[str] = []
    with caplog.at_level(logging.INFO):
        models = load_models(settings_in(tmp_path), stages.append)
    assert [translator.direction for translator in models.translators] == [("zh", "en"), ("en", "zh")]
    assert all(translator.is_demo for translator in models.translators)
    assert models.embedder.dimension == 256
    assert "Using device: cpu" in caplog.text
    assert "demo-zh2en: zh to en, float32" in caplog.text
    assert "memory: " in caplog.text
    assert stages[0] == "loading demo-zh2en"


def test_two_models_of_one_direction_are_an_error(tmp_path: Path) -> None:
    other = shutil.copytree(MODELS / "demo-zh2en", tmp_path / "other")
    with pytest.raises(SettingsError, match="translate the same direction"):
        load_models(settings_in(tmp_path, TRANSLATION_MODEL=f"demo-zh2en,{other}"))


def test_fingerprints_tell_models_and_precisions_apart(tmp_path: Path) -> None:
    prints = set()
    for precision in ("float32", "bfloat16"):
        settings = settings_in(tmp_path, PRECISION=precision)
        prints |= {
            model_loader.load_translator(name, settings, CPU).fingerprint for name in ("demo-zh2en", "demo-en2zh")
        }
    assert len(prints) == 4


def test_a_singleton_is_made_once_however_many_ask() -> None:
    made: list[int] = []
    gate = threading.Event()

    def build() -> object:
        gate.wait(5)
        made.append(1)
        return object()

    single: Singleton[object] = Singleton()
    found: list[object] = []
    threads = [threading.Thread(target=lambda: found.append(single.get(build))) for _ in range(8)]
    for thread in threads:
        thread.start()
    gate.set()
    for thread in threads:
        thread.join(5)
    assert len(made) == 1
    assert len(found) == 8
    assert len(set(map(id, found))) == 1


def test_a_singleton_that_could_not_be_made_is_tried_again() -> None:
    attempts: list[int] = []

    def build() -> str:
        attempts.append(1)
        if len(attempts) == 1:
            raise ModelError("broken")
        return "made"

    single: Singleton[str] = Singleton()
    with pytest.raises(ModelError):
        single.get(build)
    assert single.get(build) == "made"


def test_prepare_converts_with_a_bar_and_says_what_is_wrong(tmp_path: Path) -> None:
    source = shutil.copytree(MODELS / "demo-zh2en", tmp_path / "model")
    environment = {**os.environ, "CACHE_DIR": str(tmp_path / "cache"), "TRANSLATION_MODEL": str(source)}
    command = [sys.executable, "model_loader.py", "prepare"]
    ran = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True)
    assert "converting model: 100%" in ran.stderr
    environment["TRANSLATION_MODEL"] = str(tmp_path / "nowhere")
    ran = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert ran.returncode == 1
    assert "neither a directory nor a hub id" in ran.stderr
    assert "Traceback" not in ran.stderr


@pytest.mark.parametrize(("seconds", "expected"), [({1: 1.0, 4: 2.0}, 1), ({1: 2.0, 4: 1.0}, 4)])
def test_the_faster_number_of_threads_is_taken_and_remembered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seconds: dict[int, float], expected: int
) -> None:
    monkeypatch.setattr(torch, "get_num_threads", lambda: 4)
    notes = tmp_path / "measured.json"
    assert choose_threads(model="m", notes=notes, measure=seconds.__getitem__) == expected
    assert choose_threads(model="m", notes=notes, measure=lambda _: pytest.fail("measured again")) == expected
