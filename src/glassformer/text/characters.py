"""The character tokenizer: one token per character (Unicode code point), nothing merged, nothing normalised.

It is a Hugging Face ``tokenizers`` tokenizer (BPE without a single merge, the parts of a text fused when decoding), so
its ``tokenizer.json`` can be opened by anything that reads such files.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer, decoders, models

from ..errors import UserError
from .visible import character_name

_CHUNK = 1 << 16  # characters handed to the library at a time, which keeps its time proportional to the length
_ABSENT_PARTS = ("normalizer", "pre_tokenizer", "post_processor", "added_tokens")


@dataclass(frozen=True, slots=True)
class Tokens:
    """A text as tokens: ``ids`` (n,) and ``spans`` (n, 2), where token i is ``text[spans[i, 0]:spans[i, 1]]``."""

    ids: NDArray[np.int64]
    spans: NDArray[np.int64]


class CharacterTokenizer:
    """Every character of its vocabulary is one token; ``texts[id]`` is the character of a token."""

    def __init__(self, characters: str) -> None:
        """Take the distinct ``characters`` in the order of their ids; raises ``UserError`` for none or a repeated one."""
        if not characters:
            raise UserError("A tokenizer needs at least one character.", "", "Give it a text that is not empty.")
        if len(set(characters)) != len(characters):
            doubled = next(c for c in characters if characters.count(c) > 1)
            raise UserError(f"The character {character_name(doubled)} has two ids.", "", "Name each character once.")
        self.texts: tuple[str, ...] = tuple(characters)
        self._ids = {character: number for number, character in enumerate(characters)}
        self._tokenizer = Tokenizer(models.BPE(dict(self._ids), []))
        self._tokenizer.decoder = decoders.Fuse()

    @classmethod
    def of_text(cls, text: str) -> CharacterTokenizer:
        """The tokenizer whose vocabulary is the distinct characters of ``text``, ids in code point order."""
        return cls("".join(sorted(set(text))))

    @classmethod
    def from_json(cls, json_text: str) -> CharacterTokenizer:
        """Read what ``to_json`` wrote.

        Raises ``UserError`` when it is damaged or is a tokenizer of another kind.
        """
        try:
            written = json.loads(json_text)
            model, vocabulary = written["model"], dict(written["model"]["vocab"])
            by_id = sorted(vocabulary, key=lambda character: vocabulary[character])
            if [vocabulary[c] for c in by_id] != list(range(len(by_id))) or any(len(c) != 1 for c in by_id):
                raise ValueError("its tokens are not single characters numbered from 0")
            if model["type"] != "BPE" or model["merges"] or any(written[part] for part in _ABSENT_PARTS):
                raise ValueError("it normalises, merges or adds tokens")
            return cls("".join(by_id))
        except (ValueError, KeyError, TypeError, RecursionError) as problem:
            raise UserError(
                "This is not a tokenizer with one token per character.",
                f"Reading tokenizer.json: {type(problem).__name__}: {problem}.",
                "Use the tokenizer.json that was saved together with the model.",
            ) from problem

    def to_json(self) -> str:
        """The content of ``tokenizer.json``."""
        return self._tokenizer.to_str()

    @property
    def vocab_size(self) -> int:
        """N, the number of tokens."""
        return len(self.texts)

    @property
    def end_of_text(self) -> None:
        """No token of this kind ends a text."""
        return None

    def bytes_of(self, id: int) -> bytes:
        """The UTF-8 bytes of token ``id``."""
        return self.texts[id].encode("utf-8")

    def encode(self, text: str) -> Tokens:
        """The tokens of ``text`` (n of them, n its number of characters) and the span of each.

        Raises ``UserError`` naming the first character outside the vocabulary and its position.
        """
        self._check(text)
        ids: list[int] = []
        spans: list[tuple[int, int]] = []
        for start in range(0, len(text), _CHUNK):
            encoding = self._tokenizer.encode(text[start : start + _CHUNK], add_special_tokens=False)
            ids += encoding.ids
            spans += [(start + a, start + b) for a, b in encoding.offsets]
        return Tokens(np.array(ids, dtype=np.int64), np.array(spans, dtype=np.int64).reshape(-1, 2))

    def ids(self, text: str) -> NDArray[np.int64]:
        """The token ids (n,) of ``text`` without spans: the fast way for a whole corpus; errors as ``encode``."""
        self._check(text)
        table = np.zeros(max(map(ord, self.texts)) + 1, dtype=np.int64)
        table[[ord(character) for character in self.texts]] = np.arange(self.vocab_size)
        return table[np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype="<u4")]

    def decode(self, ids: NDArray[np.int64] | list[int]) -> str:
        """The text of ``ids`` (n,), exactly; raises ``UserError`` for an id outside 0..N-1."""
        numbers = [int(i) for i in ids]
        for position, number in enumerate(numbers):
            if not 0 <= number < self.vocab_size:
                raise UserError(
                    f"There is no token {number}.",
                    f"It stands at position {position}; the vocabulary has the ids 0 to {self.vocab_size - 1}.",
                    "Decode with the tokenizer that was saved together with the model.",
                )
        return self._tokenizer.decode(numbers, skip_special_tokens=False)

    def _check(self, text: str) -> None:
        unknown = set(text) - self._ids.keys()
        if not unknown:
            return
        position = min(text.index(character) for character in unknown)
        line = text.count("\n", 0, position) + 1
        more = f" (and {len(unknown) - 1} more unknown characters)" if len(unknown) > 1 else ""
        raise UserError(
            f"The character {character_name(text[position])} is not in the vocabulary{more}.",
            f"It stands at position {position} of the text (counted from 0), in line {line}; "
            f"the vocabulary has {self.vocab_size} characters.",
            "Use only characters that occur in the text the model was trained on, or train on a text that has it.",
        )
