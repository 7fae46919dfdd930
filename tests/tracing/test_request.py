"""What may be asked for, in which words, and what is refused with a message that says what to do."""

from __future__ import annotations

import copy
import functools
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.checkpoint import checkpoint

import glassformer
from glassformer.errors import UserError
from glassformer.model import Decoder, toy24_model
from glassformer.text import BytePairTokenizer, CharacterTokenizer
from glassformer.tracing import Trace
from glassformer.training import LoadedRun
from learning import save_run, tiny_decoder

TOY = ("A", "B", "C")
traced = functools.partial(glassformer.trace, witness_cells=0)


def spoilt(name: str, value: float, cell: Any = (0, 0)) -> Decoder:
    """The small model with one cell of a parameter set."""
    model = toy24_model()
    with torch.no_grad():
        dict(model.named_parameters())[name][cell] = value
    return model


def test_a_text_target_is_what_the_notes_ask() -> None:
    run = traced(toy24_model(), ["A", "B"], target="C", vocabulary=TOY)
    assert run["y"].tolist() == [1, 2]
    assert run["scored"].tolist() == [False, True]
    assert round(float(run["W_Q.grad[1,0]"]), 6) == 0.133562
    assert traced(toy24_model(), np.array([0, 1]), target=torch.tensor(2))["L"] == run["L"]


def test_a_text_goes_through_a_model_with_its_tokenizer() -> None:
    tokenizer = CharacterTokenizer.of_characters(set("abc"))
    model = tiny_decoder(3)
    run = traced(model, "cab", tokenizer=tokenizer)
    assert run["t"].tolist() == [2, 0, 1]
    assert run["scored"].tolist() == [True, True, False]
    assert run.text.vocabulary == ("a", "b", "c")
    assert "cab" in run.text.title["en"]
    assert traced(model, [2, 0, 1])["L"] == run["L"]


def test_a_text_goes_through_a_loaded_run_and_begins_as_its_texts_did(tmp_path: Any) -> None:
    tokenizer = CharacterTokenizer.of_characters(set("abc"))
    save_run(tmp_path / "run", tiny_decoder(3), tokenizer)
    loaded = glassformer.load_run(str(tmp_path / "run"))
    run = traced(loaded, "abc", target="a")
    assert (run.text.source, run.text.provenance) == ("run", "measured")
    assert run["y"].tolist() == [1, 2, 0]
    with_specials = CharacterTokenizer("abc", specials=True)
    begun = LoadedRun(tiny_decoder(6), with_specials, {}, begin=True)
    assert traced(begun, "ab")["t"].tolist() == [3, 0, 1]
    assert traced(begun, "ab", target="<eos>")["y"].tolist()[-1] == with_specials.end_of_text


def test_one_token_and_its_target_are_enough() -> None:
    assert traced(toy24_model(), [0], target=1)["scored"].tolist() == [True]


