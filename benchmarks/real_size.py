"""Question: does a checkpoint of the released zh2en's exact shapes convert and serve? `python -m benchmarks.real_size`.

Random values, 569.6 million parameters and an optimiser's slots beside them, 7.9 GB in all: written, converted, served,
asked for one translation, deleted. Needs about 11 GB of disk and 8 GB of memory.
"""

from __future__ import annotations

import argparse
import http.client
import json
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.harness import ROOT, WorkerError
from benchmarks.made_up import LARGE_SIZES, write_official_twin
from benchmarks.service_answers import Answer
from benchmarks.starting import Server, serving_ours
from tandem.csanmt.checkpoint import CHECKPOINT_PREFIX, WEIGHTS_FILE

QUESTION = "real size"
_TARGET_TOKENS = 100
_SENTENCE = "您确定要打开这45个设置吗？"
_SPARE_GB = 0.5  # what converting may take beyond the result
_TIMEOUT_S = 1800.0  # measuring what suits a model of this size takes minutes


def measure(work_dir: Path, demo_dir: Path) -> Iterator[Answer]:
    """Write, convert, serve, delete; yields what each part gave as soon as it is known.

    Args:
        work_dir: Where the model lies meanwhile.
        demo_dir: A translation model in the official layout, whose text files are used.

    Raises:
        WorkerError: The checkpoint did not convert, or the service did not start or translate.
    """
    folder = work_dir / "real-size"
    shutil.rmtree(folder, ignore_errors=True)
    source, converted = folder / "official", folder / "converted"
    try:
        source.mkdir(parents=True)
        write_official_twin(source, demo_dir, LARGE_SIZES, target_tokens=_TARGET_TOKENS, slots=slots)
        yield from _convert(source, converted)
        yield from _serve(folder, converted)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def slots(variable: str) -> Sequence[str]:
    """Return endings of what lies beside a variable; a third one outside the encoder makes up the released size."""
    return ("/Adam", "/Adam_1") if variable.startswith("NmtModel/encoder/") else ("/Adam", "/Adam_1", "/Accumulated")


def _convert(source: Path, converted: Path) -> list[Answer]:
    stored_bytes = sum(file.stat().st_size for file in source.glob(f"{CHECKPOINT_PREFIX}.*"))
    started_s = time.perf_counter()
    ran = subprocess.run(
        [sys.executable, "-m", "benchmarks.workers.measured_convert", str(source), str(converted)],
        cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False,
    )  # fmt: skip
    elapsed_s = time.perf_counter() - started_s
    if ran.returncode:
        raise WorkerError("the checkpoint was not converted")
    result_bytes = (converted / WEIGHTS_FILE).stat().st_size
    beyond_gb = (int(ran.stdout) - result_bytes) / 1e9
    sizes = {"checkpoint_gb": round(stored_bytes / 1e9, 2), "result_gb": round(result_bytes / 1e9, 2)}
    return [
        Answer(
            QUESTION, "GB of memory beyond the result, converting", round(beyond_gb, 3), f"<= {_SPARE_GB}", detail=sizes
        ),
        Answer(QUESTION, "seconds to convert", round(elapsed_s, 1)),
    ]


def _serve(folder: Path, converted: Path) -> list[Answer]:
    cache = str(folder / "cache")
    log = folder.parent / "real-size.log"
    settings = {"TRANSLATION_MODEL": str(converted), "CACHE_DIR": cache, "REQUEST_TIMEOUT_S": str(_TIMEOUT_S)}
    with serving_ours(log, _TIMEOUT_S, **settings) as server:
        started_s = time.perf_counter()
        _translate(server)
        elapsed_s = time.perf_counter() - started_s
        memory_gb = _memory_bytes(server) / 1e9
    return [
        Answer(QUESTION, "seconds to /ready, first start", round(server.ready_s, 1)),
        Answer(QUESTION, "seconds of one translation as long as the output limit", round(elapsed_s, 2)),
        Answer(QUESTION, "GB of memory, serving", round(memory_gb, 2)),
    ]


def _translate(server: Server) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=_TIMEOUT_S)
    connection.request("POST", "/translate", json.dumps({"text": _SENTENCE}), {"Content-Type": "application/json"})
    response = connection.getresponse()
    answer = response.read().decode()
    connection.close()
    if response.status != http.HTTPStatus.OK or not json.loads(answer)["translation"].strip():
        raise WorkerError(f"the service answered {response.status}: {answer[:500]}")


def _memory_bytes(server: Server) -> int:
    """Return the resident memory of the worker, which is the server's only child."""
    children = (
        Path(f"/proc/{server.process.pid}/task/{server.process.pid}/children").read_text(encoding="ascii").split()
    )
    status = Path(f"/proc/{children[0]}/status").read_text(encoding="ascii")
    line = next(line for line in status.splitlines() if line.startswith("VmRSS"))
    return int(line.split()[1]) << 10


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.real_size", description=__doc__)
    parser.add_argument(
        "--work-dir", type=Path, default=ROOT / "build" / "bench", help="where the model lies meanwhile"
    )
    parser.add_argument(
        "--model", type=Path, default=ROOT / "models" / "demo-zh2en", help="official layout, for its texts"
    )
    options = parser.parse_args()
    for found in measure(options.work_dir.absolute(), options.model.absolute()):
        print(found.render(), flush=True)


if __name__ == "__main__":
    main()
