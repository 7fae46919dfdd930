"""Laws of decoding loops catch each fault in a small one, and find none in correct ones."""

from __future__ import annotations

import re
import sys
from types import ModuleType
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from glassformer.laws import Verdict, check_subject
from glassformer.laws.subjects.decoding import Generator, Written
from glassformer.laws.subjects.module import CallableSubject
from mutants import Mutant, mutated
from mutants_decoding import FILE, MUTANTS


def decoder(**changes: Any) -> nn.Module:
    """A small decoder whose logits depend on everything: positions too."""
    module = mutated("small_decoder.py")
    settings = {"positions": "learned", "vocab_size": 12, "layers": 1, **changes}
    torch.manual_seed(0)
    model = module.SmallDecoder(module.SmallConfig(**settings)).double()
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim > 1:
                parameter.mul_(2.5)
    return model.eval()


def subject_of(module: ModuleType) -> Generator:
    model = decoder()
    small = module.SmallGenerator(model)

    def generate(
        prompts: Any, *, count: int, temperature: float = 0.0, seed: int = 0, end: int | None = None, beams: int = 1,
        length_penalty: float = 0.0,
    ) -> list[Written]:  # fmt: skip
        settings = {
            "temperature": temperature,
            "seed": seed,
            "end": end,
            "beams": beams,
            "length_penalty": length_penalty,
        }
        return [Written(ids=ids, score=score) for ids, score in small.generate(prompts, count=count, **settings)]

    return Generator(
        name="small", generate=generate, forward=lambda ids: model(ids[None]).logits[0], vocab_size=12,
        stopped=module.stopped, speculate=module.speculate,
    )  # fmt: skip


def test_the_small_loop_breaks_no_law_and_every_probe_measures() -> None:
    report = check_subject(subject_of(mutated(FILE)))
    assert {result.verdict for result in report} == {Verdict.HOLDS}


@pytest.mark.parametrize("mutant", MUTANTS, ids=str)
def test_a_fault_is_caught_by_the_law_it_breaks(mutant: Mutant) -> None:
    report = check_subject(subject_of(mutated(mutant.file, mutant.old, mutant.new)), only=(mutant.law,))
    assert report[mutant.law].verdict is Verdict.VIOLATED, [(r.probe, r.verdict, r.reason, r.finding) for r in report]


OURS = ("generate", "score", "rows", "cache-algebra")


def hub(name: str, **settings: Any) -> CallableSubject:
    transformers = pytest.importorskip("transformers")
    common = {
        "vocab_size": 50,
        "hidden_size": 32,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "intermediate_size": 48,
    }
    config = transformers.AutoConfig.for_model(name, **{**common, **settings})
    torch.manual_seed(0)
    return CallableSubject(transformers.AutoModelForCausalLM.from_config(config), name)


MODELS: dict[str, dict[str, Any]] = {
    "llama": {"num_key_value_heads": 2},
    "gpt2": {"n_embd": 32, "n_head": 4, "n_layer": 2, "bos_token_id": 1, "eos_token_id": 1},
    "mistral": {"num_key_value_heads": 2, "sliding_window": 5},
}


@pytest.mark.parametrize("name", MODELS)
def test_models_of_the_hub_break_no_law_of_decoding(name: str) -> None:
    subject = hub(name, **MODELS[name])
    before = subject.module.generation_config
    report = check_subject(subject, only=OURS)
    assert not report.violations, [(r.probe, r.finding) for r in report.violations]
    assert {report[probe].verdict for probe in ("generate.greedy", "generate.padded")} == {Verdict.HOLDS}
    assert subject.module.generation_config is before


def test_what_only_double_precision_breaks_is_decided_in_single() -> None:
    """Bloom takes the softmax of double precision in single: the smallest double becomes minus infinity, a pad's row NaN."""
    report = check_subject(hub("bloom", n_head=4, n_layer=2), only=OURS)
    assert not report.violations
    assert set(report["generate.padded"].findings) == {"float32"}


def test_a_loop_that_numbers_positions_otherwise_than_forward_is_caught() -> None:
    subject = hub("roberta", is_decoder=True, max_position_embeddings=64, pad_token_id=1)
    report = check_subject(subject, only=("generate.greedy",))
    assert report["generate.greedy"].verdict is Verdict.VIOLATED


class Loop(nn.Module):
    """As in nanoGPT: no cache, the last logits, a draw."""

    def __init__(self, fault: bool = False) -> None:
        super().__init__()
        self.inner = decoder()
        self.fault = fault

    def forward(self, idx: Tensor) -> Tensor:
        return self.inner(idx).logits

    def generate(
        self, idx: torch.Tensor, max_new_tokens: int, temperature: float = 1.0, top_k: int | None = None
    ) -> torch.Tensor:
        for _ in range(max_new_tokens):
            logits = self(idx[:, 1:] if self.fault and idx.shape[1] > 1 else idx)[:, -1] / temperature
            if top_k is not None:
                logits = logits.masked_fill(logits < logits.topk(top_k).values[:, -1:], -torch.inf)
            idx = torch.cat([idx, torch.multinomial(logits.softmax(-1), 1)], 1)
        return idx


@pytest.mark.parametrize("fault", [False, True])
def test_a_loop_without_configuration_is_found_by_its_signature(fault: bool) -> None:
    report = check_subject(CallableSubject(Loop(fault), context=48), only=("generate",))
    assert report["generate.greedy"].verdict is (Verdict.VIOLATED if fault else Verdict.HOLDS)
    assert report["generate.padded"].verdict is Verdict.NOT_SUPPORTED


def test_a_violation_of_a_loop_names_it_and_has_a_program_that_shows_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "loop_here", ModuleType("loop_here"))
    setattr(sys.modules["loop_here"], "Loop", Loop)  # noqa: B010 - a module made here has no such name
    subject = CallableSubject(Loop(fault=True), context=48)
    subject.recipe = ("import loop_here", "model = loop_here.Loop(fault=True)")
    result = check_subject(subject, only=("generate.greedy",))["generate.greedy"]
    assert result.place is not None
    assert (result.place.module, result.place.kind) == ("generate", "Loop")
    assert (result.place.file or "").endswith("test_decoding.py")
    assert result.program is not None
    exec(compile(result.program, "program", "exec"), {})
    measured = re.findall(r"largest difference: (\S+) ;", capsys.readouterr().out)
    assert float(measured[-1]) > 1e-3
