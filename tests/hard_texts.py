"""Texts that break tokenizers: characters of every plane, and more often the ones that are known to be nasty."""

from __future__ import annotations

import random
from collections.abc import Iterator

from hypothesis import strategies as st

NASTY = (
    *"\x00\x01\t\n\x0b\r\x1b\x1c\x7f\x85\xa0\xad",  # control characters and hidden ones
    "\r\n", "  ", " \n ", "\n\n", "\u2028", "\u2029", "\u3000", "\u200b", "\u2060",
    "\ufeff", "\ufffe", "\uffff", "\ufffd", "\ufffc", "\u202e", "\u2066",  # byte order marks, no characters, directions
    "e\u0301", "\u0301", "\u0301" * 40, "क्षि", "กำ", "ﷺ", "ﬁ", "Å", "Å", "A\u030a",  # marks, ligatures, equal pairs
    "İ", "ı", "ſ", "ẞ", "ß", "Σ", "ς",  # letters whose case is more than a letter
    "👩\u200d👩\u200d👧", "🏳\ufe0f\u200d🌈", "🇩🇪", "1\ufe0f\u20e3", "\U0001f3fd",
    "汉", "漢", "〇", "々", "コーヒー", "한국", "한", "\U00020000", "\U0002fa1d", "，", "。", "、",
    "<bos>", "<eos>", "<pad>", "<", "eos", ">", "<|endoftext|>", "</s>", "[UNK]", "##", "Ġ", "Ċ", "▁", "⟨", "⟨E5⟩", "⟨0A⟩",
    "'s", "'LL", "'they", "don't", "’t", "1234567", "٣٤", "½", "x_1", "用Python写",
    "\ue000", "\uf8ff", "\U000f0000", "\U0010ffff", "\U000e0001",  # private use, the last of all, a tag
)  # fmt: skip
BYTES = (b"\x80", b"\xbf", b"\xc0", b"\xc2", b"\xe0", b"\xe0\x80", b"\xed\xa0\x80", b"\xef\xbb\xbf", b"\xf0\x9f", b"\xf4\x90",
         b"\xf5", b"\xff", b"a", b"\xe6\xb1\x89", b"\xf0\x9f\x91\xa9")  # fmt: skip
"""Parts of UTF-8: lone continuations, too long forms, surrogates, beginnings, whole characters."""

_PLANES = 17
_SURROGATES = range(0xD800, 0xE000)

hard_texts = st.lists(st.sampled_from(NASTY) | st.characters(exclude_categories=["Cs"]), max_size=30).map("".join)
long_runs = st.lists(st.tuples(st.sampled_from([*NASTY, "a", "1", "!", " "]), st.integers(1, 70)), max_size=4).map(
    lambda parts: "".join(part * count for part, count in parts)
)
hard_bytes = st.lists(st.sampled_from(BYTES) | st.binary(max_size=3), max_size=12).map(b"".join)


def random_texts(count: int, seed: int = 0) -> Iterator[str]:
    """``count`` texts of up to 40 parts: half of them nasty ones, the rest from any plane, every plane as likely."""
    generator = random.Random(seed)
    for _ in range(count):
        parts = (
            generator.choice(NASTY) if generator.random() < 0.5 else _character(generator)
            for _ in range(generator.randrange(40))
        )
        yield "".join(parts)


def _character(generator: random.Random) -> str:
    while True:
        # The first plane has nearly all characters in use, the others nearly none.
        plane = generator.choice([0, generator.randrange(_PLANES)])
        code = plane * 0x10000 + generator.randrange(0x10000)
        if code not in _SURROGATES:
            return chr(code)
