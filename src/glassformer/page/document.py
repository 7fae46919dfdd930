"""A trace and the built bundle become one HTML file.

Everything that comes from a user or a model (token texts above all) reaches the page as data: JSON that is pure ASCII
with every ``&``, ``<`` and ``>`` spelt as an escape, and base64. No text can therefore close its block or open another.
"""

from __future__ import annotations

import base64
import html
import json
import math
import re
from collections.abc import Collection, Mapping
from importlib import resources
from typing import Any, TypeAlias

import numpy as np

from ..errors import UserError

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]

LANGUAGES: Mapping[str, str] = {"en": "en", "zh": "zh-CN"}
"""The languages of the page and how HTML names them. Without the region, browsers may choose Japanese letter forms."""

_DATA = "<!--GLASSFORMER-DATA-->"
_LANGUAGE = '<html lang="en">'
_TITLE = "<title>glassformer</title>"
_KEY = re.compile(r"[A-Za-z0-9_.]+")


MOST_BYTES = 100_000_000
"""The numbers that a page holds, in bytes of its text, unless it is told otherwise: browsers open that at once."""

ALWAYS = 4096
"""A tensor of at most so many cells is never left out."""


def build(
    header: Mapping[str, Any], tensors: Mapping[str, Array], *, lang: str = "en", most_bytes: int = MOST_BYTES
) -> str:
    """The page of a trace, as HTML to be written in UTF-8.

    ``header`` is the trace's header, plain data (numbers that are not finite become null). ``tensors`` holds every
    recorded tensor by key (``blocks.0.attn.S``, ``blocks.0.attn.S.grad``), in the axes that the header states; numbers
    are kept exactly. ``lang`` is the language that the page opens in. Tensors that do not fit into ``most_bytes`` are left
    out, as ``fitting`` chooses; the page says so where they would stand.

    Raises ``UserError`` for an unknown language and when the web bundle has not been built, ``ValueError`` for a key
    that cannot name a tensor.
    """
    if lang not in LANGUAGES:
        raise UserError(f'The page has no language "{lang}".', "", f"Choose one of: {', '.join(LANGUAGES)}.")
    kept, needed = fitting(header, tensors, most_bytes)
    if len(kept) < len(tensors):
        header = {**header, "left_out": {"limit": most_bytes, "needed": needed}}
    blocks = [header_block(header), *(tensor_block(key, array) for key, array in kept.items())]
    page = _replace(template(), _DATA, "\n".join(blocks))
    page = _replace(page, _LANGUAGE, f'<html lang="{LANGUAGES[lang]}">')
    title = _visible(str(header.get("title", {}).get(lang, "")))
    return _replace(page, _TITLE, f"<title>{html.escape(title)} · glassformer</title>") if title else page


def fitting(header: Mapping[str, Any], tensors: Mapping[str, Array], most_bytes: int) -> tuple[dict[str, Array], int]:
    """The tensors that fit into ``most_bytes`` of text, and the bytes that all of them need.

    Left out are, in this order and of each kind the largest first: what the update computes (updated parameters, lines
    of the optimizer), the forward pass after the update, gradients of parameters, parameters with the moments that the
    optimizer had of them, gradients of activations, activations. A tensor of at most ``ALWAYS`` cells stays. Every page
    can compute the update from the parameters, their gradients and the moments before it.
    """
    kinds = {q["id"]: q["kind"] for q in header.get("quantities", ())}
    plain = {s["target"] for s in header.get("statements", ()) if s["face"] == ""}
    lines = {id for id in plain if kinds.get(id) == "optimizer state"}
    carried = {id for id, kind in kinds.items() if kind in {"parameter", "optimizer state"}} - lines
    sizes = {key: _bytes_of(array) for key, array in tensors.items()}
    needed = total = sum(sizes.values())
    kept = dict(tensors)
    for key in sorted(tensors, key=lambda key: (_turn(key, lines, carried), -sizes[key])):
        if total <= most_bytes:
            break
        if tensors[key].size > ALWAYS:
            total -= sizes[key]
            del kept[key]
    return kept, needed


def _turn(key: str, lines: Collection[str], parameters: Collection[str]) -> int:
    """When the tensor of ``key`` is left out, the first at 0. ``parameters`` with moments, ``lines`` of the optimizer."""
    if key.endswith(".new") or key in lines:
        return 0
    if key.endswith(".after"):
        return 1
    gradient = key.endswith(".grad")
    of_parameter = key.removesuffix(".grad") in parameters
    return (2 if gradient else 3) if of_parameter else (4 if gradient else 5)


def _bytes_of(array: Array) -> int:
    """The length of a tensor as text."""
    return 4 * math.ceil(array.size * _numbers(array)[1].itemsize / 3)


def template() -> str:
    """The built bundle; raises ``UserError`` when there is none."""
    bundle = resources.files("glassformer.page").joinpath("bundle", "index.html")
    if not bundle.is_file():
        raise UserError(
            "The page has not been built.",
            "A checkout holds its sources only (web/); wheels hold the built page.",
            "Run `make page` in the checkout (needs Node 20 or newer), or install glassformer from a wheel.",
        )
    return bundle.read_text("utf-8")


def header_block(header: Mapping[str, Any]) -> str:
    """The header as a JSON block."""
    text = json.dumps(_plain(header), ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    for mark in "&<>":
        text = text.replace(mark, f"\\u{ord(mark):04x}")
    return f'<script type="application/json" id="glassformer-header">{text}</script>'


def tensor_block(key: str, array: Array) -> str:
    """One tensor, row-major, little-endian: as float32 where that loses nothing, as float64 otherwise."""
    if not _KEY.fullmatch(key):
        raise ValueError(f"{key!r} cannot name a tensor of a page: letters, digits, underscores and dots can")
    dtype, numbers = _numbers(array)
    text = base64.b64encode(numbers.tobytes()).decode("ascii")
    return f'<script type="application/octet-stream" data-key="{key}" data-dtype="{dtype}">{text}</script>'


def _numbers(array: Array) -> tuple[str, Array]:
    """The format of a tensor's numbers and the numbers in it."""
    exact = np.asarray(array, dtype="<f8")
    with np.errstate(over="ignore"):  # what overflows is not equal, and stays float64
        short = exact.astype("<f4")
    return ("f4", short) if np.array_equal(short, exact, equal_nan=True) else ("f8", exact)


def _plain(value: Any) -> Any:
    """``value`` as JSON can hold it: numbers that are not finite become None, NumPy numbers become Python's."""
    match value:
        case np.generic():
            return _plain(value.item())
        case float():
            return value if math.isfinite(value) else None
        case Mapping():
            return {str(key): _plain(inner) for key, inner in value.items()}
        case list() | tuple():
            return [_plain(inner) for inner in value]
        case _:
            return value


def _visible(text: str) -> str:
    """``text`` without characters that a title cannot show (control characters, halves of surrogate pairs)."""
    return "".join(c for c in text if c.isprintable()).strip()


def _replace(page: str, mark: str, by: str) -> str:
    if page.count(mark) != 1:
        raise ValueError(f"the built page must hold {mark} exactly once, it holds it {page.count(mark)} times")
    return page.replace(mark, by)
