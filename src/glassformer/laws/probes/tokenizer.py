"""Tokenizer: encoding and decoding give the text back, at once, as a stream, and character by character."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from ...bilingual import words
from ..law import Family, Law, Probe
from ..subjects.text import Ids, Tokenizer
from ..texts import WINDOW, hard_texts, shown
from ..verdict import Finding, NotApplicable, NotSupported

LOST = "\ufffd"
"""What decoders write for bytes that are no character."""

REACH = 400
"""So many ids at the beginning of the vocabulary are joined to texts, for tokenizers that know few characters."""


def texts_and_ids(subject: Tokenizer) -> Sequence[tuple[str, Ids]]:
    """The hard texts that ``subject`` can encode, with their ids; raises ``NotSupported`` where there are none."""
    found = []
    for text in (*hard_texts(), WINDOW, *_own_texts(subject)):
        try:
            found.append((text, [int(id) for id in subject.encode(text)]))
        except Exception:  # noqa: BLE001, S112 - a text that is refused aloud is not lost in silence
            continue
    if not any(ids for _, ids in found):
        raise NotSupported("no text that was tried can be encoded", "试过的文本都不能编码")
    return found


def _own_texts(subject: Tokenizer) -> Iterator[str]:
    """Texts joined from what single ids decode to."""
    generator = random.Random(0)  # noqa: S311 - texts to try, no secret
    special = set(subject.special.values())
    ids = [id for id in range(min(REACH, subject.vocab_size or 0)) if id not in special]
    pieces = [piece for id in ids if (piece := _decoded(subject, [id])) and LOST not in piece]
    if pieces:
        yield from ("".join(generator.choices(pieces, k=k)) for k in (2, 5, 9, 14, 20, 40))


def _decoded(subject: Tokenizer, ids: Ids) -> str | None:
    """The text of ``ids``; None where decoding raises."""
    try:
        return subject.decode(ids)
    except Exception:  # noqa: BLE001 - foreign code may raise anything; whoever asked knows what that means
        return None


def counted(wrong: Iterable[Any], **witness: Any) -> Finding:
    """How many texts went wrong; the first of them is the witness."""
    found = list(wrong)
    return Finding(measured=len(found), bound=0, unit="text", witness={**witness, **(found[0] if found else {})})


def lossless(subject: Tokenizer) -> None:
    """Raise ``NotApplicable`` for a tokenizer that says it changes texts."""
    if subject.normalise is not None:
        raise NotApplicable("this tokenizer declares that it changes texts", "该分词器声明会改动文本")


def round_trip(subject: Tokenizer) -> Finding:
    """Of every text: itself, or what the declared normaliser makes of it."""
    normalise = subject.normalise or (lambda text: text)
    pairs = texts_and_ids(subject)
    return counted(
        (
            {"text": shown(text), "expected": shown(normalise(text)), "decoded": shown(str(_decoded(subject, ids)))}
            for text, ids in pairs
            if _decoded(subject, ids) != normalise(text)
        ),
        texts=len(pairs),
    )


def fixed_point(subject: Tokenizer) -> Finding:
    """A declared normaliser has nothing left to do after one round."""
    normalise = subject.normalise
    if normalise is None:
        raise NotApplicable("this tokenizer changes no text", "该分词器不改动文本")
    wrong, tried = [], 0
    for text, _ in texts_and_ids(subject):
        once = normalise(text)
        try:
            twice = normalise(once)
        except Exception:  # noqa: BLE001, S112 - refused aloud
            continue
        tried += 1
        if twice != once:
            wrong.append({"text": shown(text), "once": shown(once), "twice": shown(twice)})
    return counted(wrong, texts=tried)


def id_range(subject: Tokenizer) -> Finding:
    """Ids are from 0 to N - 1."""
    if subject.vocab_size is None:
        raise NotSupported("the size of the vocabulary was not told", "未给出词表大小")
    return counted(
        {"text": shown(text), "id": next(id for id in ids if not 0 <= id < subject.vocab_size)}
        for text, ids in texts_and_ids(subject)
        if any(not 0 <= id < subject.vocab_size for id in ids)
    )


def stream(subject: Tokenizer) -> Finding:
    """Parts joined are the whole, no part has a lost character that the text has not, and a cut harms nothing."""
    if subject.stream is None:
        raise NotSupported("no stream decoder was told", "未给出流式解码")
    wrong = [found for text, ids in texts_and_ids(subject) if (found := _streamed(subject, subject.stream, text, ids))]
    return counted(wrong)


def _streamed(subject: Tokenizer, stream: Callable[[Ids], Iterable[str]], text: str, ids: Ids) -> dict[str, Any] | None:
    whole = _decoded(subject, ids) or ""
    # A text that ends in the middle of a character may end in lost ones, or in none; all before them is settled.
    for cut in {len(ids), len(ids) // 2, len(ids) - 1} if len(ids) < len(WINDOW) else {len(ids)}:
        try:
            parts = "".join(stream(ids[: max(0, cut)]))
        except Exception as error:  # noqa: BLE001 - a stream that breaks off is what is looked for
            return {"text": shown(text), "ids": cut, "raised": type(error).__name__}
        if cut == len(ids):
            good = parts == whole
        else:
            good = parts.rstrip(LOST) == (_decoded(subject, ids[:cut]) or "").rstrip(LOST)
        if not good:
            return {"text": shown(text), "ids": cut, "of_ids": len(ids), "streamed": shown(parts)}
    return None


def concatenation(subject: Tokenizer) -> Finding:
    """The ids of two texts, joined, decode to the two texts joined."""
    lossless(subject)
    pairs = texts_and_ids(subject)
    neighbours = zip(pairs, (*pairs[7:], *pairs[:7]), strict=True)
    return counted(
        {"first": shown(a), "second": shown(b), "decoded": shown(str(_decoded(subject, [*x, *y])))}
        for (a, x), (b, y) in neighbours
        if _decoded(subject, [*x, *y]) != a + b
    )


def spans(subject: Tokenizer) -> Finding:
    """Each id covers characters of the text, in order; of a lossless tokenizer, those that the ids before have not."""
    if subject.spans is None:
        raise NotSupported("no character spans were told", "未给出字符区间")
    wrong = []
    for text, ids in texts_and_ids(subject):
        given = [(int(a), int(b)) for a, b in subject.spans(text)]
        fault = _misplaced(text, ids, given) or (
            _uncovered(subject, text, ids, given) if not subject.normalise else None
        )
        if fault:
            wrong.append({"text": shown(text), "spans": given[:20], **fault})
    return counted(wrong)


def _misplaced(text: str, ids: Ids, given: Sequence[tuple[int, int]]) -> dict[str, Any] | None:
    if len(given) != len(ids):
        return {"fault": f"{len(given)} spans for {len(ids)} ids"}
    begin = 0
    for at, (first, last) in enumerate(given):
        if not begin <= first <= last <= len(text):
            return {"fault": "out of order or out of the text", "id_at": at}
        begin = first
    return None


def _uncovered(subject: Tokenizer, text: str, ids: Ids, given: Sequence[tuple[int, int]]) -> dict[str, Any] | None:
    """Where the text of the first ids is not the text before the next span; white space may belong to either side."""
    ends = [0, *(last for _, last in given)]
    starts = [*(first for first, _ in given), len(text)]
    for at, (end, start) in enumerate(zip(ends, starts, strict=True)):
        if end > start:  # two ids share a character
            continue
        if text[end:start].strip():
            return {"fault": "characters in no span", "id_at": at}
        if (_decoded(subject, ids[:at]) or "").rstrip() != text[:start].rstrip():
            return {"fault": "the ids before it have another text", "id_at": at}
    return None


def reference(subject: Tokenizer) -> Finding:
    """The ids are those of the reference tokenizer."""
    if subject.reference is None:
        raise NotSupported("no reference tokenizer was told", "未给出参照分词器")
    return counted(
        {"text": shown(text), "ids": list(ids)[:20], "reference": wanted[:20]}
        for text, ids in texts_and_ids(subject)
        if (wanted := [int(id) for id in subject.reference(text)]) != list(ids)
    )


def _probe(name: str, en: str, zh: str, run: Callable[[Tokenizer], Finding]) -> Probe:
    return Probe(id=f"tokenizer.{name}", does=words(en, zh), run=run, family=Family.TOKENIZER, fast=True)


TOKENIZER = Law(
    id="tokenizer",
    statement=words(
        "Decoding what was encoded gives the text back, whole or as a stream; spans name the characters of each token.",
        "编码后再解码得回原文，整体或流式皆然；字符区间指明每个词元对应的字符。",
    ),
    formula=r"\mathrm{decode}(\mathrm{encode}(x)) = x",
    conditions=words(
        "A tokenizer of bytes or characters; one with a declared normaliser f gives f(x), and f(f(x)) = f(x).",
        "字节级或字符级分词器；声明了规范化 f 的给出 f(x)，且 f(f(x)) = f(x)。",
    ),
    why=words(
        "What is lost here no model can learn, and half characters reach readers.",
        "此处丢失的内容模型学不到，读者还会看到半个字符。",
    ),
    chapter="3.1",
    probes=(
        _probe("round-trip", "texts that break tokenizers", "易使分词器出错的文本", round_trip),
        _probe("fixed-point", "a normaliser twice", "规范化两次", fixed_point),
        _probe("ids", "ids within the vocabulary", "编号在词表之内", id_range),
        _probe("stream", "decoded as a stream, whole and cut", "流式解码，完整与截断", stream),
        _probe("concatenation", "ids of two texts joined", "两段文本的编号相接", concatenation),
        _probe("spans", "characters of each token", "每个词元的字符", spans),
        _probe("reference", "the ids of a reference", "与参照分词器的编号相同", reference),
    ),
)
