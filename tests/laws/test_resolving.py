"""What a user types becomes a subject, or one message that says what to do."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from glassformer.errors import UserError
from glassformer.laws import Verdict, check_subject
from glassformer.laws.law import Family
from glassformer.laws.subjects.base import Kind, Offer
from glassformer.laws.subjects.resolve import subjects_from
from glassformer.laws.subjects.told import Told

transformers = pytest.importorskip("transformers")


def llama() -> Any:
    config = transformers.LlamaConfig(
        vocab_size=40, hidden_size=16, intermediate_size=24, num_hidden_layers=1, num_attention_heads=2,
        num_key_value_heads=1, max_position_embeddings=32,
    )  # fmt: skip
    return transformers.LlamaForCausalLM(config)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    llama().save_pretrained(str(tmp_path / "model"))
    return tmp_path / "model"


def test_a_folder_of_hugging_face_is_its_model(folder: Path) -> None:
    (subject,) = subjects_from(str(folder))
    assert subject.kind is Kind.CAUSAL
    assert subject.facts.vocab_size == 40
    assert subject.facts.settings["kv_heads"] == 1
    assert {Offer.MASK, Offer.POSITIONS, Offer.CACHE, Offer.LABELS, Offer.EMBEDS} <= set(subject.offers)
    report = check_subject(subject, only=["causality.forward", "cache.prefill-then-steps"])
    assert {result.verdict for result in report} == {Verdict.HOLDS}
    assert any("from_pretrained" in line for line in subject.building())


def change(path: Path, **settings: Any) -> None:
    path.write_text(json.dumps({**json.loads(path.read_text()), **settings}))


def test_code_of_a_folder_is_refused_and_never_run(folder: Path, tmp_path: Path) -> None:
    ran = tmp_path / "ran"
    (folder / "modeling_own.py").write_text(f"open({str(ran)!r}, 'w')\n")
    change(folder / "config.json", auto_map={"AutoModelForCausalLM": "modeling_own.Own"})
    with pytest.raises(UserError, match="auto_map"):
        subjects_from(str(folder))
    assert not ran.exists()


def test_pickled_weights_are_refused(folder: Path) -> None:
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    with pytest.raises(UserError, match="no safetensors"):
        subjects_from(str(folder))


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"architectures": ["LlamaForCausalLMs"]}, "transformers .* has none such"),
        ({"architectures": ["AutoConfig"]}, "has none such"),
        ({"architectures": ["LlamaModel"]}, "no language-model head"),
        ({"hidden_size": 24}, "could not be loaded"),
    ],
)
def test_a_folder_that_does_not_fit_is_one_message(folder: Path, settings: dict[str, Any], said: str) -> None:
    change(folder / "config.json", **settings)
    with pytest.raises(UserError, match=said):
        subjects_from(str(folder))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("transformers:lama", 'Did you mean "llama"'),
        ("transformers:LlamaForCausalLMs", 'Did you mean "LlamaForCausalLM"'),
        ("toy42", "toy24"),
        ("no/such/folder", "There is nothing called"),
        ("os:getcwd", "A str cannot be checked"),
        ("os.path:nope", 'has no "nope"'),
        ("not a module:x", "is not package.module:callable"),
        ("no_such_module_of_ours:x", "There is no module"),
    ],
)
def test_a_name_that_means_nothing_says_what_is_near(text: str, said: str) -> None:
    with pytest.raises(UserError, match=said):
        subjects_from(text)


def test_the_current_folder_can_be_imported_from(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "model_of_mine.py").write_text(
        "from torch import nn\n\n\ndef build():\n    return nn.Sequential(nn.Embedding(20, 8), nn.Linear(8, 20))\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    (subject,) = subjects_from("model_of_mine:build")
    assert subject.facts.vocab_size == 20
    assert check_subject(subject, only=["causality.forward"])["causality.forward"].verdict is Verdict.HOLDS


def test_the_small_model_is_a_subject_and_nothing_can_be_told_of_it() -> None:
    assert subjects_from("toy24")[0].family is Family.MODEL
    with pytest.raises(UserError, match="cannot be told of toy24"):
        subjects_from("toy24", Told({"vocab_size": 3}))


# Architectures

NAMES = {
    "llama": ("LlamaForCausalLM", Kind.CAUSAL), "gpt2": ("GPT2LMHeadModel", Kind.CAUSAL),
    "bert": ("BertForMaskedLM", Kind.MASKED), "BertLMHeadModel": ("BertLMHeadModel", Kind.CAUSAL),
    "t5": ("T5ForConditionalGeneration", Kind.SEQUENCE_TO_SEQUENCE), "mixtral": ("MixtralForCausalLM", Kind.CAUSAL),
    "mamba": ("MambaForCausalLM", Kind.CAUSAL), "gemma2": ("Gemma2ForCausalLM", Kind.CAUSAL),
    "xlnet": ("XLNetLMHeadModel", Kind.MASKED), "deepseek_v3": ("DeepseekV3ForCausalLM", Kind.CAUSAL),
    "jamba": ("JambaForCausalLM", Kind.CAUSAL), "bart": ("BartForConditionalGeneration", Kind.SEQUENCE_TO_SEQUENCE),
}  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_a_tiny_model_of_an_architecture_is_built(name: str) -> None:
    (subject,) = subjects_from(f"transformers:{name}")
    cls, kind = NAMES[name]
    assert type(subject.module).__name__ == cls
    assert subject.kind is kind
    assert sum(p.numel() for p in subject.module.parameters()) < 200_000
    assert subject.facts.special <= set(range(subject.facts.vocab_size))


def test_the_recipe_of_a_tiny_model_makes_that_model() -> None:
    (subject,) = subjects_from("transformers:llama", seed=3)
    made: dict[str, Any] = {}
    exec("\n".join(subject.building()), made)
    own, theirs = subject.module.state_dict(), made["model"].state_dict()
    assert own.keys() == theirs.keys()
    assert all(own[name].equal(theirs[name]) for name in own)


@pytest.mark.full
def test_nearly_every_architecture_can_be_built_small() -> None:
    from glassformer.laws.subjects.architectures import architectures, tiny_subject

    failed = {}
    for each in architectures():
        try:
            tiny_subject(each.cls)
        except UserError as error:
            if "something beside text" not in error.fact:
                failed[each.cls] = error.context
    assert len(failed) <= len(architectures()) // 10, failed
