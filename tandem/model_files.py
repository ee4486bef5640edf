"""Where models come from: the repository, a directory, or a hub; an official checkpoint is converted first."""

from __future__ import annotations

import logging
import re
import shutil
import tempfile
from pathlib import Path

import torch
from filelock import FileLock

import tandem
from tandem.core.errors import ModelError
from tandem.core.fingerprint import compute_fingerprint
from tandem.core.settings import ROOT, Settings
from tandem.csanmt.checkpoint import CHECKPOINT_PREFIX, is_official
from tandem.csanmt.configuration import OFFICIAL_FILE
from tandem.csanmt.convert import convert

LOGGER = logging.getLogger("tandem.models")
DEMO = "demo"
DEMO_TRANSLATORS = ("demo-zh2en", "demo-en2zh")
DEMO_EMBEDDER = "demo-gte"
_MODELSCOPE_OWNERS = ("iic", "damo", "modelscope")


def resolve_model(name: str, cache_dir: Path) -> Path:
    """Return the directory of a model, downloading it if need be.

    Args:
        name: A directory, a demo model's name, or a hub id: `iic/…` from ModelScope, any other `org/name` from Hugging
            Face.
        cache_dir: Where downloads go; an interrupted one is taken up again.

    Raises:
        ModelError: There is no such model, or the download failed.
    """
    if name in (*DEMO_TRANSLATORS, DEMO_EMBEDDER):
        return ROOT / "models" / name
    path = Path(name).expanduser()
    if path.is_dir():
        return path
    if name.startswith((".", "/", "~")) or name.count("/") != 1:
        raise ModelError(f"{name} is neither a directory nor a hub id such as iic/nlp_csanmt_translation_zh2en")
    owner = name.split("/", 1)[0]
    fetch = _fetch_modelscope if owner in _MODELSCOPE_OWNERS else _fetch_hugging_face
    LOGGER.info("fetching %s", name)
    try:
        return Path(fetch(name, cache_dir / "hub", is_offline=False))
    except Exception as error:
        try:  # downloaded before, and the hub cannot be reached now
            return Path(fetch(name, cache_dir / "hub", is_offline=True))
        except Exception:
            raise ModelError(f"{name} could not be downloaded: {error}") from error


def _fetch_modelscope(name: str, folder: Path, *, is_offline: bool) -> str:
    from modelscope.hub.snapshot_download import snapshot_download  # slow to import, and rarely needed

    return str(snapshot_download(name, cache_dir=str(folder), local_files_only=is_offline))


def _fetch_hugging_face(name: str, folder: Path, *, is_offline: bool) -> str:
    from huggingface_hub import snapshot_download

    unwanted = ["*.onnx", "onnx/*", "*.h5", "*.msgpack", "*.ot", "openvino/*"]
    found = snapshot_download(name, cache_dir=folder, ignore_patterns=unwanted, local_files_only=is_offline)
    return str(found)


def translator_names(setting: str) -> list[str]:
    """Return the models that a `TRANSLATION_MODEL` setting names, in order."""
    names = [name.strip() for name in setting.split(",") if name.strip()]
    return [part for name in names for part in (DEMO_TRANSLATORS if name == DEMO else (name,))]


def embedder_name(setting: str) -> str:
    """Return the model that an `EMBEDDING_MODEL` setting names."""
    return DEMO_EMBEDDER if setting == DEMO else setting


def prepare_translator(name: str, settings: Settings, device: torch.device, *, progress: bool = False) -> Path:
    """Return a converted directory of a translation model, making it first if need be.

    The result lies in the cache folder, under a name made of the model, the weights' type and the source files' sizes
    and times. It is written under a temporary name and renamed; a second process waits for the first.

    Raises:
        ModelError: The model is missing, broken, or not a CSANMT model.
    """
    source = resolve_model(name, settings.cache_dir)
    if not is_official(source):
        return source
    dtype = torch.float16 if device.type == "cuda" else torch.float32
    files = [source / OFFICIAL_FILE, *source.glob(f"{CHECKPOINT_PREFIX}.*")]
    state = [f"{file.name} {file.stat().st_size} {file.stat().st_mtime_ns}" for file in sorted(files)]
    mark = compute_fingerprint(source, [], str(dtype), tandem.__version__, *state)[:12]
    label = re.sub(r"[^\w.-]+", "--", name.strip("./~"))[-80:]
    target = settings.cache_dir / "converted" / f"{label}-{str(dtype).removeprefix('torch.')}-{mark}"
    target.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(f"{target}.lock"):
        if not target.is_dir():
            unfinished = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=target.parent))
            try:
                convert(source, unfinished, dtype, progress=progress)
                unfinished.chmod(0o755)
                unfinished.rename(target)
            finally:
                shutil.rmtree(unfinished, ignore_errors=True)
    return target
