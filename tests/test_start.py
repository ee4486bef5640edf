"""What a server imports before it is ready: importing takes most of a start."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from tandem.core.settings import load_settings
from tests.conftest import ROOT

# Each takes longer to import than the demo models take to load; what rarely needs one imports it then.
_SLOW = (
    "accelerate", "modelscope", "scipy.sparse", "sklearn", "sentencepiece", "transformers", "torch._dynamo", "sympy",
)  # fmt: skip
_PROGRAM = """
import sys
import app
from model_loader import load_models
from tandem.core.settings import load_settings
load_models(load_settings())
print([name for name in sys.argv[1:] if name in sys.modules])
"""


def test_a_server_with_the_demo_models_imports_nothing_that_it_does_not_need(tmp_path: Path) -> None:
    compiled = load_settings().cache_dir / "kernels"
    if compiled.is_dir():  # compiling takes half a minute, and is not what this is about
        shutil.copytree(compiled, tmp_path / "kernels")
    environment = {**os.environ, "CACHE_DIR": str(tmp_path), "DEVICE": "cpu", "PRECISION": "float32", "THREADS": "1"}
    ended = subprocess.run(
        [sys.executable, "-c", _PROGRAM, *_SLOW], cwd=ROOT, env=environment, capture_output=True, text=True, check=True
    )
    assert ended.stdout.strip().splitlines()[-1] == "[]"
    assert (tmp_path / "jieba.cache").is_file()  # the next start finds the word splitter's dictionary ready
