"""What directives draw on: runs with their numbers, definitions with their formulas, chains and lemmas, examples."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from ..model import (
    AttentionConfig,
    DecoderConfig,
    FeedForwardConfig,
    HeadConfig,
    NormConfig,
    PositionConfig,
    definitions,
)
from ..model.derivations import LEMMAS, derivations
from ..notation import Program, key
from ..notation.chain import chain_json
from ..notation.latex import gradient_latex, index_latex
from ..notation.lemma import lemma_json
from ..notation.matrix import matrix_face
from ..notation.symbols import style_of
from ..tracing import Trace, trace_toy24
from ..tracing.probes import Report
from .example import Array, Example
from .examples import EXAMPLES

_PATH = re.compile(r"([A-Za-z_][\w.]*?)(\.grad|\.new|\.after)?(?:\[([\d,]+)\])?")


def full_config(**changes: Any) -> DecoderConfig:
    """The decoder whose definitions the book prints: Pre-LN, LayerNorm, learned positions, ReLU, one head bias."""
    settings: dict[str, Any] = {
        "vocab_size": 7, "context": 7, "d": 6, "blocks": 1,
        "attention": AttentionConfig(heads=2, d_k=3, d_v=4, bias=False),
        "ffn": FeedForwardConfig(d_ff=8, activation="relu", bias=True, gated=False),
        "norm": NormConfig(), "position": PositionConfig(kind="learned"), "head": HeadConfig(bias=True),
    }  # fmt: skip
    return DecoderConfig.alike(**{**settings, **changes})


@dataclass(frozen=True)
class Library:
    """What a book is made from.

    ``runs`` are traces by name; ``toy24`` is always there. Their numbers are named as in ``explain``, indices from 1.
    ``facts`` are single numbers of the trained model (``{num measured p}``), ``reports`` its probes.
    """

    runs: Mapping[str, Trace] = field(default_factory=dict)
    facts: Mapping[str, float] = field(default_factory=dict)
    reports: Mapping[str, Report] = field(default_factory=dict)
    examples: Mapping[str, Example] = field(default_factory=lambda: EXAMPLES)

    @cached_property
    def toy24(self) -> Trace:
        return trace_toy24()

    @cached_property
    def programs(self) -> Mapping[str, Program]:
        """Programs whose definitions are printed, by name: the whole decoder, and with other options."""
        return {
            "decoder": definitions(full_config(), 7),
            "toy24": self.toy24.program,
            "rope": definitions(
                full_config(position=PositionConfig(kind="rope"), attention=AttentionConfig(heads=2, d_k=4, d_v=4)), 7
            ),
            "tied": definitions(full_config(head=HeadConfig(tied=True)), 7),
            "rms": definitions(full_config(norm=NormConfig(kind="rmsnorm")), 7),
            "post": definitions(full_config(norm=NormConfig(position="post")), 7),
            "sinusoidal": definitions(full_config(position=PositionConfig(kind="sinusoidal")), 7),
        }

    def program(self, name: str) -> Program:
        """The program ``name``: one of ``programs``, or that of an example; raises ``KeyError``."""
        return self.programs[name] if name in self.programs else self.examples[name].program()

    def run(self, name: str) -> Trace:
        """The trace ``name``; raises ``KeyError``."""
        return self.toy24 if name == "toy24" else self.runs[name]

    def number(self, source: str, path: str) -> float:
        """One number of a run or an example: ``("toy24", "A[1,2,1]")``, indices from 1. Raises ``KeyError``, ``IndexError``."""
        if source == "measured":
            return self.facts[path]
        match = _PATH.fullmatch(path)
        if match is None:
            raise KeyError(path)
        name, face, index = match[1], (match[2] or "").removeprefix("."), match[3]
        array = self._array(source, name, face)
        at = tuple(int(i) - 1 for i in index.split(",")) if index else ()
        if len(at) != array.ndim or min(at, default=0) < 0:
            raise IndexError(f"{path}: {name} has {array.ndim} axes, counted from 1")
        return float(array[at])

    def _array(self, source: str, name: str, face: str) -> Array:
        if source in self.examples:
            return self.examples[source].values()[f"ex.{name}"]
        trace = self.run(source)
        id = resolved(trace.program, name)
        return np.asarray(trace.values[key(id, face)])

    def formula(self, program: str, path: str) -> dict[str, str | None]:
        """LaTeX of a definition (``attn.A``) or of a whole gradient (``attn.A.grad``): ``index`` and ``matrix`` face."""
        where, face = self.program(program), ""
        if path.endswith(".grad"):
            path, face = path.removesuffix(".grad"), "grad"
        id = resolved(where, path)
        style = style_of(where)
        if face == "grad":
            parts = where.contributions(id)
            if not parts:
                raise KeyError(f"{path} has no gradient")
            matrices = [matrix_face(part, where) for part in parts]
            whole = matrices[0].latex(where, style) if len(parts) == 1 and matrices[0] is not None else None
            return {"index": gradient_latex(parts, where, style), "matrix": whole}
        statement = where.definition(id)
        if statement is None:
            raise KeyError(f"{path} has no definition: it is given")
        matrix = matrix_face(statement, where)
        return {
            "index": index_latex(statement, where, style),
            "matrix": None if matrix is None else matrix.latex(where, style),
        }

    def symbol(self, program: str, path: str) -> dict[str, Any]:
        """What hovering a symbol shows: LaTeX, name in both languages, axes, kind."""
        where = self.program(program)
        placed = where.quantities[resolved(where, path)]
        q = placed.quantity
        return {
            "latex": q.symbol,
            "en": q.en,
            "zh": q.zh,
            "kind": q.kind.value,
            "axes": [list(axis) for axis in placed.axes],
        }

    @cached_property
    def derivations(self) -> Mapping[str, dict[str, Any]]:
        """Every chain and lemma by id, as the page shows it."""
        found: dict[str, dict[str, Any]] = {}
        for program in self.programs.values():
            for chain in derivations(program):
                found.setdefault(chain.id, chain_json(chain, program))
        return {**found, **{lemma.id: lemma_json(lemma) for lemma in LEMMAS}}


def resolved(program: Program, path: str) -> str:
    """The id that ``path`` means: an id, an id of the first block without ``blocks.0.``, or the last word of one."""
    ids = program.quantities
    for candidate in (program.aliases.get(path, path), f"blocks.0.{path}"):
        if candidate in ids:
            return candidate
    ends = [id for id in ids if id.endswith(f".{path}")]
    if not ends:
        raise KeyError(path)
    return ends[0]
