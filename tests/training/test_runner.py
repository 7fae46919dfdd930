"""A run and its folder: saved as it goes, interrupted anywhere, gone on with exactly, refused where that is impossible."""

from __future__ import annotations

import errno
import itertools
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from glassformer.errors import UserError
from glassformer.files import write_atomically
from glassformer.training import RunFolder, load_run, run
from glassformer.training.checkpoint import latest, load_checkpoint
from learning import tiny_decoder
from resuming import EVERY_STEP, STEPS, begin, go_on, result, settings, state_of, text_and_tokens


@pytest.fixture(autouse=True)
def no_flushing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing here cuts the power, and a flush costs as much as a step."""
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)


def after(steps: int) -> Callable[[], bool]:
    """Stop after so many steps."""
    asked = itertools.count(1)
    return lambda: next(asked) >= steps


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that nothing interrupted."""
    path = tmp_path_factory.mktemp("runs") / "whole"
    begin(path, settings(checkpoint=EVERY_STEP))
    go_on(path)
    return path


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("runs") / "stopped"
    begin(path, settings(checkpoint=EVERY_STEP))
    go_on(path, after(7), until_saved=False)
    return path


@pytest.fixture
def stopped(template: Path, tmp_path: Path) -> Path:
    """A run that was stopped after step 7, its folder not sealed."""
    shutil.copytree(template, tmp_path / "stopped")
    return tmp_path / "stopped"


def checkpoints(path: Path) -> list[str]:
    return sorted(file.name for file in (path / "checkpoints").iterdir())


def refusal(path: Path) -> UserError:
    with pytest.raises(UserError) as caught:
        RunFolder.resume(path)
    return caught.value


# --- from the beginning to the end ------------------------------------------------------------------------------------


def test_a_run_leaves_the_promised_files_and_the_last_checkpoints(whole: Path) -> None:
    assert {file.name for file in whole.iterdir()} == {
        "config.json", "tokenizer.json", "tokenizer_config.json", "training.json", "run.json", "metrics.jsonl",
        "checkpoints", "model.safetensors", "samples.txt", "manifest.json",
    }  # fmt: skip
    assert checkpoints(whole) == [f"step-{STEPS - 1:08d}", f"step-{STEPS:08d}"]
    loaded = load_run(whole)
    assert loaded.meta == {"steps": STEPS}
    last = tiny_decoder(loaded.model.config.vocab_size)
    load_checkpoint(whole / "checkpoints" / f"step-{STEPS:08d}", last)
    assert all(torch.equal(p, q) for p, q in zip(loaded.model.parameters(), last.parameters(), strict=True))


def test_the_first_and_every_tenth_step_and_each_measured_one_has_a_line(whole: Path) -> None:
    lines = [json.loads(line) for line in (whole / "metrics.jsonl").read_text().splitlines()]
    assert [line["step"] for line in lines] == [1, 4, 8, 11, 12]
    assert [line["step"] for line in lines if line["validation"] is not None] == [4, 8, 12]
    assert all(line["grad_norm"] > 0 for line in lines)


def test_the_saved_settings_are_those_of_the_run_with_nothing_left_open(tmp_path: Path) -> None:
    begin(tmp_path / "a", settings(threads=None, precision="auto"))
    resumed = RunFolder.resume(tmp_path / "a")
    resumed.folder.close()
    assert (resumed.training.threads, resumed.training.precision) == (1, "float32")
    assert resumed.facts == {"origin": "words"}


def test_checkpoints_come_by_the_clock_and_at_the_end(tmp_path: Path) -> None:
    now, saved = 0.0, []
    begin(tmp_path / "a")
    resumed = RunFolder.resume(tmp_path / "a")
    config = settings(checkpoint={"every_seconds": 10.0, "keep": 50})

    def clock() -> float:
        return now

    def through(steps):
        nonlocal now
        for step in steps:
            now += 4.0
            yield step

    with resumed.folder as folder:
        run(resumed.model, text_and_tokens()[1], config, folder, through=through, resumed=resumed.state, clock=clock)
        saved = [int(name[-8:]) for name in checkpoints(folder.path)]
    assert saved == [0, 3, 6, 9, 12]


def test_what_looks_at_the_steps_may_replace_the_validation_loss_and_is_closed(tmp_path: Path) -> None:
    begin(tmp_path / "a")
    resumed = RunFolder.resume(tmp_path / "a")
    closed = []

    def through(steps):
        import dataclasses

        try:
            for step in steps:
                yield dataclasses.replace(step, validation=7.0 if step.step == 2 else None)
        finally:
            closed.append(True)

    with resumed.folder as folder:
        run(resumed.model, text_and_tokens()[1], resumed.training, folder, through=through, stop=after(3),
            resumed=resumed.state)  # fmt: skip
        lines = [json.loads(line) for line in (folder.path / "metrics.jsonl").read_text().splitlines()]
    assert closed == [True]
    assert [(line["step"], line["validation"]) for line in lines] == [(1, None), (2, 7.0)]
    assert not resumed.model.training


