"""The character tokenizer: one token per character (Unicode code point), nothing merged, nothing normalised.

It is a Hugging Face ``tokenizers`` tokenizer (BPE without a single merge, the parts of a text fused when decoding), so
its ``tokenizer.json`` can be opened by anything that reads such files.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

import numpy as np
from tokenizers import AddedToken, Tokenizer, decoders, models

from ..errors import UserError
from .tokens import BEGIN, END, PAD, Ids, Specials, Tokens, checked_ids, utf8
from .visible import character_name, visible

_ABSENT_PARTS = ("normalizer", "pre_tokenizer", "post_processor")


class CharacterTokenizer:
    """Every character of its vocabulary is one token; ``texts[id]`` is the character of a token.

    With specials the last three ids of the vocabulary are BOS, EOS and PAD.
    """

    def __init__(self, characters: str, specials: bool = False) -> None:
        """Take the distinct ``characters`` in the order of their ids, and three more tokens if ``specials``.

        Raises ``UserError`` for no character, a repeated one, or half a surrogate pair.
        """
        if not characters:
            raise UserError("A tokenizer needs at least one character.", "", "Give it a text that is not empty.")
        if len(set(characters)) != len(characters):
            doubled = next(c for c in characters if characters.count(c) > 1)
            raise UserError(f"The character {character_name(doubled)} has two ids.", "", "Name each character once.")
        utf8(characters)
        marks = (BEGIN, END, PAD) if specials else ()
        self.specials = Specials.after(len(characters)) if specials else Specials()
        self.texts: tuple[str, ...] = (*characters, *marks)
        self._ids = {character: number for number, character in enumerate(characters)}
        self._table = np.zeros(max(map(ord, characters)) + 1, dtype=np.int64)  # code point to id
        self._table[[ord(character) for character in characters]] = np.arange(len(characters))

    @classmethod
    def of_text(cls, text: str, specials: bool = False) -> CharacterTokenizer:
        """The tokenizer whose vocabulary is the distinct characters of ``text``, ids in code point order."""
        return cls.of_characters(text, specials)

    @classmethod
    def of_characters(cls, characters: Iterable[str], specials: bool = False) -> CharacterTokenizer:
        """The tokenizer of a set of characters, ids in code point order; repeated ones count once."""
        return cls("".join(sorted(set(characters))), specials)

    @classmethod
    def from_json(cls, json_text: str) -> CharacterTokenizer:
        """Read what ``to_json`` wrote.

        Raises ``UserError`` when it is damaged or is a tokenizer of another kind.
        """
        try:
            written = json.loads(json_text)
            model, vocabulary = written["model"], dict(written["model"]["vocab"])
            added = [(token["id"], token["content"]) for token in written["added_tokens"]]
            by_id = sorted(vocabulary, key=lambda character: vocabulary[character])
            if [vocabulary[c] for c in by_id] != list(range(len(by_id))) or any(len(c) != 1 for c in by_id):
                raise ValueError("its tokens are not single characters numbered from 0")
            if model["type"] != "BPE" or model["merges"] or any(written[part] for part in _ABSENT_PARTS):
                raise ValueError("it normalises or merges")
            if added not in ([], list(enumerate((BEGIN, END, PAD), len(by_id)))):
                raise ValueError("its added tokens are not BOS, EOS and PAD")
            return cls("".join(by_id), specials=bool(added))
        except (ValueError, KeyError, TypeError, RecursionError) as problem:
            raise UserError(
                "This is not a tokenizer with one token per character.",
                f"Reading tokenizer.json: {type(problem).__name__}: {visible(str(problem), keep='')}.",
                "Use the tokenizer.json that was saved together with the model.",
            ) from problem

    def to_json(self) -> str:
        """The content of ``tokenizer.json``."""
        tokenizer = Tokenizer(models.BPE(dict(self._ids), []))
        tokenizer.decoder = decoders.Fuse()
        specials = (
            AddedToken(self.texts[id], normalized=False, special=True) for id in self.specials if id is not None
        )
        tokenizer.add_special_tokens(list(specials))
        return tokenizer.to_str()

    @property
    def vocab_size(self) -> int:
        """N, the number of tokens."""
        return len(self.texts)

    @property
    def end_of_text(self) -> int | None:
        """The id of EOS, if there is one."""
        return self.specials.end

    def bytes_of(self, id: int) -> bytes:
        """The UTF-8 bytes of token ``id``; none for a special one."""
        return b"" if id in self.specials else self.texts[id].encode("utf-8")

    def encode(self, text: str) -> Tokens:
        """The tokens of ``text`` (n of them, n its number of characters) and the span of each.

        Raises ``UserError`` naming the first character outside the vocabulary and its position.
        """
        ids = self.ids(text)
        places = np.arange(len(ids) + 1)
        return Tokens(ids, np.stack([places[:-1], places[1:]], axis=1))

    def ids(self, text: str) -> Ids:
        """The token ids (n,) of ``text`` without spans; errors as ``encode``."""
        self._check(text)
        return self._table[np.frombuffer(text.encode("utf-32-le"), dtype="<u4")]

    def decode(self, ids: Ids | Sequence[int]) -> str:
        """The text of ``ids`` (n,), special tokens left out; raises ``UserError`` for an id outside 0..N-1."""
        return "".join(self.texts[id] for id in checked_ids(ids, self.vocab_size) if id not in self.specials)

    def _check(self, text: str) -> None:
        if self._ids.keys() >= set(text):
            return
        unknown = set(text) - self._ids.keys()
        position = min(text.index(character) for character in unknown)
        line = text.count("\n", 0, position) + 1
        more = f" (and {len(unknown) - 1} more unknown characters)" if len(unknown) > 1 else ""
        raise UserError(
            f"The character {character_name(text[position])} is not in the vocabulary{more}.",
            f"It stands at position {position} of the text (counted from 0), in line {line}; "
            f"the vocabulary has {len(self._ids)} characters.",
            "Use only characters that occur in the text the model was trained on, or train on a text that has it.",
        )
