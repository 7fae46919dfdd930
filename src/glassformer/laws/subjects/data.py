"""Loaders of training data and runs that can be resumed, as subjects."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ..law import Family
from ..verdict import NotApplicable, NotSupported


@dataclass(frozen=True, slots=True, kw_only=True)
class Loader:
    """A loader under test. Where a part is None it is not offered.

    ``samples(epoch, rank, ranks)`` gives the samples, by any name that tells them apart, in the order in which this rank
    (a process, or a worker of one) reads them; ``ranks`` holds the numbers of ranks to try. ``resumed(epoch, rank, ranks,
    after)`` gives what is read after a stop when ``after`` samples of that epoch had been read: its rest, then the whole
    next epoch. ``size`` is the number of different samples. ``shuffled`` says that epochs are meant to differ in order.
    ``kept(ids (n,), N)`` writes ids of a vocabulary of N into a data file and reads them back. ``scored(m, n)`` gives, for
    a text of ``m`` tokens cut into windows of ``n``, the places of the tokens that one pass over it predicts.
    """

    family: ClassVar[Family] = Family.LOADER
    name: str
    samples: Callable[[int, int, int], Iterable[Hashable]] | None = None
    ranks: Sequence[int] = (1, 2, 4)
    resumed: Callable[[int, int, int, int], Iterable[Hashable]] | None = None
    size: int | None = None
    shuffled: bool = True
    kept: Callable[[NDArray[np.int64], int], NDArray[Any]] | None = None
    scored: Callable[[int, int], Iterable[int]] | None = None

    def read(self, epoch: int, rank: int = 0, ranks: int = 1) -> list[Hashable]:
        """What ``rank`` of ``ranks`` reads in ``epoch``; raises ``NotSupported`` where this is not told."""
        if self.samples is None:
            raise NotSupported("no order of samples was told", "未给出样本次序")
        return list(self.samples(epoch, rank, ranks))

    def several(self) -> list[int]:
        """The numbers of ranks above one; raises ``NotApplicable`` where there are none."""
        found = [ranks for ranks in self.ranks if ranks > 1]
        if not found:
            raise NotApplicable("there is one rank", "只有一个进程")
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Resumable:
    """A training run under test, small enough to be made several times.

    ``whole()`` makes it without a stop and gives its end: weights, losses, whatever must be the same, by name, as tensors
    or plain values. ``interrupted(steps)`` stops it after each of ``steps``, goes on from what is on disk, and gives the
    same. ``stops`` are the ``steps`` to try.
    """

    family: ClassVar[Family] = Family.RUN
    name: str
    whole: Callable[[], Mapping[str, Any]]
    interrupted: Callable[[Sequence[int]], Mapping[str, Any]]
    stops: Sequence[Sequence[int]] = ((1,), (2, 3))
