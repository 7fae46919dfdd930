"""The three figures, drawn from the code: the order of definitions, the mask, the way of the gradient."""

from __future__ import annotations

import html
import re
from collections.abc import Mapping, Sequence

import torch

from ..bilingual import words
from ..model import Decoder
from ..notation import Kind, Program
from ..notation.symbols import plain_symbol, style_of
from ..notation.tree import refs
from .library import Library, full_config

SENTENCE = ("患者", "服用", "华法林", "后", "出现", "黑便", "。")
ENGLISH = ("patient", "takes", "warfarin", "after", "appears", "black stool", ".")
"""The fixed sentence in its seven pieces, and what they mean, for readers of English."""

ROW = 4
"""The row of 出现, from 0."""

_CELL = 30


def mask_figure(lang: str) -> str:
    """Figure 2: who may read whom, from the mask that the model computes for seven tokens."""
    allowed = _recorded_mask()
    texts = SENTENCE if lang == "zh" else ENGLISH
    left, top = 110, 90
    parts = []
    for i, row in enumerate(allowed):
        parts.append(_text(left - 8, top + _CELL * i + 20, texts[i], "end"))
        parts.append(
            f'<text transform="translate({left + _CELL * i + 18} {top - 8}) rotate(-55)">{html.escape(texts[i])}</text>'
        )
        for j, reads in enumerate(row):
            style = "may" if reads else "not"
            x, y = left + _CELL * j, top + _CELL * i
            parts.append(f'<rect class="{style}" x="{x}" y="{y}" width="{_CELL - 2}" height="{_CELL - 2}" rx="4"/>')
    mark = top + _CELL * ROW - 2
    parts.append(
        f'<rect class="marked" x="{left - 2}" y="{mark}" width="{_CELL * 7 + 2}" height="{_CELL + 2}" rx="6"/>'
    )
    caption = words(
        "Who may read whom. The marked row may not read what comes after it. Shares are another matter.",
        "谁可以读谁。框出的一行读不到它后面的词元；这里画的是可见性，不是份额大小。",
    )
    return _svg(parts, left + _CELL * 7 + 70, top + _CELL * 7 + 10, caption[lang])


def _recorded_mask() -> list[list[bool]]:
    """``allowed (i, j)`` as the decoder of the book says it."""
    heard: dict[str, torch.Tensor] = {}

    def say(quantity: object, value: torch.Tensor, at: Sequence[str]) -> torch.Tensor:
        heard[f"{'.'.join(map(str, at))}.{getattr(quantity, 'name', '')}"] = value
        return value

    model = Decoder(full_config())
    model(torch.arange(7)[None], say=say)
    scores = next(value for name, value in heard.items() if name.endswith("attn.S"))
    return (scores[0, 0] > -torch.inf).tolist()


WANTED = (
    "embed.t", "embed.X", "attn.Q", "attn.K", "attn.V", "attn.S", "attn.A", "attn.Z", "blocks.0.R",
    "ffn.F", "blocks.0.X", "head.logits", "head.p",
)  # fmt: skip
"""What stands in figure 1, by the ends of their ids; what lies between them is passed through."""

_BOX, _HIGH, _STEP = 152, 46, 74


