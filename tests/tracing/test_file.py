"""Trace files: the same trace comes back, and nothing else is mistaken for one."""

from __future__ import annotations

import json
import os
import struct

import numpy as np
import pytest

from glassformer.errors import UserError
from glassformer.tracing import AdamW, Scheduled, ToySettings, header_of, load_trace, save_trace, trace_toy24
from glassformer.tracing.file import SCHEMA, write_trace_file
from glassformer.training import ScheduleConfig


@pytest.fixture(scope="module")
def trace():
    return trace_toy24()


def with_header(data: bytes, change) -> bytes:
    """A safetensors file with its trace header changed by ``change``, and no checksum that would tell."""
    (size,) = struct.unpack("<Q", data[:8])
    outer = json.loads(data[8 : 8 + size])
    header = change(json.loads(outer["__metadata__"]["glassformer.trace"]))
    outer["__metadata__"] = {"glassformer.trace": json.dumps(header)}
    text = json.dumps(outer).encode()
    return struct.pack("<Q", len(text)) + text + data[8 + size :]


def test_a_saved_trace_comes_back_bit_for_bit(trace, tmp_path):
    save_trace(trace, tmp_path / "toy.trace")
    back = load_trace(tmp_path / "toy.trace")
    assert set(back.values) == set(trace.values)
    assert all(np.array_equal(back.values[k], trace.values[k]) for k in trace.values)
    assert [s.expr for s in back.program.statements] == [s.expr for s in trace.program.statements]
    assert back.witnesses == trace.witnesses
    assert back.analysis == trace.analysis
    assert header_of(back) == header_of(trace)


def test_the_golden_file_of_schema_1_still_opens(data_folder):
    back = load_trace(data_folder / "toy24.schema1.trace")
    assert float(back["L"]) == pytest.approx(2.541928056677009, abs=1e-12)
    assert round(float(back["W_Q.grad[1,0]"]), 6) == 0.133562
    assert (back.analysis.attribution, back.analysis.watched, back.moments) == (None, (), None)


def test_the_golden_file_of_schema_2_still_opens_with_the_lines_of_its_optimizer(data_folder):
    back = load_trace(data_folder / "toy24.schema2.trace")
    assert float(back["L"]) == pytest.approx(2.541928056677009, abs=1e-12)
    assert float(back["optimizer.norm"]) == pytest.approx(9.391808476135131**0.5, rel=1e-12)
    assert back.replay.holds
    assert back.replay.worst["blocks.0.attn.W_Q.direction"] >= 0
    assert back.moments is not None
    assert back.moments.steps == 1
    assert sum(share.shapley for share in back.analysis.attribution.shares) == pytest.approx(back.analysis.exact)


def test_a_file_of_an_old_schema_is_written_again_in_the_new_one_and_says_the_same(data_folder, tmp_path):
    old = load_trace(data_folder / "toy24.schema1.trace")
    save_trace(old, tmp_path / "again")
    again = load_trace(tmp_path / "again")
    assert header_of(again)["schema"] == SCHEMA
    assert again.analysis == old.analysis
    assert again.replay == old.replay


def test_a_trace_of_adamw_comes_back_with_its_moments_and_its_lines(tmp_path):
    trace = trace_toy24(ToySettings(update=AdamW(schedule=Scheduled(ScheduleConfig(), 0.7))))
    save_trace(trace, tmp_path / "toy.trace")
    back = load_trace(tmp_path / "toy.trace")
    assert back.parameters == trace.parameters
    assert [(s.target, s.face, s.expr) for s in back.update] == [(s.target, s.face, s.expr) for s in trace.update]
    assert [s.target for s in back.program.forward] == [s.target for s in trace.program.forward]
    assert back.analysis == trace.analysis
    assert header_of(back) == header_of(trace)
    for name, x in trace.moments.tensors.items():
        assert np.array_equal(back.moments.tensors[name], x)


def test_an_existing_file_is_not_overwritten_unless_asked(trace, tmp_path):
    path = tmp_path / "mine"
    path.write_text("precious")
    with pytest.raises(UserError, match="exists already"):
        save_trace(trace, path)
    assert path.read_text() == "precious"
    save_trace(trace, path, replace=True)
    assert float(load_trace(path)["L"]) > 2


def test_a_full_disk_leaves_the_old_file_and_no_litter(trace, tmp_path, monkeypatch):
    path = tmp_path / "toy.trace"
    path.write_text("precious")

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(UserError, match="No space left on device"):
        save_trace(trace, path, replace=True)
    assert path.read_text() == "precious"
    assert [p.name for p in tmp_path.iterdir()] == ["toy.trace"]


def test_a_folder_that_does_not_exist_is_named(trace, tmp_path):
    with pytest.raises(UserError, match="cannot be written"):
        save_trace(trace, tmp_path / "nowhere" / "toy.trace")


