"""Whether kernels can be compiled here, and where what is compiled is kept."""

from __future__ import annotations

import hashlib
import importlib.util
import logging
from pathlib import Path

LOGGER = logging.getLogger("tandem.compiled")

_PACKAGE = Path(__file__).parents[1]
_SOURCES = ("compiled/*.py", "*/kernels/*.py")  # where kernels stand


def prepare_kernels(cache_dir: Path) -> bool:
    """Make the kernels importable; False where numba is not installed or does not work.

    What is compiled is kept under a name made from the kernels' sources: numba itself would notice only a change of the
    file that a function stands in, not of what it calls.

    Args:
        cache_dir: Made if needed.
    """
    if importlib.util.find_spec("numba") is None:
        LOGGER.info("numba is not installed; the translator computes with torch alone")
        return False
    try:
        import numba

        if not numba.config.CACHE_DIR:
            folder = cache_dir / "kernels" / _fingerprint()
            folder.mkdir(parents=True, exist_ok=True)
            numba.config.CACHE_DIR = str(folder)
    except (ImportError, OSError) as error:
        LOGGER.warning("kernels cannot be compiled (%s); the translator computes with torch alone", error)
        return False
    return True


def _fingerprint() -> str:
    digest = hashlib.sha256()
    for path in sorted(path for pattern in _SOURCES for path in _PACKAGE.glob(pattern)):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:12]
