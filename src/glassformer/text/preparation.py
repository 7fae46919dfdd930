"""From documents to token shards, each pass in bounded memory.

1. Look: the characters, and of each document its size and hash. Empty documents are left out.
2. Learn the tokenizer. One token per character: the characters of all the text, or one that occurs only in the
   validation text would have no token; their frequencies are not looked at. Byte-level BPE: the training text only, of a
   large one an evenly spread part.
3. Write the tokens, ``BOS document EOS`` after ``BOS document EOS``, into two streams, training and validation.

Which documents are for validation is decided by the SHA-256 of their text alone, so it is the same in every run and for
every order of the documents, and equal documents are on the same side. A single document (or several that are all equal)
is cut by position instead.
"""

from __future__ import annotations

import hashlib
import json
from array import array
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import UserError
from .batches import VALIDATION_SHARE, Flags, Ids, cut_by_position
from .byte_pairs import BytePairTokenizer, last_border
from .characters import CharacterTokenizer
from .shards import (
    DOCUMENTS,
    DTYPES,
    SHARD,
    TRAIN,
    VALIDATION,
    CorpusWriter,
    HashedFile,
    Prepared,
    StreamWriter,
    open_prepared,
)
from .sources import Documents, require_variety
from .tokenizer import Tokenizer
from .visible import visible

CHARACTERS, BYTES = "characters", "bytes"
VOCAB_SIZE = 4096
"""Tokens of byte-level BPE where no other number is named."""

LEARN = 16 << 20
"""Characters of training text that BPE is learnt from, about at most."""

_KEPT = 16  # bytes of a hash kept in memory: enough to tell any two documents apart

Progress = Callable[[str, int, int | None], None]
"""Is told what is done (``reading``, ``learning``, ``writing``), how many characters are behind, of how many in all."""


@dataclass(frozen=True, slots=True, eq=False)
class Survey:
    """What the first look finds: of each of ``k`` documents its characters (k,) and the beginning of its hash (k, 2)."""

    characters: frozenset[str]
    sizes: NDArray[np.int64]
    hashes: NDArray[np.uint64]
    empty: int

    @property
    def total(self) -> int:
        """Characters of all documents."""
        return int(self.sizes.sum())


@dataclass(frozen=True, slots=True, eq=False)
class Halves:
    """Which text is for validation: whole documents (``documents`` (k,)), or all from character ``cut`` on."""

    documents: Flags | None
    cut: int

    @property
    def rule(self) -> str:
        """The name of the rule in the manifest."""
        return "position" if self.documents is None else "documents"

    def parts(self, number: int, begin: int, pieces: Iterable[str]) -> Iterator[tuple[str, str]]:
        """The part that each piece of document ``number`` belongs to; its text begins at character ``begin``."""
        for piece in pieces:
            if self.documents is not None:
                yield (VALIDATION if self.documents[number] else TRAIN), piece
                continue
            room = max(0, self.cut - begin)
            begin += len(piece)
            for part, text in ((TRAIN, piece[:room]), (VALIDATION, piece[room:])):
                if text:
                    yield part, text


