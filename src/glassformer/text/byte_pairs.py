r"""Byte pair encoding (BPE) over the bytes of UTF-8: every text has tokens, frequent pieces of text are one token.

Training starts with the 256 bytes and merges, again and again, the most frequent pair of neighbouring tokens into a new
one (``merges.py``); no merge crosses the pieces into which ``PATTERN`` cuts a text first. Nothing is normalised and
nothing added, so decoding gives back every text exactly. Hugging Face ``tokenizers`` does the work.

How texts are cut, one alternative a line, the first that fits:

    's 't 'd 'm 'll 're 've           English endings, unless a letter follows: 'they has none
    Han, Hiragana, Katakana           Chinese and Japanese write no spaces: what is between two punctuation marks is
                                      one piece, in which merges find the words; a word of another script between
                                      them (用Python写) is a piece of its own
    other letters and marks           words; marks stay with their letters (e\u0301, Devanagari, Thai)
    up to 3 digits                    otherwise each frequent number would take a token
    all else that is not white space  punctuation, symbols, emoji
    white space                       less its last character where a word follows

Words, digits and punctuation take one space before them along. A piece has at most ``LONGEST`` characters and that
space: this hardly touches real words and sentences, and it bounds a token and the time for a piece, so encoding takes
time proportional to the length whatever the text. A letter and the punctuation after it are never in one piece; hence no
merge can spell ``<bos>``, ``<eos>`` or ``<pad>``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers

from ..errors import UserError
from .merges import Merge, learn
from .tokens import BEGIN, END, PAD, Ids, Specials, Tokens, checked_ids, utf8
from .visible import visible

LONGEST = 32
_EAST = r"\p{Han}\p{Hiragana}\p{Katakana}ー"
_LETTERS = r"\p{L}\p{M}"
PATTERN = "|".join(
    (
        rf"'(?i:[sdmt]|ll|re|ve)(?![{_LETTERS}])",
        rf"[{_EAST}]{{1,{LONGEST}}}",
        rf" ?[{_LETTERS}&&[^{_EAST}]]{{1,{LONGEST}}}",
        r" ?\p{N}{1,3}",
        rf" ?[^\s{_LETTERS}\p{{N}}{_EAST}]{{1,{LONGEST}}}",
        rf"\s{{1,{LONGEST}}}(?!\S)",
        rf"\s{{1,{LONGEST}}}",
    )
)
"""A saved tokenizer has it written in it: one with another pattern is of another kind."""

SMALLEST = 256 + 3
"""The bytes and the special tokens: no vocabulary is smaller."""

_SPELLINGS = tuple(mark.encode() for mark in (BEGIN, END, PAD))
_LONGEST_TOKEN = 4 * (LONGEST + 1)  # bytes
_CHUNK = 1 << 16  # characters handed to the library at a time, which bounds what it keeps for them
_CHUNKS = 8  # chunks encoded side by side
_SEEN = LONGEST + 1  # characters that decide where the piece that begins with them ends: a space and 32, or 32 and one
_PLAIN_BORDER = re.compile(r"(?s:.*)(?:\S(?=[ \n])|[\u4e00-\u9fff](?=[，。]))")  # there a piece always ends
_PICTURED = re.compile("[\udc80-\udcff]|⟨(?=[0-9A-F]{2}⟩)")


def _letters() -> tuple[str, ...]:
    """The letter that stands for each byte in ``tokenizer.json``, as since GPT-2: printable ones for themselves."""
    printable = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    others = iter(range(0x100, 0x200))
    return tuple(chr(byte) if byte in printable else chr(next(others)) for byte in range(256))


_LETTER = _letters()
_BYTE = {letter: byte for byte, letter in enumerate(_LETTER)}


class BytePairTokenizer:
    """Pieces of UTF-8 learnt from a text: the 256 bytes, one token per merge, and BOS, EOS and PAD as the last three.

    ``texts[id]`` is the text of a token; bytes of it that are no whole character stand as ``⟨E5⟩``. A token that is
    itself such a picture has its ``⟨`` as bytes, so different tokens never look the same.
    """

    def __init__(self, merges: Sequence[Merge]) -> None:
        """Take the pairs that become one token, in the order in which they are merged.

        Raises ``UserError`` for a pair of something that is no token, a token longer than any piece of a text, or one
        that spells a special token.
        """
        ids: dict[bytes, int] = {bytes([_BYTE[letter]]): id for id, letter in enumerate(sorted(_LETTER))}
        for first, second in merges:
            whole = first + second
            if first not in ids or second not in ids:
                raise UserError(f"{first!r} and {second!r} cannot be merged.", "One of them is no token.", "")
            if len(whole) > _LONGEST_TOKEN or whole in _SPELLINGS:
                raise UserError(f"{whole[:_LONGEST_TOKEN]!r} cannot be a token.", "No piece of a text is like it.", "")
            ids.setdefault(whole, len(ids))
        self.specials = Specials.after(len(ids))
        self._merges = tuple(merges)
        self._bytes = (*ids, b"", b"", b"")
        self._lengths = np.array([len(raw) for raw in self._bytes])
        self.texts: tuple[str, ...] = (*map(_shown, ids), BEGIN, END, PAD)
        vocabulary = {_spelt(raw): id for raw, id in ids.items()}
        self._tokenizer = _library(models.BPE(vocabulary, [(_spelt(a), _spelt(b)) for a, b in merges]))

    @classmethod
    def train(cls, texts: Iterable[str], vocab_size: int) -> BytePairTokenizer:
        """Learn at most ``vocab_size`` tokens from ``texts``, which are read once, one after another.

        The vocabulary is smaller where no pair occurs twice any more. The same texts give the same tokens. Memory grows
        with the number of different words, in Chinese of different phrases: of very large texts give a part.
        Raises ``UserError`` below ``SMALLEST`` tokens and for half a surrogate pair in a text.
        """
        if vocab_size < SMALLEST:
            raise UserError(
                f"A vocabulary of {vocab_size} tokens is too small.",
                "There are 256 bytes and 3 special tokens.",
                f"Use {SMALLEST} or more; 1000 to 8000 suit texts of some megabytes.",
            )
        return cls(learn((chunk for text in texts for chunk in _chunks(text)), _cutter(), vocab_size - SMALLEST))

    @classmethod
    def from_json(cls, json_text: str) -> BytePairTokenizer:
        """Read what ``to_json`` wrote.

        Raises ``UserError`` when it is damaged or is a tokenizer of another kind.
        """
        try:
            written = json.loads(json_text)
            tokenizer = cls([_pair(merge) for merge in written["model"]["merges"]])
            ours = json.loads(tokenizer.to_json())
            for part in ours.keys() - {"version"}:
                if not _agree(ours[part], written.get(part)):
                    raise ValueError(f"its {part} is another one")
            return tokenizer
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError, UserError) as problem:
            raise UserError(
                "This is not a byte pair tokenizer of this kind.",
                f"Reading tokenizer.json: {type(problem).__name__}: {visible(str(problem), keep='')}.",
                "Use the tokenizer.json that was saved together with the model.",
            ) from problem

    def to_json(self) -> str:
        """The content of ``tokenizer.json``."""
        return self._tokenizer.to_str()

    @property
    def vocab_size(self) -> int:
        """N, the number of tokens, BOS, EOS and PAD among them."""
        return len(self.texts)

    @property
    def end_of_text(self) -> int | None:
        """The id of EOS."""
        return self.specials.end

    def bytes_of(self, id: int) -> bytes:
        """The bytes of token ``id``, perhaps a part of a character; none for a special one."""
        return self._bytes[id]

    def encode(self, text: str) -> Tokens:
        """The tokens of ``text`` and the characters each covers: all of a character of which it is a part.

        Raises ``UserError`` for half a surrogate pair, with its position.
        """
        ids = self.ids(text)
        if not len(ids):
            return Tokens(ids, np.zeros((0, 2), dtype=np.int64))
        raw = np.frombuffer(utf8(text), dtype=np.uint8)
        character = np.cumsum((raw & 0xC0) != 0x80) - 1  # of each byte; 10xxxxxx continues one
        ends = np.cumsum(self._lengths[ids])
        return Tokens(ids, np.stack([character[ends - self._lengths[ids]], character[ends - 1] + 1], axis=1))

    def ids(self, text: str) -> Ids:
        """The token ids (n,) of ``text`` without spans; errors as ``encode``."""
        found, waiting = [np.zeros(0, dtype=np.int64)], list[str]()
        for chunk in (*_chunks(text), ""):
            waiting.append(chunk)
            if len(waiting) == _CHUNKS or not chunk:
                encodings = self._tokenizer.encode_batch_fast(waiting, add_special_tokens=False)
                found += [np.array(encoding.ids, dtype=np.int64) for encoding in encodings]
                waiting = []
        return np.concatenate(found)

    def decode(self, ids: Ids | Sequence[int]) -> str:
        """The text of ``ids`` (n,), special tokens left out; bytes that are no UTF-8 become U+FFFD.

        Raises ``UserError`` for an id outside 0..N-1.
        """
        return b"".join(self._bytes[id] for id in checked_ids(ids, self.vocab_size)).decode("utf-8", "replace")


def last_border(text: str) -> int:
    """How much of the beginning of a text can be encoded before the rest is there, as if it were.

    ``ids(text[:k])`` followed by ``ids(text[k:] + more)`` are ``ids(text + more)``, whatever ``more`` is. ``text`` must
    be a beginning itself or what this function left. k is more than 0 from ``LONGEST + 1`` characters on.
    """
    plain = _PLAIN_BORDER.match(text)
    if plain:
        return plain.end()
    start = 0
    for piece in _cutter()(text):
        if start + _SEEN > len(text):
            break
        start += len(piece)
    return start


def _chunks(text: str) -> Iterator[str]:
    """``text`` in parts of at most ``_CHUNK`` characters whose tokens joined are the tokens of the text."""
    utf8(text)
    start = 0
    while len(text) - start > _CHUNK:
        end = start + last_border(text[start : start + _CHUNK])
        yield text[start:end]
        start = end
    if start < len(text):
        yield text[start:]


def _split() -> pre_tokenizers.PreTokenizer:
    return pre_tokenizers.Split(Regex(PATTERN), "isolated")


def _cutter() -> Callable[[str], Iterator[str]]:
    """What cuts a text into its pieces."""
    split = _split()
    return lambda text: (piece for piece, _ in split.pre_tokenize_str(text))


def _library(model: models.BPE) -> Tokenizer:
    tokenizer = Tokenizer(model)
    letters = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([_split(), letters])
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(mark, normalized=False, special=True) for mark in (BEGIN, END, PAD)])
    # Without this the library would take the spelling of a special token in a text for the token.
    tokenizer.encode_special_tokens = True
    return tokenizer


def _spelt(raw: bytes) -> str:
    return "".join(_LETTER[byte] for byte in raw)


def _pair(merge: Sequence[str]) -> Merge:
    first, second = (bytes(_BYTE[letter] for letter in token) for token in merge)
    return first, second


def _shown(raw: bytes) -> str:
    text = raw.decode("utf-8", "surrogateescape")  # a byte that is no whole character becomes U+DC80 to U+DCFF
    return _PICTURED.sub(lambda found: _picture(found[0]), text)


def _picture(character: str) -> str:
    return "".join(f"⟨{byte:02X}⟩" for byte in character.encode("utf-8", "surrogateescape"))


def _agree(ours: Any, written: Any) -> bool:
    """Whether two parts of a tokenizer.json say the same; a name that is not there says no, as older versions wrote."""
    if isinstance(ours, dict) and isinstance(written, dict):
        return all(_agree(ours.get(name), written.get(name)) for name in ours.keys() | written.keys())
    if isinstance(ours, list) and isinstance(written, list):
        return len(ours) == len(written) and all(map(_agree, ours, written))
    return ours == written or all(value is None or value is False or value == "" for value in (ours, written))
