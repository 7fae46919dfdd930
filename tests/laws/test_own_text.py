"""Our own tokenizers, rules, loops, data files and runs keep every law that applies to them."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from decoders import decoder_config, random_decoder
from glassformer.generation import Continuation, Request, Rule, StopStrings, draw, next_probabilities, uniform
from glassformer.laws import Report, Verdict, check_subject
from glassformer.laws.subjects.data import Loader, Resumable
from glassformer.laws.subjects.decoding import Generator, Written
from glassformer.laws.subjects.own import DecoderSubject
from glassformer.laws.subjects.sampling import Sampler
from glassformer.laws.subjects.text import Chat, tokenizer_subject
from glassformer.laws.texts import PIECES, PLAIN, WINDOW
from glassformer.text import BytePairTokenizer, CharacterTokenizer, Specials, WordTokenizer
from glassformer.text.batches import TokenStream
from glassformer.text.shards import DTYPES, CorpusWriter, ShardedIds, StreamWriter
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


def distribution(
    logits: torch.Tensor, *, temperature: float = 1.0, top_k: int | None = None, top_p: float = 1.0
) -> torch.Tensor:
    return next_probabilities(logits, Rule(temperature, top_k, top_p))


def drawn(
    logits: torch.Tensor,
    *,
    count: int,
    seed: int,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float = 1.0,
) -> list[int]:
    rule, generator = Rule(temperature, top_k, top_p), torch.Generator().manual_seed(seed)
    p = next_probabilities(logits, rule)
    return [draw(p, uniform(rule, generator)) for _ in range(count)]


def test_our_rules_keep_every_law_in_the_order_that_is_documented() -> None:
    subject = Sampler(name="rules", distribution=distribution, draw=drawn, order=("temperature", "top_k", "top_p"))
    kept(check_subject(subject), "rules.min-p", "score.sampling")


class Letters:
    """As many letters as the model has tokens; one of them may end a text."""

    def __init__(self, end: int | None = None) -> None:
        self.specials = Specials(end=end)

    def bytes_of(self, id: int) -> bytes:
        return b"" if id == self.specials.end else b"abcdefghijklmnopqrstuvwxyz"[id : id + 1]


def stopped(parts: Sequence[str], stop: str) -> str:
    strings = StopStrings([stop])
    return "".join([*(strings.feed(part) for part in parts), strings.end()])


def our_loop(of_rule: bool) -> Generator:
    model = random_decoder(decoder_config(vocab_size=20, context=32, blocks=1))

    def generate(
        prompts: Sequence[Sequence[int]], *, count: int, temperature: float = 0.0, seed: int = 0, end: int | None = None
    ) -> list[Written]:
        rows = []
        for prompt in prompts:
            text = Continuation(model, Letters(end), prompt, Request(count, Rule(temperature), seed))
            list(text)
            choices = [choice for choice in text.choices if choice.token != end]
            p = [choice.probability if of_rule else choice.model_probability for choice in choices]
            rows.append(Written(ids=[choice.token for choice in choices], score=sum(map(math.log, p))))
        return rows

    return Generator(
        name="Continuation", generate=generate, forward=lambda ids: model(ids[None]).logits[0], vocab_size=20,
        scores_of_rule=of_rule, stopped=stopped,
    )  # fmt: skip


BEAMS = ("rows.beams", "rows.length-penalty", "score.beams", "speculative.distribution")


def test_our_loop_keeps_every_law() -> None:
    kept(check_subject(our_loop(of_rule=False)), *BEAMS)


def test_the_probability_that_our_rule_gave_is_that_of_the_rule() -> None:
    kept(check_subject(our_loop(of_rule=True), only=("score",)), "score.greedy", "score.beams")


def test_a_decoder_and_its_loop_agree_up_to_the_context() -> None:
    report = check_subject(DecoderSubject(random_decoder(decoder_config())), only=("generate", "cache-algebra.copy"))
    assert {report[probe].verdict for probe in ("generate.greedy", "cache-algebra.copy")} == {Verdict.HOLDS}


def scored(m: int, n: int) -> list[int]:
    """Tokens that are their own places: the targets that count are the places that are predicted."""
    stream = TokenStream(np.arange(m), np.zeros(1, dtype=np.int64))
    return [int(place) for batch in stream.validation_windows(n, 2) for place in batch.targets[batch.scored]]


def test_our_data_files_and_windows_keep_every_law(tmp_path: Path) -> None:
    numbers = itertools.count()

    def through_files(ids: NDArray[np.int64], vocab_size: int) -> NDArray[Any]:
        dtype = next(name for name in DTYPES if vocab_size - 1 <= np.iinfo(name).max)
        folder = tmp_path / str(next(numbers))
        with CorpusWriter(folder) as writer:
            stream = StreamWriter(writer, "train", dtype, shard=64)
            stream.begin_document()
            stream.append(ids)
            shards = stream.finish()["shards"]
        assert len(shards) > 1 or dtype == "uint8"
        return ShardedIds([np.fromfile(folder / shard, DTYPES[dtype]) for shard in shards])[0 : len(ids)]

    report = check_subject(Loader(name="shards", kept=through_files, scored=scored))
    # Training windows are drawn with replacement, so there are no epochs.
    kept(report, "data.once", "data.epochs", "data.ranks", "resume.order")


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
