"""Where models come from, how they are converted, and what is said when that fails."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from tandem.core.errors import ModelError
from tandem.model_files import embedder_name, prepare_translator, resolve_model, translator_names
from tests.conftest import MODELS, ROOT
from tests.support.hub import Hub
from tests.support.settings import settings_in

CPU = torch.device("cpu")


# -- resolving and fetching ------------------------------------------------------------------------------------------


@pytest.fixture
def hub() -> Iterator[Hub]:
    hub = Hub(MODELS / "demo-zh2en")
    yield hub
    hub.close()


def resolve_apart(name: str, cache_dir: Path, url: str) -> subprocess.CompletedProcess[str]:
    """Resolve in a process of its own: the client libraries read their hub's address when they are imported."""
    environment = {
        **{name: value for name, value in os.environ.items() if name != "HF_HUB_OFFLINE"},
        "HF_ENDPOINT": url,
        "MODELSCOPE_ENDPOINT": url,
        "HOME": str(cache_dir),
    }
    code = (
        "import sys; from pathlib import Path; from tandem.model_files import resolve_model;"
        "print(resolve_model(sys.argv[1], Path(sys.argv[2])))"
    )
    return subprocess.run(
        [sys.executable, "-c", code, name, str(cache_dir)], env=environment, cwd=ROOT, capture_output=True, text=True,
        timeout=120, check=False,
    )  # fmt: skip


@pytest.mark.parametrize("name", ["iic/nlp_csanmt_translation_zh2en", "somebody/some-model"])
def test_a_hub_id_is_downloaded_resumed_and_found_again_without_the_hub(name: str, hub: Hub, tmp_path: Path) -> None:
    hub.break_after_bytes = 5_000_000
    first = resolve_apart(name, tmp_path, hub.url)
    assert first.returncode == 0, first.stderr[-2000:]
    folder = Path(first.stdout.split("\n")[-2])
    assert hub.break_after_bytes is None, "the download was never broken off"
    wanted = MODELS / "demo-zh2en" / "tf_ckpts" / "ckpt-0.data-00000-of-00001"
    assert (folder / "tf_ckpts" / wanted.name).read_bytes() == wanted.read_bytes()
    data_requests = [path for method, path, _ in hub.requests if method == "GET" and "ckpt-0.data" in path]
    assert len(data_requests) == 2
    hub.close()
    again = resolve_apart(name, tmp_path, hub.url)
    assert again.stdout.split("\n")[-2] == str(folder), again.stderr[-2000:]


def test_a_model_that_no_hub_has_is_an_error_that_names_it(hub: Hub, tmp_path: Path) -> None:
    hub.close()
    ran = resolve_apart("somebody/nothing", tmp_path, hub.url)
    assert ran.returncode != 0
    assert "ModelError: somebody/nothing could not be downloaded" in ran.stderr


def test_a_directory_is_taken_as_it_is(tmp_path: Path) -> None:
    assert resolve_model(str(tmp_path), tmp_path) == tmp_path


@pytest.mark.parametrize("name", ["./nowhere", "/nowhere/at/all", "~/nowhere", "just-a-word", "a/b/c"])
def test_what_is_neither_directory_nor_hub_id_is_an_error_that_names_it(name: str, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="neither a directory nor a hub id"):
        resolve_model(name, tmp_path)


def test_several_models_are_separated_by_commas() -> None:
    assert translator_names(" a/b, demo ,/c ") == ["a/b", "demo-zh2en", "demo-en2zh", "/c"]


def test_the_demo_has_one_embedder() -> None:
    assert [embedder_name(setting) for setting in ("demo", "a/b")] == ["demo-gte", "a/b"]


# -- converting ------------------------------------------------------------------------------------------------------


def test_an_official_model_is_converted_once(tmp_path: Path) -> None:
    settings = settings_in(tmp_path)
    folder = prepare_translator("demo-zh2en", settings, CPU)
    stamp = (folder / "model.safetensors").stat().st_mtime_ns
    assert prepare_translator("demo-zh2en", settings, CPU) == folder
    assert (folder / "model.safetensors").stat().st_mtime_ns == stamp
    assert json.loads((folder / "config.json").read_text())["dtype"] == "float32"


def test_a_gpu_gets_float16_weights(tmp_path: Path) -> None:
    folder = prepare_translator("demo-zh2en", settings_in(tmp_path), torch.device("cuda"))
    assert json.loads((folder / "config.json").read_text())["dtype"] == "float16"


def test_a_changed_checkpoint_is_converted_anew(tmp_path: Path) -> None:
    source = Path(shutil.copytree(MODELS / "demo-zh2en", tmp_path / "model"))
    settings = settings_in(tmp_path / "cache")
    first = prepare_translator(str(source), settings, CPU)
    os.utime(source / "tf_ckpts" / "ckpt-0.index", ns=(1, 1))
    assert prepare_translator(str(source), settings, CPU) != first


def test_a_converted_directory_is_used_where_it_lies(tmp_path: Path) -> None:
    folder = prepare_translator("demo-zh2en", settings_in(tmp_path), CPU)
    assert prepare_translator(str(folder), settings_in(tmp_path / "other"), CPU) == folder
    assert not (tmp_path / "other").exists()


def test_two_processes_convert_once(tmp_path: Path) -> None:
    code = (
        "from pathlib import Path; import sys, torch; from tandem.model_files import prepare_translator;"
        "from tandem.core.settings import load_settings;"
        "print(prepare_translator('demo-zh2en', load_settings({'CACHE_DIR': sys.argv[1]}), torch.device('cpu')))"
    )
    command = [sys.executable, "-c", code, str(tmp_path)]
    both = [subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    found = {process.communicate(timeout=120)[0].strip() for process in both}
    assert [process.returncode for process in both] == [0, 0]
    assert len(found) == 1
    left = sorted(path.name for path in (tmp_path / "converted").iterdir() if path.is_dir())
    assert left == [Path(found.pop()).name]


def test_a_conversion_that_fails_leaves_nothing_behind(tmp_path: Path) -> None:
    source = Path(shutil.copytree(MODELS / "demo-zh2en", tmp_path / "model"))
    (source / "bpe.zh").unlink()
    with pytest.raises(ModelError, match=r"bpe\.zh is missing"):
        prepare_translator(str(source), settings_in(tmp_path / "cache"), CPU)
    assert [path for path in (tmp_path / "cache" / "converted").iterdir() if path.is_dir()] == []
