"""Tokens on disk: a folder that is written once, checked when it is opened, and read through memory maps.

| file | what |
|---|---|
| ``train-00000.bin``, ``validation-00000.bin``, … | token ids, little-endian, the smallest of uint8, uint16, uint32 that fits |
| ``train-starts.bin``, ``validation-starts.bin`` | where documents begin in the stream: int64, little-endian |
| ``documents.jsonl`` | a line a document: name, part, characters, tokens, SHA-256 of its text |
| ``tokenizer.json`` | what the ids mean |
| ``manifest.json`` | written last: format, how the text was split, counts, size and SHA-256 of each file above |

A folder without a manifest claims nothing: its writer was killed, or the disk was full. Nothing is written over.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..errors import UserError, did_you_mean
from ..files import PARTIAL, sync_folder, write_atomically
from .batches import Corpus, Ids, TokenStream
from .tokenizer import Tokenizer, read_tokenizer
from .visible import visible

FORMAT = 1
"""Rises when an older glassformer could misread a folder."""

KIND = "glassformer corpus"
MANIFEST, TOKENIZER, DOCUMENTS = "manifest.json", "tokenizer.json", "documents.jsonl"
TRAIN, VALIDATION = "train", "validation"
DTYPES = {"uint8": "<u1", "uint16": "<u2", "uint32": "<u4"}
STARTS = "<i8"
SHARD = 256 << 20
"""Bytes of one file of token ids, at most."""

_CHUNK = 1 << 20  # bytes read at a time to check a file; a multiple of every item's size
_NAME = re.compile(r"[a-z0-9][a-z0-9.-]*")
_INCOMPLETE = "Make room or choose another folder; what is there has no manifest, so nothing will mistake it for data."


class Prepared(NamedTuple):
    """A text as it is trained on; ``facts`` is what the manifest says beside its list of files."""

    tokenizer: Tokenizer
    corpus: Corpus
    facts: dict[str, Any]


class ShardedIds:
    """Several arrays as one row of ids: it has a length, and a slice is gathered across the borders."""

    def __init__(self, parts: Sequence[NDArray[Any]]) -> None:
        self._parts = tuple(parts)
        self._ends = np.cumsum([len(part) for part in parts]).tolist()

    def __len__(self) -> int:
        return self._ends[-1]

    def __getitem__(self, index: slice, /) -> NDArray[Any]:
        first, last, step = index.indices(len(self))
        if step != 1:
            raise ValueError("token ids are read one after another, in order")
        found = [self._parts[0][:0]]
        for k in range(bisect_right(self._ends, first), len(self._parts)):
            begin = self._ends[k] - len(self._parts[k])
            if begin >= last:
                break
            found.append(self._parts[k][max(0, first - begin) : last - begin])
        return found[1] if len(found) == 2 else np.concatenate(found)


class HashedFile:
    """A file being written under a hidden name; ``finish`` flushes it to the disk and gives it its own."""

    def __init__(self, folder: Path, name: str) -> None:
        """Raises ``OSError``, also when somebody else is writing it."""
        self.name = name
        self.size = 0
        self._path = folder / name
        self._hidden = folder / f".{name}{PARTIAL}"
        self._hash = hashlib.sha256()
        self._file = self._hidden.open("xb")

    def write(self, content: bytes) -> None:
        """Append; raises ``OSError``."""
        self._file.write(content)
        self._hash.update(content)
        self.size += len(content)

    def finish(self) -> dict[str, Any]:
        """Complete it; its size and hash for the manifest. Raises ``OSError``."""
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()
        self._hidden.rename(self._path)
        return {"bytes": self.size, "sha256": self._hash.hexdigest()}

    def discard(self) -> None:
        """Close it and remove it, finished or not."""
        with contextlib.suppress(OSError):  # closing flushes, and the disk may be full
            self._file.close()
        for path in (self._hidden, self._path):
            with contextlib.suppress(OSError):
                path.unlink()


class CorpusWriter:
    """The folder being written; inside ``with``: what an error leaves behind is removed again."""

    def __init__(self, folder: Path) -> None:
        """Claim ``folder``, which must not exist yet or be empty; raises ``UserError``."""
        self.folder = folder
        self.files: dict[str, dict[str, Any]] = {}
        self._open: list[HashedFile] = []
        self._made = not folder.exists()
        name = visible(str(folder), keep="")
        try:
            folder.mkdir(parents=True, exist_ok=True)
            if any(folder.iterdir()):
                raise UserError(f"{name} exists and is not empty.", "Nothing was changed.", "Choose another folder.")
        except (OSError, ValueError) as problem:
            raise UserError(f"{name} cannot be written.", f"{problem}.", "Choose another folder.") from problem

    def __enter__(self) -> CorpusWriter:
        return self

    def __exit__(self, kind: type[BaseException] | None, problem: BaseException | None, _: object) -> None:
        if problem is None:
            return
        for file in self._open:
            file.discard()
        with contextlib.suppress(OSError):
            if self._made:
                self.folder.rmdir()
        if isinstance(problem, OSError):
            name = visible(str(self.folder), keep="")
            raise UserError(f"{name} cannot be written.", f"{problem}.", _INCOMPLETE) from problem

    def open(self, name: str) -> HashedFile:
        """A new file of this folder."""
        file = HashedFile(self.folder, name)
        self._open.append(file)
        return file

    def finish(self, file: HashedFile) -> None:
        """Complete ``file`` and list it for the manifest."""
        self.files[file.name] = file.finish()

    def complete(self, tokenizer: Tokenizer, facts: dict[str, Any]) -> None:
        """Write the tokenizer, then the manifest; the folder is then whole."""
        file = self.open(TOKENIZER)
        file.write(tokenizer.to_json().encode("utf-8"))
        self.finish(file)
        sync_folder(self.folder)
        manifest = {"format": FORMAT, "kind": KIND, **facts, "files": self.files}
        content = json.dumps(manifest, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
        write_atomically(self.folder / MANIFEST, content.encode("utf-8"))


class StreamWriter:
    """One stream: shards of ids and the places where documents begin."""

    def __init__(self, writer: CorpusWriter, part: str, dtype: str, shard: int) -> None:
        self.tokens = 0
        self.documents = 0
        self.last: int | None = None
        self._writer = writer
        self._part = part
        self._dtype = np.dtype(DTYPES[dtype])
        self._limit = max(1, shard // self._dtype.itemsize)  # tokens of a shard
        self._shard: HashedFile | None = None
        self._shards: list[str] = []
        self._starts = writer.open(f"{part}-starts.bin")

    def begin_document(self) -> None:
        """The next token is the first of a document."""
        self._starts.write(np.array([self.tokens], dtype=STARTS).tobytes())
        self.documents += 1

    def append(self, ids: Ids) -> None:
        """Add ``ids`` (n,); a shard that is full is completed. Raises ``OSError``."""
        while len(ids):
            if self._shard is None:
                self._shards.append(f"{self._part}-{len(self._shards):05d}.bin")
                self._shard = self._writer.open(self._shards[-1])
            room = self._limit - self._shard.size // self._dtype.itemsize
            now, ids = ids[:room], ids[room:]
            self._shard.write(now.astype(self._dtype).tobytes())
            self.tokens += len(now)
            self.last = int(now[-1])
            if len(now) == room:
                self._finish_shard()

    def finish(self) -> dict[str, Any]:
        """Complete its files; what the manifest says about the stream."""
        self._finish_shard()
        self._writer.finish(self._starts)
        starts = self._starts.name
        return {"tokens": self.tokens, "documents": self.documents, "shards": self._shards, "starts": starts}

    def _finish_shard(self) -> None:
        if self._shard is not None:
            self._writer.finish(self._shard)
            self._shard = None


def open_corpus(folder: Path) -> Corpus:
    """The corpus that ``prepare`` wrote into ``folder``, memory-mapped; errors as ``open_prepared``."""
    return open_prepared(folder).corpus


def open_prepared(folder: Path) -> Prepared:
    """Corpus, tokenizer and facts that ``prepare`` wrote into ``folder``; every file is compared with its hash.

    Raises ``UserError`` for a folder that is missing, unfinished, damaged, or written by a newer glassformer.
    """
    name = visible(str(folder), keep="")
    manifest = _manifest(folder, name)
    try:
        files = manifest["files"]
        N, begin, dtype = manifest["tokenizer"]["vocab_size"], manifest["tokenizer"]["begin"], DTYPES[manifest["dtype"]]
        json_text = b"".join(_verified(folder, TOKENIZER, files, name)).decode("utf-8")
        for _ in _verified(folder, DOCUMENTS, files, name):
            pass
        train, held_out = (_stream(folder, manifest["streams"][part], files, (dtype, N, begin), name)
                           for part in (TRAIN, VALIDATION))  # fmt: skip
        by_position = manifest["split"]["rule"] == "position"
        corpus = Corpus(train, held_out, bool(manifest["isolated"]), by_position)
    except (KeyError, TypeError, AttributeError, ValueError) as problem:
        raise _damaged(name, f"{MANIFEST} is not as it was written: {type(problem).__name__}: {problem}") from problem
    except FileNotFoundError as problem:
        raise _damaged(name, f"{Path(problem.filename).name} is missing") from problem
    except OSError as problem:
        raise UserError(f"{name} cannot be read.", f"{problem}.", "Check the path and its permissions.") from problem
    tokenizer = read_tokenizer(json_text)
    if tokenizer.vocab_size != N or tokenizer.specials.begin != begin:
        raise _damaged(name, f"{TOKENIZER} is not the tokenizer of these tokens")
    return Prepared(tokenizer, corpus, {key: value for key, value in manifest.items() if key != "files"})


def _manifest(folder: Path, name: str) -> dict[str, Any]:
    try:
        if not folder.is_dir():
            siblings = [p.name for p in folder.parent.iterdir()] if folder.parent.is_dir() else []
            fact = f"{name} is a file, not a folder." if folder.exists() else f"There is no folder {name}."
            raise UserError(fact, "", did_you_mean(folder.name, siblings))
        if not (folder / MANIFEST).exists():
            raise UserError(
                f"{name} holds no finished data.",
                f"It has no {MANIFEST}, which is written last: its writer was interrupted, or this is another folder.",
                "Prepare the text again, into a new folder.",
            )
        manifest = json.loads((folder / MANIFEST).read_bytes())
    except OSError as problem:
        raise UserError(f"{name} cannot be read.", f"{problem}.", "Check the path and its permissions.") from problem
    except (ValueError, RecursionError) as problem:
        raise _damaged(name, f"{MANIFEST} is not JSON: {problem}") from problem
    if not isinstance(manifest, dict) or manifest.get("kind") != KIND or not isinstance(manifest.get("format"), int):
        raise UserError(
            f"{name} holds something else.", f"Its {MANIFEST} does not say {KIND}.", "Choose another folder."
        )
    if manifest["format"] > FORMAT:
        raise UserError(
            f"{name} was written by a newer glassformer.",
            f"{MANIFEST} has format {manifest['format']}; this version reads up to {FORMAT}.",
            "Upgrade: pip install --upgrade glassformer.",
        )
    return manifest


def _stream(
    folder: Path, about: dict[str, Any], files: dict[str, Any], ids: tuple[str, int, int | None], name: str
) -> TokenStream:
    """One stream; ``ids`` is the type of its ids, the number of different ones, and BOS."""
    dtype, N, begin = ids
    shards, m = about["shards"], about["tokens"]
    largest, last, ascending = 0, -1, True
    for shard in shards:
        for chunk in _verified(folder, shard, files, name):
            largest = max(largest, int(_items(chunk, dtype).max(initial=0)))
    for chunk in _verified(folder, about["starts"], files, name):
        starts = _items(chunk, STARTS)
        ascending = ascending and bool((np.diff(starts, prepend=last) > 0).all())
        last = int(starts[-1]) if len(starts) else last
    if largest >= N or not ascending or last >= m:
        raise _damaged(name, "It has tokens that its tokenizer does not know, or documents that begin nowhere")
    parts = [np.memmap(folder / shard, dtype, "r") for shard in shards]
    mapped = parts[0] if len(parts) == 1 else ShardedIds(parts)
    starts = np.memmap(folder / about["starts"], STARTS, "r")
    if (len(mapped), len(starts)) != (m, about["documents"]):
        raise _damaged(name, f"It has {len(mapped):,} tokens and {len(starts):,} documents, {MANIFEST} says otherwise")
    return TokenStream(mapped, starts, begin)


def _items(chunk: bytes, dtype: str) -> NDArray[Any]:
    """The whole items in ``chunk``: of a damaged file the last one may be cut."""
    size = np.dtype(dtype).itemsize
    return np.frombuffer(chunk[: len(chunk) // size * size], dtype)


def _verified(folder: Path, file: str, files: dict[str, Any], name: str) -> Iterator[bytes]:
    """The bytes of ``file`` in chunks; at their end ``UserError`` unless size and hash are those of the manifest."""
    expected = files[file]
    if not _NAME.fullmatch(file):
        raise _damaged(name, f"{MANIFEST} names {visible(file)!r}, which is no file of such a folder")
    found, size = hashlib.sha256(), 0
    with (folder / file).open("rb") as opened:
        while chunk := opened.read(_CHUNK):
            found.update(chunk)
            size += len(chunk)
            if size <= expected["bytes"]:
                yield chunk
    if (size, found.hexdigest()) != (expected["bytes"], expected["sha256"]):
        raise _damaged(name, f"{file} is not what was written: {size:,} bytes, {expected['bytes']:,} in {MANIFEST}")


def _damaged(name: str, what: str) -> UserError:
    return UserError(
        f"The data in {name} is damaged.", f"{what}.", "Restore it from a copy, or prepare the text again."
    )