def prepare(
    source: Documents,
    folder: Path,
    tokenizer_kind: str = CHARACTERS,
    vocab_size: int | None = None,
    *,
    isolated: bool = False,
    progress: Progress | None = None,
    shard: int = SHARD,
) -> Prepared:
    """Read ``source``, learn a tokenizer, write the tokens into the new ``folder`` and open it.

    ``tokenizer_kind`` is ``characters`` (one token per character; BOS, EOS and PAD too where there are several documents)
    or ``bytes`` (byte-level BPE with at most ``vocab_size`` tokens). ``isolated`` is noted for those who train: no document
    sees another. ``shard`` bounds the bytes of one file of ids. Raises ``UserError`` for text that cannot be read or
    trained on, and for a folder that is not empty or cannot be written; nothing is left in it then.
    """
    if tokenizer_kind not in (CHARACTERS, BYTES):
        raise UserError(f'There is no tokenizer "{visible(tokenizer_kind)}".', "", f"Use {CHARACTERS} or {BYTES}.")
    if tokenizer_kind == CHARACTERS and vocab_size is not None:
        raise UserError(
            "The size of the vocabulary is not free with one token per character.",
            "It is the number of different characters.",
            f"Leave it out, or use the tokenizer {BYTES}.",
        )
    with CorpusWriter(folder) as writer:
        tell = progress or (lambda _stage, _done, _all: None)
        survey = look(source, tell)
        require_variety(set(survey.characters), survey.total, source.origin)
        halves = halve(survey)
        if tokenizer_kind == CHARACTERS:
            tokenizer = CharacterTokenizer.of_characters(survey.characters, specials=len(survey.sizes) > 1)
        else:
            texts = training_texts(source, survey, halves, tell)
            tokenizer = BytePairTokenizer.train(texts, VOCAB_SIZE if vocab_size is None else vocab_size)
        dtype = next(name for name in DTYPES if tokenizer.vocab_size - 1 <= np.iinfo(name).max)
        streams = {part: StreamWriter(writer, part, dtype, shard) for part in (TRAIN, VALIDATION)}
        table = writer.open(DOCUMENTS)
        _write(source, survey, halves, tokenizer, streams, table, tell)
        writer.finish(table)
        facts: dict[str, Any] = {
            "origin": source.origin,
            "skipped": list(source.skipped),
            "empty_documents": survey.empty,
            "documents": len(survey.sizes),
            "characters": survey.total,
            "tokenizer": {
                "kind": tokenizer_kind,
                "vocab_size": tokenizer.vocab_size,
                "begin": tokenizer.specials.begin,
            },
            "dtype": dtype,
            "isolated": isolated,
            "split": {"rule": halves.rule, "share": VALIDATION_SHARE},
            "streams": {part: stream.finish() for part, stream in streams.items()},
        }
        writer.complete(tokenizer, facts)
    return open_prepared(folder)


def look(source: Documents, tell: Progress) -> Survey:
    """The first pass."""
    characters: set[str] = set()
    sizes, hashes = array("q"), array("Q")
    empty = done = 0
    for document in source:
        size, hashed = 0, hashlib.sha256()
        for piece in document.pieces:
            characters.update(piece)
            hashed.update(piece.encode("utf-8"))
            size += len(piece)
            tell("reading", done + size, None)
        if not size:
            empty += 1
            continue
        done += size
        sizes.append(size)
        hashes.frombytes(hashed.digest()[:_KEPT])
    pairs = np.frombuffer(hashes, np.uint64).reshape(-1, 2)
    return Survey(frozenset(characters), np.frombuffer(sizes, np.int64), pairs, empty)


def halve(survey: Survey) -> Halves:
    """Choose about a tenth of the characters for validation.

    The different documents are gone through in the order of their hashes. Each is taken while that brings the characters
    taken nearer to a tenth; where even the first ones are too long, the next that fits, at last the shortest. So at least
    one is on each side. By position where there are no two different documents.
    """
    order = np.lexsort((survey.hashes[:, 1], survey.hashes[:, 0]))
    ordered = survey.hashes[order]
    first = np.ones(len(ordered), dtype=np.bool_)  # whether a document differs from the one before it in this order
    first[1:] = (ordered[1:] != ordered[:-1]).any(axis=1)
    if first.sum() < 2:
        return Halves(None, cut_by_position(survey.total))
    sizes = np.add.reduceat(survey.sizes[order], np.flatnonzero(first))
    wanted, taken = VALIDATION_SHARE * survey.total, 0
    chosen = np.zeros(len(sizes), dtype=np.bool_)
    for number, size in enumerate(sizes.tolist()):
        if abs(taken + size - wanted) < abs(taken - wanted):
            chosen[number] = True
            taken += size
        elif taken:
            break
    if not taken:
        chosen[np.argmin(sizes)] = True
    flags = np.empty(len(order), dtype=np.bool_)
    flags[order] = chosen[np.cumsum(first) - 1]
    return Halves(flags, 0)


