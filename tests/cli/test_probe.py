"""``glassformer probe``: readable tables in both languages, strict JSON, and refusals."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from glassformer.text import CharacterTokenizer
from glassformer.tracing.probes import aim_at, attention_effect, reading_of
from glassformer.training import RunFolder, TrainingConfig, load_run
from learning import save_run, tiny_decoder, tokens_of, words_text

from .commands import run, run_alone

KINDS = ("attention", "bilinear", "gradients", "variance", "saturation", "linearity")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A run of a model nobody trained, over the letters a, b, c and space; its context is 8."""
    path = tmp_path_factory.mktemp("runs") / "mine"
    tokenizer, _ = tokens_of(words_text(50))
    save_run(path, tiny_decoder(tokenizer.vocab_size, seed=3), tokenizer)
    return str(path)


def reports(outcome) -> dict[str, dict]:
    assert outcome.code == 0, outcome
    data = json.loads(outcome.out, parse_constant=pytest.fail)
    assert data["schema"] == 1
    return {report["kind"]: report for report in data["probes"]}


def test_a_text_alone_gets_every_probe_that_needs_no_more(folder, capsys):
    done = reports(run(capsys, "probe", folder, "abc ab", "--json", "-"))
    assert tuple(done) == KINDS
    assert done["attention"]["asked"]["target_token"] == "b"
    assert {report["provenance"] for report in done.values()} == {"measured"}


@pytest.mark.parametrize(
    ("lang", "words"),
    [
        (
            "en",
            ("Attention beside measured effect", "[measured]", "One head taken out", "Rank correlation", "p−1, wrong"),
        ),
        ("zh", ("注意力与实测影响", "[实测]", "去掉一个头", "秩相关", "各层的梯度范数", "推导: ")),
    ],
)
def test_the_tables_are_readable_in_both_languages(folder, capsys, lang, words):
    done = run(capsys, "probe", folder, "abc ab", "--lang", lang)
    assert done.code == 0
    assert not [word for word in words if word not in done.out]
    assert "None" not in done.out
    assert "nan" not in done.out.lower().replace("nano", "")


def test_the_numbers_are_those_of_the_probe(folder, capsys):
    ask = ("--kind", "attention", "--row", "3", "--target", "c", "--layer", "0", "--json", "-")
    done = reports(run(capsys, "probe", folder, "abc ab", *ask))["attention"]
    model, tokenizer, *_ = load_run(Path(folder))
    reading = reading_of(model, tokenizer.encode("abc ab").ids.tolist(), tokenizer.texts)
    found = attention_effect(reading, aim_at(reading, 3, int(tokenizer.encode("c").ids[0])), 0)
    assert done["values"]["cells_loss"] == found.cells.loss.tolist()
    assert done["values"]["A"] == found.coefficient.tolist()
    assert [row[1] for row in done["tables"][0]["rows"]] == list("abc ")


def test_a_second_text_is_compared_and_patched_from(folder, capsys):
    ask = (
        "--other",
        "cab ab",
        "--kind",
        "prefixes",
        "--kind",
        "activation",
        "--kind",
        "patch",
        "--patch",
        "embed.X=other",
    )
    done = reports(run(capsys, "probe", folder, "abc ab", *ask, "--json", "-"))
    assert tuple(done) == ("prefixes", "activation", "patch")
    assert done["prefixes"]["asked"] == {"token": "b", "id": 2, "rows": [5, 5]}
    assert done["activation"]["values"]["recovered"][-1][-1] == pytest.approx(1)
    assert done["patch"]["asked"]["patched"] == ["embed.X"]
    assert done["patch"]["values"]["replay"]["worst"] <= 64


