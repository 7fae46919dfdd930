"""The word tokenizer: a fixed list of words, a text cut at the longest word that fits, from left to right.

Words are joined without anything between them, so a language with spaces writes them into its words (`` took``). It is a
Hugging Face ``tokenizers`` tokenizer (WordPiece with an empty prefix), so its ``tokenizer.json`` can be opened by
anything that reads such files.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

import numpy as np
from tokenizers import AddedToken, Tokenizer, decoders, models

from ..errors import UserError
from .tokens import Ids, Specials, Tokens, checked_ids, utf8
from .visible import character_name, visible

_LONGEST = 1 << 30  # characters WordPiece takes at once: the whole text, which has no other pieces
_NAMED = 40  # words that a message lists, at most
_ABSENT_PARTS = ("normalizer", "pre_tokenizer", "post_processor")


class WordTokenizer:
    """Every word of its vocabulary is one token; ``texts[id]`` is the word of a token."""

    def __init__(self, words: Sequence[str], end: str | None = None) -> None:
        """Take ``words`` in the order of their ids; ``end`` is the one that ends a text and never occurs in it.

        Raises ``UserError`` for no word, an empty or a repeated one, half a surrogate pair, or an ``end`` that is none
        of them.
        """
        if not words or "" in words or len(set(words)) != len(words):
            raise UserError("A word tokenizer needs different words, none of them empty.", "", "Name each word once.")
        if end is not None and end not in words:
            raise UserError(f'The end of text "{visible(end)}" is not one of the words.', "", "Add it to the words.")
        utf8("".join(words))
        self.texts: tuple[str, ...] = tuple(words)
        self.specials = Specials(end=None if end is None else self.texts.index(end))
        self._ids = {word: id for id, word in enumerate(words) if id != self.end_of_text}
        self._longest = max((len(word) for word in self._ids), default=0)

    @classmethod
    def from_json(cls, json_text: str) -> WordTokenizer:
        """Read what ``to_json`` wrote.

        Raises ``UserError`` when it is damaged or is a tokenizer of another kind.
        """
        try:
            written = json.loads(json_text)
            model, vocabulary = written["model"], dict(written["model"]["vocab"])
            words = sorted(vocabulary, key=lambda word: vocabulary[word])
            if [vocabulary[word] for word in words] != list(range(len(words))):
                raise ValueError("its words are not numbered from 0")
            if model["type"] != "WordPiece" or model["continuing_subword_prefix"]:
                raise ValueError("it is not a list of whole words")
            if any(written[part] for part in _ABSENT_PARTS) or len(written["added_tokens"]) > 1:
                raise ValueError("it changes the text or adds words")
            return cls(words, *(token["content"] for token in written["added_tokens"]))
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as problem:
            raise UserError(
                "This is not a tokenizer with one token per word.",
                f"Reading tokenizer.json: {type(problem).__name__}: {visible(str(problem), keep='')}.",
                "Use the tokenizer.json that was saved together with the model.",
            ) from problem

    def to_json(self) -> str:
        """The content of ``tokenizer.json``."""
        vocabulary = {word: id for id, word in enumerate(self.texts)}
        model = models.WordPiece(vocabulary, max_input_chars_per_word=_LONGEST, continuing_subword_prefix="")
        tokenizer = Tokenizer(model)
        tokenizer.decoder = decoders.Fuse()
        if self.end_of_text is not None:
            tokenizer.add_special_tokens([AddedToken(self.texts[self.end_of_text], normalized=False, special=True)])
        return tokenizer.to_str()

    @property
    def vocab_size(self) -> int:
        """N, the number of tokens, the end of text among them."""
        return len(self.texts)

    @property
    def end_of_text(self) -> int | None:
        """The id of the word that ends a text, if there is one."""
        return self.specials.end

    def bytes_of(self, id: int) -> bytes:
        """The UTF-8 bytes of token ``id``; none for the end of text."""
        return b"" if id == self.end_of_text else self.texts[id].encode("utf-8")

    def encode(self, text: str) -> Tokens:
        """The tokens of ``text`` and the span of each: at each place the longest word that fits.

        Raises ``UserError`` naming the first place where no word fits. The end of text is never found in a text.
        """
        ids: list[int] = []
        spans: list[tuple[int, int]] = []
        start = 0
        while start < len(text):
            end = next((e for e in range(start + self._longest, start, -1) if text[start:e] in self._ids), None)
            if end is None:
                raise self._unknown(text, start)
            end = min(end, len(text))
            ids.append(self._ids[text[start:end]])
            spans.append((start, end))
            start = end
        return Tokens(np.array(ids, dtype=np.int64), np.array(spans, dtype=np.int64).reshape(-1, 2))

    def ids(self, text: str) -> Ids:
        """The token ids (n,) of ``text`` without spans; errors as ``encode``."""
        return self.encode(text).ids

    def decode(self, ids: Ids | Sequence[int]) -> str:
        """The text of ``ids`` (n,), the end of text left out; raises ``UserError`` for an id outside 0..N-1."""
        return "".join(self.texts[id] for id in checked_ids(ids, self.vocab_size) if id != self.end_of_text)

    def _unknown(self, text: str, place: int) -> UserError:
        words = ", ".join(f'"{visible(word, keep="")}"' for word in list(self._ids)[:_NAMED])
        more = ", …" if len(self._ids) > _NAMED else ""
        return UserError(
            f"No word of the vocabulary fits at {character_name(text[place])}.",
            f"It stands at position {place} of the text (counted from 0).",
            f"The words are {words}{more}.",
        )
