"""Which peers are installed, and how to install the others."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass

from benchmarks.harness import Settings

_FIND_TIMEOUT_S = 60


@dataclass(frozen=True, slots=True)
class Peer:
    """A peer's package, and the virtual environment it lives in.

    Attributes:
        name: As the results call it.
        environment: Subfolder of the peers' folder.
        package: What must be importable there.
    """

    name: str
    environment: str
    package: str

    def is_installed(self, settings: Settings) -> bool:
        """Say whether the environment is there and holds the package."""
        python = settings.peer_python(self.environment)
        if not python.exists():
            return False
        code = f"import importlib.util, sys; sys.exit(importlib.util.find_spec({self.package!r}) is None)"
        return subprocess.run([python, "-c", code], timeout=_FIND_TIMEOUT_S, check=False).returncode == 0

    def explain_absence(self, settings: Settings) -> str:
        """Return what to do to have this peer measured."""
        folder = settings.peers_dir / self.environment
        return (
            f"{self.name}: skipped, {self.package} is not installed in {folder}. Run `make bench-peers`, or point "
            f"--peers-dir (or BENCH_PEERS) to a folder whose {self.environment}/ is a virtual environment with "
            f"benchmarks/requirements-{self.environment}.txt."
        )


OFFICIAL = Peer("official", "official", "modelscope")
CTRANSLATE2 = Peer("ctranslate2", "peers", "ctranslate2")
SENTENCE_TRANSFORMERS = Peer("sentence-transformers", "peers", "sentence_transformers")
INFINITY = Peer("infinity", "infinity", "infinity_emb")
