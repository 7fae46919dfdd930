"""Laws of tokenizers catch each fault in a small one, and find none in correct ones."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest
from tokenizers import Regex, decoders, models, normalizers, pre_tokenizers, trainers
from tokenizers import Tokenizer as Library

from glassformer.errors import UserError
from glassformer.laws import Report, Verdict, check_subject
from glassformer.laws.subjects.text import Chat, Tokenizer, tokenizer_subject
from mutants import Mutant, mutated
from mutants_text import FILE, MUTANTS


def subject_of(module: ModuleType) -> Tokenizer:
    small, right = module.SmallTokenizer(), mutated(FILE).SmallTokenizer()
    return Tokenizer(
        name="small",
        encode=small.encode,
        decode=small.decode,
        stream=small.stream,
        spans=small.spans,
        vocab_size=small.vocab_size,
        special=small.control,
        reference=right.encode,
        chat=Chat(
            training=small.training, serving=small.serving, scored=small.scored, begin=small.control["<|begin|>"]
        ),
    )


def verdicts(report: Report) -> dict[str, Any]:
    return {
        result.probe: (result.verdict.value, result.plain()) for result in report if result.verdict is not Verdict.HOLDS
    }


def test_the_small_tokenizer_breaks_no_law_and_every_probe_measures() -> None:
    report = check_subject(subject_of(mutated(FILE)))
    assert set(verdicts(report)) == {"tokenizer.fixed-point", "control-tokens.encode"}


@pytest.mark.parametrize("mutant", MUTANTS, ids=str)
def test_a_fault_is_caught_by_the_law_it_breaks(mutant: Mutant) -> None:
    report = check_subject(subject_of(mutated(mutant.file, mutant.old, mutant.new)), only=(mutant.law,))
    assert report[mutant.law].verdict is Verdict.VIOLATED, verdicts(report)


CORPUS = ["the cat sat on the mat, and the dog ate 12 apples " * 3, "汉字 é 😀 hello world " * 3]


def byte_level(**settings: Any) -> Library:
    tokenizer = Library(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=settings.get("prefix", False))
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=300, special_tokens=["<s>", "</s>"], initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )  # fmt: skip
    tokenizer.train_from_iterator(CORPUS, trainer)
    return tokenizer


def word_pieces() -> Library:
    tokenizer = Library(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    trainer = trainers.WordPieceTrainer(vocab_size=120, special_tokens=["[UNK]", "[CLS]"], show_progress=False)
    tokenizer.train_from_iterator(CORPUS, trainer)
    return tokenizer


def t5_like() -> Library:
    tokenizer = Library(models.Unigram())
    tokenizer.normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Replace(Regex(" {2,}"), " ")])
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Metaspace()
    trainer = trainers.UnigramTrainer(
        vocab_size=120, special_tokens=["<unk>", "</s>"], unk_token="<unk>", show_progress=False
    )
    tokenizer.train_from_iterator(CORPUS, trainer)
    return tokenizer


def lossless_without_words() -> Library:
    tokenizer = byte_level()
    tokenizer.encode_special_tokens = True
    return tokenizer


LIBRARY = {
    "byte level": byte_level,
    "byte level, prefix space": lambda: byte_level(prefix=True),
    "control tokens split": lossless_without_words,
    "word pieces": word_pieces,
}


@pytest.mark.parametrize("make", LIBRARY.values(), ids=LIBRARY)
def test_tokenizers_of_the_library_break_no_law(make: Any) -> None:
    report = check_subject(tokenizer_subject(make()))
    assert not report.violations, verdicts(report)
    assert report.count(Verdict.HOLDS) >= 4


def test_a_vocabulary_that_holds_its_control_tokens_is_caught_where_content_can_spell_them() -> None:
    """A Unigram model finds ``</s>`` among its pieces whatever ``encode_special_tokens`` says."""
    report = check_subject(tokenizer_subject(t5_like()))
    assert [result.probe for result in report.violations] == ["control-tokens.content"]
    assert report["tokenizer.fixed-point"].verdict is Verdict.HOLDS


def test_the_usual_encoding_of_the_library_is_a_documented_limit() -> None:
    report = check_subject(tokenizer_subject(byte_level()))
    assert report["control-tokens.encode"].verdict is Verdict.DOCUMENTED
    assert report["control-tokens.content"].verdict is Verdict.HOLDS
    assert not byte_level().encode_special_tokens


def test_a_tokenizer_that_is_none_is_refused_in_words() -> None:
    with pytest.raises(UserError, match="A dict is no tokenizer"):
        tokenizer_subject({})


TEMPLATE = (
    "{{ bos_token }}{% for m in messages %}[{{ m['role'] }}]\n{{ m['content'] }}</s>{% endfor %}"
    "{% if add_generation_prompt %}[assistant]\n{% endif %}"
)


def hub(template: str) -> Any:
    transformers = pytest.importorskip("transformers")
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=byte_level(), bos_token="<s>", eos_token="</s>")
    tokenizer.chat_template = template
    return tokenizer


def test_a_tokenizer_of_the_hub_is_known_by_its_methods_and_its_template_is_tried() -> None:
    report = check_subject(tokenizer_subject(hub(TEMPLATE)))
    # Content goes through the template into one text, so what it spells becomes what it spells.
    assert [result.probe for result in report.violations] == ["control-tokens.count"]
    assert {report[f"chat-ids.{name}"].verdict for name in ("same", "begin")} == {Verdict.HOLDS}


def test_a_template_with_a_second_beginning_is_caught() -> None:
    report = check_subject(tokenizer_subject(hub("{{ bos_token }}" + TEMPLATE)))
    assert report["chat-ids.begin"].verdict is Verdict.VIOLATED


def test_a_prompt_that_ends_in_a_space_is_caught() -> None:
    """The space belongs to the reply's first token in training, and stands alone in serving."""
    report = check_subject(tokenizer_subject(hub(TEMPLATE.replace("\n", " "))))
    assert report["chat-ids.same"].verdict is Verdict.VIOLATED
