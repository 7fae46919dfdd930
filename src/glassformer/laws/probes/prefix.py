"""Prefix consistency: the logits of a prefix alone are those of the same positions in a longer text."""

from __future__ import annotations

from ...bilingual import words
from ..bench import Bench, causal_only
from ..law import Law, Probe
from ..runs import Claim, Inputs, Run, block
from ..verdict import Finding, NotApplicable


def lengths(bench: Bench) -> Finding:
    """Every tried length against the longest."""
    causal_only(bench)
    *shorter, longest = bench.lengths()
    whole = _beginning(bench, longest)
    at = {n: block([0], range(n)) for n in shorter}
    return bench.test(
        Claim(left=_beginning(bench, n), right=whole, left_at=at[n], facts={"prefix_of": longest}) for n in shorter
    )


def _beginning(bench: Bench, n: int) -> Run:
    """A run whose first row is the text of length ``n``: the one that causality makes too, where rows allow."""
    ids = bench.base(n)
    return bench.plain(bench.side_by_side(ids) if n > 1 and bench.rows_apart else ids)


def last_position(bench: Bench) -> Finding:
    """The call that generation makes, which gives the last position alone, against all positions of the text."""
    causal_only(bench)
    if not bench.subject.last_only:
        raise NotApplicable("ids alone give the logits of every position", "只输入 id 时给出所有位置的 logits")
    longest = bench.lengths()[-1]
    ids = bench.texts(1, longest)
    whole = bench.plain(ids)
    return bench.test(
        Claim(
            left=Run(calls=(Inputs(ids=ids[:, :n], bare=True),)), right=whole, left_at=block([0], [0]),
            right_at=block([0], [n - 1]), facts={"prefix_of": longest},
        )
        for n in bench.lengths()
    )  # fmt: skip


PREFIX = Law(
    id="prefix",
    statement=words(
        "A prefix alone has the logits that it has in a longer text.",
        "前缀单独输入时的 logits 与它在更长文本中的相同。",
    ),
    formula=r"\mathrm{logits}(x_{1:m})_i = \mathrm{logits}(x_{1:n})_i \quad (i \le m < n)",
    conditions=words("A model that predicts the next token.", "预测下一词元的模型。"),
    why=words(
        "Training reads whole texts, generation reads prefixes: both must see one distribution.",
        "训练读整段文本，生成读前缀：两者必须面对同一分布。",
    ),
    chapter="4.1",
    probes=(
        Probe(id="prefix.lengths", does=words("several lengths", "若干长度"), run=lengths, fast=True, repeated=True),
        Probe(
            id="prefix.last-position", run=last_position,
            does=words("the call that gives the last position alone", "只给出最后位置的调用"),
        ),
    ),
)  # fmt: skip
