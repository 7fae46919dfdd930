"""Derivations of the head and the loss: softmax with cross-entropy, the output layer."""

from __future__ import annotations

from glassformer.notation.chain import Chain, Step

from ..head import LOGITS
from ..loss import MEAN_LOSS, POSITION_LOSS
from .steps import ONE_COORDINATE

MEAN = Chain(
    "mean-loss", "the mean shares the gradient out", "平均把梯度分给每个位置", "10.2", (MEAN_LOSS,), "nll",
    (
        Step(
            "",
            "each position's loss is one term of the sum, which is divided by the number of scored positions",
            "每个位置的损失是和中的一项，和再除以计分位置数",
        ),
    ),
)  # fmt: skip

_OWN_ROW = Step(
    "nll.grad[i]*(sum(exp(logits[i,v])*(1 if v == w else 0) for v in N)/sum(exp(logits[i,v]) for v in N)"
    " - (1 if y[i] == w else 0)) if scored[i] else 0",
    "the logits of row i enter the loss of row i alone",
    "第 i 行的分数只进入第 i 行的损失",
)
_ONE_TOKEN = Step(
    "nll.grad[i]*(exp(logits[i,w])/sum(exp(logits[i,v]) for v in N) - (1 if y[i] == w else 0)) if scored[i] else 0",
    "of the sum over v in the numerator only v = w is left",
    "分子中对 v 的求和只剩 v = w",
)

CROSS_ENTROPY = Chain(
    "cross-entropy", "softmax with cross-entropy", "Softmax 与交叉熵合并后的梯度", "10.3", (POSITION_LOSS,), "logits",
    (_OWN_ROW, _ONE_TOKEN, Step("", "p is the softmax of the logits", "p 是词表分数的 Softmax", ("p",))),
)  # fmt: skip

CONFIDENTLY_WRONG = Chain(
    "confidently-wrong", "the output softmax keeps its gradient when it is wrong", "输出 Softmax 出错时梯度不消失", "7.3",
    (POSITION_LOSS,), "logits",
    (
        _OWN_ROW,
        _ONE_TOKEN,
        Step(
            "nll.grad[i]*(p[i,w] if w != y[i] else -sum(p[i,v] for v in N if v != w)) if scored[i] else 0",
            "p is the softmax of the logits and sums to 1: at the target its gradient is minus all that the other tokens "
            "hold, near -1 when one of them holds nearly everything. The factor p(1 - p) of softmax is gone: the "
            "logarithm has divided by p",
            "p 是词表分数的 Softmax，总和为 1：目标处的梯度是其他词元概率之和的相反数，某个错误词元几乎占满时接近 −1。"
            "Softmax 的因子 p(1 − p) 已不在：对数除掉了 p",
            ("p",),
        ),
        Step("", "what the others hold is 1 - p of the target", "其他词元的概率之和是 1 减目标概率", ("p",)),
    ),
)  # fmt: skip

OUTPUT_LAYER = (
    Chain(
        "output-weights", "gradient of the vocabulary output matrix", "词表输出矩阵的梯度", "10.4", (LOGITS,), "U",
        (
            Step(
                "sum(logits.grad[i,w]*sum(X[i,q]*(1 if q == r else 0) for q in d) for i in n)",
                "column w of U makes the score of token w, in every row",
                "U 的第 w 列在每一行产生词元 w 的分数",
            ),
            Step("", *ONE_COORDINATE),
        ),
    ),
    Chain(
        "hidden-rows", "gradient of the hidden rows", "隐藏向量的梯度", "10.4", (LOGITS,), "X",
        (
            Step(
                "sum(logits.grad[i,w]*sum((1 if q == r else 0)*U[q,w] for q in d) for w in N)",
                "row i of the hidden state makes all scores of row i",
                "第 i 行隐藏向量产生第 i 行的所有分数",
            ),
            Step("", *ONE_COORDINATE),
        ),
    ),
    Chain(
        "output-bias", "gradient of the vocabulary bias", "词表偏置的梯度", "10.4", (LOGITS,), "b_U",
        (Step("", "the bias of token w is added to its score in every row", "词元 w 的偏置加到每一行它的分数上"),),
    ),
)  # fmt: skip

OUTPUT_CHAINS: tuple[Chain, ...] = (MEAN, CROSS_ENTROPY, CONFIDENTLY_WRONG, *OUTPUT_LAYER)
