"""From the probability of a text to cross-entropy: why the loss is a sum of logarithms."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from glassformer.notation import Kind, Program, build_program, group, place, quantity
from glassformer.notation.lemma import Lemma, Operands, Premise
from glassformer.notation.operands import Array
from glassformer.notation.steps import Step

from ..head import PROBABILITIES
from ..loss import LOSS

PREFIX = quantity(
    "prefix", r"\rho", "probability that a text begins so", "文本以此开头的概率", Kind.PROBABILITY, "prefix[s]"
)
HERE = quantity("here", r"\mathrm{here}", "the prefix before a step", "这一步之前的前缀", Kind.INPUT, "here[i]")
LONGER = quantity("longer", r"\mathrm{next}", "the prefix after it", "这一步之后的前缀", Kind.INPUT, "longer[i]")
FIRST = quantity("first", r"\mathrm{first}", "the shortest prefix", "最短的前缀", Kind.INPUT, "first")
LAST = quantity("last", r"\mathrm{last}", "the whole text", "整段文本", Kind.INPUT, "last")
WHOLE = quantity("like", r"\mathcal{P}", "probability of the text, given its first token", "给定首个词元时文本的概率",
                 Kind.PROBABILITY, "like = prefix[last]/prefix[first]")  # fmt: skip
CONDITIONAL = quantity("cond", "c", "probability of a token, given all before it", "给定此前全部词元时一个词元的概率",
                       Kind.PROBABILITY, "cond[i] = prefix[longer[i]]/prefix[here[i]]")  # fmt: skip
ONE_HOT = quantity("onehot", "r", "target distribution", "目标分布", Kind.PROBABILITY, """
onehot[i,w] = 1 if w == y[i] else 0
""")  # fmt: skip
SCORE = quantity("logits", r"\Lambda", "logits", "词表分数", Kind.INTERMEDIATE, "logits[i,w]")

TEXT = group("probability of a text", PREFIX, HERE, LONGER, FIRST, LAST, WHOLE, CONDITIONAL, ONE_HOT)
PREDICTION = group("prediction", SCORE, PROBABILITIES)


def program() -> Program:
    """Five predicted tokens of a vocabulary of four, beside the model's probabilities and loss."""
    parts = [
        place(PREDICTION, "head"),
        place(LOSS, "loss", logits="head.logits", p="head.p"),
        place(TEXT, "text", y="loss.y"),
    ]
    return build_program(parts, {"n": 5, "n_ctx": 6, "N": 4, "H": 1})


def _one_by_one(values: Mapping[str, Array], rng: np.random.Generator) -> Operands:
    step = np.arange(len(values["here"]))
    return {"here": step, "longer": step + 1, "first": np.array(0), "last": np.array(len(step))}


def _predicted(values: Mapping[str, Array], rng: np.random.Generator) -> Operands:
    p = values["p"].copy()
    p[np.arange(len(p)), values["y"]] = values["cond"]
    return {"p": p}


ONE_BY_ONE = Premise(
    "one by one",
    "each prefix is the one before and one token more",
    "每个前缀都是前一个前缀再加一个词元",
    _one_by_one,
)
PREDICTED = Premise(
    "predicted",
    "the model's probability of the target is that of the token, given all before it",
    "模型给目标的概率就是给定此前全部词元时该词元的概率",
    _predicted,
)

LIKELIHOOD = Lemma(
    "likelihood", "the likelihood of a text is a sum of cross-entropies", "文本的似然就是各位置交叉熵之和", "9.2", program, "",
    (
        Step("-ln(like)", "largest where the probability of the text is smallest", "文本概率越小，它越大"),
        Step("-ln(prefix[last]/prefix[first])", "conditional probability, by definition", "条件概率的定义", ("like",)),
        Step(
            "-ln(prefix[last]) + ln(prefix[first])",
            "the logarithm of a quotient",
            "商的对数",
        ),
        Step(
            "sum(-ln(prefix[longer[i]]) + ln(prefix[here[i]]) for i in n)",
            "one token after another: everything between the first and the last prefix cancels (no token is assumed to be "
            "independent of another)",
            "逐个词元展开：首尾之间的各项全部抵消（不需要假设词元相互独立）",
            ("one by one",),
        ),
        Step(
            "sum(-ln(cond[i]) for i in n)",
            "each quotient of two prefixes is a conditional probability, by definition: their product is the whole",
            "相邻前缀概率之商按定义就是条件概率：它们的乘积即整段概率",
            ("cond",),
        ),
        Step("sum(-ln(p[i,y[i]]) for i in n)", "the model predicts these", "模型预测的正是它们", ("predicted",)),
        Step(
            "sum(-sum(onehot[i,w]*ln(p[i,w]) for w in N) for i in n)",
            "cross-entropy with a target distribution that has everything on one token",
            "目标分布全部集中在一个词元上时的交叉熵",
            ("onehot",),
        ),
    ),
    (ONE_BY_ONE, PREDICTED),
)  # fmt: skip

MEAN_LOSS = Lemma(
    "loss-from-probabilities", "the loss is the mean over the scored positions", "损失是计分位置上的平均", "9.2", program, "",
    (
        Step(
            "sum(-ln(p[i,y[i]]) if scored[i] else 0 for i in n)/count",
            "minus the logarithm of the target's probability, averaged over the positions that count",
            "目标概率的负对数，在计分位置上取平均",
        ),
        Step(
            "sum(ln(sum(exp(logits[i,v]) for v in N)) - logits[i,y[i]] if scored[i] else 0 for i in n)/count",
            "p is the softmax of the logits: the logarithm of the quotient",
            "p 是词表分数的 Softmax：商的对数",
            ("p",),
        ),
        Step("sum(nll[i] for i in n)/count", "each term is the loss of one position", "每一项就是一个位置的损失", ("nll",)),
        Step("L", "by definition; the divisor moves no minimum", "按定义；除数不改变最小点", ("L",)),
    ),
)  # fmt: skip

LIKELIHOOD_LEMMAS: tuple[Lemma, ...] = (LIKELIHOOD, MEAN_LOSS)
