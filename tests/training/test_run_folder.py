"""A run folder: complete or claiming nothing, never written over, read back exactly or refused with a reason."""

from __future__ import annotations

import errno
import hashlib
import json
import math
import os
from collections.abc import Callable
from pathlib import Path

import pytest
import safetensors.torch
import torch

from glassformer.errors import UserError
from glassformer.text import CharacterTokenizer
from glassformer.training import RunFolder, TrainingConfig, load_run
from glassformer.training.run_files import FORMAT
from learning import tiny_decoder

BEFORE = {"config.json", "tokenizer.json", "tokenizer_config.json", "training.json", "run.json"}
FILES = BEFORE | {"metrics.jsonl", "model.safetensors", "samples.txt", "manifest.json"}
NEEDED = ["config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"]
LETTERS = "\n abcé患"


def save(path: Path, tokenizer_config: dict[str, object] | None = None) -> None:
    with RunFolder.create(path) as folder:
        model = tiny_decoder(len(LETTERS), seed=5)
        training = TrainingConfig(steps=2)
        folder.begin(model, CharacterTokenizer(LETTERS), tokenizer_config or {}, training, facts={"origin": "患者"})
        folder.log(step=1, loss=2.5, validation=None)
        folder.log(step=2, loss=float("inf"), validation=2.0)
        folder.save(model, meta={"steps": 2, "origin": "患者"}, samples="a cab\n")


@pytest.fixture
def run(tmp_path: Path) -> Path:
    path = tmp_path / "runs" / "mine"
    save(path)
    return path


def contents(run: Path) -> dict[Path, bytes]:
    return {file: file.read_bytes() for file in run.rglob("*") if file.is_file()}


def refusal(path: Path) -> UserError:
    with pytest.raises(UserError) as caught:
        load_run(path)
    return caught.value


def test_a_saved_run_is_the_same_when_loaded(run: Path) -> None:
    model, tokenizer, meta, _ = load_run(run)
    original = tiny_decoder(len(LETTERS), seed=5)
    assert model.config == original.config
    for (name, a), (other, b) in zip(model.named_parameters(), original.named_parameters(), strict=True):
        assert name == other
        assert torch.equal(a, b)
    assert "".join(tokenizer.texts) == LETTERS
    assert meta == {"steps": 2, "origin": "患者"}
    assert not model.training


def test_loading_leaves_the_random_state_of_torch_alone(run: Path) -> None:
    before = torch.get_rng_state()
    load_run(run)
    assert torch.equal(torch.get_rng_state(), before)


def test_the_folder_holds_the_promised_files_and_the_manifest_their_hashes(run: Path) -> None:
    assert {file.name for file in run.iterdir()} == FILES | {"checkpoints"}
    manifest = json.loads((run / "manifest.json").read_text("utf-8"))
    assert manifest["format"] == FORMAT
    assert manifest["files"].keys() == FILES - {"manifest.json"}
    for name, facts in manifest["files"].items():
        content = (run / name).read_bytes()
        assert facts == {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}


def test_the_config_names_its_kind_and_the_metrics_are_strict_json(run: Path) -> None:
    assert json.loads((run / "config.json").read_text())["model_type"] == "glassformer"
    lines = [json.loads(line, parse_constant=pytest.fail) for line in (run / "metrics.jsonl").read_text().splitlines()]
    assert lines == [{"step": 1, "loss": 2.5, "validation": None}, {"step": 2, "loss": None, "validation": 2.0}]


# --- never over anything ---------------------------------------------------------------------------------------------


def test_a_folder_with_anything_in_it_is_refused_and_left_alone(run: Path) -> None:
    before = contents(run)
    with pytest.raises(UserError, match="exists and is not empty"):
        RunFolder.create(run)
    assert contents(run) == before


