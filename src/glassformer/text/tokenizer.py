"""What every tokenizer can do, which kind a saved one is, and how a prompt becomes ids."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

from ..errors import UserError
from .byte_pairs import BytePairTokenizer
from .characters import CharacterTokenizer
from .tokens import Ids, Specials, Tokens
from .visible import visible
from .words import WordTokenizer

__all__ = ["Specials", "Tokenizer", "Tokens", "prompt_ids", "read_tokenizer", "tokenizer_config"]


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


def read_tokenizer(json_text: str | bytes) -> Tokenizer:
    """The tokenizer that the content of a ``tokenizer.json`` describes.

    Raises ``UserError`` when it is damaged or of a kind that glassformer does not know.
    """
    try:
        text = json_text if isinstance(json_text, str) else json_text.decode("utf-8")
        data = json.loads(text)
        kind, cuts = data["model"]["type"], data.get("pre_tokenizer") is not None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as problem:
        raise UserError(
            "tokenizer.json is damaged.",
            f"{type(problem).__name__}: {visible(str(problem), keep='')}.",
            "Use the tokenizer.json that was saved together with the model.",
        ) from problem
    if kind == "WordPiece":
        return WordTokenizer.from_json(text)
    return BytePairTokenizer.from_json(text) if cuts else CharacterTokenizer.from_json(text)


def tokenizer_config(tokenizer: Tokenizer, begin: bool) -> dict[str, Any]:
    """The content of Hugging Face's ``tokenizer_config.json`` beside ``tokenizer.json``, for their ``transformers``.

    ``begin``: whether texts begin with BOS, as in ``prompt_ids``; written down as ``add_bos_token``, on which the generic
    class of ``transformers`` 5 does not act, so there the caller puts BOS first. ``split_special_tokens`` says what
    holds here: the spelling of a special token in a text is text.
    """
    begin_text, end_text, pad_text = (None if id is None else tokenizer.texts[id] for id in tokenizer.specials)
    return {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "bos_token": begin_text,
        "eos_token": end_text,
        "pad_token": pad_text,
        "add_bos_token": begin,
        "add_eos_token": False,
        "split_special_tokens": True,
        "clean_up_tokenization_spaces": False,
    }


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
