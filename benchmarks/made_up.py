"""Models with random weights, in the sizes of released ones: speed does not depend on what a model has learnt."""

from __future__ import annotations

import json
import shutil
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from safetensors.torch import save_file

from tandem.csanmt.bundle import write_bundle
from tandem.csanmt.checkpoint import (
    CHECKPOINT_PREFIX,
    CONFIG_FILE,
    WEIGHTS_FILE,
    official_name,
    parameter_shapes,
)
from tandem.csanmt.configuration import OFFICIAL_FILE, CsanmtConfig, load_official_config
from tandem.gte.checkpoint import SAFETENSORS_FILE, stored_shapes
from tandem.gte.configuration import load_bert_config

Array = npt.NDArray[np.float32]
Slots = Callable[[str], Sequence[str]]

TWIN_TARGET_TOKENS = 25
_COMPLETE = ".complete"
_SEED = 20240229
_ROWS_AT_ONCE = 1024

BASE_SIZES: Mapping[str, int | bool] = {
    "hidden_size": 512, "filter_size": 2048, "num_heads": 8, "num_encoder_layers": 24, "num_decoder_layers": 3,
    "num_semantic_encoder_layers": 4, "max_relative_dis": 16, "src_vocab_size": 50000, "trg_vocab_size": 50000,
    "shared_source_target_embedding": False,
}  # fmt: skip
LARGE_SIZES: Mapping[str, int | bool] = {
    **BASE_SIZES, "hidden_size": 1024, "filter_size": 4096, "num_heads": 16, "num_decoder_layers": 6,
    "shared_source_target_embedding": True,
}  # fmt: skip
BERT_BASE_SIZES: Mapping[str, int] = {
    "hidden_size": 768, "intermediate_size": 3072, "num_hidden_layers": 12, "num_attention_heads": 12,
    "max_position_embeddings": 512,
}  # fmt: skip


def once(folder: Path, write: Callable[[Path], None]) -> Path:
    """Return a folder that `write` has filled completely, now or in an earlier run."""
    if not (folder / _COMPLETE).is_file():
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        write(folder)
        (folder / _COMPLETE).touch()
    return folder


class MadeUpVariables(Mapping[str, Array]):
    """The variables of an official checkpoint, each made when it is asked for: they never lie in memory together.

    Args:
        config: Sizes.
        slots: What an optimiser keeps beside a variable, in its shape: name -> endings of the names.
    """

    def __init__(self, config: CsanmtConfig, slots: Slots = lambda _: ()) -> None:
        """Remember names and shapes."""
        self._shapes = parameter_shapes(config)
        self._ours = {official_name(name, config): name for name in self._shapes}
        self._names = [f"{name}{slot}" for name in self._ours for slot in ("", *slots(name))]

    def __len__(self) -> int:
        """How many variables there are."""
        return len(self._names)

    def __iter__(self) -> Iterator[str]:
        """Iterate over their names."""
        return iter(self._names)

    def __getitem__(self, name: str) -> Array:
        """Make the values of a variable, always the same ones."""
        generator = np.random.default_rng([_SEED, zlib.crc32(name.encode())])
        return _oriented(self._owner(name), _random(self._owner(name), self.shape(name), generator))

    def shape(self, name: str) -> tuple[int, ...]:
        """Return the shape of a variable in our orientation."""
        return self._shapes[self._owner(name)]

    def _owner(self, name: str) -> str:
        """Return the parameter of ours that a variable is, or whose slot it is."""
        return self._ours.get(name) or self._ours[name.rpartition("/")[0]]


