"""``glassformer trace``, ``explain`` and ``formula``: what they print, and how they refuse."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from .commands import Outcome, run, run_alone

HOSTILE = ("[/]", "[link=file:///x]", "</script><img src=x onerror=alert(1)>", "\x1b[31mred\x07", "W_Q[1,0]; rm -rf /")


def refused(outcome: Outcome, *facts: str) -> None:
    """The three parts of every refusal: exit code 2, one message with the facts, no traceback."""
    assert outcome.code == 2, outcome
    assert outcome.err.startswith("error: ")
    assert "Traceback" not in outcome.err
    for fact in facts:
        assert fact in outcome.err, outcome.err


def test_the_table_shows_forward_gradients_update_and_forward_after(capsys):
    done = run(capsys, "trace", "toy24")
    assert done.code == 0
    for heading in ("Forward", "Gradients of the loss", "Parameters after one step", "Forward again, after the step"):
        assert f"── {heading} " in done.out
    assert "2.541928 before, 1.761382 after" in done.out
    assert "0.731059" in done.out
    assert "0.713748" in done.out
    assert "17 / 17" in done.out


def test_the_chinese_table_reads_as_the_clinic_sentence(capsys):
    done = run(capsys, "trace", "toy24", "--lang", "zh")
    assert "患者服用华法林后" in done.out
    assert "混合系数" in done.out
    assert "更新后再前向" in done.out


def test_the_table_tells_why_the_loss_changed(capsys):
    out = run(capsys, "trace", "toy24").out
    assert "attention of position 1 to the first token “A” falls: 0.731059 → 0.713748" in out
    assert "probability of the target “C” rises: 0.0787145 → 0.171807" in out
    assert "W_V and W_O have the same gradient only by accident of the start" in out
    rows = {line.split()[0]: line.split()[-3:] for line in out.splitlines() if line.count("−0.") == 3}
    assert rows["W_Q"][0] == "−0.00178389"
    (together,) = [line.split() for line in out.splitlines() if line.startswith("together")]
    assert together[1:] == ["−0.939181", "−0.780546"]
    assert "the part that first order misses: 0.158635" in out


def test_a_step_of_adamw_is_shown_line_by_line_and_explained(capsys):
    done = run(capsys, "trace", "toy24", "--optimizer", "adamw", "--lr", "0.02")
    assert done.code == 0
    assert "the step: AdamW, its step 1, η = 0.02" in done.out
    assert "the gradient has norm 3.064606, at most 1 is allowed: its share 0.326306 is kept" in done.out
    assert "── The optimizer, line by line " in done.out
    assert "W_Q.moment1.new  first moment" in done.out
    told = run(capsys, "explain", "toy24", "W_Q.moment1.new[1,0,0]", "--optimizer", "adamw").out
    assert "difference 0" in told
    told = run(capsys, "explain", "toy24", "W_Q.direction[1,0,0]", "--optimizer", "adamw", "--path").out
    assert "optimizer.kept" in told or "kept = min(1, clip" in told


def test_json_goes_to_standard_output_and_nothing_else_does(capsys):
    done = run(capsys, "trace", "toy24", "--json", "-")
    data = json.loads(done.out)
    assert data["forward"]["S"][0] == [0.0, None]
    assert data["central_difference_max_abs_diff"] < 3e-11
    assert {"parameters", "forward", "gradients", "updated", "forward_after"} <= set(data)


def test_settings_change_the_run(capsys):
    arguments = ("--set", "W_Q[1,0]=0.7", "--tokens", "B,A", "--target", "A", "--eta", "0.03")
    data = json.loads(run(capsys, "trace", "toy24", *arguments, "--json", "-").out)
    assert (data["input"], data["target"], data["eta"]) == ([1, 0], 0, 0.03)
    assert data["parameters"]["W_Q"] == [[0.0], [0.7]]


def test_clinic_tokens_name_the_same_ids(capsys):
    data = json.loads(run(capsys, "trace", "toy24", "--tokens", "患者服用华法林后,出现", "--json", "-").out)
    assert data["input"] == [0, 1]


def test_a_trace_file_opens_where_the_model_would(capsys, tmp_path):
    path = str(tmp_path / "toy.trace")
    assert run(capsys, "trace", "toy24", "--out", path).code == 0
    assert "2.541928 before" in run(capsys, "trace", path).out
    assert "0.133562" in run(capsys, "explain", path, "W_Q.grad[1,0]").out
    refused(run(capsys, "trace", path, "--eta", "0.2"), "--eta does not apply to a trace file")
    refused(run(capsys, "trace", path, "--optimizer", "adamw"), "--optimizer does not apply to a trace file")


def test_a_file_can_be_replaced_only_on_request(capsys, tmp_path):
    path = tmp_path / "numbers.json"
    path.write_text("precious")
    refused(run(capsys, "trace", "toy24", "--json", str(path)), "exists already", "--force")
    assert path.read_text() == "precious"
    assert run(capsys, "trace", "toy24", "--json", str(path), "--force").code == 0
    assert json.loads(path.read_text())["target"] == 2


@pytest.mark.parametrize(
    ("arguments", "facts"),
    [
        (("trace", "toy42"), ('no model "toy42"', "Give toy24")),
        (("trace", "runs/none"), ("nothing at runs/none",)),
        (("trace", "toy24", "a text"), ("takes tokens, not a text",)),
        (("trace", "toy24", "--set", "W_q[1,0]=0.7"), ('no quantity "W_q"', 'Did you mean "W_Q"?')),
        (("trace", "toy24", "--set", "W_Q[1,0]"), ("does not set anything",)),
        (("trace", "toy24", "--set", "W_Q[1,0]=much"), ('"much" is not a number', "finite number")),
        (("trace", "toy24", "--set", "W_Q[1,0]=nan"), ('"nan" is not a number',)),
        (("trace", "toy24", "--set", "W_Q[1,1]=1"), ("Index 1 is out of range", "Use 0 to 0")),
        (("trace", "toy24", "--set", "W_Q[a]=1"), ("not a list of indices",)),
        (("trace", "toy24", "--set", "W_Q=1"), ("whole tensor",)),
        (("trace", "toy24", "--set", "S[0,0]=1"), ("not a parameter",)),
        (("trace", "toy24", "--tokens", "A,X"), ('"X" is not a token',)),
        (("trace", "toy24", "--tokens", ""), ("is not a token",)),
        (("trace", "toy24", "--target", "出"), ("is not a token", "Did you mean")),
        (("trace", "toy24", "--eta", "-0.1"), ("learning rate cannot be -0.1",)),
        (("trace", "toy24", "--eta", "nan"), ("not a number that the learning rate can be",)),
        (("trace", "toy24", "--eta", "fast"), ("not a number",)),
        (("trace", "toy24", "--optimizer", "run"), ("never trained", "--optimizer adamw")),
        (("trace", "toy24", "--optimizer", "adam"), ("adam",)),
        (("trace", "toy24", "--html", "no/such/folder/x.html"), ("no folder no/such/folder",)),
        (("trace", "toy24", "--html", "."), (". is a folder",)),
        (("trace", "toy24", "--lang", "fr"), ("fr",)),
        (("trace", "toy24", "--jsn", "-"), ("--jsn",)),
        (("trace",), ("Missing argument", "SUBJECT")),
        (("explain", "toy24", "W_Q.gard[1,0]"), ("no quantity",)),
        (("explain", "toy24", "W_Q"), ("whole tensor", "[0,0,0]")),
        (("explain", "toy24", "A[0,2]"), ("Index 2 is out of range",)),
        (("explain", "toy24", "A[0,1,0,0]"), ("has 3 axes, not 4",)),
        (("explain", "toy24", "A["), ("does not name a quantity",)),
        (("explain", "toy24", "t.grad[0]"), ("Nothing computes",)),
        (("formula", "T"), ('no quantity "T"', "Did you mean")),
        (("formula", "S[0]"), ('"S[0]" is one cell', 'Ask for "S"')),
        (("formula", "S.after"), ('"S.after" has the formula of "S"', 'Ask for "S"')),
        (("levitate",), ("levitate",)),
    ],
    ids=lambda value: " ".join(value) if value and isinstance(value[0], str) else None,
)
def test_a_request_that_cannot_be_carried_out_is_one_clear_message(capsys, arguments, facts):
    refused(run(capsys, *arguments), *facts)


@pytest.mark.parametrize("text", HOSTILE)
@pytest.mark.parametrize("option", ["--set", "--tokens", "--target", "--eta"])
def test_hostile_words_are_printed_as_words(capsys, option, text):
    done = run(capsys, "trace", "toy24", option, text)
    refused(done)
    assert "\x1b" not in done.err
    assert "\x07" not in done.err


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_names_are_printed_as_names(capsys, text):
    for arguments in (("trace", text), ("explain", "toy24", text), ("formula", text)):
        done = run(capsys, *arguments)
        refused(done)
        assert "\x1b" not in done.err


def test_a_damaged_trace_file_is_refused(capsys, tmp_path: Path):
    path = tmp_path / "x.trace"
    path.write_bytes(b"\x10\0\0\0\0\0\0\0{not json at all}")
    refused(run(capsys, "trace", str(path)), "damaged")


def test_explain_shows_formula_operands_result_and_three_witnesses(capsys):
    done = run(capsys, "explain", "toy24", "W_Q.grad[1,0]")
    assert done.code == 0
    assert "formula: W_Q.grad[r,h,c] = Σ_i X[i,r]·Q.grad[h,i,c]   [Q]\n" in done.out
    assert "1·0.133562 = 0.133562" in done.out
    assert done.out.count("0.13356231") >= 3
    assert "central difference" in done.out


def test_explain_walks_on_to_the_loss_and_the_tokens(capsys):
    done = run(capsys, "explain", "toy24", "W_Q.grad[1,0]", "--path")
    for step in ("S.grad[", "A.grad[", "Z.grad[", "logits.grad[", "p[1,", "E[", "L.grad"):
        assert f"\n{step}" in done.out, step
    forward = run(capsys, "explain", "toy24", "E[0,0]", "--path")
    assert "\nL = " in forward.out


@pytest.mark.parametrize("cell", ["W_Q.grad[1,0]", "E.grad[0,0]", "E.grad[1,0]", "U.grad[0,2]"])
def test_the_way_on_from_a_gradient_reaches_the_loss_and_the_probabilities(capsys, cell):
    done = run(capsys, "explain", "toy24", cell, "--path")
    assert "\nL.grad = 1" in done.out
    assert "\np[1," in done.out


def test_a_full_disk_behind_standard_output_is_one_message():
    command = [sys.executable, "-m", "glassformer", "formula", "S"]
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, check=False, timeout=120)
    assert done.returncode == 2
    assert b"Traceback" not in done.stderr
    assert b"No space left on device" in done.stderr


def test_explain_takes_every_cell_of_every_face(capsys):
    for cell in ("loss.L", "h[1,0]", "W_Q.new[1,0]", "A.after[1,0]", "nll.grad[1]", "head.logits[1,2]"):
        assert run(capsys, "explain", "toy24", cell).code == 0, cell


def test_formula_shows_symbol_forms_definition_and_place(capsys):
    done = run(capsys, "formula", "S")
    assert "S[h,i,j] = (Σ_c Q[h,i,c]·K[h,j,c]) / √d_k if allowed[i,j] else −∞\n" in done.out
    assert r"S^{(h)} = \frac{Q^{(h)} K^{(h)\top}}{\sqrt{d_k}} + M" in done.out
    assert r"M_{ij} = \begin{cases} 0, & j \in J_i \\ -\infty, & j \notin J_i \end{cases}" in done.out
    assert "S[h,i,j] = sum(" in done.out
    assert "glassformer/model/attention.py:" in done.out


def test_formula_lists_the_variants_of_a_quantity(capsys):
    done = run(capsys, "formula", "C")
    assert "erf" in done.out
    assert "(variant 5/5)" in done.out


def test_a_terminal_that_cannot_show_chinese_is_told_so():
    done = run_alone("trace", "toy24", "--lang", "zh", PYTHONIOENCODING="ascii")
    refused(done, "cannot show U+", "PYTHONIOENCODING=utf-8")
    assert done.out == ""


def test_an_ascii_terminal_still_gets_the_english_table():
    done = run_alone("trace", "toy24", PYTHONIOENCODING="ascii")
    assert done.code == 0, done.err
    assert "learning rate eta = 0.1" in done.out


def test_an_ascii_terminal_still_gets_english_explanations_and_formulas():
    for arguments in (("explain", "toy24", "A.grad[0,0,0]"), ("formula", "gamma.grad")):
        done = run_alone(*arguments, PYTHONIOENCODING="ascii")
        assert done.code == 0, done.err


def test_no_standard_output_at_all_is_one_message():
    refused(run_alone("trace", "toy24", closed=True), "no standard output")
    refused(run_alone("trace", "toy24", "--json", "-", closed=True), "no standard output")


def test_a_file_with_a_number_that_is_not_its_definitions_ends_with_one_and_names_it(capsys, tmp_path):
    from glassformer.tracing import header_of, trace_toy24
    from glassformer.tracing.file import write_trace_file

    trace = trace_toy24()
    values = {**trace.values, "blocks.0.attn.A": trace.values["blocks.0.attn.A"] + 1e-9}
    write_trace_file(tmp_path / "wrong.trace", header_of(trace), values)
    done = run(capsys, "trace", str(tmp_path / "wrong.trace"))
    assert done.code == 1
    assert "blocks.0.attn.A differs from its definition" in done.err
    write_trace_file(tmp_path / "right.trace", header_of(trace), trace.values)
    assert run(capsys, "trace", str(tmp_path / "right.trace")).code == 0