def test_targets_of_every_position_may_be_texts_too() -> None:
    run = traced(toy24_model(), [0, 1], target=["B", "A"], vocabulary=TOY)
    assert run["y"].tolist() == [1, 0]
    assert run["scored"].tolist() == [True, True]


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "a text without a tokenizer": ({"text": "AB"}, r"A text needs a tokenizer\..*tokenizer="),
    "a token text without texts": ({"target": "C"}, 'Nothing says which token "C" is.*vocabulary='),
    "an unknown target": ({"target": "c", "vocabulary": TOY}, '"c" is not a token of this model. Did you mean "C"'),
    "a target that two tokens read": ({"target": "A", "vocabulary": ("A", "A", "C")}, r"2 tokens read .A.*\[0, 1\]"),
    "a target id above the vocabulary": ({"target": 3}, r"There is no token 3\..*0 to 2"),
    "a target id below the vocabulary": ({"target": -1}, r"There is no token -1\."),
    "a scored target outside it": ({"target": [1, 9]}, "Target id 9 .* is not in the vocabulary"),
    "a token outside it": ({"text": [0, 5]}, r"There is no token 5\."),
    "nothing scored": ({"scored": [False, False]}, "No position is scored"),
    "a last position without a target": (
        {"scored": [True, True]},
        "last position is scored and has no target.*target=",
    ),
    "one token": ({"text": [0]}, "too short to trace.*one and a target"),
    "no token": ({"text": []}, "The text is empty"),
    "too many tokens": ({"text": [0, 1, 2] * 9}, "27 tokens, more than the model reads"),
    "numbers that are no ids": ({"text": [0.0, 1.0]}, "A float is no token"),
    "a batch": ({"text": [[0, 1], [1, 2]]}, "A list is no token.*one list of them per text"),
    "a number": ({"text": 7}, "A int is no text and no list of tokens"),
    "a vocabulary of another size": ({"vocabulary": "AB"}, "The vocabulary has 2 tokens, the model 3"),
    "labels of another length": ({"target": [1, 2, 0]}, "tokens: 2, targets: 3"),
    "two names for tokens": (
        {"vocabulary": TOY, "tokenizer": CharacterTokenizer.of_characters(set("ABC"))},
        "Both tokenizer and vocabulary",
    ),
    "a rate for a step": ({"update": 0.1}, r"update cannot be a float.*SGD\(lr=0.1\)"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_does_not_fit_is_refused_in_words(case: str) -> None:
    given, words = REFUSED[case]
    with pytest.raises(UserError, match=words):
        traced(toy24_model(), **{"text": [0, 1], **given})


def test_a_target_of_several_tokens_shows_them() -> None:
    tokenizer = BytePairTokenizer.train(["abab"], 261)
    with pytest.raises(UserError, match=r'"xy" is 2 tokens\. They are "x" "y"'):
        traced(tiny_decoder(tokenizer.vocab_size), "ab", target="xy", tokenizer=tokenizer)


def test_a_message_does_not_obey_the_text_it_quotes() -> None:
    with pytest.raises(UserError) as caught:
        traced(toy24_model(), [0, 1], target="\x1b[31m\u202e", vocabulary=("\x1b", "\x1b[31m", "C"))
    assert str(caught.value).isprintable()


def test_a_run_keeps_its_own_tokenizer() -> None:
    tokenizer = CharacterTokenizer.of_characters(set("abc"))
    with pytest.raises(UserError, match="tokenizer of its own"):
        traced(LoadedRun(tiny_decoder(3), tokenizer, {}), "abc", tokenizer=tokenizer)


@pytest.fixture(scope="module")
def run() -> Trace:
    return traced(toy24_model(), [0, 1], target=2)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("W_q", 'no quantity "W_q".*Did you mean "W_Q"'),
        ("A[0,2,0]", "Index 2 is out of range for axis i"),
        ("A[0]", "has 3 axes, not 1"),
        ("t.grad", "not recorded"),
        ("A[x]", "not a list of indices"),
        ("", "does not name"),
    ],
)
def test_an_unknown_quantity_or_index_says_what_there_is(run: Trace, name: str, words: str) -> None:
    with pytest.raises(UserError, match=words):
        run[name]
    assert name not in run


def test_an_explanation_of_a_cell_that_is_not_there_is_refused(run: Trace) -> None:
    with pytest.raises(UserError, match="out of range"):
        run.quantity("W_Q").explain(0, 9)
    with pytest.raises(UserError, match="no layer 1"):
        run.to_latex("S", layer=1)


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        (
            "blocks.0.attn.W_K",
            float("nan"),
            r"blocks\.0\.attn\.W_K\[0,0,0\] is NaN.*first parameter that is not finite",
        ),
        ("embed.E", float("inf"), r"embed\.E\[0,0\] is ∞"),
        ("head.U", -float("inf"), r"head\.U\[0,0\] is −∞"),
    ],
)
def test_weights_that_are_not_finite_are_named(name: str, value: float, words: str) -> None:
    with pytest.raises(UserError, match=words):
        traced(spoilt(name, value), [0, 1], target=2)


