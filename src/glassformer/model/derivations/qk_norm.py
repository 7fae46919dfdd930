"""Derivations of QK-norm: through the root mean square of a query or key, and the gains."""

from __future__ import annotations

from glassformer.notation.chain import Chain, Step

from ..qk_norm import NORMALISED_KEYS, NORMALISED_QUERIES, RESCALED_KEYS, RESCALED_QUERIES

_QUERY_THROUGH_RMS = "sum(Qhat.grad[h,i,a]*Q[h,i,a] for a in d_k)/rms_Q[h,i]**2"
_KEY_THROUGH_RMS = "sum(Khat.grad[k,j,a]*K[k,j,a] for a in d_k)/rms_K[k,j]**2"

_RULE = (
    "head by head and row by row; d rms = mean(2x dx)/(2 rms), put into the rule for quotients",
    "逐头逐行进行；d rms = mean(2x·dx)/(2·rms)，代入商的求导法则",
)
_ONE_COORDINATE = ("of the sums over a only a = c is left", "对 a 的求和只剩 a = c")
_MEAN = ("a sum divided by d_k is a mean", "和除以 d_k 就是平均")
_NORMALISED = ("a row divided by its root mean square is the normalised row", "行除以其均方根就是标准化后的行")
_GAIN = ("coordinate c is multiplied by its gain, and nothing else", "坐标 c 只被乘以它的增益")

QK_NORM_CHAINS: tuple[Chain, ...] = (
    Chain(
        "qk-norm-queries", "gradient of the queries through QK-norm", "查询穿过 QK 归一化的梯度", "",
        (RESCALED_QUERIES,), "Q",
        (
            Step(
                "sum(Qhat.grad[h,i,a]*(1 if a == c else 0) for a in d_k)/rms_Q[h,i]"
                f" - {_QUERY_THROUGH_RMS}*(mean(2*Q[h,i,a]*(1 if a == c else 0) for a in d_k)/(2*rms_Q[h,i]))",
                *_RULE,
                ("rms_Q",),
            ),
            Step(f"Qhat.grad[h,i,c]/rms_Q[h,i] - {_QUERY_THROUGH_RMS}*(Q[h,i,c]/d_k/rms_Q[h,i])", *_ONE_COORDINATE),
            Step(
                "Qhat.grad[h,i,c]/rms_Q[h,i]"
                " - mean(Qhat.grad[h,i,a]*Q[h,i,a] for a in d_k)/rms_Q[h,i]**2*(Q[h,i,c]/rms_Q[h,i])",
                *_MEAN,
            ),
            Step("", *_NORMALISED, ("Qhat",)),
        ),
    ),
    Chain(
        "qk-norm-keys", "gradient of the keys through QK-norm", "键穿过 QK 归一化的梯度", "",
        (RESCALED_KEYS,), "K",
        (
            Step(
                "sum(Khat.grad[k,j,a]*(1 if a == c else 0) for a in d_k)/rms_K[k,j]"
                f" - {_KEY_THROUGH_RMS}*(mean(2*K[k,j,a]*(1 if a == c else 0) for a in d_k)/(2*rms_K[k,j]))",
                *_RULE,
                ("rms_K",),
            ),
            Step(f"Khat.grad[k,j,c]/rms_K[k,j] - {_KEY_THROUGH_RMS}*(K[k,j,c]/d_k/rms_K[k,j])", *_ONE_COORDINATE),
            Step(
                "Khat.grad[k,j,c]/rms_K[k,j]"
                " - mean(Khat.grad[k,j,a]*K[k,j,a] for a in d_k)/rms_K[k,j]**2*(K[k,j,c]/rms_K[k,j])",
                *_MEAN,
            ),
            Step("", *_NORMALISED, ("Khat",)),
        ),
    ),
    Chain(
        "qk-norm-scaled-queries", "gradient of the normalised queries", "标准化后查询的梯度", "",
        (NORMALISED_QUERIES,), "Qhat", (Step("", *_GAIN),),
    ),
    Chain(
        "qk-norm-scaled-keys", "gradient of the normalised keys", "标准化后键的梯度", "",
        (NORMALISED_KEYS,), "Khat", (Step("", *_GAIN),),
    ),
    Chain(
        "qk-norm-query-gain", "gradient of the queries' gain", "查询增益的梯度", "", (NORMALISED_QUERIES,), "gamma_Q",
        (
            Step(
                "", "the gain multiplies coordinate c of the query of every row, in every head",
                "增益乘每个头里每一行查询的坐标 c",
            ),
        ),
    ),
    Chain(
        "qk-norm-key-gain", "gradient of the keys' gain", "键增益的梯度", "", (NORMALISED_KEYS,), "gamma_K",
        (
            Step(
                "", "the gain multiplies coordinate c of the key of every position, in every head of keys",
                "增益乘每个键头里每个位置的键的坐标 c",
            ),
        ),
    ),
)  # fmt: skip
