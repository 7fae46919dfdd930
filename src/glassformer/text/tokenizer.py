"""Which kind of tokenizer a saved one is."""

from __future__ import annotations

import json

from ..errors import UserError
from .characters import CharacterTokenizer
from .words import WordTokenizer

Tokenizer = CharacterTokenizer | WordTokenizer


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
