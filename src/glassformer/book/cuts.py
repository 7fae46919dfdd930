"""The fixed sentence under the segmentation made by hand, and under tokenizers that were really trained."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from ..bilingual import words
from ..text import BytePairTokenizer
from ..text.clinic import SENTENCE, clinic
from ..tracing.probes import Report
from ..tracing.probes.report import Note, Table

SIZES = (270, 300, 320, 400)
"""Vocabularies to train: a few merges above the 256 bytes, up to one in which the whole sentence is a token or two."""

SAMPLED = 400
"""Sentences of the clinic language that they are trained on."""


def cuts() -> Report:
    """How each vocabulary cuts the sentence; the same at every call."""
    language = clinic("zh")
    drawn = language.sample(SAMPLED, np.random.default_rng(0))
    texts = [language.text(int(number)) for number in drawn]
    rows = [(words("by hand", "人为切分"), None, len(SENTENCE), " | ".join(SENTENCE))]
    for size in SIZES:
        tokenizer = BytePairTokenizer.train(texts, size)
        pieces = _pieces(tokenizer, "".join(SENTENCE))
        rows.append((words("trained BPE", "训练得到的 BPE"), tokenizer.vocab_size, len(pieces), " | ".join(pieces)))
    columns = (
        words("segmentation", "切法"), words("vocabulary", "词表大小"), words("tokens", "词元数"), words("pieces", "各片"),
    )  # fmt: skip
    title = words("One sentence, cut in several ways", "同一句话的几种切法")
    table = Table(
        words(f"trained on {SAMPLED} sampled sentences of its kind", f"用 {SAMPLED} 句抽样得到的同类句子训练"),
        columns, tuple(rows), "computed",
    )  # fmt: skip
    note = Note(
        "definition",
        words(
            "A token that is only a part of a character is written as its bytes.",
            "不足一个字的词元，写成它的各个字节。",
        ),
    )
    return Report("cuts", title, "computed", (table,), (note,))


def _pieces(tokenizer: BytePairTokenizer, text: str) -> list[str]:
    """Each token's text; the bytes of one that shares its character with a neighbour."""
    tokens = tokenizer.encode(text)
    spans = [tuple(map(int, span)) for span in tokens.spans]
    shared = {span for span, after in pairwise(spans) if span[1] > after[0]}
    return [
        f"<{tokenizer.bytes_of(int(id)).hex(' ').upper()}>" if span in shared else text[span[0] : span[1]]
        for id, span in zip(tokens.ids, spans, strict=True)
    ]
