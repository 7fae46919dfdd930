"""A trace that carries what the probes found: it is what the probes say, it travels, and old files do without."""

from __future__ import annotations

import json

import pytest
import torch

import glassformer
from glassformer.errors import UserError
from glassformer.model import AttentionConfig, Decoder, DecoderConfig, DropoutConfig, FeedForwardConfig, NormConfig
from glassformer.model.toy24 import TARGET, TOKENS, VOCABULARY, toy24_model
from glassformer.tracing import ToySettings, header_of, load_trace, save_trace, trace_from, trace_toy24
from glassformer.tracing.probes import aim_at, attention_effect, reading_of, standard_reports
from glassformer.tracing.request import Command


@pytest.fixture(scope="module")
def trace():
    return trace_toy24(ToySettings(probes=True))


@pytest.fixture(scope="module")
def model():
    torch.manual_seed(5)
    config = DecoderConfig.alike(
        2,
        vocab_size=7,
        context=6,
        d=6,
        attention=AttentionConfig(heads=2, d_k=3, d_v=2),
        norm=NormConfig(),
        ffn=FeedForwardConfig(d_ff=8),
    )
    return Decoder(config)


def test_the_probes_of_a_trace_are_those_of_its_model_text_and_target(trace):
    reading = reading_of(toy24_model(), TOKENS, VOCABULARY, "constructed")
    wanted = standard_reports(reading, aim_at(reading, target=TARGET))
    assert [report.plain() | {"asked": None} for report in trace.probes] == [
        report.plain() | {"asked": None} for report in wanted
    ]


def test_they_explain_the_last_scored_row_and_its_target_in_the_layer_asked_for(model):
    tokens = [1, 4, 2, 6, 0]
    traced = glassformer.trace(model, tokens, scored=[True, False, True, False, False], witness_cells=0)
    found = traced.with_probes(model, layer=0)
    reading = reading_of(model, tokens, provenance="computed")
    assert found.probes is not None
    assert found.probes[0].plain() == attention_effect(reading, aim_at(reading, 2, 6), 0).report().plain()
    assert traced.probes is None


def test_a_text_of_one_token_has_every_probe_but_gradient_norms():
    found = trace_toy24(ToySettings(tokens=(1,), probes=True))
    assert found.probes is not None
    assert [report.kind for report in found.probes] == ["attention", "bilinear", "variance", "saturation", "linearity"]


def test_probes_and_command_travel_in_the_file(trace, tmp_path):
    told = trace.told(Command("toy24", None, ("--eta", "0.1")))
    save_trace(told, tmp_path / "toy.trace")
    back = load_trace(tmp_path / "toy.trace")
    assert header_of(back) == header_of(told)
    assert header_of(back)["probes"] == [report.plain() for report in trace.probes]
    assert back.text.command == told.text.command


@pytest.mark.parametrize("schema", [1, 2])
def test_a_file_older_than_probes_opens_without_them(data_folder, schema):
    back = load_trace(data_folder / f"toy24.schema{schema}.trace")
    assert (back.probes, back.text.command) == (None, None)
    assert {"probes", "command"} & set(header_of(back)) == set()
    assert header_of(back)["lemmas"] == header_of(trace_toy24())["lemmas"]


def spoilt(report, **change):
    return {**report, **change}


@pytest.mark.parametrize(
    "spoil",
    [
        lambda header: {"probes": [spoilt(header["probes"][0], title="attention")]},
        lambda header: {
            "probes": [spoilt(header["probes"][0], notes=[{"status": "law", "text": {"en": "", "zh": ""}}])]
        },
        lambda header: {"probes": [spoilt(header["probes"][0], provenance="dreamt")]},
        lambda header: {
            "probes": [spoilt(t, tables=[{**t["tables"][0], "rows": [[1]]}]) for t in header["probes"][:1]]
        },
        lambda header: {
            "probes": [spoilt(t, tables=[{**t["tables"][0], "counted": [1]}]) for t in header["probes"][:1]]
        },
        lambda header: {"probes": 3},
        lambda header: {"command": {"subject": "toy24", "text": None, "options": [1]}},
        lambda header: {"command": {"subject": "toy24"}},
    ],
)
def test_garbled_probes_or_commands_are_no_trace(trace, spoil):
    header = json.loads(json.dumps(header_of(trace)))
    with pytest.raises((ValueError, TypeError, KeyError)):
        trace_from({**header, **spoil(header)}, trace.values)


def test_another_model_dropout_and_packed_rows_are_refused(model):
    tokens = [1, 4, 2, 6]
    with pytest.raises(UserError, match="not the model that was traced"):
        glassformer.trace(model, tokens, witness_cells=0).with_probes(toy24_model())
    packed = glassformer.trace(model, tokens, segments=[0, 0, 1, 1], witness_cells=0)
    with pytest.raises(UserError, match="several texts"):
        packed.with_probes(model)
    dropping = Decoder(
        DecoderConfig.alike(
            1, vocab_size=7, context=6, d=4, attention=AttentionConfig(heads=1, d_k=2, d_v=2), ffn=None,
            dropout=DropoutConfig(attention=0.5),
        )
    )  # fmt: skip
    trained = glassformer.trace(dropping, tokens, dropout=True, witness_cells=0)
    with pytest.raises(UserError, match="dropout"):
        trained.with_probes(dropping)


def test_the_model_is_left_as_it_was(model):
    before = [p.clone() for p in model.parameters()]
    glassformer.trace(model, [1, 2, 3], witness_cells=0).with_probes(model)
    assert all(torch.equal(a, b) and b.grad is None for a, b in zip(before, model.parameters(), strict=True))
    assert model.training
