"""What is asked for: a text or ids, what follows them and what counts, made into a sample that fits the model."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import torch

from ..errors import UserError, did_you_mean
from ..model import Decoder
from ..text import Tokenizer, prompt_ids, visible
from ..training import LoadedRun
from .record import Sample
from .traceable import require_traceable

Token: TypeAlias = int | str
"""One token: its id, or its text where a tokenizer or a vocabulary says which id that is."""


@dataclass(frozen=True, slots=True)
class Command:
    """What ``glassformer trace`` was given: ``subject`` (``toy24``, the folder of a run), its text, all other options.

    A page repeats it where it says how to get what it does not hold.
    """

    subject: str
    text: str | None = None
    options: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Text:
    """Token texts for readers (data, never markup), the run's title and where its numbers come from.

    ``provenance`` is ``constructed`` (chosen by hand), ``computed`` (any model) or ``measured`` (a trained one);
    ``labels`` are other vocabularies the reader may choose, each a mapping with ``id``, ``en``, ``zh`` and ``texts``;
    ``command`` is the one that traces the same again, where a command did.
    """

    vocabulary: tuple[str, ...]
    title: Mapping[str, str]
    source: str
    provenance: str
    labels: tuple[Mapping[str, Any], ...] = ()
    command: Command | None = None


class Asked(NamedTuple):
    """A model, what it reads, and the words for readers."""

    model: Decoder
    sample: Sample
    text: Text


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """The ``size`` tokens of a model; ``texts`` is None where nobody has named them."""

    size: int
    texts: tuple[str, ...] | None
    tokenizer: Tokenizer | None = None
    begin: bool = False

    def ids_of(self, text: str | Iterable[Token]) -> list[int]:
        """The ids of a text, or of tokens given one by one. Raises ``UserError``."""
        if not isinstance(text, str):
            return [self.id_of(token) for token in _listed(text)]
        if self.tokenizer is None:
            raise UserError(
                "A text needs a tokenizer.",
                "Nothing says how this model cuts texts into tokens.",
                "Give tokenizer=, give token ids, or trace a run: glassformer.load_run(PATH).",
            )
        return prompt_ids(self.tokenizer, text, self.begin and bool(text))

    def id_of(self, token: Token) -> int:
        """The id of one token. Raises ``UserError`` for one that is not in the vocabulary."""
        id = self._named(token) if isinstance(token, str) else _whole(token)
        if not 0 <= id < self.size:
            raise UserError(
                f"There is no token {id}.",
                f"The vocabulary has {self.size} tokens.",
                f"Ids run from 0 to {self.size - 1}.",
            )
        return id

    def _named(self, text: str) -> int:
        shown = visible(text, keep="")
        if self.texts is None:
            raise UserError(
                f'Nothing says which token "{shown}" is.',
                "The tokens of this model have no texts.",
                "Give its id, or tokenizer= or vocabulary=.",
            )
        cut = self._cut(text)
        same = cut if len(cut) == 1 else [id for id, known in enumerate(self.texts) if known == text]
        if len(same) == 1:
            return same[0]
        if same:
            raise UserError(f'{len(same)} tokens read "{shown}".', f"Their ids are {same[:8]}.", "Give one of the ids.")
        if cut:
            parts = " ".join(f'"{visible(self.texts[id], keep="")}"' for id in cut[:8])
            raise UserError(f'"{shown}" is {len(cut)} tokens.', f"They are {parts}.", "Give one of them.")
        raise UserError(
            f'"{shown}" is not a token of this model.',
            "",
            did_you_mean(shown, [visible(known, keep="") for known in self.texts]),
        )

    def _cut(self, text: str) -> list[int]:
        """The ids of ``text``; none where there is no tokenizer, or it does not know the text."""
        try:
            return [] if self.tokenizer is None else self.tokenizer.ids(text).tolist()
        except UserError:
            return []


def asked(
    model: Decoder | LoadedRun,
    text: str | Iterable[Token],
    target: Token | Sequence[Token] | None = None,
    scored: Sequence[bool] | None = None,
    *,
    segments: Sequence[int] | None = None,
    tokenizer: Tokenizer | None = None,
    vocabulary: Sequence[str] | None = None,
) -> Asked:
    """What ``trace`` is asked for. Raises ``UserError`` for anything that cannot be traced."""
    run = model if isinstance(model, LoadedRun) else None
    if tokenizer is not None and vocabulary is not None:
        raise UserError("Both tokenizer and vocabulary are given.", "A tokenizer has token texts.", "Give one of them.")
    if run is not None and (tokenizer is not None or vocabulary is not None):
        raise UserError(
            "The run has a tokenizer of its own.", "Another one means other tokens.", "Leave out what names tokens."
        )
    decoder = model.model if isinstance(model, LoadedRun) else model
    require_traceable(decoder)
    tokens = _vocabulary(decoder, tokenizer if run is None else run.tokenizer, vocabulary, run)
    ids = tokens.ids_of(text)
    _require_length(ids, decoder.config.context, target)
    sample = sample_of(ids, *_labels(ids, target, scored, segments, tokens), segments)
    title = {"en": "A trace", "zh": "一次追踪"}
    if isinstance(text, str):
        title = dict.fromkeys(title, f"“{visible(text, keep='')}”")
    words = tokens.texts if tokens.texts is not None else tuple(map(str, range(tokens.size)))
    return Asked(decoder, sample, Text(words, title, *(("model", "computed") if run is None else ("run", "measured"))))


def _vocabulary(
    model: Decoder, tokenizer: Tokenizer | None, vocabulary: Sequence[str] | None, run: LoadedRun | None
) -> Vocabulary:
    given = vocabulary if tokenizer is None else tokenizer.texts
    size = model.config.vocab_size
    if given is not None and len(given) != size:
        raise UserError(
            f"The {'vocabulary' if tokenizer is None else 'tokenizer'} has {len(given)} tokens, the model {size}.",
            "Each id of the model is one token.",
            "Give the one that the model was made with.",
        )
    texts = None if given is None else tuple(given)
    return Vocabulary(size, texts, tokenizer, run is not None and run.begin)


def _require_length(ids: Sequence[int], context: int, target: object) -> None:
    """Refuse a text that predicts nothing, or one that the model cannot read at once. Raises ``UserError``."""
    if not ids or (len(ids) == 1 and target is None):
        raise UserError(
            "The text is too short to trace." if ids else "The text is empty.",
            "Each token predicts the next one, so at least two are needed" + (", or one and a target." if ids else "."),
            'Give a longer text, such as "To be".',
        )
    if len(ids) > context:
        raise UserError(
            f"The text has {len(ids)} tokens, more than the model reads at once.",
            f"Its context is {context} tokens.",
            f"Shorten the text to {context} tokens.",
        )


def _labels(
    ids: Sequence[int],
    target: Token | Sequence[Token] | None,
    scored: Sequence[bool] | None,
    segments: Sequence[int] | None,
    vocabulary: Vocabulary,
) -> tuple[list[int], list[bool]]:
    """Target and flag of every position. Raises ``UserError`` for labels that do not fit ``ids``."""
    one = None if target is None else _one(target)
    several = None if target is None or one is not None else _listed(target)
    given = {"tokens": ids, "targets": several, "scored flags": scored, "segments": segments}
    lengths = {name: len(x) for name, x in given.items() if x is not None}
    if len(set(lengths.values())) > 1:
        raise UserError(
            "The tokens and what goes with each of them differ in length.",
            ", ".join(f"{name}: {length}" for name, length in lengths.items()) + ".",
            "Give one of each per position.",
        )
    flags = None if scored is None else [bool(flag) for flag in scored]
    if several is not None:
        # Where a position is not scored its target may be any number.
        targets = [vocabulary.id_of(x) if isinstance(x, str) else _whole(x) for x in several]
        return targets, flags if flags is not None else [True] * len(ids)
    if one is not None:
        # As in the notes: what follows the text is what is asked.
        return [*ids[1:], vocabulary.id_of(one)], flags if flags is not None else [False] * (len(ids) - 1) + [True]
    if flags is not None and flags[-1]:
        raise UserError(
            "The last position is scored and has no target.",
            "What follows the text is not in it.",
            "Give target=, or do not score it.",
        )
    texts = [0] * len(ids) if segments is None else segments
    # The token that follows the last one of a text is of another text, or not there at all.
    inside = [*map(operator.eq, texts[1:], texts), False]
    return [*ids[1:], ids[-1]], flags if flags is not None else inside


def _one(target: Any) -> Token | None:
    """``target`` where it is a single token; None where it is several."""
    if isinstance(target, str):
        return target
    try:
        return operator.index(target)
    except TypeError:
        return None


def _listed(tokens: Any) -> list[Any]:
    try:
        return list(tokens)
    except TypeError:
        raise UserError(
            f"A {type(tokens).__name__} is no text and no list of tokens.",
            "",
            "Give a text, or token ids such as [0, 1].",
        ) from None


def _whole(id: Any) -> int:
    try:
        return operator.index(id)
    except TypeError:
        raise UserError(
            f"A {type(id).__name__} is no token.",
            "Tokens are whole numbers, one list of them per text.",
            "Give token ids such as [0, 1].",
        ) from None


def sample_of(
    tokens: Sequence[int], targets: Sequence[int], scored: Sequence[bool], segments: Sequence[int] | None = None
) -> Sample:
    """A sample from plain sequences of one length."""
    packed = None if segments is None else torch.tensor(list(segments))
    return Sample(torch.tensor(list(tokens)), torch.tensor(list(targets)), torch.tensor(list(scored)), packed)
