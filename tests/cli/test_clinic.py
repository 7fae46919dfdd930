"""``glassformer train clinic``: a run on the clinic language, the truth about it, and what can be done with it next."""

from __future__ import annotations

import json
import shlex
import tomllib
from pathlib import Path

import pytest
import torch

from glassformer import trace_run
from glassformer.text import WordTokenizer, clinic
from glassformer.text.clinic import SENTENCE, sentence
from glassformer.training import load_run, log_probabilities

from .commands import quietly, run
from .runs import OF_CLINIC, pressing, refused


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("clinic")


@pytest.fixture(scope="module")
def printed(folders: Path) -> dict[str, str]:
    """What training printed, in both languages; the runs are in ``folders``."""
    outputs = {}
    with pytest.MonkeyPatch.context() as patch:
        lines: list[str] = []
        patch.setattr("glassformer.cli.running.write", lines.extend)
        for lang in ("zh", "en"):
            lines.clear()
            out = folders / lang
            assert quietly("train", "clinic", "--out", str(out), "--lang", lang, "--steps", "30", *OF_CLINIC) == 0
            outputs[lang] = "\n".join(lines)
    return outputs


@pytest.mark.parametrize("lang", ["zh", "en"])
def test_the_divergence_and_probability_it_prints_are_those_of_the_saved_model(
    folders: Path, printed: dict[str, str], lang: str
) -> None:
    model, tokenizer, meta, _ = load_run(folders / lang)
    language = clinic(lang)
    kl = language.divergence(log_probabilities(model, language))
    ids = tokenizer.encode("".join(sentence(lang)[:5])).ids
    symptom = tokenizer.texts.index(sentence(lang)[5])
    with torch.no_grad():
        p = float(torch.softmax(model(torch.from_numpy(ids)[None]).logits[0, -1].double(), -1)[symptom])
    assert f"{kl:.4f}" in printed[lang]
    assert f"= {p:.4f}" in printed[lang]
    assert "0.6000" in printed[lang]
    assert (meta["divergence"], meta["probability"], meta["true_probability"]) == pytest.approx((kl, p, 0.6), rel=1e-6)
    assert meta["entropy"] == language.entropy


def test_it_says_that_the_sentences_are_not_medicine_wherever_it_prints_some(
    folders: Path, printed: dict[str, str]
) -> None:
    assert printed["en"].count("not medicine") == 2
    assert printed["zh"].count("不是医学") == 2
    assert "不是医学" in (folders / "zh" / "samples.txt").read_text("utf-8")
    assert "not medicine" in load_run(folders / "zh").meta["origin"]


