"""A small correct tokenizer of bytes, its stream decoder and its chat template, written to be changed line by line."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator, Mapping, Sequence

CUT = r"\w+|\s+|[^\w\s]+"
PAIRS = ("th", "he", "lo", "ll", " w", "ca", "  ", "12")
CONTROL = ("<|begin|>", "<|user|>", "<|assistant|>", "<|end|>")


class SmallTokenizer:
    """The 256 bytes, a few pairs of letters that lie in one word, and four control tokens."""

    def __init__(self) -> None:
        self.pieces = [bytes([b]) for b in range(256)] + [pair.encode() for pair in PAIRS]
        self.ids_of = {piece: id for id, piece in enumerate(self.pieces)}
        self.control = {spelling: len(self.pieces) + k for k, spelling in enumerate(CONTROL)}
        self.vocab_size = len(self.pieces) + len(CONTROL)

    def encode(self, text: str) -> list[int]:
        return [id for id, _ in self.placed(text)]

    def placed(self, text: str) -> list[tuple[int, tuple[int, int]]]:
        """Each id with the characters it covers: of a part of a character, the whole character."""
        found = []
        for word in re.finditer(CUT, text):
            raw, at = word.group().encode("utf-8"), 0
            borders = [word.start() + k for k, c in enumerate(word.group()) for _ in c.encode("utf-8")]
            while at < len(raw):
                piece = next(raw[at : at + size] for size in (2, 1) if raw[at : at + size] in self.ids_of)
                found.append((self.ids_of[piece], (borders[at], borders[at + len(piece) - 1] + 1)))
                at += len(piece)
        return found

    def spans(self, text: str) -> list[tuple[int, int]]:
        return [span for _, span in self.placed(text)]

    def decode(self, ids: Sequence[int]) -> str:
        raw = b"".join(self.pieces[id] for id in ids if id < len(self.pieces))
        return raw.decode("utf-8", "replace")

    def stream(self, ids: Sequence[int]) -> Iterator[str]:
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        for id in ids:
            yield decoder.decode(self.pieces[id] if id < len(self.pieces) else b"")
        yield decoder.decode(b"", final=True)

    def turn(self, message: Mapping[str, str]) -> tuple[list[int], list[bool]]:
        """A turn, and what of it is predicted: of the assistant's all that comes after its first token."""
        header = [self.control[f"<|{message['role']}|>"]]
        body = [*self.encode(message["content"]), self.control["<|end|>"]]
        return [*header, *body], [False] * len(header) + [message["role"] == "assistant"] * len(body)

    def training(self, messages: Sequence[Mapping[str, str]]) -> list[int]:
        return self.scored(messages)[0]

    def scored(self, messages: Sequence[Mapping[str, str]]) -> tuple[list[int], list[bool]]:
        ids, flags = [self.control["<|begin|>"]], [False]
        for message in messages:
            some, predicted = self.turn(message)
            ids, flags = [*ids, *some], [*flags, *predicted]
        return ids, flags

    def serving(self, messages: Sequence[Mapping[str, str]]) -> list[int]:
        ids = self.training(messages)
        return [*ids, self.control["<|assistant|>"]]
