"""Convert an official CSANMT checkpoint, once: `python -m tandem.csanmt.convert MODEL_DIR OUT_DIR`."""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from pathlib import Path

import torch
from safetensors.torch import save_file
from tqdm import tqdm

from tandem.core.errors import ModelError, TandemError
from tandem.csanmt.checkpoint import CONFIG_FILE, WEIGHTS_FILE, is_official, parameter_shapes, read_official
from tandem.csanmt.configuration import CsanmtConfig, load_official_config

DTYPES = {"float32": torch.float32, "float16": torch.float16, "bfloat16": torch.bfloat16}


def convert(model_dir: Path, out_dir: Path, dtype: torch.dtype = torch.float32, *, progress: bool = True) -> None:
    """Write a converted model: `config.json`, `model.safetensors`, vocabularies, BPE codes.

    Peak memory is the result's size and little more: parameters are copied one at a time from the mapped checkpoint.

    Args:
        model_dir: A ModelScope directory.
        out_dir: Made if needed; files of the same names are overwritten.
        dtype: Type of the stored weights.
        progress: Show a bar on standard error.

    Raises:
        ModelError: The source is not an official model, or damaged; or a value overflows the type.
    """
    if not is_official(model_dir):
        raise ModelError(f"{model_dir} is not a ModelScope directory with a configuration.json")
    config = load_official_config(model_dir)
    out_dir.mkdir(parents=True, exist_ok=True)
    state = {}
    parameters = read_official(model_dir, config, dtype)
    total = len(parameter_shapes(config))
    for name, value in tqdm(parameters, total=total, desc=f"converting {model_dir.name}", disable=not progress):
        if not all(bound.isfinite() for bound in value.aminmax()):  # unlike isfinite(), it needs no second copy
            raise ModelError(f"{model_dir}: {name} does not fit into {dtype}; convert to float32 or bfloat16")
        state[name] = value
    weights = out_dir / WEIGHTS_FILE
    save_file(state, weights, metadata={"format": "pt"})
    weights.chmod(0o644)  # it is written readable by its owner only
    _write_small_files(model_dir, out_dir, config, dtype)


def _write_small_files(model_dir: Path, out_dir: Path, config: CsanmtConfig, dtype: torch.dtype) -> None:
    names = {config.src_vocab_file: "src_vocab.txt", config.trg_vocab_file: "trg_vocab.txt"}
    codes = f"bpe.{config.src_lang}"
    for source, target in {**names, config.src_bpe_file: codes}.items():
        try:
            shutil.copyfile(model_dir / source, out_dir / target)
        except FileNotFoundError:
            raise ModelError(f"{model_dir / source} is missing: is the download complete?") from None
    config.src_vocab_file, config.trg_vocab_file = names.values()
    config.src_bpe_file = codes
    stored = {**config.to_dict(), "architectures": ["CsanmtForConditionalGeneration"], "dtype": str(dtype)[6:]}
    (out_dir / CONFIG_FILE).write_text(json.dumps(stored, indent=2) + "\n", encoding="utf-8")
    tokenizer = {"tokenizer_class": "CsanmtTokenizer", "model_max_length": 1024}
    (out_dir / "tokenizer_config.json").write_text(json.dumps(tokenizer, indent=2) + "\n", encoding="utf-8")


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tandem.csanmt.convert", description=__doc__)
    parser.add_argument("model_dir", type=Path, help="the directory as downloaded from ModelScope")
    parser.add_argument("out_dir", type=Path, help="where the converted model goes")
    parser.add_argument("--dtype", choices=DTYPES, default="float32", help="type of the stored weights")
    options = parser.parse_args(arguments)
    try:
        convert(options.model_dir, options.out_dir, DTYPES[options.dtype])
    except TandemError as error:
        print(f"convert: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