@pytest.mark.parametrize("lang", ["zh", "en"])
def test_the_next_commands_it_prints_run(
    folders: Path, printed: dict[str, str], lang: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    commands = [shlex.split(line)[1:] for line in printed[lang].splitlines() if line.startswith("glassformer ")]
    assert [command[0] for command in commands] == ["trace", "generate"]
    trace = commands[0][: commands[0].index("--html")]
    outcome = run(capsys, *trace, "--out", str(tmp_path / "some.trace"))
    assert (outcome.code, outcome.err) == (0, "")
    assert run(capsys, *commands[1]).code == 0


def test_the_run_holds_a_word_tokenizer_and_the_trace_has_the_seven_tokens_of_the_notes(
    folders: Path, printed: dict[str, str]
) -> None:
    assert printed
    loaded = load_run(folders / "zh")
    assert isinstance(loaded.tokenizer, WordTokenizer)
    trace = trace_run(folders / "zh", "患者服用华法林后出现黑便。", witness_cells=2)
    ids = trace["t"].tolist()
    assert tuple(trace.text.vocabulary[id] for id in ids) == SENTENCE
    assert trace["S"].shape == (2, 7, 7)


def test_generating_ends_where_the_model_ends_the_sentence(
    folders: Path, printed: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert printed
    found = set()
    for seed in range(8):
        outcome = run(
            capsys, "generate", str(folders / "zh"), "--prompt", "患者", "--seed", str(seed), "--json", "-",
            "--max-tokens", "9",
        )  # fmt: skip
        data = json.loads(outcome.out)
        found.add(data["ended"])
        assert "<end>" not in data["text"]
        assert (data["tokens"][-1] == "<end>") == (data["ended"] == "end of text")
    assert "end of text" in found


def test_a_word_outside_the_language_is_named(
    folders: Path, printed: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert printed
    outcome = run(capsys, "generate", str(folders / "zh"), "--prompt", "患者吃华法林")
    assert (outcome.code, outcome.out) == (2, "")
    assert "'吃' (U+5403)" in outcome.err


def test_metrics_have_every_tenth_step_and_ten_measurements(folders: Path, printed: dict[str, str]) -> None:
    assert printed
    lines = [json.loads(line) for line in (folders / "zh" / "metrics.jsonl").read_text().splitlines()]
    steps = [line["step"] for line in lines]
    assert {1, 11, 21, 30} <= set(steps)
    measured = [line["step"] for line in lines if line["validation"] is not None]
    assert measured == list(range(3, 31, 3))


def test_the_loss_on_sentences_that_are_always_the_same_is_near_the_exact_one(
    folders: Path, printed: dict[str, str]
) -> None:
    assert printed
    last = json.loads((folders / "zh" / "metrics.jsonl").read_text().splitlines()[-1])
    model, _, meta, _ = load_run(folders / "zh")
    exact = clinic("zh").loss(log_probabilities(model, clinic("zh")))
    assert exact == pytest.approx(meta["entropy"] + meta["divergence"])
    assert last["validation"] == pytest.approx(exact, rel=0.01)


def test_its_recipe_says_the_language_and_nothing_that_has_no_effect(folders: Path, printed: dict[str, str]) -> None:
    assert printed
    recipe = tomllib.loads((folders / "en" / "recipe.toml").read_text())
    assert recipe["data"] == {"clinic": "en"}
    assert "context" not in recipe["model"]
    assert load_run(folders / "en").model.config.context == clinic("en").scored.shape[1]


@pytest.mark.parametrize("lang", ["zh", "en"])
def test_ctrl_c_is_answered_in_its_language_with_how_to_go_on(
    lang: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pressing(monkeypatch, 2)
    out = tmp_path / "run"
    outcome = run(capsys, "train", "clinic", "--out", str(out), "--lang", lang, *OF_CLINIC)
    assert outcome.code == 130
    said = {"zh": "2 步后被你停止", "en": "stopped by you after 2 steps"}[lang]
    assert said in outcome.out
    assert f"glassformer train --resume {out}" in outcome.out
    assert load_run(out).meta["steps"] == 2


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (["clinic", "--context", "20"], "--context does not apply to clinic"),
        (["clinic", "--tokenizer", "bytes"], "--tokenizer does not apply to clinic"),
        (["clinic", "--vocab-size", "300"], "--vocab-size does not apply to clinic"),
        (["clinic", "--isolated"], "--isolated does not apply to clinic"),
        (["clinic", "--joined"], "--isolated does not apply to clinic"),
        (["clinic", "--field", "text"], "--field does not apply to clinic"),
        (["clinic", "--set", "model.context=20"], "model.context has no effect"),
        (["clinic", "--set", "data.tokenizer=bytes"], "the clinic language has its own words"),
        (["clinic", "--heads", "3"], "3 heads do not divide"),
        (["clinic", "--lang", "fr"], "--lang"),
        (["clinic", "--batch", "1000000000"], "does not fit into this machine"),
        (["text.txt", "--lang", "zh"], "--lang belongs to clinic"),
        (["text.txt", "--set", "data.clinic=zh"], "data.clinic is zh"),
        (["text.txt", "--config", "clinic.toml"], "data.clinic is en"),
    ],
)
def test_an_option_that_does_not_apply_is_refused_and_leaves_nothing(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    part: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "text.txt").write_text("abcab" * 100)
    (tmp_path / "clinic.toml").write_text('[data]\nclinic = "en"\n')
    refused(run(capsys, "train", *arguments, "--out", "run", "--d", "16", "--steps", "1"), part)
    assert {path.name for path in tmp_path.iterdir()} == {"text.txt", "clinic.toml"}


@pytest.mark.parametrize(("more", "lang"), [((), "en"), (("--lang", "zh"), "zh")])
def test_a_settings_file_chooses_the_language_unless_an_option_does(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], more: tuple[str, ...], lang: str
) -> None:
    (tmp_path / "clinic.toml").write_text('[data]\nclinic = "en"\n')
    options = ("--config", str(tmp_path / "clinic.toml"), "--steps", "1", *OF_CLINIC, *more)
    assert run(capsys, "train", "clinic", "--out", str(tmp_path / "run"), *options).code == 0
    assert tomllib.loads((tmp_path / "run" / "recipe.toml").read_text())["data"] == {"clinic": lang}


def test_a_file_of_that_name_is_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "clinic").write_text("abcab" * 100)
    outcome = run(capsys, "train", "clinic", "--out", "run", "--d", "16", "--steps", "1", "--context", "8")
    assert outcome.code == 0
    assert "text: the file clinic" in outcome.out