@pytest.mark.parametrize("keep", [0, 5, 8, 100, 2000, -1])
def test_a_truncated_file_is_called_damaged(trace, tmp_path, keep):
    save_trace(trace, tmp_path / "whole")
    (tmp_path / "cut").write_bytes((tmp_path / "whole").read_bytes()[:keep])
    with pytest.raises(UserError, match="damaged"):
        load_trace(tmp_path / "cut")


def test_a_newer_file_asks_for_an_upgrade(trace, tmp_path):
    save_trace(trace, tmp_path / "now")
    (tmp_path / "later").write_bytes(
        with_header((tmp_path / "now").read_bytes(), lambda h: {**h, "schema": SCHEMA + 1})
    )
    with pytest.raises(UserError, match=r"newer glassformer.*Upgrade"):
        load_trace(tmp_path / "later")


@pytest.mark.parametrize("lost", ["statements", "quantities", "vocabulary", "update", "schema"])
def test_a_header_that_lost_a_part_is_called_damaged(trace, tmp_path, lost):
    save_trace(trace, tmp_path / "now")
    broken = with_header((tmp_path / "now").read_bytes(), lambda h: {k: v for k, v in h.items() if k != lost})
    (tmp_path / "broken").write_bytes(broken)
    with pytest.raises(UserError, match="damaged"):
        load_trace(tmp_path / "broken")


def test_a_header_full_of_nonsense_is_called_damaged(trace, tmp_path):
    save_trace(trace, tmp_path / "now")
    data = (tmp_path / "now").read_bytes()
    for nonsense in (7, None, [], {"schema": "1"}, {"schema": 1, "statements": 3}):
        (tmp_path / "broken").write_bytes(with_header(data, lambda _, n=nonsense: n))
        with pytest.raises(UserError, match=r"damaged|newer"):
            load_trace(tmp_path / "broken")


@pytest.mark.parametrize(
    "change",
    [
        lambda update: {**update, "groups": [{**update["groups"][0], "id": "blocks.7.attn.W_Q"}]},
        lambda update: {**update, "watched": [{**update["watched"][0], "id": "blocks.7.attn.A"}]},
        lambda update: {**update, "coincidences": [{"a": "blocks.7.attn.W_Q", "b": "head.U", "apart_after": 1.0}]},
    ],
)
def test_a_header_that_speaks_of_what_is_not_there_is_called_damaged(trace, tmp_path, change):
    save_trace(trace, tmp_path / "now")
    data = (tmp_path / "now").read_bytes()
    (tmp_path / "broken").write_bytes(with_header(data, lambda h: {**h, "update": change(h["update"])}))
    with pytest.raises(UserError, match=r"damaged.*blocks\.7"):
        load_trace(tmp_path / "broken")
    renamed = {"blocks.7.attn.W_Q": next(iter(header_of(trace)["witnesses"].values()))}
    (tmp_path / "broken").write_bytes(with_header(data, lambda h: {**h, "witnesses": renamed}))
    with pytest.raises(UserError, match=r"damaged.*blocks\.7"):
        load_trace(tmp_path / "broken")


def test_a_file_whose_numbers_were_changed_breaks_the_replay_law(trace, tmp_path):
    changed = {**trace.values, "blocks.0.attn.A": trace.values["blocks.0.attn.A"] * 1.5}
    write_trace_file(tmp_path / "changed", header_of(trace), changed)
    assert not load_trace(tmp_path / "changed").replay.holds


@pytest.mark.parametrize(
    ("name", "array"),
    [("embed.t", np.array([0, 7])), ("blocks.0.attn.A", np.zeros((2, 2))), ("head.U.grad", np.zeros((3, 2)))],
)
def test_tensors_that_do_not_fit_the_definitions_are_called_damaged(trace, tmp_path, name, array):
    write_trace_file(tmp_path / "broken", header_of(trace), {**trace.values, name: array})
    with pytest.raises(UserError, match="damaged"):
        load_trace(tmp_path / "broken")


@pytest.mark.parametrize("schema", [0, -1, True, "1", None])
def test_a_schema_that_is_no_schema_is_called_damaged(trace, tmp_path, schema):
    write_trace_file(tmp_path / "broken", {**header_of(trace), "schema": schema}, trace.values)
    with pytest.raises(UserError, match="damaged"):
        load_trace(tmp_path / "broken")


def test_a_run_that_left_float64_is_still_written_and_read(tmp_path):
    save_trace(trace_toy24(ToySettings(eta=1e300)), tmp_path / "huge")
    assert np.isnan(load_trace(tmp_path / "huge").analysis.exact)


def test_a_device_is_never_replaced(trace):
    with pytest.raises(UserError, match="not a regular file"):
        save_trace(trace, "/dev/null", replace=True)


def test_other_tensors_are_not_a_trace(tmp_path):
    import safetensors.numpy

    safetensors.numpy.save_file({"x": np.zeros(3)}, tmp_path / "model.safetensors")
    with pytest.raises(UserError, match="holds tensors but no trace"):
        load_trace(tmp_path / "model.safetensors")
