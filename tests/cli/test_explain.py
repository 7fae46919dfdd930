"""``glassformer explain``: layers, forms, files; and ``generate --explain``."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest

import glassformer
from decoders import CONFIGS, random_decoder
from glassformer.generation import Rule, choices
from glassformer.text import CharacterTokenizer
from glassformer.tracing import save_trace
from glassformer.training import load_run
from learning import save_run, tiny_decoder, tokens_of, words_text

from .commands import run, run_alone
from .test_trace_command import refused


@pytest.fixture(scope="module")
def deep(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The trace file of a decoder of two blocks and two heads."""
    path = tmp_path_factory.mktemp("traces") / "deep.trace"
    vocabulary = ("=1+1", "\x1b[2J", "<b>", "d", "e", "f", "g")
    traced = glassformer.trace(
        random_decoder(CONFIGS["everything"]), [0, 1, 2, 3], vocabulary=vocabulary, witness_cells=0
    )
    save_trace(traced, path)
    return str(path)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A run of a model nobody trained, over the letters a, b, c and space; its context is 8."""
    path = tmp_path_factory.mktemp("runs") / "mine"
    tokenizer, _ = tokens_of(words_text(50))
    save_run(path, tiny_decoder(tokenizer.vocab_size, seed=3), tokenizer)
    return str(path)


def test_a_short_name_needs_a_layer_where_several_layers_have_it(capsys, deep):
    refused(run(capsys, "explain", deep, "A[0,1,0]"), '"A" is the name of 2 quantities', "--layer 0")
    for layer in ("0", "1"):
        done = run(capsys, "explain", deep, "A[0,1,0]", "--layer", layer)
        assert done.code == 0
        assert f"blocks.{layer}.attn.A" in done.out


@pytest.mark.parametrize(
    ("arguments", "facts"),
    [
        (("A[0,1,0]", "--layer", "2"), ("There is no layer 2.", "Use 0 to 1.")),
        (("A[0,1,0]", "--layer", "one"), ("--layer",)),
        (("E[0,0]", "--layer", "0"), ('"E" is not in layer 0', "embed.E")),
        (("B[0,1,0]", "--layer", "0"), ("has 2 axes, not 3", "blocks.0.ffn.B[0,0]")),
        (("W_Q.grad[1,0]", "--layer", "0"), ("has 3 axes, not 2", "blocks.0.attn.W_Q.grad[0,0,0]")),
        (("W_Q.grad", "--layer", "1"), ("whole tensor", "blocks.1.attn.W_Q.grad[0,0,0]")),
        (("W_q.grad[0,0,0]", "--layer", "1"), ("no quantity", 'Did you mean "W_Q"?')),
        (("A[0,1,0]", "--format", "pdf"), ("pdf",)),
        (("A[0,1,0]", "--layer", "0", "--out", "no/such/file"), ("no folder no/such",)),
    ],
    ids=str,
)
def test_what_is_not_there_is_refused_with_a_way_out(capsys, deep, arguments, facts):
    refused(run(capsys, "explain", deep, *arguments), *facts)


def test_each_form_is_what_python_gives(capsys, deep):
    x = glassformer.load_trace(deep).quantity("A", layer=1).explain(0, 3, 1)
    common = ("explain", deep, "A[0,3,1]", "--layer", "1", "--format")
    assert run(capsys, *common, "latex").out == x.latex() + "\n"
    assert run(capsys, *common, "markdown").out == x.markdown()
    assert run(capsys, *common, "csv").out == x.csv().replace("\r\n", "\n")
    assert run(capsys, *common, "text").out.splitlines()[1:] == str(x).splitlines()[1:]


def test_the_terminal_shows_the_plain_formula_and_no_latex(capsys, deep):
    out = run(capsys, "explain", deep, "S.grad[1,3,0]", "--layer", "0").out
    assert (
        "formula: S.grad[h,i,j] = A[h,i,j]·(A.grad[h,i,j] − Σ_m A[h,i,m]·A.grad[h,i,m]) if allowed[i,j] else 0" in out
    )
    assert "\\" not in out


def test_an_explanation_goes_to_a_file_and_never_over_one_unasked(capsys, deep, tmp_path: Path):
    path = tmp_path / "a.csv"
    arguments = ("explain", deep, "A[0,3,1]", "--layer", "1", "--format", "csv", "--out", str(path))
    assert run(capsys, *arguments).out == ""
    rows = list(csv.reader(io.StringIO(path.read_text("utf-8"), newline="")))
    assert rows[1][:4] == ["result", "blocks.1.attn.A", "", "0 3 1"]
    refused(run(capsys, *arguments), "exists already", "--force")
    assert run(capsys, *arguments, "--force").code == 0


@pytest.mark.parametrize("form", ["text", "latex", "markdown", "csv"])
def test_the_way_has_every_form_and_stays_short(capsys, deep, form):
    done = run(capsys, "explain", deep, "A[0,3,1]", "--layer", "1", "--path", "--format", form)
    assert done.code == 0
    assert "\x1b" not in done.out
    assert len(done.out.splitlines()) < 1000


def test_the_way_says_which_block_each_step_is_in(capsys, deep):
    out = run(capsys, "explain", deep, "A[0,3,1]", "--layer", "1", "--path").out
    assert "\nX[3," in out
    assert "   blocks.1.X   i = 3 “d”\n" in out
    assert "── on to the loss ─" in out
    assert "\nL  (L)   loss.L\n" in out


def test_an_ascii_terminal_gets_latex_and_csv():
    for form in ("latex", "csv"):
        done = run_alone("explain", "toy24", "A[0,1,0]", "--format", form, PYTHONIOENCODING="ascii")
        assert done.code == 0, done.err
        assert "0.73105" in done.out


# --- decoding --------------------------------------------------------------------------------------------------------


def test_a_written_token_is_explained_from_the_scores_to_the_draw(capsys, folder):
    rule = ("--temperature", "0.8", "--top-k", "3", "--top-p", "0.95", "--seed", "7")
    model, tokenizer, *_ = load_run(Path(folder))
    written = list(choices(model, tokenizer.encode("ab").ids.tolist(), 4, Rule(0.8, 3, 0.95), 7))
    done = run(capsys, "generate", folder, "--prompt", "ab", "--explain", "4", *rule)
    token = tokenizer.texts[written[3].token]
    assert done.code == 0
    before = "ab" + "".join(tokenizer.texts[choice.token] for choice in written[:3])
    assert done.out.startswith(f"token 4 after “{before}” (5 tokens)\n")
    assert "read: keys and values of 4 positions kept, positions read anew: 1\n" in done.out
    assert "rule: temperature 0.8, top-k 3, top-p 0.95, seed 7\n" in done.out
    assert "  z_T[w] = (logits[w] − max_v(logits[v])) / T\n" in done.out
    assert f": “{token}”\n" in done.out
    assert "largest difference between what ran and the definitions: " in done.out


def test_the_json_of_a_written_token_is_what_ran(capsys, folder):
    model, tokenizer, *_ = load_run(Path(folder))
    written = list(choices(model, tokenizer.encode("ab").ids.tolist(), 9, Rule(1.3, None, 0.9), 5))
    for number in (1, 6, 9):
        arguments = ("--temperature", "1.3", "--top-p", "0.9", "--seed", "5", "--explain", str(number), "--json", "-")
        data = json.loads(run(capsys, "generate", folder, "--prompt", "ab", *arguments).out)
        chosen = written[number - 1]
        assert data["chosen"]["id"] == chosen.token
        assert data["chosen"]["probability"] == chosen.probability
        (candidate,) = [c for c in data["candidates"] if c["token"] == chosen.token]
        assert candidate["low"] <= data["u"] < candidate["high"]
        assert candidate["p"] == chosen.probability
        assert sum(c["p"] for c in data["candidates"]) == pytest.approx(1.0)
        length = 2 + number - 1
        kept = 0 if number == 1 or length > 8 else length - 1
        assert data["read"] == {"positions_kept": kept, "positions_anew": min(length, 8) - kept, "context": 8}
        assert max(data["differences"].values()) < 1e-14


def test_at_temperature_zero_no_draw_is_claimed(capsys, folder):
    done = run(capsys, "generate", folder, "--prompt", "ab", "--temperature", "0", "--explain", "2", "--json", "-")
    assert json.loads(done.out)["u"] is None
    done = run(capsys, "generate", folder, "--prompt", "ab", "--temperature", "0", "--explain", "2", "--lang", "zh")
    assert "取第一名，不抽随机数" in done.out


def test_a_token_after_the_end_of_the_text_is_refused(capsys, tmp_path):
    tokenizer = CharacterTokenizer("abc ", specials=True)
    save_run(tmp_path / "run", tiny_decoder(tokenizer.vocab_size, seed=3), tokenizer)
    ids = tokenizer.encode("ab").ids.tolist()
    model, end = load_run(tmp_path / "run").model, tokenizer.end_of_text
    written = [
        [c.token for c in choices(model, ids, 12, Rule(), seed, tokenizer.specials.unwritten)] for seed in range(20)
    ]
    seed = next(seed for seed, tokens in enumerate(written) if end in tokens[1:10])
    last = written[seed].index(end) + 1
    arguments = ("generate", str(tmp_path / "run"), "--prompt", "ab", "--seed", str(seed), "--explain")
    assert ": “<eos>”\n" in run(capsys, *arguments, str(last)).out
    refused(run(capsys, *arguments, str(last + 1)), f"ends before token {last + 1}", f"Use 1 to {last}")


@pytest.mark.parametrize(
    ("arguments", "fact"),
    [
        (("--explain", "0"), "no token 0 to explain"),
        (("--explain", "5", "--max-tokens", "4"), "Token 5 is not written: --max-tokens is 4"),
        (("--explain", "1", "--stop", "a"), "--stop does not go with --explain"),
        (("--explain", "first"), "--explain"),
        (("--explain", "1", "--top-p", "0"), "top-p cannot be 0.0"),
    ],
    ids=str,
)
def test_a_choice_that_cannot_be_explained_is_one_message(capsys, folder, arguments, fact):
    refused(run(capsys, "generate", folder, "--prompt", "ab", *arguments), fact)
