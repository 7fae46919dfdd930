"""Logits that are kept, so that a run is made once: those of plain texts while there is room, and the last few others."""

from __future__ import annotations

from torch import Tensor

from .runs import Run

ROOM = 64 * 2**20
"""Bytes of logits that are kept at most: all that a small model is asked for, and none of those of a large one."""

RECENT = 4
"""How many of the last runs are kept beside those of plain texts, while there is room."""


class KeptLogits:
    """The logits of runs, found again by the run itself."""

    def __init__(self, room: int = ROOM) -> None:
        self._room = room
        self._lasting: list[tuple[Run, Tensor]] = []
        self._recent: list[tuple[Run, Tensor]] = []

    def of(self, run: Run) -> Tensor | None:
        """What was kept for ``run``, None where nothing is."""
        return next((logits for known, logits in (*self._recent, *self._lasting) if known is run), None)

    def keep(self, run: Run, logits: Tensor, *, lasting: bool) -> None:
        """Keep ``logits`` of ``run``: to the end where they are ``lasting`` and fit, else until others have come."""
        if lasting and self._size(self._lasting) + _bytes(logits) <= self._room // 2:
            self._lasting.append((run, logits))
            return
        self._recent.append((run, logits))
        # The last two are those of one claim: they stay, however large.
        while len(self._recent) > RECENT or (len(self._recent) > 2 and self._size(self._recent) > self._room // 2):
            del self._recent[0]

    def forget(self) -> None:
        """Drop all: the model is not what it was."""
        self._lasting.clear()
        self._recent.clear()

    @staticmethod
    def _size(kept: list[tuple[Run, Tensor]]) -> int:
        return sum(_bytes(logits) for _, logits in kept)


def _bytes(logits: Tensor) -> int:
    return logits.numel() * logits.element_size()
