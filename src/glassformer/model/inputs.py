"""What a decoder refuses to read, said before anything is computed.

Shapes and dtypes are always checked. Values are not checked inside a compiled forward pass: reading them there would
cut the graph in two, so whoever compiles a model checks its batches once, where they are made.
"""

from __future__ import annotations

import torch
from torch import Tensor

from glassformer.errors import UserError


def check_tokens(tokens: Tensor, vocab_size: int, context: int) -> None:
    """Refuse ``tokens`` that are not ``(b, n)`` int64 with ``1 <= n <= context`` and ids below ``vocab_size``.

    Raises ``UserError``.
    """
    if tokens.ndim != 2 or 0 in tokens.shape:
        raise UserError(
            f"Tokens have shape {tuple(tokens.shape)}.",
            "A decoder reads (b, n): at least one row of at least one token.",
            "Give a single text as tokens[None]." if tokens.ndim == 1 and len(tokens) else "",
        )
    _check_integers("Tokens", tokens)
    if tokens.shape[1] > context:
        raise UserError(
            f"{tokens.shape[1]} tokens are more than this model's context of {context}.",
            "It has learned no further positions.",
            f"Give at most {context} tokens.",
        )
    if not torch.compiler.is_compiling():
        _check_range("Token id", tokens, torch.ones_like(tokens, dtype=torch.bool), vocab_size)


def check_targets(tokens: Tensor, targets: Tensor, scored: Tensor | None, vocab_size: int) -> None:
    """Refuse ``targets`` or ``scored`` that do not fit ``tokens (b, n)``, or that score nothing.

    A target must be an id of the vocabulary where it is scored; elsewhere it may hold anything. Raises ``UserError``.
    """
    if targets.shape != tokens.shape:
        raise UserError(
            f"Targets have shape {tuple(targets.shape)}, tokens {tuple(tokens.shape)}.", "Each row has one target."
        )
    _check_integers("Targets", targets)
    if scored is None:
        scored = torch.ones_like(targets, dtype=torch.bool)
    elif scored.shape != tokens.shape or scored.dtype != torch.bool:
        raise UserError(
            f"The mask of scored positions is {scored.dtype} of shape {tuple(scored.shape)}.",
            f"It says for each token whether its row counts: torch.bool of shape {tuple(tokens.shape)}.",
        )
    if torch.compiler.is_compiling():
        return
    if not scored.any():
        raise UserError("No position is scored.", "The loss is a mean over scored positions.", "Score at least one.")
    _check_range("Target id", targets, scored, vocab_size)


def check_segments(tokens: Tensor, segments: Tensor, earlier: Tensor | None) -> None:
    """Refuse ``segments`` that are not int64 of the shape of ``tokens (b, n)``, or a segment that is torn apart.

    ``earlier (b, m)`` are the segments of the ``m`` tokens of each row that a cache has read before. Raises ``UserError``.
    """
    if segments.shape != tokens.shape:
        raise UserError(
            f"Segments have shape {tuple(segments.shape)}, tokens {tuple(tokens.shape)}.",
            "Each token belongs to one segment.",
        )
    _check_integers("Segments", segments)
    if torch.compiler.is_compiling():
        return
    read = segments if earlier is None else torch.cat([earlier, segments], 1)
    # Sorted, equal numbers stand side by side: a row in which they do already has as many borders as before.
    torn = _borders(read).sum(1) != _borders(read.sort(1).values).sum(1)
    if torn.any():
        row = int(torn.nonzero()[0])
        begins = [int(x) for x in read[row][torch.cat([torch.ones_like(torn[:1]), _borders(read)[row]])]]
        again = next(x for k, x in enumerate(begins) if x in begins[:k])
        raise UserError(
            f"Segment {again} of row {row} ends and begins again.",
            "The tokens of a segment stand side by side.",
            "Give each text of a row a number of its own.",
        )


def _borders(segments: Tensor) -> Tensor:
    """Where a token (from the second on) is of another segment than the one before, ``(b, n - 1)``."""
    return segments[:, 1:] != segments[:, :-1]


def _check_integers(what: str, ids: Tensor) -> None:
    if ids.dtype != torch.int64:
        raise UserError(f"{what} are {ids.dtype}.", "Ids are torch.int64.", "Convert them with .long().")


def _check_range(what: str, ids: Tensor, read: Tensor, vocab_size: int) -> None:
    outside = read & ((ids < 0) | (ids >= vocab_size))
    if outside.any():
        row, position = outside.nonzero()[0].tolist()
        raise UserError(
            f"{what} {int(ids[row, position])} at [{row},{position}] is not in the vocabulary.",
            f"Ids run from 0 to {vocab_size - 1}.",
        )