def write_official_twin(
    folder: Path,
    demo_dir: Path,
    sizes: Mapping[str, int | bool],
    *,
    target_tokens: int = TWIN_TARGET_TOKENS,
    slots: Slots = lambda _: (),
) -> None:
    """Write a checkpoint of other sizes in the official layout, with the text files of a demo model.

    Args:
        folder: Where to.
        demo_dir: Official layout; its codes and the beginning of its vocabularies are kept.
        sizes: Entries of the configuration's model section.
        target_tokens: Output limit of a translation.
        slots: What an optimiser keeps beside a variable; see `MadeUpVariables`.
    """
    official = json.loads((demo_dir / OFFICIAL_FILE).read_text(encoding="utf-8"))
    official["model"].update(sizes)
    for section in ("model", "evaluation"):
        official[section]["max_decoded_trg_len"] = target_tokens
    (folder / OFFICIAL_FILE).write_text(json.dumps(official, indent=1), encoding="utf-8")
    for path in demo_dir.glob("bpe.*"):
        shutil.copy(path, folder)
    config = load_official_config(folder)
    _write_vocabulary(demo_dir / config.src_vocab_file, folder / config.src_vocab_file, config.src_vocab_size)
    _write_vocabulary(demo_dir / config.trg_vocab_file, folder / config.trg_vocab_file, config.trg_vocab_size)
    prefix = folder / CHECKPOINT_PREFIX
    prefix.parent.mkdir()
    write_bundle(prefix, MadeUpVariables(config, slots))


def write_twin(folder: Path, sizes: Mapping[str, int | bool]) -> None:
    """Write a model in our own layout whose augmentation term is exactly zero: what a plain Transformer computes."""
    config = CsanmtConfig.from_dict({**sizes, "max_decoded_trg_len": TWIN_TARGET_TOKENS})
    state = {name: torch.from_numpy(value) for name, value in random_state(config)}
    for name, value in state.items():
        if ".augmentation.output." in name:
            value.zero_()
    save_file(state, folder / WEIGHTS_FILE)
    (folder / CONFIG_FILE).write_text(json.dumps(config.to_dict()), encoding="utf-8")  # the peer needs every entry


def write_bert(folder: Path, demo_dir: Path, sizes: Mapping[str, int]) -> None:
    """Write an encoder of other sizes with the tokenizer and the modules of a demo encoder."""
    shutil.copytree(demo_dir, folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns(SAFETENSORS_FILE))
    stored = json.loads((demo_dir / "config.json").read_text(encoding="utf-8"))
    stored.update({**sizes, "dtype": "float32"})
    (folder / "config.json").write_text(json.dumps(stored, indent=1), encoding="utf-8")
    generator = np.random.default_rng(_SEED)
    shapes = stored_shapes(load_bert_config(folder))
    state = {name: torch.from_numpy(_random(name, shape, generator)) for name, shape in shapes.items()}
    save_file(state, folder / SAFETENSORS_FILE, metadata={"format": "pt"})


def random_state(config: CsanmtConfig) -> Iterator[tuple[str, Array]]:
    """Yield the parameters of a CSANMT model by our names, always the same ones for the same sizes."""
    generator = np.random.default_rng(_SEED)
    for name, shape in parameter_shapes(config).items():
        yield name, _random(name, shape, generator)


def _random(name: str, shape: tuple[int, ...], generator: np.random.Generator) -> Array:
    """Draw values that keep activations near unit size through any number of layers."""
    values: Array = generator.standard_normal(shape, dtype=np.float32)
    is_norm = "norm" in name.lower()
    if len(shape) == 1:
        return values * 0.1 + (1.0 if is_norm and name.endswith("weight") else 0.0)
    return values * np.float32(shape[-1] ** -0.5)


def _oriented(name: str, value: Array) -> Array:
    """Return a parameter as the official graph stores it: the matrices of linear layers [in, out]."""
    is_linear = value.ndim == 2 and name.endswith(".weight") and "embedding" not in name
    return np.ascontiguousarray(value.T) if is_linear else value


def _write_vocabulary(source: Path, target: Path, size: int) -> None:
    """Copy a vocabulary and fill it with made-up subwords, two below its size as in the released models."""
    tokens = source.read_text(encoding="utf-8").splitlines()
    tokens += [f"filler{number}" for number in range(size - 2 - len(tokens))]
    target.write_text("\n".join(tokens) + "\n", encoding="utf-8")