# --- interrupted ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("stops", [[1], [11], [5, 1, 3]])
@pytest.mark.parametrize("sealed", [False, True])
def test_a_stopped_run_that_goes_on_leaves_what_an_uninterrupted_one_leaves(
    whole: Path, tmp_path: Path, stops: list[int], sealed: bool
) -> None:
    path = tmp_path / "a"
    begin(path)
    for steps in stops:
        assert go_on(path, after(steps), until_saved=sealed).stopped
        if sealed:
            assert load_run(path).meta["steps"] == state_of(path).step
    assert not go_on(path).stopped
    assert result(path) == result(whole)


def test_a_run_killed_after_its_last_step_only_has_to_be_sealed(whole: Path, tmp_path: Path) -> None:
    path = tmp_path / "a"
    begin(path)
    go_on(path, until_saved=False)
    before = (path / "metrics.jsonl").read_bytes()
    assert go_on(path).step == STEPS
    assert result(path) == result(whole)
    assert (path / "metrics.jsonl").read_bytes() == before


@pytest.mark.parametrize("tail", [b"", b'{"step": 8, "los', b'{"step": 8}\n{"step": 9}\n', b"\xff\xfe\n", b"[]\n"])
def test_metrics_are_cut_back_to_the_checkpoint(stopped: Path, whole: Path, tail: bytes) -> None:
    with (stopped / "metrics.jsonl").open("ab") as file:
        file.write(tail)
    go_on(stopped)
    assert result(stopped) == result(whole)


def test_an_unfinished_run_says_how_to_go_on_when_it_is_loaded(stopped: Path) -> None:
    with pytest.raises(UserError, match="is not a finished run") as caught:
        load_run(stopped)
    assert f"glassformer train --resume {stopped}" in caught.value.next_step


def test_a_resumed_run_cannot_be_loaded_before_it_is_sealed_again(tmp_path: Path) -> None:
    path = tmp_path / "a"
    begin(path)
    go_on(path, after(7))
    assert load_run(path).meta == {"steps": 7}
    go_on(path, after(1), until_saved=False)
    with pytest.raises(UserError, match="is not a finished run"):
        load_run(path)


def test_what_a_killed_writer_left_is_removed(stopped: Path) -> None:
    (stopped / ".model.safetensors.0123abcd.partial").write_bytes(b"half")
    (stopped / "checkpoints" / ".step-00000008.0123abcd.partial").mkdir()
    state_of(stopped)
    assert not [path for path in stopped.rglob("*") if "partial" in path.name]


def test_a_run_with_a_checkpoint_is_never_abandoned_and_one_without_is(tmp_path: Path) -> None:
    tokenizer, data = text_and_tokens()
    for name, steps in (("kept", 1), ("gone", 0)):
        model = tiny_decoder(tokenizer.vocab_size)
        with RunFolder.create(tmp_path / name) as folder:
            training = folder.begin(model, tokenizer, {}, settings(), facts={})
            if steps:
                run(model, data, training, folder, stop=after(steps))
            folder.abandon()
    assert state_of(tmp_path / "kept").step == 1
    assert not (tmp_path / "gone").exists()
    begin(tmp_path / "resumed")
    with RunFolder.resume(tmp_path / "resumed").folder as folder:
        folder.abandon()
    assert state_of(tmp_path / "resumed").step == 0


# --- refused ----------------------------------------------------------------------------------------------------------


def test_a_finished_run_is_refused_and_left_alone(whole: Path) -> None:
    before = {file: file.read_bytes() for file in whole.rglob("*") if file.is_file()}
    assert "is finished" in refusal(whole).fact
    assert {file: file.read_bytes() for file in whole.rglob("*") if file.is_file()} == before


def test_a_folder_of_something_else_is_refused_and_left_alone(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("precious")
    assert "not a finished run" in refusal(tmp_path).fact
    assert [file.name for file in tmp_path.iterdir()] == ["notes.txt"]
    nothing = refusal(tmp_path / "nothing")
    assert "There is no run folder" in nothing.fact
    assert "glassformer train clinic --out" in nothing.next_step
    assert "is a file" in refusal(tmp_path / "notes.txt").fact


def test_of_two_processes_only_one_goes_on_with_a_run(stopped: Path) -> None:
    with RunFolder.resume(stopped).folder:
        error = refusal(stopped)
        assert "is being written by another process" in error.fact
    assert state_of(stopped).step == 7


def test_a_run_that_is_going_on_cannot_be_resumed(tmp_path: Path) -> None:
    with RunFolder.create(tmp_path / "a"):
        assert "is being written by another process" in refusal(tmp_path / "a").fact
    assert "before its first step" in refusal(tmp_path / "a").context


@pytest.mark.parametrize("name", ["config.json", "tokenizer.json", "tokenizer_config.json", "training.json"])
def test_a_run_whose_beginning_was_changed_is_refused(stopped: Path, name: str) -> None:
    (stopped / name).write_bytes((stopped / name).read_bytes() + b" ")
    error = refusal(stopped)
    assert "is damaged" in error.fact
    assert name in error.context


@pytest.mark.parametrize("content", [b"", b"{}", b"[]", b"\xff", b'{"format": 2}', b'{"format": 2, "facts": {}}'])
def test_a_damaged_beginning_is_one_message(stopped: Path, content: bytes) -> None:
    (stopped / "run.json").write_bytes(content)
    assert "is damaged" in refusal(stopped).fact


# --- damaged checkpoints ----------------------------------------------------------------------------------------------


def flip_a_byte(file: Path) -> None:
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)