def test_of_two_spoilt_parameters_the_first_is_named() -> None:
    model = spoilt("head.U", float("nan"))
    with torch.no_grad():
        model.embed.E[2, 1] = float("nan")
    with pytest.raises(UserError, match=r"^embed\.E\[2,1\] is NaN"):
        traced(model, [0, 1], target=2)


def test_finite_weights_that_leave_float64_name_the_first_quantity() -> None:
    model = spoilt("blocks.0.attn.W_Q", 1e200, slice(None))
    with torch.no_grad():
        model.blocks[0].attn.W_K.fill_(1e200)
    with pytest.raises(UserError, match=r"^blocks\.0\.attn\.S\[.*Every parameter is finite"):
        traced(model, [0, 1], target=2)


def test_a_model_without_numbers_is_refused() -> None:
    with pytest.raises(UserError, match=r"embed\.E is on the meta device"):
        traced(toy24_model().to("meta"), [0, 1], target=2)


def test_sharded_tensors_are_refused() -> None:
    from torch import distributed as dist
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import Shard, distribute_tensor

    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    try:
        model = toy24_model()
        whole = model.head.U.detach()
        model.head.U = torch.nn.Parameter(distribute_tensor(whole, init_device_mesh("cpu", (1,)), [Shard(0)]))
        with pytest.raises(UserError, match=r"head\.U is a DTensor.*full_tensor"):
            traced(model, [0, 1], target=2)
    finally:
        dist.destroy_process_group()


def test_a_compiled_model_or_part_is_refused_and_a_copy_is_not() -> None:
    in_place, part = toy24_model(), toy24_model()
    in_place.compile(backend="eager")
    part.blocks[0] = torch.compile(part.blocks[0], backend="eager")
    for model in (torch.compile(toy24_model(), backend="eager"), in_place, part):
        with pytest.raises(UserError, match=r"is compiled\..*copy\.deepcopy"):
            traced(model, [0, 1], target=2)
    assert traced(copy.deepcopy(in_place), [0, 1], target=2).replay.holds


@pytest.mark.parametrize("reentrant", [False, True])
def test_activation_checkpointing_is_refused_wherever_it_hides(
    reentrant: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    from glassformer.model import block

    own = block.Block.forward

    def twice(self: Any, *arguments: Any) -> Any:
        return checkpoint(own, self, *arguments, use_reentrant=reentrant)

    monkeypatch.setattr(block.Block, "forward", twice)
    with pytest.raises(UserError, match=r"said twice.*activation checkpointing"):
        traced(toy24_model(), [0, 1], target=2)


def test_checkpointing_by_wrapper_or_by_instance_is_refused() -> None:
    from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import checkpoint_wrapper

    wrapped, replaced = toy24_model(), toy24_model()
    wrapped.blocks[0] = checkpoint_wrapper(wrapped.blocks[0])
    replaced.blocks[0].forward = functools.partial(checkpoint, replaced.blocks[0].forward, use_reentrant=False)
    for model in (wrapped, replaced):
        with pytest.raises(UserError, match=r"forward pass of blocks\.0 was replaced.*without it"):
            traced(model, [0, 1], target=2)


def test_what_is_no_decoder_or_more_than_one_is_refused() -> None:
    more = toy24_model()
    more.register_parameter("extra", torch.nn.Parameter(torch.zeros(1)))
    with pytest.raises(UserError, match="extra is not a parameter of this decoder"):
        traced(more, [0, 1], target=2)
    for model in (torch.nn.Linear(2, 2), "runs/mine", torch.nn.DataParallel(toy24_model())):
        with pytest.raises(UserError, match="cannot be traced"):
            traced(model, [0, 1], target=2)