def test_a_trace_carries_the_same_probes_and_the_command_that_made_it(folder, capsys, tmp_path):
    path = str(tmp_path / "x.trace")
    options = ("--optimizer", "adamw", "--eta", "0.02", "--set", "embed.E[0,0]=0.5")
    assert run(capsys, "trace", folder, "abc ab", *options, "--probes", "--out", path).code == 0
    data = json.loads(run(capsys, "trace", path, "--json", "-").out)
    assert [report["kind"] for report in data["probes"]] == list(KINDS)
    given = ["--set", "embed.E[0,0]=0.5", "--eta", "0.02", "--optimizer", "adamw"]
    # The folder was given from the root: only its name travels.
    assert data["command"] == {"subject": "mine", "text": "abc ab", "options": given}
    plain = json.loads(run(capsys, "trace", folder, "abc ab", "--json", "-").out)
    assert "probes" not in plain
    for option in ("--probes", "--no-probes"):
        refused = run(capsys, "trace", path, option)
        assert refused.code == 2
        assert f"{option} does not apply to a trace file" in refused.err


def test_a_trace_of_a_run_has_the_probes_that_the_command_prints(folder, capsys):
    probed = run(capsys, "probe", folder, "abc ab", "--json", "-")
    traced = json.loads(run(capsys, "trace", folder, "abc ab", "--probes", "--json", "-").out)
    assert traced["probes"] == list(reports(probed).values())


def test_the_toy_is_traced_with_probes_unless_told_otherwise(capsys):
    assert "probes" in json.loads(run(capsys, "trace", "toy24", "--json", "-").out)["trace"]
    assert "probes" not in json.loads(run(capsys, "trace", "toy24", "--no-probes", "--json", "-").out)["trace"]


def test_the_toy_is_probed_at_its_own_target(capsys):
    done = reports(run(capsys, "probe", "toy24", "--json", "-"))
    assert done["attention"]["asked"]["target_token"] == "C"
    assert done["attention"]["values"]["loss"] == pytest.approx(2.541928, abs=1e-6)
    assert done["attention"]["provenance"] == "constructed"


def test_single_cells_are_patched_and_the_rest_replays(capsys):
    patches = ("--patch", "A[1,0]=0.25", "--patch", "A[1,1]=0.75")
    done = reports(run(capsys, "probe", "toy24", "--kind", "patch", *patches, "--json", "-"))["patch"]
    row = {cells[0]: cells[2] for cells in done["tables"][1]["rows"]}
    assert row == {"A": 0.25, "B": 1.75, "C": -0.25}
    assert "blocks.0.attn.A" in done["values"]["changed"]


def test_variance_reads_a_text_longer_than_the_context_and_others_do_not(folder, capsys):
    text = words_text(10)
    done = reports(run(capsys, "probe", folder, text, "--kind", "variance", "--json", "-"))["variance"]
    assert done["asked"]["windows"] == 5
    refused = run(capsys, "probe", folder, text)
    assert refused.code == 2
    assert "context of 8" in refused.err


def test_a_long_table_says_how_much_it_leaves_out(capsys):
    done = run(capsys, "probe", "toy24", "A,B,A,B,A,B,A,B", "--kind", "bilinear")
    assert "more rows" not in done.out
    from glassformer.cli.probe_table import MOST_ROWS, lines

    row = {"title": {"en": "t"}, "columns": [{"en": "c"}], "rows": [[1]] * (MOST_ROWS + 3), "provenance": "measured"}
    table = {**row, "counted": [0]}
    report = {"title": {"en": "t"}, "provenance": "measured", "asked": {}, "tables": [table], "notes": []}
    printed = list(lines(report, "en"))
    assert any("3 more rows" in line for line in printed)
    assert any("c (from 0)" in line for line in printed)


