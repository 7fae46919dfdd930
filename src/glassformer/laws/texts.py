"""Texts that break tokenizers, the same at every call: half characters, hidden ones, marks, white space, look-alikes."""

from __future__ import annotations

import random
from collections.abc import Sequence

PIECES = (
    *"\x00\x01\t\n\x0b\r\x1b\x7f\x85\xa0\xad",  # control characters and hidden ones
    "\r\n", " ", "  ", "   ", " \n ", "\n\n", "\u2028", "\u3000", "\u200b", "\ufeff", "\uffff", "\ufffd", "\u202e",
    "e\u0301", "\u0301", "\u0301" * 8, "क्षि", "กำ", "ﷺ", "ﬁ", "\u212b", "\xc5", "A\u030a",  # marks, ligatures, equal pairs
    "İ", "ı", "ſ", "ẞ", "ß", "Σ", "ς",  # letters whose case is more than a letter
    "👩\u200d👩\u200d👧", "🏳\ufe0f\u200d🌈", "🇩🇪", "1\ufe0f\u20e3", "\U0001f3fd", "😀",
    "汉", "漢", "〇", "コーヒー", "한국", "\U00020000", "，", "。",
    "<", ">", "##", "Ġ", "Ċ", "▁", "⟨E5⟩", "[UNK]", "<0x0A>",
    "a", "Z", "word", " word", "'s", "don't", "1234567", "٣٤", "½", "x_1", "用Python写", ".", "...",
    "\ue000", "\U0010ffff", "\U000e0001",  # private use, the last of all, a tag
)  # fmt: skip
"""Every one of them has been the end of somebody's tokenizer."""

PLAIN = (
    "",
    "a",
    "hello",
    " hello",
    "hello ",
    " hello  world\n",
    "hello hello",
    "The 3 cats, and 1,234 dogs!",
    "naïve café",
)

WINDOW = "".join("汉字👩\u200d👧é한"[i % 7] for i in range(300))
"""Long enough to outgrow the windows that stream decoders keep, in characters of two to four bytes."""


def hard_texts(count: int = 40, seed: int = 0) -> Sequence[str]:
    """``PLAIN``, each of ``PIECES`` alone and between letters, and ``count`` random runs of up to 20 of them."""
    generator = random.Random(seed)  # noqa: S311 - texts to try, no secret
    runs = ("".join(generator.choice(PIECES) for _ in range(generator.randrange(2, 20))) for _ in range(count))
    return (*PLAIN, *PIECES, *(f"a{piece}b" for piece in PIECES), *runs)


def shown(text: str) -> str:
    """``text`` for a witness: ASCII, every other character as its escape, so that hidden ones can be told apart."""
    return ascii(text if len(text) <= 80 else f"{text[:77]}...")
