"""What a row depends on: the recursion of the no-leak lemma against the definitions of every decoder."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from decoders import CONFIGS
from glassformer.model import DecoderConfig, definitions
from glassformer.model.derivations.no_leak import program as leak_program
from glassformer.notation import evaluate, run
from glassformer.notation.operands import draw
from options import OPTION_CONFIGS

Array = np.ndarray[Any, Any]


def reach(masks: list[Array]) -> list[Array]:
    """Which token each row of each layer can depend on: the recursion of the lemma, from the identity."""
    n = len(masks[0])
    program = leak_program(n)
    step = program.definition("leak.dep_next")
    assert step is not None
    found = [np.eye(n)]
    for mask in masks:
        known = {"leak.dep": found[-1], "leak.allowed": mask}
        found.append(evaluate(step.expr, step.letters, known, program.scalars))
    return found[1:]


def dependence(
    config: DecoderConfig, n: int, mask: Array | None = None, segments: Array | None = None
) -> tuple[list[Array], list[Array]]:
    """Masks by layer, and for each layer which row changes when one token does, from the model's definitions.

    ``mask`` is put in the place of the model's; ``segments`` packs several texts into the row.
    """
    program = definitions(config, n, packed=segments is not None)
    rng = np.random.default_rng(2)
    values = draw([s.expr for s in program.forward], program, rng)
    declared = {k: v for k, v in values.items() if program.definition(k) is None}
    declared |= {k: 0.4 * v for k, v in declared.items() if np.issubdtype(v.dtype, np.floating)}
    declared |= {"embed.pos": np.arange(n)} if segments is None else {"embed.seg": segments}
    scores = [program.quantities[f"blocks.{layer}.attn.S"].names["allowed"] for layer in range(config.blocks)]
    forward = [s for s in program.forward if mask is None or s.target not in scores]
    if mask is not None:
        declared |= dict.fromkeys(scores, mask)
    before = run(forward, declared, program.scalars)
    masks = [before[id] for id in scores]
    changed = [np.zeros((n, n)) for _ in masks]
    for m in range(n):
        tokens = declared["embed.t"].copy()
        tokens[m] = (tokens[m] + 1) % config.vocab_size
        after = run(forward, {**declared, "embed.t": tokens}, program.scalars)
        for layer, found in enumerate(changed):
            id = f"blocks.{layer}.R"
            found[:, m] = (before[id] != after[id]).any(-1)
    return masks, changed


@pytest.mark.parametrize("name", [*CONFIGS, *OPTION_CONFIGS])
def test_every_decoder_depends_on_what_the_recursion_says_and_on_nothing_later(name: str) -> None:
    masks, changed = dependence({**CONFIGS, **OPTION_CONFIGS}[name], 6)
    for expected, found in zip(reach(masks), changed, strict=True):
        assert np.array_equal(found, expected)
        assert not np.triu(found, 1).any()


def test_of_packed_texts_none_depends_on_another() -> None:
    segments = np.array([0, 0, 0, 1, 1, 2])
    masks, changed = dependence(CONFIGS["everything"], 6, segments=segments)
    i, m = np.indices((6, 6))
    for expected, found in zip(reach(masks), changed, strict=True):
        assert np.array_equal(found, expected)
        assert np.array_equal(found, (m <= i) & (segments[i] == segments[m]))


def test_a_window_reaches_one_window_further_back_with_each_layer() -> None:
    n, window = 9, 3
    i, j = np.indices((n, n))
    for layer, found in enumerate(reach([((j <= i) & (i - j < window)).astype(float)] * 3), start=1):
        assert np.array_equal(found, (j <= i) & (i - j <= layer * (window - 1)))


def test_one_row_that_reads_ahead_leaks_to_all_that_read_it() -> None:
    mask = np.tril(np.ones((5, 5)))
    mask[1, 3] = 1
    config = CONFIGS["everything"]
    masks, changed = dependence(config, 5, mask)
    expected = reach(masks)
    assert [np.argwhere(np.triu(found, 1)).tolist() for found in expected] == [
        [[1, 3]],
        [[1, 2], [1, 3], [2, 3]],
    ]
    assert all(np.array_equal(found, want) for found, want in zip(changed, expected, strict=True))