@pytest.mark.parametrize(
    ("arguments", "facts"),
    [
        ((), ("needs a text",)),
        (("",), ("The text is empty",)),
        (("ab", "--kind", "magic"), ("magic",)),
        (("ab", "--kind", "prefixes"), ("compares two texts", "--other")),
        (("ab", "--kind", "patch"), ("nothing to patch",)),
        (("ab", "--kind", "bilinear", "--row", "0"), ("--row does not apply to --kind bilinear", "attention")),
        (("ab", "--kind", "attention", "--other", "ab"), ("--other does not apply",)),
        (("ab", "--row", "7"), ("There is no row 7",)),
        (("ab", "--row", "1"), ("no next token",)),
        (("ab", "--layer", "3"), ("There is no layer 3",)),
        (("ab", "--target", "ab"), ("is 2 tokens",)),
        (("ab", "--target", "x"), ("x",)),
        (("abx",), ("x",)),
        (("ab", "--kind", "prefixes", "--other", "c"), ("no token in common",)),
        (("ab", "--kind", "activation", "--other", "a", "--row", "1", "--target", "a"), ("has 1 tokens",)),
        (("ab", "--patch", "Z"), ("does not patch anything",)),
        (("ab", "--patch", "Y_=0"), ('no quantity "Y_"',)),
        (("ab", "--patch", "blocks.0.attn.Z=much"), ("not a number",)),
        (("ab", "--patch", "blocks.0.attn.Z[9,0,0]=0"), ("out of range",)),
        (("ab", "--patch", "blocks.0.attn.Z=other"), ("another text",)),
        (("ab", "--patch", "blocks.0.attn.Z.grad=0"), ("not a forward number",)),
        (("ab", "--patch", "blocks.0.attn.Z=0", "--patch", "blocks.0.attn.Z[0,0,0]=0"), ("as a whole and in single",)),
        (("ab", "--patch", "blocks.0.attn.W_Q=0"), ("is a parameter",)),
        (("ab", "--json", "no/folder/x.json"), ("no folder",)),
    ],
    ids=lambda value: " ".join(value)[:60] if isinstance(value, tuple) else None,
)
def test_a_request_that_cannot_be_carried_out_is_one_clear_message(folder, capsys, arguments, facts):
    done = run(capsys, "probe", folder, *arguments)
    assert done.code == 2, done
    assert done.err.startswith("error: ")
    assert "Traceback" not in done.err
    assert not [fact for fact in facts if fact not in done.err], done.err


def test_a_run_that_is_not_there_is_one_clear_message(capsys):
    done = run(capsys, "probe", "runs/none", "ab")
    assert done.code == 2
    assert "no run folder" in done.err


@pytest.mark.parametrize("text", ["[/]", "\x1b[31mred\x07", "</script><img src=x onerror=alert(1)>"])
def test_hostile_words_are_printed_as_words(folder, capsys, text):
    for option in ("--other", "--target", "--patch"):
        done = run(capsys, "probe", folder, "ab", option, text)
        assert done.code == 2
        assert "\x1b" not in done.err
        assert "\x07" not in done.err


def test_an_ascii_terminal_gets_the_english_tables():
    more = ("--other", "B,B", "--patch", "A[1,0]=0.5")
    done = run_alone("probe", "toy24", *more, PYTHONIOENCODING="ascii")
    assert done.code == 0, done.err
    assert "delta L" in done.out
    assert "mixing coefficients" in done.out


def test_texts_begin_as_in_training_and_targets_do_not(tmp_path, capsys):
    tokenizer = CharacterTokenizer.of_text("abc ", specials=True)
    with RunFolder.create(tmp_path / "run") as folder:
        facts = {"add_bos_token": True}
        folder.begin(tiny_decoder(tokenizer.vocab_size), tokenizer, facts, TrainingConfig(steps=1), facts={})
        folder.save(tiny_decoder(tokenizer.vocab_size), meta={}, samples="")
    ask = ("--kind", "attention", "--kind", "prefixes", "--other", "cb", "--target", "c", "--json", "-")
    done = reports(run(capsys, "probe", str(tmp_path / "run"), "ab", *ask))
    assert [row[1] for row in done["attention"]["tables"][0]["rows"]] == ["<bos>", "a", "b"]
    assert done["prefixes"]["asked"]["rows"] == [2, 2]
    empty = run(capsys, "probe", str(tmp_path / "run"), "")
    assert "Name the target that it predicts" in empty.err
