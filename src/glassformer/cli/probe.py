"""``glassformer probe``: experiments on a trained model: what looks important, and what is when it is taken out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import UserError, did_you_mean
from ..text.visible import visible
from .console import write
from .output import emit_json, refuse_existing
from .probe_table import lines
from .subject import TOY, Language, number_of

if TYPE_CHECKING:
    from collections.abc import Callable

    import torch

    from ..tracing.probes import Aim, Reading, Report

SCHEMA = 1


class Kind(StrEnum):
    """The probes."""

    attention = "attention"
    bilinear = "bilinear"
    gradients = "gradients"
    variance = "variance"
    saturation = "saturation"
    linearity = "linearity"
    prefixes = "prefixes"
    activation = "activation"
    patch = "patch"


ALWAYS = (Kind.attention, Kind.bilinear, Kind.gradients, Kind.variance, Kind.saturation, Kind.linearity)
"""Those that need a text and nothing else."""

READ_BY: Mapping[str, tuple[Kind, ...]] = {
    "--row": (Kind.attention, Kind.saturation, Kind.activation, Kind.patch),
    "--target": (Kind.attention, Kind.saturation, Kind.activation),
    "--layer": (Kind.attention, Kind.saturation, Kind.linearity),
    "--other": (Kind.linearity, Kind.prefixes, Kind.activation, Kind.patch),
    "--patch": (Kind.patch,),
}


@dataclass(frozen=True, slots=True)
class Asked:
    """What the probes are to be made of; None where it was not said."""

    row: int | None
    target: str | None
    layer: int | None
    other: str | None
    patches: tuple[str, ...]

    def given(self) -> Iterator[str]:
        """The options that were given."""
        values = (self.row, self.target, self.layer, self.other, self.patches or None)
        return (option for option, value in zip(READ_BY, values, strict=True) if value is not None)


def probe_command(
    run: Annotated[str, typer.Argument(metavar="RUN", help="The folder of a run, or toy24.")],
    text: Annotated[str | None, typer.Argument(metavar="[TEXT]", help="The text to look at (for a run).")] = None,
    kinds: Annotated[
        list[Kind] | None,
        typer.Option("--kind", help="Which probe; may be given several times (all that need no more)."),
    ] = None,
    row: Annotated[
        int | None, typer.Option(help="The row that predicts, from 0 (the last one with a next token).")
    ] = None,
    target: Annotated[str | None, typer.Option(metavar="TOKEN", help="What it predicts (the next token).")] = None,
    layer: Annotated[int | None, typer.Option(help="The layer, from 0 (the last).")] = None,
    other: Annotated[
        str | None, typer.Option(metavar="TEXT", help="A second text, to compare or to patch from.")
    ] = None,
    patches: Annotated[
        list[str] | None,
        typer.Option("--patch", metavar="WHAT=NUMBER", help='Put numbers in: "Z[0,3,1]=0", "A=0.5", "R=other".'),
    ] = None,
    json_path: Annotated[
        str | None, typer.Option("--json", metavar="PATH|-", help="Write every number as JSON.")
    ] = None,
    lang: Annotated[Language, typer.Option(help="Language of the tables.")] = Language.en,
    force: Annotated[bool, typer.Option("--force", help="Replace a file that exists.")] = False,
) -> None:
    """Probe a trained model: attention beside measured effect, prefixes, ranks, gradients, variance, patches."""
    refuse_existing(json_path if json_path != "-" else None, force)
    asked = Asked(row, target, layer, other, tuple(patches or ()))
    chosen = _chosen(kinds, asked)
    from ..training.config import default_threads
    from ..training.loop import torch_threads

    opened = _open(run, text, cut=chosen == (Kind.variance,))
    with torch_threads(default_threads(opened.reading.model.config.d)):
        reports = [report.plain() for report in _reports(chosen, opened, asked)]
    if json_path is not None:
        emit_json({"schema": SCHEMA, "probes": reports}, json_path, force)
    if json_path != "-":
        write(line for k, report in enumerate(reports) for line in ([""] * (k > 0) + list(lines(report, lang.value))))


def _chosen(kinds: Sequence[Kind] | None, asked: Asked) -> tuple[Kind, ...]:
    """The probes to make, each once. Raises ``UserError`` for an option that none of them reads, or one they lack."""
    more = [Kind.prefixes] * (asked.other is not None) + [Kind.patch] * bool(asked.patches)
    chosen = tuple(dict.fromkeys(kinds)) if kinds else (*ALWAYS, *more)
    for option in asked.given():
        if not set(READ_BY[option]) & set(chosen):
            raise UserError(
                f"{option} does not apply to --kind {' --kind '.join(chosen)}.",
                f"It belongs to {', '.join(READ_BY[option])}.",
                "Leave it out, or choose another probe.",
            )
    for kind in chosen:
        if kind in (Kind.prefixes, Kind.activation) and asked.other is None:
            raise UserError(f"--kind {kind} compares two texts.", "There is one.", "Add the second with --other TEXT.")
        if kind is Kind.patch and not asked.patches:
            raise UserError("--kind patch has nothing to patch.", "", 'Add for example --patch "blocks.0.attn.Z=0".')
    return chosen


@dataclass(frozen=True, slots=True)
class _Opened:
    """The reading, all ids of its text (more than it reads where only windows are read), and how texts and targets
    become ids (a text may begin with a token that says so, a target does not).

    ``target`` is what the last row predicts where nothing else was asked; None where the text itself says it.
    """

    reading: Reading
    ids: tuple[int, ...]
    tokenize: Callable[[str], tuple[int, ...]]
    token: Callable[[str], tuple[int, ...]]
    target: int | None = None


def _open(run: str, text: str | None, *, cut: bool) -> _Opened:
    from ..text import prompt_ids
    from ..tracing.probes import reading_of
    from ..training import load_run

    if run == TOY:
        return _open_toy(text)
    if text is None:
        raise UserError(
            "A trained model needs a text to look at.", "", f'Give one: glassformer probe {run} "some text"'
        )
    loaded = load_run(Path(run))

    def tokenize(words: str) -> tuple[int, ...]:
        # A text begins as those did that the model was trained on.
        return tuple(prompt_ids(loaded.tokenizer, words, loaded.begin))

    def token(words: str) -> tuple[int, ...]:
        return tuple(loaded.tokenizer.encode(words).ids.tolist())

    ids = tokenize(text)
    read = ids[: loaded.model.config.context] if cut else ids
    return _Opened(reading_of(loaded.model, read, loaded.tokenizer.texts), ids, tokenize, token)


def _open_toy(text: str | None) -> _Opened:
    from ..model.toy24 import TARGET, TOKENS, VOCABULARY, toy24_model
    from ..tracing.probes import reading_of
    from ..tracing.toy import token_of

    def tokenize(words: str) -> tuple[int, ...]:
        return tuple(token_of(word.strip()) for word in words.split(","))

    ids = TOKENS if text is None else tokenize(text)
    return _Opened(reading_of(toy24_model(), ids, VOCABULARY, "constructed"), ids, tokenize, tokenize, TARGET)


def _reports(chosen: Iterable[Kind], opened: _Opened, asked: Asked) -> Iterator[Report]:
    from ..tracing import probes

    reading, layer = opened.reading, -1 if asked.layer is None else asked.layer
    other = None if asked.other is None else reading.of(opened.tokenize(asked.other))
    for kind in chosen:
        match kind:
            case Kind.attention:
                yield probes.attention_effect(reading, _aim(opened, asked), layer).report()
            case Kind.saturation:
                yield probes.saturation(reading, _aim(opened, asked), layer).report()
            case Kind.bilinear:
                yield probes.bilinear_forms(reading).report()
            case Kind.gradients:
                yield probes.gradient_norms(reading).report()
            case Kind.variance:
                yield probes.score_variance(reading, opened.ids).report()
            case Kind.linearity:
                # Without a second text, y is what the layer reads of the same tokens in reverse order.
                yield probes.linearity(reading, other or reading.of(reading.tokens[::-1]), layer).report()
            case Kind.prefixes:
                assert other is not None
                yield probes.same_token(reading, other).report()
            case Kind.activation:
                assert other is not None
                yield probes.activation_patching(reading, other, _aim(opened, asked)).report()
            case Kind.patch:
                row = _row(reading, asked)
                yield probes.patch(reading, _patches(reading, other, asked.patches)).report(row)


def _aim(opened: _Opened, asked: Asked) -> Aim:
    from ..tracing.probes import aim_at

    if asked.target is None:
        return aim_at(opened.reading, asked.row, opened.target if asked.row is None else None)
    ids = opened.token(asked.target)
    if len(ids) != 1:
        raise UserError(
            f"The target “{visible(asked.target, keep='')}” is {len(ids)} tokens.",
            "A row predicts one.",
            "Give one token.",
        )
    return aim_at(opened.reading, asked.row, ids[0])


def _row(reading: Reading, asked: Asked) -> int:
    from ..tracing.probes import aim_at

    return aim_at(reading, -1 if asked.row is None else asked.row, 0).row


def _patches(reading: Reading, other: Reading | None, texts: Sequence[str]) -> dict[str, Any]:
    """``["Z[0,1,0]=0", "R=other"]`` as what ``patch`` takes. Raises ``UserError`` for what does not say a patch."""
    from ..tracing.probes import watch

    whole: dict[str, Any] = {}
    cells: dict[str, list[tuple[tuple[int, ...], float]]] = {}
    theirs = None if other is None else watch(other)
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name.strip():
            raise UserError(f'"{text}" does not patch anything.', "", 'Write for example --patch "blocks.0.attn.Z=0".')
        id, face, at = reading.program.reference(name)
        if face:
            raise UserError(f'"{name.strip()}" is not a forward number.', "Only these can be patched.", f"Write {id}.")
        if at is not None:
            cells.setdefault(id, []).append((at, number_of(value, name.strip())))
        elif value.strip() != "other":
            whole[id] = number_of(value, name.strip())
        elif theirs is None:
            raise UserError(f'"{text}" takes numbers of another text.', "There is none.", "Add it with --other TEXT.")
        elif id not in theirs:
            raise UserError(f"{id} was not computed for the other text.", "", did_you_mean(id, theirs))
        else:
            whole[id] = theirs[id]
    for id in cells.keys() & whole.keys():
        raise UserError(f"{id} is patched as a whole and in single cells.", "", "Say one of the two.")
    return {**whole, **{id: _cells_set(found) for id, found in cells.items()}}


def _cells_set(cells: Sequence[tuple[tuple[int, ...], float]]) -> Callable[[torch.Tensor], torch.Tensor]:
    def change(tensor: torch.Tensor) -> torch.Tensor:
        changed = tensor.clone()
        for at, value in cells:
            # A batch axis of one stands in front, unless the quantity has none.
            changed[(..., *at)] = value
        return changed

    return change