def test_an_empty_folder_may_be_used(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    save(tmp_path / "empty")
    load_run(tmp_path / "empty")


def test_a_file_in_the_place_of_the_folder_is_refused_and_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("precious")
    with pytest.raises(UserError, match="is a file"):
        RunFolder.create(tmp_path / "mine")
    assert (tmp_path / "mine").read_text() == "precious"


def test_of_two_runs_that_start_together_only_one_gets_the_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("glassformer.training.run_folder.refuse_existing", lambda path: None)
    RunFolder.create(tmp_path / "mine").close()
    with pytest.raises(UserError, match="exists and is not empty"):
        RunFolder.create(tmp_path / "mine")


@pytest.mark.parametrize("name", ["file/below", "n" * 5000, "zero\x00byte"])
def test_a_path_that_cannot_be_written_is_one_message(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="cannot be written"):
        RunFolder.create(tmp_path / name)


def test_an_abandoned_folder_disappears_but_never_with_something_else_in_it(tmp_path: Path) -> None:
    for name in ("a", "b"):
        with RunFolder.create(tmp_path / name) as folder:
            folder.data.mkdir()
            (folder.data / "train.bin").write_bytes(b"tokens")
            model = tiny_decoder(len(LETTERS))
            folder.begin(model, CharacterTokenizer(LETTERS), {}, TrainingConfig(steps=2), facts={})
            if name == "b":
                (folder.path / "notes.txt").write_text("precious")
            folder.abandon()
    assert not (tmp_path / "a").exists()
    assert [file.name for file in (tmp_path / "b").iterdir()] == ["notes.txt"]


# --- disks fill up ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", sorted(FILES - {"metrics.jsonl"}))
@pytest.mark.parametrize("moment", ["write", "fsync", "rename"])
def test_a_full_disk_at_any_file_is_one_message_and_nothing_is_claimed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, moment: str
) -> None:
    full = OSError(errno.ENOSPC, "No space left on device")
    opened: list[Path] = []
    real_open, real_fsync, real_replace = Path.open, os.fsync, Path.replace

    def of_the_file(path: Path) -> bool:
        return path.name.startswith(f".{name}.") and path.parent.name == "mine"

    def open_(self: Path, mode: str = "r", **kwargs: object) -> object:
        opened.append(self)
        file = real_open(self, mode, **kwargs)  # pyright: ignore[reportArgumentType, reportCallIssue]
        if moment == "write" and of_the_file(self):
            file.write(b"half")  # pyright: ignore[reportArgumentType]
            file.close()
            raise full
        return file

    def fsync(number: int) -> None:
        if moment == "fsync" and of_the_file(opened[-1]):
            raise full
        real_fsync(number)

    def replace(self: Path, target: Path) -> Path:
        if moment == "rename" and of_the_file(self):
            raise full
        return real_replace(self, target)

    monkeypatch.setattr(Path, "open", open_)
    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(Path, "replace", replace)
    with pytest.raises(UserError, match="No space left on device") as caught:
        save(tmp_path / "mine")
    monkeypatch.undo()
    assert name in caught.value.fact
    assert not (tmp_path / "mine" / name).exists()
    assert not [file.name for file in (tmp_path / "mine").rglob("*") if "partial" in file.name]
    error = refusal(tmp_path / "mine")
    assert "not a finished run" in error.fact
    assert ("--resume" in error.next_step) == (name not in BEFORE)


def test_a_full_disk_while_logging_is_one_message(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with RunFolder.create(tmp_path / "mine") as folder:

        def open_(self: Path, *args: object, **kwargs: object) -> object:
            raise OSError(errno.ENOSPC, "No space left on device")

        monkeypatch.setattr(Path, "open", open_)
        with pytest.raises(UserError, match=r"metrics\.jsonl cannot be written"):
            folder.log(step=1)


# --- what comes back may be damaged ----------------------------------------------------------------------------------


def flip_a_byte(file: Path) -> None:
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)


def cut_short(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-1])


def empty(file: Path) -> None:
    file.write_bytes(b"")


@pytest.mark.parametrize("name", NEEDED)
@pytest.mark.parametrize("damage", [flip_a_byte, cut_short, empty, Path.unlink])
def test_any_damage_to_a_file_that_is_read_is_found_and_named(
    run: Path, name: str, damage: Callable[[Path], None]
) -> None:
    damage(run / name)
    error = refusal(run)
    assert "is damaged" in error.fact
    assert name in error.context


def test_notes_in_the_samples_do_not_lock_the_model(run: Path) -> None:
    (run / "samples.txt").write_text("my favourite is line 3")
    load_run(run)


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"[]", b"null", b"7", b"\xff\xfe", b"{}", b'{"format": "2"}', b'{"format": 2}', b"[" * 100_000,
     b'{"format": true}', b'{"format": 2, "files": [], "meta": {}, "finished": true}',
     b'{"format": 2, "files": {}, "meta": {}}', b'{"format": 2, "files": {}, "meta": {}, "finished": true}'],
)  # fmt: skip
def test_a_damaged_manifest_is_one_message(run: Path, content: bytes) -> None:
    (run / "manifest.json").write_bytes(content)
    assert "is damaged" in refusal(run).fact