def training_texts(
    source: Documents, survey: Survey, halves: Halves, tell: Progress, learn: int = LEARN
) -> Iterator[str]:
    """The training text in pieces; where it has more than ``learn`` characters, every second, third, ... piece."""
    chosen = survey.sizes[~halves.documents].sum() if halves.documents is not None else halves.cut
    every = -(-int(chosen) // learn)
    place = count = 0
    for number, (_, pieces) in enumerate(_not_empty(source)):
        for part, text in halves.parts(number, place, pieces):
            place += len(text)
            if part == TRAIN:
                if count % every == 0:
                    yield text
                count += 1
            tell("learning", place, survey.total)


def encoded(pieces: Iterable[str], tokenizer: Tokenizer) -> Iterator[Ids]:
    """The ids of ``pieces`` joined, as if encoded at once: what follows the last sure border waits for the next piece."""
    waiting = ""
    for piece in pieces:
        if waiting:
            border = last_border(waiting) if isinstance(tokenizer, BytePairTokenizer) else len(waiting)
            yield tokenizer.ids(waiting[:border])
            waiting = waiting[border:]
        waiting += piece
    if waiting:
        yield tokenizer.ids(waiting)


class _Read:
    """The pieces of one document, hashed and counted while somebody takes them."""

    def __init__(self, name: str, pieces: Iterable[str], characters: frozenset[str]) -> None:
        self.size = 0
        self.hash = hashlib.sha256()
        self._name = name
        self._pieces = pieces
        self._characters = characters

    def __iter__(self) -> Iterator[str]:
        for piece in self._pieces:
            if not self._characters.issuperset(piece):
                raise _changed(self._name)
            self.hash.update(piece.encode("utf-8"))
            self.size += len(piece)
            yield piece


def _write(
    source: Documents,
    survey: Survey,
    halves: Halves,
    tokenizer: Tokenizer,
    streams: dict[str, StreamWriter],
    table: HashedFile,
    tell: Progress,
) -> None:
    """The last pass: all documents into ``streams``, a line for each into ``table``."""
    place = number = 0
    for number, (name, pieces) in enumerate(_not_empty(source), 1):
        read = _Read(name, pieces, survey.characters)
        before = {part: stream.tokens for part, stream in streams.items()}
        if number > len(survey.sizes):
            raise _changed(name)
        parts = halves.parts(number - 1, place, read)
        _write_document(parts, tokenizer, streams, by_position=halves.documents is None)
        if read.size != survey.sizes[number - 1] or read.hash.digest()[:_KEPT] != survey.hashes[number - 1].tobytes():
            raise _changed(name)
        place += read.size
        tell("writing", place, survey.total)
        line = {
            "name": name,
            "tokens": {part: n for part, stream in streams.items() if (n := stream.tokens - before[part])},
            "characters": read.size,
            "sha256": read.hash.hexdigest(),
        }
        table.write((json.dumps(line, ensure_ascii=False) + "\n").encode("utf-8"))
    if number < len(survey.sizes):
        raise _changed(source.origin)


def _write_document(
    parts: Iterable[tuple[str, str]], tokenizer: Tokenizer, streams: dict[str, StreamWriter], *, by_position: bool
) -> None:
    """``BOS document EOS``; a document that is cut in two goes on in the validation stream."""
    stream = None
    for part, run in groupby(parts, key=itemgetter(0)):
        begins, stream = stream is None, streams[part]
        if part == VALIDATION and not stream.tokens and by_position:
            stream.begin_document()
            stream.append(_one(streams[TRAIN].last))
        if begins:
            stream.begin_document()
            stream.append(_one(tokenizer.specials.begin))
        for ids in encoded((text for _, text in run), tokenizer):
            stream.append(ids)
    if stream is not None:
        stream.append(_one(tokenizer.specials.end))


def _one(id: int | None) -> Ids:
    """The id alone, nothing for None."""
    return np.array([] if id is None else [id], dtype=np.int64)


def _changed(name: str) -> UserError:
    return UserError(
        f"{name} changed while it was being read.",
        "A text is read twice, and the second time it was another one.",
        "Try again when nobody writes to it.",
    )


def _not_empty(source: Documents) -> Iterator[tuple[str, Iterator[str]]]:
    """Name and pieces of each document that has any."""
    for document in source:
        first = next(document.pieces, None)
        if first is not None:
            yield document.name, chain([first], document.pieces)
