"""Derivations of dropout: what was left out sends nothing back."""

from __future__ import annotations

from glassformer.notation.chain import Chain, Step

from ..dropout import ATTENDED, COEFFICIENTS, EMBEDDED, TRANSFORMED, Dropped


def _dropped(what: str, dropped: Dropped, cell: str, rate: str, en: str, zh: str) -> Chain:
    """Of one place: ``cell`` is the index text of its numbers, ``rate`` the name of its rate."""
    name, kept = dropped.result.name, dropped.kept.name
    return Chain(
        f"dropout-{what}", f"gradient of the {en} through dropout", f"{zh}穿过 Dropout 的梯度", "",
        (dropped.result,), name.removesuffix("_D"),
        (
            Step(
                f"{name}.grad[{cell}]*(1/(1 - {rate}) if {kept}[{cell}] else 0)",
                "cell by cell; a cell that is kept is divided by 1 - p, and one that is left out is 0 whatever it was",
                "逐元素进行；保留的元素除以 1 − p，被丢弃的元素无论原来是多少都变成 0",
            ),
            Step("", "a product with 0 is 0", "与 0 相乘得 0"),
        ),
    )  # fmt: skip


DROPOUT_CHAINS: tuple[Chain, ...] = (
    _dropped("feed-forward", TRANSFORMED, "i,r", "p_resid", "feed-forward output", "前馈输出"),
    _dropped("attention", ATTENDED, "i,r", "p_resid", "attention output", "注意力输出"),
    _dropped("coefficients", COEFFICIENTS, "h,i,j", "p_attn", "coefficients", "混合系数"),
    _dropped("embedding", EMBEDDED, "i,r", "p_embed", "input matrix", "输入矩阵"),
)
