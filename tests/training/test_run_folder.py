"""A run folder: complete or claiming nothing, never written over, read back exactly or refused with a reason."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from glassformer.errors import UserError
from glassformer.text import CharacterTokenizer
from glassformer.training import RunFolder, load_run
from glassformer.training.run_folder import FORMAT
from learning import tiny_decoder

FILES = {"metrics.jsonl", "config.json", "model.safetensors", "tokenizer.json", "samples.txt", "manifest.json"}
NEEDED = ["config.json", "model.safetensors", "tokenizer.json"]
LETTERS = "\n abcé患"


def save(path: Path) -> None:
    folder = RunFolder(path)
    folder.log(step=1, loss=2.5, validation=None)
    folder.log(step=2, loss=float("inf"), validation=2.0)
    model = tiny_decoder(len(LETTERS), seed=5)
    folder.save(model, CharacterTokenizer(LETTERS), meta={"steps": 2, "origin": "患者"}, samples="a cab\n")


@pytest.fixture
def run(tmp_path: Path) -> Path:
    path = tmp_path / "runs" / "mine"
    save(path)
    return path


def refusal(path: Path) -> UserError:
    with pytest.raises(UserError) as caught:
        load_run(path)
    return caught.value


def test_a_saved_run_is_the_same_when_loaded(run: Path) -> None:
    model, tokenizer, meta = load_run(run)
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
    assert {file.name for file in run.iterdir()} == FILES
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
    before = {file.name: file.read_bytes() for file in run.iterdir()}
    with pytest.raises(UserError, match="exists and is not empty"):
        RunFolder(run)
    assert {file.name: file.read_bytes() for file in run.iterdir()} == before


def test_an_empty_folder_may_be_used(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    save(tmp_path / "empty")
    load_run(tmp_path / "empty")


def test_a_file_in_the_place_of_the_folder_is_refused_and_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("precious")
    with pytest.raises(UserError, match="is a file"):
        RunFolder(tmp_path / "mine")
    assert (tmp_path / "mine").read_text() == "precious"


def test_of_two_runs_that_start_together_only_one_gets_the_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("glassformer.training.run_folder.refuse_existing", lambda path: None)
    RunFolder(tmp_path / "mine")
    with pytest.raises(UserError, match="exists and is not empty"):
        RunFolder(tmp_path / "mine")


@pytest.mark.parametrize("name", ["file/below", "n" * 5000, "zero\x00byte"])
def test_a_path_that_cannot_be_written_is_one_message(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="cannot be written"):
        RunFolder(tmp_path / name)


def test_an_abandoned_folder_disappears_but_never_with_something_else_in_it(tmp_path: Path) -> None:
    RunFolder(tmp_path / "a").abandon()
    assert not (tmp_path / "a").exists()
    folder = RunFolder(tmp_path / "b")
    (tmp_path / "b" / "notes.txt").write_text("precious")
    folder.abandon()
    assert (tmp_path / "b" / "notes.txt").read_text() == "precious"


# --- disks fill up, machines die -------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", sorted(FILES - {"metrics.jsonl"}))
@pytest.mark.parametrize("moment", ["write", "fsync", "rename"])
def test_a_full_disk_at_any_file_is_one_message_and_nothing_is_claimed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, moment: str
) -> None:
    full = OSError(errno.ENOSPC, "No space left on device")
    opened: list[str] = []
    real_open, real_fsync, real_replace = Path.open, os.fsync, Path.replace

    def open_(self: Path, mode: str = "r", **kwargs: object) -> object:
        opened.append(self.name)
        file = real_open(self, mode, **kwargs)  # pyright: ignore[reportArgumentType, reportCallIssue]
        if moment == "write" and self.name == f".{name}.partial":
            file.write(b"half")  # pyright: ignore[reportArgumentType]
            file.close()
            raise full
        return file

    def fsync(number: int) -> None:
        if moment == "fsync" and opened[-1] == f".{name}.partial":
            raise full
        real_fsync(number)

    def replace(self: Path, target: Path) -> Path:
        if moment == "rename" and target.name == name:
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
    assert not [file.name for file in (tmp_path / "mine").iterdir() if "partial" in file.name]
    assert "not a finished run" in str(refusal(tmp_path / "mine"))


def test_a_full_disk_while_logging_is_one_message(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = RunFolder(tmp_path / "mine")

    def open_(self: Path, *args: object, **kwargs: object) -> object:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "open", open_)
    with pytest.raises(UserError, match=r"metrics\.jsonl cannot be written"):
        folder.log(step=1)


KILLED = """
import os, sys
from pathlib import Path
sys.path[:0] = sys.argv[3:]
from test_run_folder import save
left = int(sys.argv[2])
real = os.fsync
def fsync(number):
    global left
    left -= 1
    if left < 0:
        os.kill(os.getpid(), 9)
    real(number)
os.fsync = fsync
save(Path(sys.argv[1]))
"""


@pytest.mark.parametrize("writes", [1, 4])
def test_a_run_killed_between_two_writes_claims_nothing(tmp_path: Path, writes: int) -> None:
    here = Path(__file__).parent
    command = [sys.executable, "-c", KILLED, str(tmp_path / "mine"), str(writes), str(here), str(here.parent)]
    assert subprocess.run(command, check=False, timeout=120).returncode == -9
    assert (tmp_path / "mine" / "metrics.jsonl").exists()
    assert "not a finished run" in str(refusal(tmp_path / "mine"))
    with pytest.raises(UserError, match="exists and is not empty"):
        RunFolder(tmp_path / "mine")


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
    [b"", b"{", b"[]", b"null", b"7", b"\xff\xfe", b"{}", b'{"format": "1"}', b'{"format": 1}', b"[" * 100_000,
     b'{"format": 1, "files": [], "meta": {}}', b'{"format": 1, "files": {}, "meta": {}}'],
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


@pytest.mark.parametrize(
    ("change", "part"),
    [
        ({"vocab_size": 8}, "vocabulary"),
        ({"d": 32}, "shape"),
        ({"blocks": 2}, "shape"),
        ({"d": 0}, "d:"),
        ({"dd": 4}, "Did you mean"),
        ({"model_type": "llama"}, "another kind"),
    ],
)
def test_a_config_that_does_not_fit_says_how(run: Path, change: dict[str, object], part: str) -> None:
    data = json.loads((run / "config.json").read_bytes())
    resealed(run, "config.json", json.dumps({**data, **change}).encode())
    assert part in str(refusal(run))


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
    assert refusal(run).fact == "tokenizer.json is damaged."


def test_a_missing_run_suggests_the_one_that_is_there(run: Path) -> None:
    assert 'Did you mean "mine"?' in refusal(run.parent / "mien").next_step


@pytest.mark.parametrize("name", ["metrics.jsonl", "n" * 5000, "zero\x00byte", "\x1b[31m"])
def test_a_path_that_is_no_folder_is_one_message(run: Path, name: str) -> None:
    assert "\x1b" not in str(refusal(run / name))


def test_a_folder_of_something_else_is_not_a_run(tmp_path: Path) -> None:
    assert "not a finished run" in refusal(tmp_path).fact
