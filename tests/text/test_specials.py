"""BOS, EOS and PAD: distinct, at the end of the vocabulary, never found in a text, and how a prompt begins."""

from __future__ import annotations

import json

import pytest
from tokenizers import Tokenizer as HuggingFace

from glassformer.errors import UserError
from glassformer.text import CharacterTokenizer, Specials, Tokenizer, WordTokenizer, prompt_ids, read_tokenizer

SPELLED = "a<bos><eos>b<pad>"


def characters(specials: bool = True) -> CharacterTokenizer:
    return CharacterTokenizer.of_text(SPELLED, specials)


def test_the_three_specials_of_characters_are_the_last_ids_and_have_no_text() -> None:
    tokenizer = characters()
    n = len(set(SPELLED))
    assert tokenizer.vocab_size == n + 3
    assert tokenizer.specials == Specials(begin=n, end=n + 1, pad=n + 2)
    assert tokenizer.end_of_text == n + 1
    assert tokenizer.texts[n:] == ("<bos>", "<eos>", "<pad>")
    assert [tokenizer.bytes_of(id) for id in tokenizer.specials] == [b"", b"", b""]
    assert tokenizer.decode([n, 0, n + 1, n + 2, 1]) == "".join(tokenizer.texts[:2])


def test_the_spelling_of_a_special_in_a_text_is_text() -> None:
    tokenizer = characters()
    for ids in (tokenizer.encode(SPELLED).ids, tokenizer.ids(SPELLED)):
        assert len(ids) == len(SPELLED)
        assert ids.max() < tokenizer.specials.begin
        assert tokenizer.decode(ids) == SPELLED


def test_a_character_tokenizer_with_specials_read_again_has_them() -> None:
    for tokenizer in (characters(), characters(specials=False)):
        again = read_tokenizer(tokenizer.to_json())
        assert (again.texts, again.specials) == (tokenizer.texts, tokenizer.specials)


def test_hugging_face_reads_the_specials_under_the_same_ids() -> None:
    tokenizer = characters()
    theirs = HuggingFace.from_str(tokenizer.to_json())
    assert tuple(theirs.token_to_id(text) for text in ("<bos>", "<eos>", "<pad>")) == tokenizer.specials
    assert theirs.decode([0, *tokenizer.specials, 1]) == tokenizer.decode([0, 1])


@pytest.mark.parametrize(
    "change",
    [
        lambda added: added.pop(),
        lambda added: added.reverse(),
        lambda added: added[0].update(id=0),
        lambda added: added[0].update(content="a"),
        lambda added: added.append({"id": 99, "content": "<mask>"}),
        lambda added: added.append(None),
    ],
)
def test_other_added_tokens_than_the_three_are_refused(change) -> None:
    data = json.loads(characters().to_json())
    change(data["added_tokens"])
    with pytest.raises(UserError, match="not a tokenizer with one token per character"):
        read_tokenizer(json.dumps(data))


def test_a_word_tokenizer_has_at_most_an_end() -> None:
    assert WordTokenizer(("a", "<end>"), "<end>").specials == Specials(end=1)
    assert WordTokenizer(("a",)).specials == Specials()


@pytest.mark.parametrize("tokenizer", [characters(), WordTokenizer(("a",))], ids=["characters", "words"])
def test_each_kind_is_a_tokenizer(tokenizer: Tokenizer) -> None:
    assert isinstance(tokenizer, Tokenizer)
    assert tokenizer.ids("aaa").tolist() == tokenizer.encode("aaa").ids.tolist()


@pytest.mark.parametrize("make", [CharacterTokenizer.of_text, lambda text: WordTokenizer((text,))])
def test_half_a_surrogate_pair_is_no_part_of_a_vocabulary(make) -> None:
    with pytest.raises(UserError, match="half a surrogate pair"):
        make("a\ud83d")


def test_a_prompt_begins_with_bos_when_documents_did_and_is_never_empty_where_there_is_one() -> None:
    tokenizer, plain = characters(), characters(specials=False)
    begin = tokenizer.specials.begin
    a = plain.ids("a").tolist()
    assert prompt_ids(tokenizer, "a", begin=True) == [begin, *a]
    assert prompt_ids(tokenizer, "a", begin=False) == prompt_ids(plain, "a", begin=False) == a
    assert prompt_ids(tokenizer, "", begin=True) == prompt_ids(tokenizer, "", begin=False) == [begin]
    assert prompt_ids(plain, "", begin=False) == []


def test_a_prompt_cannot_begin_with_a_bos_that_is_not_there() -> None:
    with pytest.raises(UserError, match="no token that begins a text"):
        prompt_ids(characters(specials=False), "a", begin=True)
