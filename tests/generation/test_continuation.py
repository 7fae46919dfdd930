"""A text continued: what is shown, what is kept, why it ended."""

from __future__ import annotations

import pytest
import torch

from glassformer.errors import UserError
from glassformer.generation import Continuation, Reason, Request, Rule, generate
from glassformer.model import Decoder
from glassformer.text import BytePairTokenizer, Specials, prompt_ids
from learning import tiny_decoder

GREEDY = Rule(temperature=0)


class Pieces:
    """A vocabulary of given bytes; the last one ends a text where ``ends``."""

    def __init__(self, *pieces: bytes, ends: bool = False) -> None:
        self.pieces = pieces
        self.specials = Specials(end=len(pieces) - 1 if ends else None)

    def bytes_of(self, id: int) -> bytes:
        return self.pieces[id]


def counting(vocab_size: int) -> Decoder:
    """A decoder that says 0, 1, 2, ... : the row of each token scores the next one highest."""
    model = tiny_decoder(vocab_size, context=8, d=vocab_size + 1)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
        for token in range(vocab_size):
            model.get_parameter("embed.E")[token, token] = 1.0
            model.get_parameter("head.U")[token, (token + 1) % vocab_size] = 5.0
        model.get_parameter("final_norm.gamma").fill_(1.0)
    return model


def continued(vocabulary: Pieces, count: int, *stop: str, prompt: tuple[int, ...] = (0,)) -> Continuation:
    made = Continuation(counting(len(vocabulary.pieces)), vocabulary, prompt, Request(count, GREEDY, 0, stop))
    assert "".join(made) == made.text
    return made


LETTERS = Pieces(b"a", b"b", b"c", b"d")


def test_it_ends_after_the_number_of_tokens_asked_for() -> None:
    made = continued(LETTERS, 6)
    assert (made.text, made.reason, made.stop) == ("bcdabc", Reason.LENGTH, None)
    assert [c.token for c in made.choices] == [1, 2, 3, 0, 1, 2]


def test_it_ends_at_the_end_of_text_token_which_is_kept_but_not_shown() -> None:
    made = continued(Pieces(b"a", b"b", b"c", b"<end>", ends=True), 9)
    assert (made.text, made.reason) == ("bc", Reason.END)
    assert [c.token for c in made.choices] == [1, 2, 3]


def test_it_ends_before_a_stop_string_across_tokens() -> None:
    made = continued(LETTERS, 9, "da")
    assert (made.text, made.reason, made.stop) == ("bc", Reason.STRING, "da")
    assert [c.token for c in made.choices] == [1, 2, 3, 0]


def test_the_beginning_of_a_stop_string_is_shown_when_no_token_follows() -> None:
    made = continued(LETTERS, 3, "dx")
    assert (made.text, made.reason) == ("bcd", Reason.LENGTH)


def test_a_stop_string_inside_a_token_cuts_the_token() -> None:
    assert continued(Pieces(b"a", b"one. two", b"c"), 5, ". ").text == "one"


def test_a_character_of_several_tokens_is_shown_whole() -> None:
    first, second, third = (bytes([byte]) for byte in "药".encode())
    vocabulary = Pieces(b"a", first, second, third)
    made = Continuation(counting(4), vocabulary, (0,), Request(5, GREEDY))
    assert list(made) == ["药", "a", "\ufffd"]


def test_it_ends_when_somebody_wants_it_to() -> None:
    asked = iter([False, False, True])
    made = Continuation(counting(4), LETTERS, (0,), Request(9, GREEDY), lambda: next(asked))
    assert "".join(made) == "bcd"
    assert made.reason is Reason.INTERRUPTED


def test_its_tokens_are_those_of_generate() -> None:
    model = tiny_decoder(4, seed=3)
    made = Continuation(model, LETTERS, (1, 2), Request(20, Rule(0.9, 3, 0.8), seed=5))
    list(made)
    expected = list(generate(model, (1, 2), 20, temperature=0.9, top_k=3, top_p=0.8, seed=5))
    assert [c.token for c in made.choices] == expected


@pytest.mark.parametrize("rule", [GREEDY, Rule(), Rule(0.8, 5, 0.9)])
def test_bos_and_pad_are_never_chosen_however_much_the_model_likes_them_and_eos_ends(rule: Rule) -> None:
    tokenizer = BytePairTokenizer([])
    begin, end, pad = tokenizer.specials
    model = tiny_decoder(tokenizer.vocab_size)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
        model.get_parameter("embed.E")[:, 0] = 1.0
        model.get_parameter("final_norm.gamma").fill_(1.0)
        for token, score in ((begin, 9.0), (pad, 8.0), (end, 0.5), (65, 1.0)):
            model.get_parameter("head.U")[0, token] = score
    made = Continuation(model, tokenizer, prompt_ids(tokenizer, "", begin=True), Request(300, rule, seed=1))
    text = "".join(made)
    tokens = [choice.token for choice in made.choices]
    assert not {begin, pad} & {*tokens}
    if rule is GREEDY:
        assert (made.reason, len(tokens), text) == (Reason.LENGTH, 300, tokenizer.texts[65] * 300)
    else:
        assert (made.reason, tokens[-1], end in tokens[:-1]) == (Reason.END, end, False)
        assert text == tokenizer.decode(tokens)


def test_an_impossible_request_is_refused_where_it_is_made() -> None:
    with pytest.raises(UserError, match="prompt is empty"):
        Continuation(counting(4), LETTERS, (), Request(1))
    with pytest.raises(UserError, match="stop string is empty"):
        Continuation(counting(4), LETTERS, (0,), Request(1, stop=("",)))
