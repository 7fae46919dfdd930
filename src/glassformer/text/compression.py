"""Compressed files (``.gz``, ``.zst``) unpacked in pieces, and refused when they unpack to far more than any text does."""

from __future__ import annotations

import gzip
import os
import zlib
from collections.abc import Iterator
from typing import BinaryIO

import zstandard

from ..errors import UserError

PACKINGS = (".gz", ".zst")
"""The endings of names whose files are unpacked."""

CHUNK = 1 << 20  # bytes read or unpacked at a time
RATIO = 200
"""Text shrinks to a fifth, repetitive logs to a fiftieth; what unpacks to more than this was made to fill a disk."""
FREE = 64 << 20  # bytes that anything may unpack to

_STEP = 1 << 10  # bytes handed to zstd at a time: one byte unpacks to 32 KiB at most
_WINDOW = 1 << 27  # bytes that a frame may look back, and so the memory it may ask for


def unpacked(file: BinaryIO, packing: str, name: str) -> Iterator[bytes]:
    """The content of ``file`` (compressed as ``packing`` says), in bounded memory.

    Raises ``UserError`` when it is damaged, ends too early, or unpacks to more than ``FREE`` bytes and ``RATIO`` times its
    size.
    """
    size = os.fstat(file.fileno()).st_size
    total = 0
    try:
        for chunk in _gzip(file) if packing == ".gz" else _zstd(file):
            total += len(chunk)
            if total > max(FREE, RATIO * size):
                raise UserError(
                    f"{name} unpacks to far more than a text does.",
                    f"Its {size:,} bytes have given {total:,} and more: over {RATIO} bytes for each.",
                    "If you trust it, unpack it first and name the unpacked file.",
                )
            yield chunk
    except (EOFError, zlib.error, gzip.BadGzipFile, zstandard.ZstdError) as problem:
        raise UserError(
            f"{name} cannot be unpacked.",
            f"After {total:,} bytes: {problem or 'the file ends too early'}.",
            "It is damaged, not whole, or not compressed as its name says. Fetch it again.",
        ) from problem


def _gzip(file: BinaryIO) -> Iterator[bytes]:
    with gzip.GzipFile(fileobj=file, mode="rb") as stream:
        while chunk := stream.read(CHUNK):
            yield chunk


def _zstd(file: BinaryIO) -> Iterator[bytes]:
    # The library's reader takes a file that ends in the middle of a frame for a whole one; this object tells.
    unpacker = zstandard.ZstdDecompressor(max_window_size=_WINDOW)
    frame = None
    ready = bytearray()
    while step := file.read(_STEP):
        while step:
            frame = frame or unpacker.decompressobj()
            ready += frame.decompress(step)
            step = frame.unused_data if frame.eof else b""
            frame = None if frame.eof else frame
        if len(ready) >= CHUNK:
            yield bytes(ready)
            ready.clear()
    if ready:
        yield bytes(ready)
    if frame is not None:
        raise EOFError("the file ends too early")
