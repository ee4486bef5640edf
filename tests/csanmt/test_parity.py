"""The demo models' 500 lines each, against what the official pipeline gave; and every precision against float32."""

from __future__ import annotations

import io
import random
import subprocess
import sys
from collections.abc import Iterator

import pytest
import sacrebleu
import torch

from tandem.core.types import Finished, Hypothesis, Item, Priority
from tandem.csanmt.kernel_search import kernel_precisions
from tandem.csanmt.translate import LineTranslator
from tandem.nn.precision import Precision
from tests.conftest import ROOT
from tests.csanmt.support import DEMOS, best, demo

ENOUGH = 497  # of 500

pytestmark = pytest.mark.usefixtures("backend")


@pytest.fixture(scope="module", autouse=True)
def _two_threads() -> Iterator[None]:
    """Let torch use the second core: nothing else runs beside these, the longest tests of all."""
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(1)


def texts(name: str, items: list[Item], precision: Precision = Precision.FLOAT32) -> list[str]:
    model = demo(name, precision)
    return [model.tokenizer.decode(hypothesis.ids) for hypothesis in best(model.engine, items)]


def same(found: list[str], official: list[str]) -> int:
    assert len(found) == len(official) > 0
    return sum(a == b for a, b in zip(found, official, strict=True))


@pytest.mark.parametrize("name", DEMOS)
def test_source_ids_are_the_official_pipelines(name: str) -> None:
    model = demo(name)
    assert [model.tokenizer.encode(line) for line in model.source] == model.ids


@pytest.mark.parametrize("backend", ["kernels"], indirect=True)  # it chooses for itself
@pytest.mark.parametrize("name", DEMOS)
def test_the_command_line_gives_the_official_lines(name: str) -> None:
    model = demo(name)
    command = [sys.executable, "-m", "tandem.csanmt.translate", str(model.directory), "--batch", "64"]
    ran = subprocess.run(command, input="\n".join(model.source).encode(), capture_output=True, check=True, cwd=ROOT)
    assert same(ran.stdout.decode().splitlines(), model.official) >= ENOUGH


@pytest.mark.parametrize("name", DEMOS)
def test_one_at_a_time_gives_the_official_lines(backend: str, name: str) -> None:
    model, each = demo(name), 1 if backend == "kernels" else 5  # torch takes ten times as long for one
    found = [text for ids in model.ids[::each] for text in texts(name, [Item(ids)])]
    assert same(found, model.official[::each]) >= ENOUGH / each


@pytest.mark.parametrize("name", DEMOS)
def test_batches_of_64_in_any_order_give_the_official_lines(name: str) -> None:
    model = demo(name)
    order = list(range(500))
    random.Random(7).shuffle(order)
    found = [""] * 500
    for start in range(0, 500, 64):
        places = order[start : start + 64]
        for place, text in zip(places, texts(name, [Item(model.ids[place]) for place in places]), strict=True):
            found[place] = text
    assert same(found, model.official) >= ENOUGH


@pytest.mark.parametrize("name", DEMOS)
def test_sentences_that_join_while_others_run_give_the_official_lines(name: str) -> None:
    model = demo(name)
    engine, waiting = model.engine, [Item(ids) for ids in model.ids]
    items, chance = list(waiting), random.Random(11)
    done: dict[int, Finished[list[Hypothesis]]] = {}
    while waiting or engine.live():
        if waiting and len(engine.live()) < 48 and chance.random() < 0.7:
            count = chance.randint(1, 6)
            engine.admit(waiting[:count])
            del waiting[:count]
        done |= {id(finished.item): finished for finished in engine.step(Priority.BULK)}
    results = [done[id(item)].result for item in items]
    found = [model.tokenizer.decode(result[0].ids) for result in results if result]
    assert same(found, model.official) >= ENOUGH


@pytest.mark.parametrize(
    ("backend", "precision", "bar"),
    [
        ("torch", "float16", 99.5),
        ("torch", "bfloat16", 95.0),
        ("torch", "int8", 92.0),
        ("kernels", "bfloat16", 95.0),
        ("kernels", "int8", 92.0),
    ],
    indirect=["backend"],
)
@pytest.mark.parametrize("name", DEMOS)
def test_lower_precisions_stay_close_to_float32(backend: str, name: str, precision: str, bar: float) -> None:
    if backend == "kernels" and Precision(precision) not in kernel_precisions():
        pytest.skip("this processor has no instructions for it; torch computes it")
    exact, low = demo(name), demo(name, Precision(precision))

    def subwords(model: object) -> list[str]:
        found = best(model.engine, [Item(ids) for ids in exact.ids])  # type: ignore[attr-defined]
        return [" ".join(map(exact.tokenizer.target_token, hypothesis.ids)) for hypothesis in found]

    bleu = sacrebleu.corpus_bleu(subwords(low), [subwords(exact)], tokenize="none", force=True)
    assert bleu.score >= bar


def test_a_blank_line_stays_blank(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    from tandem.csanmt import translate

    raw = io.BytesIO("你好。\n\n 　\n你好。".encode())
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(raw))
    assert translate.main([str(demo("demo-zh2en").directory), "--batch", "3"]) == 0
    lines = capsys.readouterr().out.split("\n")
    assert lines[1:3] == ["", ""]
    assert lines[0] == lines[3] != ""


def test_the_precision_of_the_command_line_reaches_the_model() -> None:
    translator = LineTranslator(demo("demo-zh2en").directory, Precision.INT8)
    exact = demo("demo-zh2en")
    found = list(translator.translate(exact.source[:100], batch=50))
    assert 70 <= sum(a == b for a, b in zip(found, exact.official, strict=False)) < 100
