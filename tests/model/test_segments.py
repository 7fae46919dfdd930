"""Several texts in one row are each as if alone; so is a padded one, at the first pass and when it is continued."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby, pairwise

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from decoders import CONFIGS, Recorder, decoder_config, random_decoder, random_inputs
from glassformer.errors import UserError
from glassformer.model import AttentionConfig, Decoder, DecoderConfig, PositionConfig, definitions
from options import OPTION_CONFIGS

WHOLE = CONFIGS["everything"]
TURNED = decoder_config(
    position=PositionConfig(kind="rope"), attention=AttentionConfig(heads=4, d_k=6, d_v=5, kv_heads=2, window=3)
)
PAD = -1
ROWS = (
    (0, 0, 0, 7, 1, 1, 1, 1, PAD),  # three documents, then padding
    (PAD, PAD, 5, 5, 5, 5, 5, PAD - 1, PAD - 1),  # padding on both sides: two segments
    (3, 3, 3, 3, 3, 3, 3, 3, 3),
)


def texts_of(segments: Sequence[int]) -> list[slice]:
    """Where the texts of a row stand; padding is none."""
    ends = [0, *torch.tensor([len(list(run)) for _, run in groupby(segments)]).cumsum(0).tolist()]
    return [slice(a, b) for a, b in pairwise(ends) if segments[a] >= 0]


def packed_and_alone(config: DecoderConfig, rows: Sequence[Sequence[int]], listened: bool = False) -> None:
    """Logits of every text and the gradients of all are what they are when each text is read alone."""
    inputs = random_inputs(config, batch=len(rows), n=len(rows[0]))
    segments = torch.tensor(rows)
    scored = segments >= 0
    targets = inputs.targets.clamp(min=0)
    model = random_decoder(config)
    say = {"say": Recorder()} if listened else {}
    out = model(inputs.tokens, targets, scored, segments=segments, **say)
    assert out.loss is not None
    (out.loss * scored.sum()).backward()
    alone = random_decoder(config)
    for row, numbers in enumerate(rows):
        for text in texts_of(numbers):
            expected = alone(inputs.tokens[row, text][None], targets[row, text][None])
            assert expected.loss is not None
            (expected.loss * (text.stop - text.start)).backward()
            close(out.logits[row, text], expected.logits[0])
    largest = max(float(p.grad.abs().max()) for p in alone.parameters() if p.grad is not None)
    for (name, packed), single in zip(model.named_parameters(), alone.parameters(), strict=True):
        assert (packed.grad is None) == (single.grad is None), name
        if packed.grad is not None and single.grad is not None:
            torch.testing.assert_close(packed.grad, single.grad, rtol=1e-10, atol=1e-13 * largest, msg=name)


def close(a: Tensor, b: Tensor) -> None:
    torch.testing.assert_close(a, b, rtol=0, atol=1e-12 * float(b.detach().abs().max()))


@pytest.mark.parametrize("listened", [False, True], ids=["fused", "explicit"])
@pytest.mark.parametrize("name", OPTION_CONFIGS)
def test_a_packed_or_padded_row_is_its_texts_each_read_alone(name: str, listened: bool) -> None:
    packed_and_alone(OPTION_CONFIGS[name], ROWS, listened)


@given(st.lists(st.integers(1, 4), min_size=1, max_size=9), st.integers(0, 3), st.sampled_from([WHOLE, TURNED]))
def test_texts_of_any_lengths_may_share_a_row(lengths: list[int], padding: int, config: DecoderConfig) -> None:
    texts = [number for number, length in enumerate(lengths) for _ in range(length)]
    row = [PAD] * padding + texts + [PAD - 1] * config.context
    packed_and_alone(config, [row[: config.context]])


def test_one_segment_is_a_row_without_segments() -> None:
    model, inputs = random_decoder(WHOLE), random_inputs(WHOLE, batch=2)
    close(model(inputs.tokens, segments=torch.full_like(inputs.tokens, 4)).logits, model(inputs.tokens).logits)


def test_the_numbers_of_segments_mean_nothing_but_which_tokens_belong_together() -> None:
    model, inputs = random_decoder(WHOLE), random_inputs(WHOLE)
    first, other = torch.tensor([[0, 0, 1, 1, 1, 2, 2]]), torch.tensor([[9, 9, -4, -4, -4, 10**12, 10**12]])
    logits = model(inputs.tokens, segments=first).logits
    assert torch.equal(model(inputs.tokens, segments=other).logits, logits)
    assert not torch.equal(model(inputs.tokens).logits, logits)


@pytest.mark.parametrize("name", OPTION_CONFIGS)
def test_a_packed_pass_says_every_quantity_of_the_packed_definitions(name: str) -> None:
    config, recorder = OPTION_CONFIGS[name], Recorder()
    model, inputs = random_decoder(config), random_inputs(config, n=9)
    model(inputs.tokens, inputs.targets, inputs.scored, say=recorder, segments=torch.tensor(ROWS[:1]))
    program = definitions(config, 9, packed=True)
    parameters = dict(model.named_parameters())
    assert set(recorder.said) | set(parameters) == set(program.quantities)
    for id, tensor in recorder.said.items():
        assert tuple(tensor.shape) in (program.shape(id), (1, *program.shape(id))), id
        assert program.quantities[id].quantity is recorder.quantities[id], id


def test_positions_begin_at_0_in_every_segment() -> None:
    recorder, inputs = Recorder(), random_inputs(WHOLE, batch=3, n=9)
    random_decoder(WHOLE)(inputs.tokens, say=recorder, segments=torch.tensor(ROWS))
    assert recorder.said["embed.pos"].tolist() == [
        [0, 1, 2, 0, 0, 1, 2, 3, 0],
        [0, 1, 0, 1, 2, 3, 4, 0, 1],
        [0, 1, 2, 3, 4, 5, 6, 7, 8],
    ]


def padded(lengths: Sequence[int]) -> Tensor:
    """Segments ``(b, n)`` of prompts of these lengths, padded on the left."""
    n = max(lengths)
    return torch.tensor([[PAD] * (n - length) + [0] * length for length in lengths])


@pytest.mark.parametrize("chunks", [(5, 1, 1, 1, 1), (5, 3, 1), (2, 3, 4), (9,), (1,) * 9], ids=str)
@pytest.mark.parametrize("name", OPTION_CONFIGS)
def test_prompts_padded_on_the_left_continue_exactly_as_each_alone(name: str, chunks: tuple[int, ...]) -> None:
    config = OPTION_CONFIGS[name]
    model, lengths = random_decoder(config), (2, 5, 4)
    tokens = random_inputs(config, batch=3, n=9).tokens
    segments = torch.cat([padded(lengths), torch.zeros((3, 4), dtype=torch.int64)], 1)
    cache = model.new_cache()
    with torch.no_grad():
        ends = [0, *torch.tensor(chunks).cumsum(0).tolist()]
        parts = [model(tokens[:, a:b], cache=cache, segments=segments[:, a:b]).logits for a, b in pairwise(ends)]
        logits = torch.cat(parts, 1)
        for row, length in enumerate(lengths):
            close(logits[row, 5 - length :], model(tokens[row : row + 1, 5 - length :]).logits[0])


@pytest.mark.parametrize(
    ("segments", "message"),
    [
        (torch.zeros((1, 6), dtype=torch.int64), r"Segments have shape \(1, 6\), tokens \(1, 7\)"),
        (torch.zeros(7, dtype=torch.int64), r"Segments have shape \(7,\)"),
        (torch.zeros((1, 7)), "Segments are torch.float32"),
        (torch.zeros((1, 7), dtype=torch.bool), "Segments are torch.bool"),
        (torch.tensor([[0, 0, 1, 0, 0, 2, 2]]), "Segment 0 of row 0 ends and begins again"),
        (torch.tensor([[-1, 3, 3, 3, 5, 5, -1]]), "Segment -1 of row 0 ends and begins again"),
    ],
)
def test_segments_that_do_not_fit_are_refused(segments: Tensor, message: str) -> None:
    model, inputs = random_decoder(WHOLE), random_inputs(WHOLE)
    with pytest.raises(UserError, match=message):
        model(inputs.tokens, segments=segments)


def test_the_row_that_is_torn_is_named() -> None:
    model, inputs = random_decoder(WHOLE), random_inputs(WHOLE, batch=3, n=4)
    with pytest.raises(UserError, match="Segment 8 of row 2"):
        model(inputs.tokens, segments=torch.tensor([[0, 0, 0, 1], [1, 2, 3, 4], [8, 8, 9, 8]]))


def begun(segments: Tensor | None) -> tuple[Decoder, Tensor, dict[str, object]]:
    """A model and tokens of which the first 4 are in its cache."""
    model, tokens = random_decoder(WHOLE), random_inputs(WHOLE).tokens
    cache = model.new_cache()
    model(tokens[:, :4], cache=cache, segments=segments)
    return model, tokens[:, 4:], {"cache": cache}


def test_a_segment_may_not_return_after_another_in_the_cache() -> None:
    with torch.no_grad():
        model, rest, cache = begun(torch.tensor([[0, 0, 1, 1]]))
        with pytest.raises(UserError, match="Segment 0 of row 0 ends and begins again"):
            model(rest, segments=torch.tensor([[1, 0, 0]]), **cache)
        close(
            model(rest, segments=torch.tensor([[1, 1, 2]]), **cache).logits,
            model(random_inputs(WHOLE).tokens, segments=torch.tensor([[0, 0, 1, 1, 1, 1, 2]])).logits[:, 4:],
        )


def test_a_cache_is_continued_as_it_was_begun_with_segments_or_without() -> None:
    with torch.no_grad():
        model, rest, cache = begun(torch.tensor([[0, 0, 1, 1]]))
        with pytest.raises(UserError, match="begun with segments, these tokens come without"):
            model(rest, **cache)
        model, rest, cache = begun(None)
        with pytest.raises(UserError, match="begun without segments, these tokens come with"):
            model(rest, segments=torch.zeros_like(rest), **cache)
