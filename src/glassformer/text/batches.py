"""From token ids to what training and validation read: two parts, windows, inputs and targets.

Symbols: ``m`` tokens in a text, ``n`` positions of a window (the context length), ``b`` windows in a batch.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..errors import UserError

Ids = NDArray[np.int64]

VALIDATION_SHARE = 0.1


@dataclass(frozen=True, slots=True)
class Split:
    """A text cut in two by position: ``train`` is its beginning, ``validation`` its end.

    ``validation`` (1 + m_validation,) starts with the last training token, which is never scored: it is there so that
    every token of the validation text has a predecessor and is scored.
    """

    train: Ids
    validation: Ids

    def batch(self, n: int, b: int, generator: np.random.Generator) -> tuple[Ids, Ids, None]:
        """Inputs (b, n) and targets (b, n) of random windows of ``train``; every position is scored."""
        return *random_windows(self.train, n, b, generator), None

    def describe(self) -> str:
        """One sentence for people: which characters are which."""
        train, validation = len(self.train), len(self.validation) - 1
        return f"the first {train:,} characters are for training, the last {validation:,} for validation"


def split(ids: Ids) -> Split:
    """Cut ``ids`` (m,) by position: the last tenth (rounded, at least one token) is the validation text.

    No chance is involved, so every run on the same text measures the same thing. Raises ``UserError`` below two tokens.
    """
    if len(ids) < 2:
        raise UserError("The text is too short to be split.", f"It has {len(ids)} token(s).", "Use a longer text.")
    cut = len(ids) - max(1, round(len(ids) * VALIDATION_SHARE))
    return Split(ids[:cut], ids[cut - 1 :])


def shifted(window: Ids) -> tuple[Ids, Ids]:
    """The label convention: n + 1 tokens ``t_1 .. t_(n+1)`` give inputs ``t_1 .. t_n`` and targets ``t_2 .. t_(n+1)``.

    The target of a position is the token after it; the last axis of ``window`` (..., n + 1) becomes n. This is the only
    place where labels are shifted: the model does not shift.
    """
    return window[..., :-1], window[..., 1:]


def random_windows(ids: Ids, n: int, b: int, generator: np.random.Generator) -> tuple[Ids, Ids]:
    """Inputs (b, n) and targets (b, n) of ``b`` windows, every start equally likely, drawn with replacement.

    Raises ``UserError`` when ``ids`` (m,) has fewer than n + 1 tokens.
    """
    require_window(ids, n)
    first = generator.integers(0, len(ids) - n, size=(b, 1))
    return shifted(ids[first + np.arange(n + 1)])


def require_window(ids: Ids, n: int) -> None:
    """Raise ``UserError`` when ``ids`` (m,) has fewer than the n + 1 tokens of one window."""
    if len(ids) > n:
        return
    raise UserError(
        f"The training text is shorter than one window of {n} positions.",
        f"A window takes {n + 1} tokens (the last one is only a target); the training text has {len(ids)}.",
        "Use a longer text" + (f" or a context of at most {len(ids) - 1}." if len(ids) > 1 else "."),
    )


def scoring_windows(ids: Ids, n: int, b: int) -> list[tuple[Ids, Ids]]:
    """Batches of (inputs, targets) in which each of the tokens ``ids[1:]`` is a target exactly once.

    The windows follow one another without overlap, so the k-th position of a window sees k tokens; the last window may
    be shorter. At most ``b`` windows to a batch. ``ids`` (1 + m,): its first token is only seen, never scored.
    """
    whole = (len(ids) - 1) // n
    inputs, targets = (part[: whole * n].reshape(whole, n) for part in shifted(ids))
    batches = [(inputs[k : k + b], targets[k : k + b]) for k in range(0, whole, b)]
    rest = shifted(ids[whole * n :][None])
    return [*batches, rest] if rest[0].size else batches
