"""A text continued: prompt in, parts of text out, and afterwards everything about each token that was chosen."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from ..model import Decoder
from ..text.tokens import Specials
from .rules import Rule
from .sample import Choice, choices
from .stopping import Reason, StopStrings
from .streaming import TextStream


@runtime_checkable
class Vocabulary(Protocol):
    """What writing needs of a tokenizer: the bytes of a token, and which tokens are special."""

    @property
    def specials(self) -> Specials: ...

    def bytes_of(self, id: int) -> bytes: ...


@dataclass(frozen=True, slots=True)
class Request:
    """How to continue: at most ``count`` tokens, chosen by ``rule`` with ``seed``, until one of ``stop`` appears."""

    count: int
    rule: Rule = field(default_factory=Rule)
    seed: int = 0
    stop: Sequence[str] = ()


def never() -> bool:
    """Nobody wants to stop."""
    return False


class Continuation:
    """Iterate over it for the parts of the text; then ``choices``, ``text``, ``reason`` and ``stop`` say what happened.

    ``text`` has neither the end-of-text token nor the stop string nor what follows it; ``choices`` has every token
    chosen. BOS and PAD are never chosen. ``wanted`` is asked after each token whether to stop. Raises ``UserError``
    where it is made, for a prompt or request that is impossible.
    """

    def __init__(
        self,
        model: Decoder,
        vocabulary: Vocabulary,
        prompt: Sequence[int],
        request: Request,
        wanted: Callable[[], bool] = never,
    ) -> None:
        self._vocabulary = vocabulary
        self._strings = StopStrings(request.stop)
        unwritten = vocabulary.specials.unwritten
        self._source = choices(model, prompt, request.count, request.rule, request.seed, unwritten)
        self._wanted = wanted
        self.choices: list[Choice] = []
        self.text = ""
        self.reason = Reason.LENGTH

    @property
    def stop(self) -> str | None:
        """The stop string that ended the text, if one did."""
        return self._strings.found

    def __iter__(self) -> Iterator[str]:
        for part in self._parts():
            if part:
                self.text += part
                yield part

    def _parts(self) -> Iterator[str]:
        stream = TextStream(self._vocabulary.bytes_of)
        for choice in self._source:
            self.choices.append(choice)
            if choice.token == self._vocabulary.specials.end:
                self.reason = Reason.END
                break
            yield self._strings.feed(stream.feed(choice.token))
            if self._strings.found is not None:
                self.reason = Reason.STRING
                return
            if self._wanted():
                self.reason = Reason.INTERRUPTED
                break
        yield self._strings.feed(stream.end())
        if self._strings.found is not None:
            self.reason = Reason.STRING
        yield self._strings.end()