def cut_short(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-2])


@pytest.mark.parametrize("name", ["model.safetensors", "optimizer.safetensors", "state.json", "manifest.json"])
@pytest.mark.parametrize("damage", [flip_a_byte, cut_short, Path.unlink])
def test_a_damaged_checkpoint_is_passed_over_with_a_note_and_the_run_is_the_same(
    stopped: Path, whole: Path, name: str, damage: Callable[[Path], None]
) -> None:
    last = stopped / "checkpoints" / "step-00000007"
    damage(last / name)
    resumed = RunFolder.resume(stopped)
    resumed.folder.close()
    assert resumed.state.step == 6
    (note,) = resumed.notes
    assert "step-00000007 is damaged" in note
    go_on(stopped)
    assert result(stopped) == result(whole)


def test_a_run_without_a_whole_checkpoint_says_what_is_wrong_with_each(stopped: Path) -> None:
    for path in (stopped / "checkpoints").iterdir():
        flip_a_byte(path / "model.safetensors")
    error = refusal(stopped)
    assert "no checkpoint is whole" in error.context
    assert "step-00000006" in error.context
    assert "step-00000007" in error.context
    shutil.rmtree(stopped / "checkpoints")
    assert "no checkpoint is whole" in refusal(stopped).context


def test_a_checkpoint_of_another_model_or_with_numbers_that_are_none_is_refused(whole: Path, tmp_path: Path) -> None:
    path = latest(whole / "checkpoints").path
    assert path is not None
    with pytest.raises(UserError, match="is damaged"):
        load_checkpoint(path, tiny_decoder(9))
    with pytest.raises(UserError, match="is damaged"):
        load_checkpoint(tmp_path, tiny_decoder(9))


def test_other_things_among_the_checkpoints_are_left_alone(stopped: Path) -> None:
    (stopped / "checkpoints" / "step-7").mkdir()
    (stopped / "checkpoints" / "notes.txt").write_text("precious")
    go_on(stopped)
    assert {"notes.txt", "step-7"} < set(checkpoints(stopped))


# --- the disk fills up ------------------------------------------------------------------------------------------------


def failing_writes(monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    """Let the ``number``-th flush from now (from 0), and all after it, fail for lack of room."""
    left = number
    real = os.fsync

    def fsync(descriptor: int) -> None:
        nonlocal left
        left -= 1
        if left < 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        real(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)


@pytest.mark.parametrize("number", range(14))
def test_a_disk_that_is_full_at_any_write_is_one_message_and_the_run_can_go_on(
    stopped: Path, whole: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    failing_writes(monkeypatch, number)
    with pytest.raises(UserError, match="No space left on device"):
        go_on(stopped)
    monkeypatch.undo()
    with pytest.raises(UserError, match="is not a finished run"):
        load_run(stopped)
    go_on(stopped)
    assert result(stopped) == result(whole)


def test_a_disk_that_is_full_for_metrics_is_one_message_and_the_run_can_go_on(
    stopped: Path, whole: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = Path.open

    def open_(self: Path, *args: object, **kwargs: object) -> object:
        if self.name == "metrics.jsonl" and args == ("a",):
            with real(self, "a") as file:
                file.write('{"step": 10, "lo')
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return real(self, *args, **kwargs)  # pyright: ignore

    monkeypatch.setattr(Path, "open", open_)
    with pytest.raises(UserError, match=r"metrics\.jsonl cannot be written"):
        go_on(stopped)
    monkeypatch.undo()
    go_on(stopped)
    assert result(stopped) == result(whole)


def test_settings_that_no_version_wrote_are_damage(stopped: Path) -> None:
    from glassformer.training.weights import fingerprint

    content = json.dumps({"steps": 3, "seconds": 4}).encode()
    write_atomically(stopped / "training.json", content)
    facts = json.loads((stopped / "run.json").read_bytes())
    facts["files"]["training.json"] = fingerprint(content)
    (stopped / "run.json").write_text(json.dumps(facts))
    assert "exactly one of steps and seconds" in refusal(stopped).context