def resealed(run: Path, name: str, content: bytes) -> None:
    """Replace a file and its hash: what is left to find is that the parts do not fit."""
    (run / name).write_bytes(content)
    manifest = json.loads((run / "manifest.json").read_bytes())
    manifest["files"][name] = {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    (run / "manifest.json").write_text(json.dumps(manifest))


@pytest.mark.parametrize("name", ["manifest.json", "config.json"])
def test_a_run_of_a_newer_version_says_so(run: Path, name: str) -> None:
    data = json.loads((run / name).read_bytes())
    resealed(run, name, json.dumps({**data, "format": FORMAT + 1, "news": 1}).encode())
    if name == "manifest.json":
        (run / name).write_text(json.dumps({**data, "format": FORMAT + 1, "news": 1}))
    error = refusal(run)
    assert "newer glassformer" in error.fact
    assert "Upgrade" in error.next_step


def test_a_run_of_an_older_version_says_so(run: Path) -> None:
    data = json.loads((run / "manifest.json").read_bytes())
    (run / "manifest.json").write_text(json.dumps({**data, "format": 1}))
    error = refusal(run)
    assert "older glassformer" in error.fact
    assert "Train again" in error.next_step


@pytest.mark.parametrize(
    ("change", "part"),
    [
        ({"vocab_size": 8}, "vocabulary"),
        ({"d": 32}, "shape"),
        ({"layers": []}, "layers:"),
        ({"d": 0}, "d:"),
        ({"dd": 4}, "Did you mean"),
        ({"model_type": "llama"}, "another kind"),
    ],
)
def test_a_config_that_does_not_fit_says_how(run: Path, change: dict[str, object], part: str) -> None:
    data = json.loads((run / "config.json").read_bytes())
    resealed(run, "config.json", json.dumps({**data, **change}).encode())
    assert part in str(refusal(run))


@pytest.mark.parametrize(
    ("value", "part"),
    [(math.nan, "not a number"), (math.inf, "infinite"), (None, "float64, torch.float32 in the model")],
)
def test_weights_that_no_training_leaves_behind_are_refused(run: Path, value: float | None, part: str) -> None:
    tensors = safetensors.torch.load((run / "model.safetensors").read_bytes())
    changed = tensors["head.U"].double()
    if value is not None:
        changed = tensors["head.U"].clone()
        changed[1, 2] = value
    resealed(run, "model.safetensors", safetensors.torch.save({**tensors, "head.U": changed}))
    error = refusal(run)
    assert "is damaged" in error.fact
    assert "head.U" in error.context
    assert part in error.context


@pytest.mark.parametrize("change", [lambda t: t.pop("head.U"), lambda t: t.update(more=torch.ones(1))])
def test_weights_of_other_parameters_are_refused(
    run: Path, change: Callable[[dict[str, torch.Tensor]], object]
) -> None:
    tensors = safetensors.torch.load((run / "model.safetensors").read_bytes())
    change(tensors)
    resealed(run, "model.safetensors", safetensors.torch.save(tensors))
    assert "is damaged" in refusal(run).fact


def test_a_tokenizer_file_that_is_not_utf_8_is_one_message(run: Path) -> None:
    resealed(run, "tokenizer.json", b'{"model": "\xff"}')
    assert "not UTF-8" in refusal(run).context


@pytest.mark.parametrize(
    ("said", "begin"), [({}, False), ({"add_bos_token": True}, True), ({"add_bos_token": False}, False)]
)
def test_the_run_says_whether_a_prompt_begins_with_bos(tmp_path: Path, said: dict[str, object], begin: bool) -> None:
    save(tmp_path / "mine", said)
    assert load_run(tmp_path / "mine").begin is begin


def test_a_tokenizer_config_that_says_neither_yes_nor_no_is_damaged(run: Path) -> None:
    resealed(run, "tokenizer_config.json", b'{"add_bos_token": "true"}')
    assert "add_bos_token" in refusal(run).context


@pytest.mark.parametrize("content", [b"", b"\x80\x04pickle?", b"\xff" * 64, b"\x02\x00\x00\x00\x00\x00\x00\x00{}"])
def test_weights_that_are_no_safetensors_are_one_message(run: Path, content: bytes) -> None:
    resealed(run, "model.safetensors", content)
    assert "is damaged" in refusal(run).fact


@pytest.mark.parametrize(
    ("kind", "part"), [("Unigram", "one token per character"), ("WordPiece", "one token per word")]
)
def test_a_tokenizer_of_another_kind_or_a_damaged_one_is_refused(run: Path, kind: str, part: str) -> None:
    resealed(run, "tokenizer.json", json.dumps({"model": {"type": kind}}).encode())
    assert part in refusal(run).fact


def test_a_tokenizer_that_is_no_utf_8_is_one_message(run: Path) -> None:
    resealed(run, "tokenizer.json", b"\xff{}")
    assert "damaged" in refusal(run).fact
    assert "tokenizer.json" in str(refusal(run))


def test_a_missing_run_suggests_the_one_that_is_there(run: Path) -> None:
    refused = refusal(run.parent / "mien")
    assert 'Did you mean "mine"?' in refused.context
    assert "glassformer train" in refused.next_step


@pytest.mark.parametrize("name", ["metrics.jsonl", "n" * 5000, "zero\x00byte", "\x1b[31m"])
def test_a_path_that_is_no_folder_is_one_message(run: Path, name: str) -> None:
    assert "\x1b" not in str(refusal(run / name))


def test_a_folder_of_something_else_is_not_a_run(tmp_path: Path) -> None:
    assert "not a finished run" in refusal(tmp_path).fact