def dataflow_figure(library: Library, lang: str) -> str:
    """Figure 1: the shared forward pass as its definitions read one another, then training and generation."""
    program = library.programs["decoder"]
    ids = [id for end in WANTED for id in program.quantities if id.endswith(end)]
    edges = [(a, b) for b in ids for a in _sources(program, b, ids)]
    at = _layout(ids, edges)
    parts = _arrows(at, edges) + [_box(at[id], program, id, lang) for id in ids]
    bottom = max(y for _, y in at.values()) + _HIGH
    for x, way in ((150, _TRAINING), (430, _GENERATION)):
        parts.append(_arrow((290 - _BOX // 2, bottom - _HIGH), (x - _BOX // 2, bottom + 34)))
        parts += [
            _text(x, bottom + 50 + 24 * k, step[lang], "middle", "path" if k == 0 else "") for k, step in enumerate(way)
        ]
    caption = words(
        "One forward pass, as the definitions read one another; after the probabilities two paths.",
        "同一次前向，箭头来自定义之间的读取关系；概率之后分成两条路。",
    )
    return _svg(parts, 580, bottom + 50 + 24 * 5, caption[lang])


_TRAINING = (
    words("training", "训练"), words("compare with the target", "与目标比较"), words("loss L", "损失 L"),
    words("gradients of all parameters", "全部参数的梯度"), words("the optimizer changes the parameters", "优化器改变参数"),
)  # fmt: skip
_GENERATION = (
    words("generation", "生成"), words("choose a token", "选一个词元"), words("append it to the prefix", "接到前缀之后"),
    words("predict again", "再预测"), words("until a stop", "直到停止"),
)  # fmt: skip


def gradient_figure(library: Library, lang: str) -> str:
    """Figure 3: the way back, read off the gradient lines: every quantity sends to those that its definition read."""
    program = library.toy24.program
    edges = list(dict.fromkeys((s.consumer, s.target) for s in program.backward if s.consumer != s.target))
    ids = list(dict.fromkeys(id for edge in edges for id in edge))
    at = _layout(ids, edges)
    parts = _arrows(at, edges, "back") + [_box(at[id], program, id, lang) for id in ids]
    caption = words(
        "Gradients run against the definitions; where branches meet, they add up. Parameters are marked.",
        "梯度逆着定义走，分支汇合处相加；参数另有标记。",
    )
    return _svg(parts, 580, max(y for _, y in at.values()) + _HIGH + 10, caption[lang])


def _sources(program: Program, id: str, among: Sequence[str]) -> list[str]:
    """Those ``among`` that the definition of ``id`` reads, itself or through quantities that are not among them."""
    found: list[str] = []
    seen: set[str] = set()
    waiting = [id]
    while waiting:
        statement = program.definition(waiting.pop())
        for ref in () if statement is None else refs(statement.expr):
            if ref.name in seen:
                continue
            seen.add(ref.name)
            (found if ref.name in among else waiting).append(ref.name)
    return found


def _layout(ids: Sequence[str], edges: Sequence[tuple[str, str]]) -> dict[str, tuple[int, int]]:
    """The upper left corner of each box: one row below the last of those it comes from, under them, rows centred."""
    depth = dict.fromkeys(ids, 0)
    for _ in ids:
        for a, b in edges:
            depth[b] = max(depth[b], depth[a] + 1)
    at: dict[str, tuple[int, int]] = {}
    for level in range(max(depth.values()) + 1):
        row = sorted((id for id in ids if depth[id] == level), key=lambda id: _middle(at, edges, id))
        width = len(row) * _BOX + (len(row) - 1) * 12
        for k, id in enumerate(row):
            at[id] = (290 - width // 2 + k * (_BOX + 12), 10 + level * _STEP)
    return at


def _middle(at: Mapping[str, tuple[int, int]], edges: Sequence[tuple[str, str]], id: str) -> float:
    """Where the boxes lie, on average, that ``id`` comes from."""
    above = [at[a][0] for a, b in edges if b == id]
    return sum(above) / len(above) if above else 0


def _box(at: tuple[int, int], program: Program, id: str, lang: str) -> str:
    placed = program.quantities[id]
    x, y = at
    style = "parameter" if placed.quantity.kind is Kind.PARAMETER else "quantity"
    latex = style_of(program).name(id).replace(r"\mathcal{L}", "ℒ")
    name = _scripted(plain_symbol(latex))
    word = html.escape(placed.quantity.zh if lang == "zh" else placed.quantity.en)
    middle = x + _BOX // 2
    rect = f'<rect class="{style}" x="{x}" y="{y}" width="{_BOX}" height="{_HIGH}" rx="7"/>'
    return (
        f"<g>{rect}{_text(middle, y + 19, name, 'middle', 'name')}{_text(middle, y + 36, word, 'middle', 'word')}</g>"
    )


def _arrows(at: Mapping[str, tuple[int, int]], edges: Sequence[tuple[str, str]], style: str = "way") -> list[str]:
    return [_arrow(at[a], at[b], style, list(at.values())) for a, b in edges]


def _arrow(
    start: tuple[int, int], end: tuple[int, int], style: str = "way", boxes: Sequence[tuple[int, int]] = ()
) -> str:
    """From the lower edge of one box to the upper edge of another; around the boxes between where the way is long."""
    x1, y1, x2, y2 = start[0] + _BOX // 2, start[1] + _HIGH, end[0] + _BOX // 2, end[1] - 4
    if y2 - y1 <= _STEP:
        path = f"M{x1} {y1}L{x2} {y2}"
    else:
        between = [x for x, y in boxes if start[1] < y < end[1]]
        way = 1 if x1 + x2 >= 580 else -1
        beside = max([x + _BOX for x in between] + [x1, x2]) + 14 if way > 0 else min([*between, x1, x2]) - 14
        out, back = y1 + 9, y2 - 11
        path = (
            f"M{x1} {y1}V{out - 8}Q{x1} {out} {x1 + 8 * way} {out}H{beside - 8 * way}Q{beside} {out} {beside} {out + 8}"
            f"V{back - 8}Q{beside} {back} {beside - 8 * way} {back}H{x2 + 8 * way}Q{x2} {back} {x2} {back + 8}V{y2}"
        )
    return f'<path class="{style}" d="{path}" marker-end="url(#arrow)"/>'


_SCRIPTS = re.compile(r"([_^])(?:\(([^)]*)\)|(\w+))")


def _scripted(name: str) -> str:
    """``W_O`` and ``X^(1)`` with small letters below and above the line, as SVG."""
    out, end = [], 0
    for match in _SCRIPTS.finditer(name):
        by = 4 if match[1] == "_" else -6
        small = f"({match[2]})" if match[2] else match[3]
        out += [html.escape(name[end : match.start()]), f'<tspan class="script" dy="{by}">{html.escape(small)}</tspan>']
        end = match.end()
    return "".join([*out, html.escape(name[end:])])


def _text(x: int, y: int, text: str, anchor: str = "start", style: str = "") -> str:
    named = f' class="{style}"' if style else ""
    return f'<text{named} x="{x}" y="{y}" text-anchor="{anchor}">{text}</text>'


_ARROW = (
    '<defs><marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
    '<path d="M0 0L8 4L0 8z"/></marker></defs>'
)


def _svg(parts: Sequence[str], width: int, height: int, caption: str) -> str:
    drawing = _ARROW + "".join(parts)
    return (
        f'<svg viewBox="0 0 {width} {height}" width="{width}" role="img" aria-label="{html.escape(caption)}">{drawing}</svg>'
        f"<figcaption>{html.escape(caption)}</figcaption>"
    )


def figures(library: Library, lang: str) -> Mapping[str, str]:
    """All three by name, as SVG with a caption."""
    return {
        "dataflow": dataflow_figure(library, lang),
        "mask": mask_figure(lang),
        "gradient": gradient_figure(library, lang),
    }
