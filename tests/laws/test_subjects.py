"""Models in the manners of public code are called as they want to be, and what cannot be checked is said."""

from __future__ import annotations

import re
from typing import Any

import pytest
import torch
from torch import nn

import foreign
from glassformer.errors import UserError
from glassformer.laws import Report, Verdict, check, check_subject
from glassformer.laws.subjects.base import Kind
from glassformer.laws.subjects.module import CallableSubject
from glassformer.laws.subjects.told import subject_of

QUICK = ("causality.forward", "causality.past", "prefix")


def model(name: str) -> nn.Module:
    torch.manual_seed(0)
    return getattr(foreign, name)()


def checked(module: nn.Module, *more: str, **told: Any) -> Report:
    return check(module, only=(*QUICK, *more), **told)


def verdicts(report: Report) -> dict[str, str]:
    return {result.probe: result.verdict.value for result in report}


MANNERS = ("NanoGPT", "MinGPT", "Lecture", "GPTModel", "Padded", "KeepMask", "IgnoreMask", "AddedMask", "WholeMask")


@pytest.mark.parametrize("name", MANNERS)
def test_a_correct_model_of_any_manner_is_called_without_configuration(name: str) -> None:
    report = checked(model(name), "padding.content", "padding.right")
    assert not report.violations, report.violations
    assert report["causality.forward"].verdict is report["prefix.lengths"].verdict is Verdict.HOLDS


def test_the_call_of_generation_is_held_to_the_text_where_it_gives_the_last_position_alone() -> None:
    assert verdicts(checked(model("NanoGPT")))["prefix.last-position"] == "holds"
    wrong = checked(model("WrongLast"))
    assert [result.probe for result in wrong.violations] == ["prefix.last-position"]
    assert verdicts(checked(model("MinGPT")))["prefix.last-position"] == "not applicable"


@pytest.mark.parametrize(
    ("name", "convention"),
    [
        ("KeepMask", "True = read"),
        ("IgnoreMask", "True = ignore"),
        ("AddedMask", "0 or -inf, added to the scores"),
        ("WholeMask", "(b, 1, n, n), True = read"),
    ],
)
def test_what_a_mask_means_is_found_by_what_it_does(name: str, convention: str) -> None:
    subject = CallableSubject(model(name))
    assert subject.convention.name == convention
    assert subject.trials <= 20


def test_targets_that_are_ignored_as_minus_one_are_found() -> None:
    report = check(model("NanoGPT"), only=["loss-mask.nothing", "alignment"])
    assert not any("out of bounds" in str(result.reason) for result in report)


def test_time_first_can_be_told_and_is_a_fault_where_it_is_not() -> None:
    assert checked(model("TimeFirst")).violations
    assert not checked(model("TimeFirst"), batch_first=False).violations


def test_further_inputs_are_asked_for_and_can_be_told() -> None:
    with pytest.raises(UserError, match=r"forward needs image.*extra=\{'image': ...\}"):
        check(model("TwoInputs"))
    assert not checked(model("TwoInputs"), extra={"image": torch.zeros(foreign.D)}).violations


def test_a_vocabulary_padded_to_a_round_number_is_seen() -> None:
    subject = CallableSubject(model("Padded"))
    assert subject.facts.vocab_size == foreign.V
    assert checked(model("Padded"))["causality.forward"].verdict is Verdict.HOLDS


def test_the_context_is_found_in_the_position_table() -> None:
    assert CallableSubject(model("GPTModel")).facts.context == foreign.CONTEXT


