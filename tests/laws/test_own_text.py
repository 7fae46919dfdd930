"""Our own tokenizers, rules, loops, data files and runs keep every law that applies to them."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from decoders import decoder_config, random_decoder
from glassformer.laws import Report, Verdict, check_subject
from glassformer.laws.subjects.data import Resumable
from glassformer.laws.subjects.decoding import Generator
from glassformer.laws.subjects.own import DecoderSubject
from glassformer.laws.subjects.run import loader_subject, loop_subject, rules_subject
from glassformer.laws.subjects.text import Chat, tokenizer_subject
from glassformer.laws.texts import PIECES, PLAIN, WINDOW
from glassformer.text import BytePairTokenizer, CharacterTokenizer, Specials, WordTokenizer
from glassformer.text.tokenizer import Tokenizer, prompt_ids
from resuming import begin, go_on, result

TEXT = "the cat and the hat, 汉字汉字 é 😀👩\u200d👧 don't 1234 <bos><eos><pad> " * 4


def kept(report: Report, *others: str) -> None:
    """Every probe holds but ``others``, and none is violated."""
    assert not report.violations, [(r.probe, r.finding) for r in report.violations]
    assert {r.probe for r in report if r.verdict is not Verdict.HOLDS} == set(others), [
        (r.probe, r.verdict.value, r.reason) for r in report
    ]


TOKENIZERS: dict[str, Callable[[], Tokenizer]] = {
    "characters": lambda: CharacterTokenizer.of_characters("".join((*PIECES, *PLAIN, WINDOW)), specials=True),
    "characters of one text": lambda: CharacterTokenizer.of_text("汉字，abc"),
    "words": lambda: WordTokenizer(["the", " cat", " the", " sat", ".", "汉字", "<end>"], end="<end>"),
    "bytes": lambda: BytePairTokenizer([]),
    "byte pairs": lambda: BytePairTokenizer.train([TEXT], 330),
}
UNTOLD = {"tokenizer.fixed-point", "tokenizer.reference", "control-tokens.encode", "control-tokens.count"}
CHAT = {"chat-ids.same", "chat-ids.begin", "chat-ids.scored", "chat-ids.end-of-turn"}


@pytest.mark.parametrize("name", TOKENIZERS)
def test_our_tokenizers_keep_every_law(name: str) -> None:
    tokenizer = TOKENIZERS[name]()
    without = set() if any(id is not None for id in tokenizer.specials) else {"control-tokens.content"}
    kept(check_subject(tokenizer_subject(tokenizer)), *UNTOLD, *CHAT, *without)


def test_a_prompt_begins_as_documents_do() -> None:
    tokenizer = BytePairTokenizer.train([TEXT], 300)
    subject = tokenizer_subject(tokenizer)
    first, last = tokenizer.specials.begin, tokenizer.specials.end
    assert first is not None
    assert last is not None

    def written(messages: Sequence[Any]) -> str:
        return "".join(message["content"] for message in messages)

    chat = Chat(
        training=lambda messages: [first, *tokenizer.ids(written(messages)).tolist(), last],
        serving=lambda messages: prompt_ids(tokenizer, written(messages), begin=True),
        begin=first,
    )
    told = type(subject)(name="byte pairs", encode=subject.encode, decode=subject.decode, chat=chat)
    kept(check_subject(told, only=("chat-ids.begin",)))


RULES = ("rules.min-p", "score.sampling")


def test_our_rules_keep_every_law_in_the_order_that_is_documented() -> None:
    kept(check_subject(rules_subject("rules")), *RULES)


class Letters:
    """As many letters as the model has tokens."""

    specials = Specials()

    def bytes_of(self, id: int) -> bytes:
        return b"abcdefghijklmnopqrstuvwxyz"[id : id + 1]


def our_loop(of_rule: bool) -> Generator:
    model = random_decoder(decoder_config(vocab_size=20, context=32, blocks=1))
    return loop_subject(model, Letters(), "Continuation", of_rule=of_rule)


BEAMS = ("rows.beams", "rows.length-penalty", "score.beams", "speculative.distribution")


def test_our_loop_keeps_every_law() -> None:
    kept(check_subject(our_loop(of_rule=False)), *BEAMS)


def test_the_probability_that_our_rule_gave_is_that_of_the_rule() -> None:
    kept(check_subject(our_loop(of_rule=True), only=("score",)), "score.greedy", "score.beams")


def test_a_decoder_and_its_loop_agree_up_to_the_context() -> None:
    report = check_subject(DecoderSubject(random_decoder(decoder_config())), only=("generate", "cache-algebra.copy"))
    assert {report[probe].verdict for probe in ("generate.greedy", "cache-algebra.copy")} == {Verdict.HOLDS}


EPOCHS = ("data.once", "data.epochs", "data.ranks", "resume.order")
"""Training windows are drawn with replacement, so there are none."""


def test_our_data_files_and_windows_keep_every_law() -> None:
    kept(check_subject(loader_subject("shards")), *EPOCHS)


def test_our_runs_keep_the_law_of_resuming(tmp_path: Path) -> None:
    numbers = itertools.count()

    def made(stops: Sequence[int]) -> dict[str, Any]:
        folder = tmp_path / str(next(numbers))
        begin(folder)
        for steps in stops:
            # The run asks before each step whether to stop.
            asked = itertools.count(1)
            go_on(folder, lambda steps=steps, asked=asked: next(asked) >= steps, until_saved=False)
        go_on(folder)
        return result(folder)

    kept(check_subject(Resumable(name="run", whole=lambda: made(()), interrupted=made, stops=((5,), (2, 4)))))
