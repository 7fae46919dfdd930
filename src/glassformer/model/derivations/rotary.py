"""Derivations of rotary positions: the gradient is turned back by the same angle."""

from __future__ import annotations

from glassformer.notation import Quantity
from glassformer.notation.chain import Chain, Step

from ..rotary import ROTATED_KEYS, ROTATED_QUERIES


def _turned_back(id: str, home: Quantity, target: str, at: str, row: str, en: str, zh: str) -> Chain:
    """``at`` is the index text up to the coordinate (``h,i``), ``row`` the letter of the position."""
    turned = f"{home.name}.grad"
    return Chain(
        id, en, zh, "8.6", (home,), target,
        (
            Step(
                f"{turned}[{at},c]*cos_[{row},c] + sign[partner[c]]*{turned}[{at},partner[c]]*sin_[{row},partner[c]]",
                "coordinate c enters itself, with the cosine, and the one coordinate whose partner it is, with the sine; "
                "that is its own partner, because being partners is mutual",
                "坐标 c 以余弦进入它自己，以正弦进入以它为配对的那个坐标；配对是相互的，所以那正是它自己的配对",
                ("partner",),
            ),
            Step(
                "",
                "partners turn by the same angle and have opposite signs: a minus appears, and the gradient is turned back "
                "by that angle (the inverse of a rotation is its transpose)",
                "配对的两个坐标转角相同、符号相反，于是出现负号：梯度按同一角度转回去（旋转的逆就是它的转置）",
                ("partner", "sign", "sin_"),
            ),
        ),
    )  # fmt: skip


ROTARY_CHAINS: tuple[Chain, ...] = (
    _turned_back(
        "rotated-queries",
        ROTATED_QUERIES,
        "Q",
        "h,i",
        "i",
        "gradient through the rotation of the queries",
        "穿过查询旋转的梯度",
    ),
    _turned_back(
        "rotated-keys", ROTATED_KEYS, "K", "k,j", "j", "gradient through the rotation of the keys", "穿过键旋转的梯度"
    ),
)