@pytest.mark.parametrize("name", ["NanoGPT", "Lecture", "Padded", "IgnoreMask", "WholeMask", "TimeFirst"])
def test_the_program_of_a_violation_calls_the_model_as_it_wants_to_be(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    told = {"batch_first": False} if name == "TimeFirst" else {}
    subject = CallableSubject(model(f"Leaky{name}"), **told)
    subject.recipe = (f"from foreign import Leaky{name}", "torch.manual_seed(0)", f"model = Leaky{name}()")
    program = check_subject(subject, only=["causality.forward"])["causality.forward"].program
    assert program is not None
    exec(compile(program, "program", "exec"), {})
    printed = re.search(r"largest difference: ([0-9.e+-]+)", capsys.readouterr().out)
    assert printed is not None
    assert float(printed[1]) > 1e-3


# What cannot be checked


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("LastOnly", "forward returned no"),
        ("Nothing", "forward returned no"),
        ("Raising", "no kernel image"),
        ("NotANumber", "every logit is NaN"),
        ("Uncopied", "cannot be copied"),
    ],
)
def test_a_model_that_cannot_be_checked_says_why_in_every_verdict(name: str, said: str) -> None:
    report = checked(model(name))
    assert {result.verdict for result in report} == {Verdict.NOT_SUPPORTED}
    assert all(result.reason is not None and said in result.reason["en"] for result in report)
    assert report.exit_code() == 2


@pytest.mark.parametrize("name", ["Drifting", "Dicing"])
def test_a_model_whose_equal_calls_differ_is_told_so_and_holds_nothing_by_chance(name: str) -> None:
    report = checked(model(name), "determinism")
    assert report["determinism.twice"].verdict is Verdict.VIOLATED
    assert report["causality.forward"].verdict is Verdict.NOT_SUPPORTED
    changed = report["determinism.weights"].verdict is Verdict.VIOLATED
    assert changed is (name == "Drifting")


@pytest.mark.parametrize("thing", ["a text", 3, None, nn.Linear])
def test_what_is_no_model_is_refused(thing: object) -> None:
    with pytest.raises(UserError, match="cannot be checked"):
        check(thing)


@pytest.mark.parametrize(
    ("told", "said"),
    [
        ({"vocabsize": 3}, 'Did you mean "vocab_size"'),
        ({"vocab_size": 0}, "at least 1"),
        ({"kind": "cusal"}, "Kinds are causal"),
        ({"mask": torch.ones(2, 2)}, "torch's own parts only"),
    ],
)
def test_what_is_told_and_means_nothing_is_refused(told: dict[str, Any], said: str) -> None:
    with pytest.raises(UserError, match=said):
        check(model("GPTModel"), **told)


def test_a_model_without_ids_is_refused() -> None:
    with pytest.raises(UserError, match="takes no ids"):
        check(model("NoIds"))


# Parts of torch


def encoder(**given: Any) -> nn.TransformerEncoder:
    torch.manual_seed(0)
    return nn.TransformerEncoder(nn.TransformerEncoderLayer(16, 4, 32, **given), 2, enable_nested_tensor=False)


def test_an_encoder_reads_both_ways_unless_a_mask_or_the_user_says_otherwise() -> None:
    assert subject_of(encoder(batch_first=True)).kind is Kind.MASKED
    assert not checked(encoder(), kind="causal").violations
    mask = nn.Transformer.generate_square_subsequent_mask(16)
    assert checked(encoder(batch_first=True), mask=mask)["causality.forward"].verdict is Verdict.HOLDS


def test_a_mask_that_is_one_off_is_a_leak() -> None:
    wrong = torch.ones(16, 16, dtype=torch.bool).triu(2)
    assert checked(encoder(batch_first=True), mask=wrong)["causality.forward"].verdict is Verdict.VIOLATED


@pytest.mark.parametrize("part", ["decoder", "whole"])
def test_a_decoder_of_torch_has_a_source_beside_it(part: str) -> None:
    torch.manual_seed(0)
    layer = nn.TransformerDecoderLayer(16, 4, 32, batch_first=True)
    module = nn.TransformerDecoder(layer, 2) if part == "decoder" else nn.Transformer(16, 4, 2, 2, 32, batch_first=True)
    report = checked(module, "cross-attention")
    assert report.kind == "sequence-to-sequence"
    assert not report.violations
    assert report["cross-attention.pads"].verdict is Verdict.HOLDS


def test_a_module_that_leaks_is_a_fault_unless_it_is_said_to_read_both_ways() -> None:
    class Both(foreign.Base):
        def forward(self, ids: torch.Tensor) -> torch.Tensor:
            n = ids.shape[1]
            return self.lm_head(self.vectors(ids, torch.ones(1, n, n, dtype=torch.bool)))

    assert checked(Both()).violations
    assert not checked(Both(), kind="masked").violations
