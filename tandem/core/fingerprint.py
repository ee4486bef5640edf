"""What tells one model's results from another's: a hash over its files and how it is run."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path

_EDGE_BYTES = 1 << 20
_WHOLE_UP_TO_BYTES = 64 << 20


def compute_fingerprint(model_dir: Path, files: Iterable[Path], *traits: str) -> str:
    """Hash a model's files and how it is run.

    Files up to 64 MiB count whole: configurations, vocabularies, small weights. Of a larger one only the size and the
    first and last MiB do: names, shapes and a sample of the numbers. Two files that differ in between alone would get
    one fingerprint; training never makes such a pair.

    Args:
        model_dir: The model's directory.
        files: What of it counts; what does not exist is passed over.
        traits: What else decides the results: precision, decoding options, limits.

    Returns:
        32 hexadecimal digits.
    """
    digest = hashlib.sha256("\0".join(traits).encode())
    for path in files:
        if path.is_file():
            size = path.stat().st_size
            digest.update(f"\0{path.relative_to(model_dir).as_posix()}\0{size}\0".encode())
            digest.update(path.read_bytes() if size <= _WHOLE_UP_TO_BYTES else _edges(path, size))
    return digest.hexdigest()[:32]


def _edges(path: Path, size: int) -> bytes:
    with path.open("rb") as file:
        head = file.read(_EDGE_BYTES)
        file.seek(size - _EDGE_BYTES)
        return head + file.read(_EDGE_BYTES)
