r"""Symbols: how the names of a program print.

A quantity declares its LaTeX symbol (``W_Q``, ``\gamma``, ``\hat x``). What the reader sees adds only what tells two
things apart in this program: the layer as a superscript where there are several (``S^{(2)}``), the head where there is
more than one (``S^{(h)}_{ij}``; both: ``S^{(2,h)}_{ij}``), the place where one symbol stands at two places of a layer
(``\gamma_1`` at ``norm1``). A gradient is a bar, a value after the update the superscript ``new``.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from .program import Placed, Program
from .quantity import Kind

GREEK = {
    "alpha": "α", "beta": "β", "gamma": "γ", "delta": "δ", "epsilon": "ϵ", "varepsilon": "ε", "eta": "η", "theta": "θ",
    "kappa": "κ", "lambda": "λ", "mu": "μ", "nu": "ν", "xi": "ξ", "pi": "π", "rho": "ρ", "sigma": "σ", "tau": "τ",
    "phi": "φ", "varphi": "φ", "chi": "χ", "psi": "ψ", "omega": "ω", "ell": "ℓ", "Gamma": "Γ", "Delta": "Δ",
    "Theta": "Θ", "Lambda": "Λ", "Sigma": "Σ", "Phi": "Φ", "Psi": "Ψ", "Omega": "Ω",
}  # fmt: skip

_ACCENTS = {"hat": "\u0302", "tilde": "\u0303", "bar": "\u0304", "vec": "\u20d7"}
_MACRON = "\u0304"
_LETTER = re.compile(r"[A-Za-z]|\\(?:" + "|".join(GREEK) + r")(?![A-Za-z])")
_FONT = re.compile(r"\\math(?:cal|bf|bb|frak|scr)\s*(?:\{[A-Za-z]\}|[A-Za-z])")
_HEADS = "H"
_HEAD_DIMS = frozenset({_HEADS, "G"})
BLANK = "\\ "


@dataclass(frozen=True, slots=True)
class Symbol:
    """What one quantity prints as: base and subscript of its LaTeX, and the marks that this program needs.

    ``layer`` is counted from 1 (None: not printed). ``dims`` are the dimensions of its axes (None: unknown). ``entry``
    is the base of a single cell in plain text: the notes' small letter (``a_21``) where nothing else claims it.
    """

    base: str
    subscript: str = ""
    layer: int | None = None
    dims: tuple[str, ...] | None = None
    entry: str = ""


@dataclass(frozen=True, slots=True)
class Style:
    """The symbols of one program, and the dimensions whose index is not printed (``H`` where there is one head).

    An id without an entry in ``symbols`` prints by its own name.
    """

    symbols: Mapping[str, Symbol] = field(default_factory=dict)
    hidden: frozenset[str] = frozenset()

    def symbol(self, id: str) -> Symbol:
        """The parts of the symbol of ``id``."""
        return self.symbols.get(id) or symbol_of_name(id.rpartition(".")[2])

    def name(self, id: str, face: str = "", head: str = "") -> str:
        """The symbol without indices; ``head`` is what stands for the head in its superscript."""
        symbol = self.symbol(id)
        base = barred(symbol.base) if face == "grad" else symbol.base
        scope = ",".join([*([] if symbol.layer is None else [str(symbol.layer)]), *([head] if head else [])])
        marks = [*([f"({scope})"] if scope else []), *([rf"\text{{{face}}}"] if face in ("new", "after") else [])]
        subscript = f"_{braced(symbol.subscript)}" if symbol.subscript else ""
        superscript = "^{" + r"\,".join(marks) + "}" if marks else ""
        return base + subscript + superscript

    def cell(self, id: str, face: str, indices: Sequence[str]) -> tuple[str, bool]:
        r"""The symbol with its printed indices, one per axis; and whether a power may be attached to it.

        ``S^{(h)}_{ij}``, ``[W_Q^{(h)}]_{rc}``, ``E_{t_i\,r}``, ``L``.
        """
        return self._indexed(id, face, indices, self.symbol(id).dims)

    def rows(self, id: str, face: str, given: Sequence[str]) -> str:
        """A table with all of its indices but the last, as the set of a row: ``J_i``, ``[J_1^{(h)}]_i``."""
        dims = self.symbol(id).dims
        return self._indexed(id, face, given, dims and dims[:-1])[0]

    def _indexed(self, id: str, face: str, indices: Sequence[str], dims: tuple[str, ...] | None) -> tuple[str, bool]:
        symbol = self.symbol(id)
        head, shown = "", []
        for dim, index in zip(dims or ("",) * len(indices), indices, strict=True):
            if dim in self.hidden:
                continue
            if dim in _HEAD_DIMS:
                head = index
            else:
                shown.append(index)
        name = self.name(id, face, head)
        if not shown:
            return name, "^" not in name
        if symbol.subscript:
            return f"[{name}]_{braced(joined(shown))}", True
        return f"{name}_{braced(joined(shown))}", "^" not in name


def joined(indices: Sequence[str]) -> str:
    r"""Indices side by side: ``ij``, ``12,3``, ``t_i\,r``."""
    if all(len(index) == 1 for index in indices):
        return "".join(indices)
    return (r"\," if any(not index.isalnum() for index in indices) else ",").join(indices)


def symbol_latex(placed_or_id: Placed | str, face: str, program: Program) -> str:
    r"""The symbol of a quantity without indices: ``W_Q``, ``\bar S^{(2)}``, ``W_Q^{\text{new}}``.

    ``face`` is ``""``, ``grad``, ``new`` or ``after``. Raises ``UserError`` for a name that the program does not know.
    """
    id = placed_or_id.id if isinstance(placed_or_id, Placed) else program.resolve(placed_or_id)
    return style_of(program).name(id, face)


def style_of(program: Program) -> Style:
    """How the names of ``program`` print. Where many formulas are printed, ask once and pass it on."""
    layers = {p.layer for p in program.quantities.values() if p.layer is not None}
    by_symbol: dict[str, list[Placed]] = defaultdict(list)
    for placed in program.quantities.values():
        by_symbol[placed.quantity.symbol].append(placed)
    symbols: dict[str, Symbol] = {}
    for text, alike in by_symbol.items():
        base, subscript = split_symbol(text)
        several = len(layers) > 1 or len({p.layer for p in alike}) > 1
        for placed in alike:
            place = place_latex(placed.path, [p.path for p in alike if p.layer == placed.layer])
            symbols[placed.id] = Symbol(
                base,
                ",".join(part for part in (subscript, place) if part),
                placed.layer + 1 if several and placed.layer is not None else None,
                tuple(dim for _, dim in placed.axes),
                base.lower() if _has_small_entries(placed) and base.lower() not in by_symbol else base,
            )
    return Style(symbols, frozenset({_HEADS}) if program.scalars.get(_HEADS) == 1 else frozenset())


def _has_small_entries(placed: Placed) -> bool:
    """Whether the notes write a cell with the small letter: matrices of numbers do, sets and tables do not."""
    plain_matrix = re.fullmatch("[A-Z]", placed.quantity.symbol) and placed.axes
    return bool(plain_matrix) and placed.quantity.kind not in (Kind.INPUT, Kind.CONSTANT)


def place_latex(path: str, alike: Sequence[str]) -> str:
    r"""What tells the place ``path`` from the other paths of ``alike``, as a subscript; nothing when it is the only one.

    ``1`` of ``norm1`` beside ``norm2``; ``\mathrm{source}`` of ``source`` beside ``target``.
    """
    if len(alike) < 2:
        return ""
    last, *others = (_last_word(p) for p in (path, *alike))
    numbered = [re.fullmatch(r"(\D+)(\d+)", word) for word in (last, *others)]
    if all(numbered) and len({m[1] for m in numbered if m}) == 1:
        return last[len(last.rstrip("0123456789")) :]
    return rf"\mathrm{{{last.replace('_', BLANK)}}}"


def _last_word(path: str) -> str:
    return next((part for part in reversed(path.split(".")) if not part.isdigit()), path)


def split_symbol(latex: str) -> tuple[str, str]:
    """Base and subscript of a declared symbol: ``W_Q`` is ``W`` and ``Q``."""
    depth = 0
    for at, sign in enumerate(latex):
        depth += (sign == "{") - (sign == "}")
        if sign == "_" and depth == 0:
            subscript = latex[at + 1 :]
            if subscript.startswith("{") and subscript.endswith("}"):
                subscript = subscript[1:-1]
            return latex[:at], subscript
    return latex, ""


def symbol_of_name(name: str) -> Symbol:
    r"""The symbol of a bare ASCII name: ``d_k``, ``d_{\mathrm{ff}}``, ``\eta``, ``\mathrm{sd}``, ``m_2``."""
    match = re.fullmatch(r"([A-Za-z]|eps|" + "|".join(GREEK) + r")(?:_?([0-9]+)|_([A-Za-z0-9]+))?", name)
    if match is None:
        return Symbol(rf"\mathrm{{{name.replace('_', chr(92) + '_')}}}", entry=name)
    base, number, word = match.groups()
    subscript = number or word or ""
    if len(subscript) > 1 and not subscript.isdigit():
        subscript = rf"\mathrm{{{subscript}}}"
    latex = base if len(base) == 1 else rf"\{'varepsilon' if base == 'eps' else base}"
    return Symbol(latex, subscript, entry=latex)


def name_latex(name: str) -> str:
    r"""A dimension, a hyperparameter or a letter: ``d_k``, ``\varepsilon``, ``i``."""
    symbol = symbol_of_name(name)
    return symbol.base + (f"_{braced(symbol.subscript)}" if symbol.subscript else "")


def name_text(name: str) -> str:
    """The same in plain text: ``d_k``, ``ε``, ``i``."""
    return GREEK.get("varepsilon" if name == "eps" else name, name)


def barred(base: str) -> str:
    r"""A bar over the base alone: ``\bar S``, ``\bar{\mathcal L}``, ``\overline{\hat x}``."""
    if _LETTER.fullmatch(base):
        return rf"\bar {base}"
    return rf"\bar{{{base}}}" if _FONT.fullmatch(base) else rf"\overline{{{base}}}"


def braced(script: str) -> str:
    """A subscript or superscript, in braces where it is longer than one sign."""
    return script if len(script) == 1 else f"{{{script}}}"


def entry_text(style: Style, id: str, face: str, index: Sequence[int]) -> str:
    """A cell by its symbol, for plain text, counted from 1: ``a_21``, ``S̄^(2)_31``, ``[W̄_Q]_21``, ``x̂_12,3``."""
    symbol = style.symbol(id)
    base = plain_symbol(symbol.base if face == "grad" or symbol.subscript else symbol.entry or symbol.base)
    if face == "grad":
        base = base[0] + _MACRON + base[1:] if len(base) <= 2 else f"{base}{_MACRON}"
    name = base + (f"_{plain_symbol(symbol.subscript)}" if symbol.subscript else "")
    dims = symbol.dims or ("",) * len(index)
    shown = [str(k + 1) for dim, k in zip(dims, index, strict=True) if dim not in style.hidden | _HEAD_DIMS]
    heads = [str(k + 1) for dim, k in zip(dims, index, strict=True) if dim in _HEAD_DIMS - style.hidden]
    scope = ",".join([*([] if symbol.layer is None else [str(symbol.layer)]), *heads])
    name += f"^({scope})" if scope else ""
    name += f"^{face}" if face in ("new", "after") else ""
    if not shown:
        return name
    return (f"[{name}]" if symbol.subscript else name) + "_" + joined(shown)


def plain_symbol(latex: str) -> str:
    r"""LaTeX of a symbol as plain text: ``\gamma`` is ``γ``, ``\hat x`` is ``x̂``, ``\mathrm{sd}`` is ``sd``."""
    text = re.sub(r"\\(hat|tilde|bar|vec)\s*\{?([A-Za-z])\}?", lambda m: m[2] + _ACCENTS[m[1]], latex)
    text = re.sub(r"\\([A-Za-z]+) ?", lambda m: "|" if m[1] in ("lvert", "rvert") else GREEK.get(m[1], ""), text)
    return text.replace("\\ ", " ").translate(str.maketrans("", "", "{}\\")).strip()


def short_names(program: Program, home: str) -> dict[str, str]:
    """The names under which the quantities of ``program`` appear in plain text seen from the path ``home``.

    A quantity at ``home`` itself goes by its bare name, any other by the shortest end of its id that no other shares,
    that is not a bare name at home and that does not begin with a number.
    """
    ends: Counter[str] = Counter()
    for id in program.quantities:
        parts = id.split(".")
        ends.update(".".join(parts[k:]) for k in range(len(parts)))
    at_home = {p.quantity.name for p in program.quantities.values() if p.path == home}
    names: dict[str, str] = {}
    for id, placed in program.quantities.items():
        if placed.path == home:
            names[id] = placed.quantity.name
            continue
        parts = id.split(".")
        candidates = (".".join(parts[k:]) for k in range(len(parts) - 1, -1, -1) if not parts[k].isdigit())
        names[id] = next((end for end in candidates if ends[end] == 1 and end not in at_home), id)
    return names
