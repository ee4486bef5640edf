"""The tutorial's own loop, on a converted model, through transformers' and accelerate's names."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import torch
from accelerate import Accelerator
from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

import tandem.csanmt  # noqa: F401 - registers the model
from tandem.core.errors import InvalidRequestError
from tandem.csanmt.auto import CsanmtForConditionalGeneration
from tandem.csanmt.convert import convert
from tandem.csanmt.hub_configuration import CsanmtHubConfig
from tests.conftest import ROOT
from tests.csanmt.support import demo, fixture_model


@pytest.fixture(scope="module")
def converted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("converted")
    convert(demo("demo-zh2en").directory, folder, progress=False)
    return folder


@pytest.fixture(scope="module")
def model(converted: Path) -> CsanmtForConditionalGeneration:
    loaded: CsanmtForConditionalGeneration = AutoModelForSeq2SeqLM.from_pretrained(converted)
    return loaded


def test_the_tutorials_loop_gives_the_official_translations(converted: Path, model: torch.nn.Module) -> None:
    official = demo("demo-zh2en")
    tokenizer = AutoTokenizer.from_pretrained(converted)
    prepared = Accelerator(cpu=True).prepare(model).eval()
    inputs = tokenizer(official.source[:40], return_tensors="pt", padding=True)
    outputs = prepared.generate(**inputs, num_beams=4, max_length=128, early_stopping=True)
    assert [tokenizer.decode(output, skip_special_tokens=True) for output in outputs] == official.official[:40]


def test_one_text_at_a_time_works_too(converted: Path, model: CsanmtForConditionalGeneration) -> None:
    official = demo("demo-zh2en")
    tokenizer = AutoTokenizer.from_pretrained(converted)
    for source, target in zip(official.source[:5], official.official[:5], strict=True):
        inputs = tokenizer(source, return_tensors="pt")
        [output] = model.generate(**inputs)
        assert tokenizer.decode(output, skip_special_tokens=True) == target
        assert tokenizer.decode(output).endswith("</s>")


def test_the_beam_and_the_limit_are_the_callers(model: CsanmtForConditionalGeneration) -> None:
    ids = torch.tensor([demo("demo-zh2en").ids[0]])
    assert model.generate(ids, num_beams=1, max_length=5).shape == (1, 6)
    ranked = model.generate(ids, num_beams=4, num_return_sequences=4)
    assert len({tuple(row.tolist()) for row in ranked}) == 4
    with pytest.raises(InvalidRequestError, match="num_return_sequences"):
        model.generate(ids, num_beams=2, num_return_sequences=3)


def test_labels_give_logits_and_a_loss_with_gradients(model: CsanmtForConditionalGeneration) -> None:
    model.train()
    labels = torch.tensor([[5, 6, 7, 0], [8, 0, -100, -100]])
    output = model(torch.tensor([[9, 10, 0], [11, 12, 13]]), labels=labels)
    assert output.logits.shape == (2, 4, model.config.trg_vocab_size)
    flat = output.logits.detach().log_softmax(-1)
    wanted = [flat[0, 0, 5], flat[0, 1, 6], flat[0, 2, 7], flat[0, 3, 0], flat[1, 0, 8], flat[1, 1, 0]]
    assert float(output.loss.detach()) == pytest.approx(-float(torch.stack(wanted).mean()), abs=1e-5)
    output.loss.backward()
    missing = [name for name, parameter in model.named_parameters() if parameter.grad is None]
    assert missing == []
    model.zero_grad()
    model.eval()


def test_a_target_position_does_not_see_what_comes_after_it(model: CsanmtForConditionalGeneration) -> None:
    source = torch.tensor([[9, 10, 11]])
    with torch.no_grad():
        first = model(source, labels=torch.tensor([[5, 6, 7, 0]])).logits
        second = model(source, labels=torch.tensor([[5, 6, 99, 98]])).logits
    torch.testing.assert_close(first[:, :3], second[:, :3])
    assert not torch.allclose(first[:, 3], second[:, 3])


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_a_model_loaded_in_half_precision_generates_and_learns(
    converted: Path, model: CsanmtForConditionalGeneration, dtype: torch.dtype
) -> None:
    half = AutoModelForSeq2SeqLM.from_pretrained(converted, dtype=dtype)
    ids = torch.tensor([demo("demo-zh2en").ids[1]])
    assert half.generate(ids).tolist() == model.generate(ids).tolist()
    assert torch.isfinite(half(ids, labels=torch.tensor([[5, 0]])).loss)


def test_saving_and_loading_again_changes_nothing(converted: Path, model: torch.nn.Module, tmp_path: Path) -> None:
    AutoTokenizer.from_pretrained(converted).save_pretrained(tmp_path)
    model.save_pretrained(tmp_path)  # type: ignore[operator]
    again = AutoModelForSeq2SeqLM.from_pretrained(tmp_path)
    for name, value in model.state_dict().items():
        assert torch.equal(again.state_dict()[name], value), name
    assert AutoTokenizer.from_pretrained(tmp_path)("你好")["input_ids"] == list(
        demo("demo-zh2en").tokenizer.encode("你好")
    )


@pytest.mark.parametrize("kind", ["abs_shared", "abs_unshared"])
def test_shared_matrices_are_one_parameter(kind: str, tmp_path: Path) -> None:
    network = fixture_model(kind)
    model = CsanmtForConditionalGeneration(CsanmtHubConfig.from_dict(network.config.to_dict()))
    model.load_state_dict(network.state_dict())
    model.save_pretrained(tmp_path)
    again = AutoModelForSeq2SeqLM.from_pretrained(tmp_path)
    assert again.output_projection.weight is again.target_embedding.weight
    assert (again.source_embedding.weight is again.target_embedding.weight) == (kind == "abs_shared")
    assert torch.equal(again.source_embedding.weight, fixture_model(kind).source_embedding.weight)


@pytest.mark.parametrize("name", ["AutoConfig", "AutoTokenizer", "AutoModelForSeq2SeqLM", "PreTrainedModel"])
@pytest.mark.parametrize("order", [("tandem.csanmt", "transformers"), ("transformers", "tandem.csanmt")])
def test_transformers_knows_the_model_whatever_is_imported_first(order: tuple[str, str], name: str) -> None:
    imports = {"tandem.csanmt": "import tandem.csanmt", "transformers": f"from transformers import {name}"}
    program = f"""
{imports[order[0]]}
{imports[order[1]]}
from transformers import AutoConfig, AutoModelForSeq2SeqLM, AutoTokenizer
from transformers.models.auto.tokenization_auto import TOKENIZER_MAPPING
from tandem.csanmt.hub_configuration import CsanmtHubConfig
assert type(AutoConfig.for_model("csanmt")) is CsanmtHubConfig
assert TOKENIZER_MAPPING[CsanmtHubConfig].__name__ == "CsanmtTokenizer"
assert AutoModelForSeq2SeqLM._model_mapping[CsanmtHubConfig].__name__ == "CsanmtForConditionalGeneration"
"""
    subprocess.run([sys.executable, "-c", program], cwd=ROOT, check=True)
