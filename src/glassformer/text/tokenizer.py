"""What every tokenizer can do, which kind a saved one is, and how a prompt becomes ids."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from ..errors import UserError
from .characters import CharacterTokenizer
from .tokens import Ids, Specials, Tokens
from .words import WordTokenizer

__all__ = ["Specials", "Tokenizer", "Tokens", "prompt_ids", "read_tokenizer"]


@runtime_checkable
class Tokenizer(Protocol):
    """Text to token ids and back, exactly: ``decode(encode(text).ids) == text`` for every text it can encode.

    ``texts`` (N of them) is what a reader sees of each token: untrusted, as the text itself is.
    """

    @property
    def texts(self) -> tuple[str, ...]: ...

    @property
    def specials(self) -> Specials: ...

    @property
    def vocab_size(self) -> int:
        """N, the number of tokens, special ones among them."""
        ...

    @property
    def end_of_text(self) -> int | None:
        """``specials.end``."""
        ...

    def encode(self, text: str) -> Tokens:
        """The tokens of ``text`` and the characters each covers; raises ``UserError`` for what it cannot encode."""
        ...

    def ids(self, text: str) -> Ids:
        """``encode(text).ids``, faster."""
        ...

    def decode(self, ids: Ids | Sequence[int]) -> str:
        """The text of ``ids`` (n,), special tokens left out; raises ``UserError`` for an id outside 0..N-1."""
        ...

    def bytes_of(self, id: int) -> bytes:
        """The UTF-8 bytes of a token, perhaps a part of a character; none for a special one."""
        ...

    def to_json(self) -> str:
        """The content of ``tokenizer.json``; ``read_tokenizer`` reads it."""
        ...


def read_tokenizer(json_text: str) -> Tokenizer:
    """The tokenizer that a ``tokenizer.json`` describes.

    Raises ``UserError`` when it is damaged or of a kind that glassformer does not know.
    """
    try:
        kind = json.loads(json_text)["model"]["type"]
    except (ValueError, KeyError, TypeError, RecursionError) as problem:
        raise UserError(
            "tokenizer.json is damaged.",
            f"{type(problem).__name__}: {problem}.",
            "Use the tokenizer.json that was saved together with the model.",
        ) from problem
    if kind == "WordPiece":
        return WordTokenizer.from_json(json_text)
    return CharacterTokenizer.from_json(json_text)


def prompt_ids(tokenizer: Tokenizer, text: str, begin: bool) -> list[int]:
    """The ids of a prompt: ``text``, after BOS if ``begin``; of an empty text BOS alone, where there is one.

    ``begin`` says that the model was trained on documents that each begin with BOS. Raises ``UserError`` when ``begin``
    is asked of a tokenizer without BOS, or for a text it cannot encode.
    """
    ids = tokenizer.ids(text).tolist()
    first = tokenizer.specials.begin
    if begin and first is None:
        raise UserError(
            "This tokenizer has no token that begins a text.",
            "The prompt should begin with one.",
            "Use the tokenizer that was saved together with the model.",
        )
    return [first, *ids] if first is not None and (begin or not ids) else ids
