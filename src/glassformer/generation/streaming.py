"""Text out of tokens as they come, without ever showing half a character.

A token stands for bytes of UTF-8; where tokens are smaller than characters, one character may need several of them.
"""

from __future__ import annotations

import codecs
from collections.abc import Callable

BytesOf = Callable[[int], bytes]


class TextStream:
    """Turns token ids into text one by one; the parts joined are the text of all ids at once, however they came.

    Bytes that are no UTF-8 become U+FFFD, as in decoding the whole.
    """

    def __init__(self, bytes_of: BytesOf) -> None:
        self._bytes_of = bytes_of
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def feed(self, token: int) -> str:
        """The characters that ``token`` completes, perhaps none."""
        return self._decoder.decode(self._bytes_of(token))

    def end(self) -> str:
        """What is left when no token follows: nothing, or U+FFFD for the beginning of a character."""
        return self._decoder.decode(b"", final=True)
