"""Trees back to the text of a definition, so that tests can quote them and parse them again."""

from __future__ import annotations

from glassformer.notation.tree import (
    Add,
    Bool,
    Cmp,
    Cond,
    Const,
    Div,
    Expr,
    Fn,
    Idx,
    Mul,
    Neg,
    Num,
    Pow,
    Reduce,
    Ref,
    Scalar,
)

# How tightly each form binds in Python; an operand that binds less tightly is put in parentheses.
_CONDITION, _OR, _AND, _NOT, _COMPARISON, _SUM, _PRODUCT, _SIGN, _POWER, _ATOM = range(10)


def source_text(e: Expr) -> str:
    """What an author would write for ``e``; parsing it gives ``e`` back (for trees that parsing can give)."""
    return _text(e)[0]


def _text(e: Expr) -> tuple[str, int]:
    match e:
        case Num(x):
            return f"{x:g}" if float(f"{x:g}") == x else repr(x), _ATOM if x >= 0 else _SIGN
        case Const(name) | Scalar(name) | Idx(name):
            return name, _ATOM
        case Ref(name, face, indices):
            inside = f"[{','.join(map(source_text, indices))}]" if indices else ""
            return f"{name}{'.' if face else ''}{face}{inside}", _ATOM
        case Add(terms):
            rest = (f" - {_in(t.x, _PRODUCT)}" if isinstance(t, Neg) else f" + {_in(t, _PRODUCT)}" for t in terms[1:])
            first = f"({source_text(terms[0])})" if isinstance(terms[0], Add) else _in(terms[0], _SUM)
            return first + "".join(rest), _SUM
        case Mul(factors):
            first = f"({source_text(factors[0])})" if isinstance(factors[0], Mul) else _in(factors[0], _PRODUCT)
            return "*".join([first, *(_in(f, _SIGN) for f in factors[1:])]), _PRODUCT
        case Div(a, b):
            return f"{_in(a, _PRODUCT)}/{_in(b, _SIGN)}", _PRODUCT
        case Neg(x):
            return f"-{_in(x, _SIGN)}", _SIGN
        case Pow(a, b):
            return f"{_in(a, _ATOM)}**{_in(b, _SIGN)}", _POWER
        case Fn(name, args):
            return f"{name}({', '.join(map(source_text, args))})", _ATOM
        case Cmp(op, a, b):
            return f"{_in(a, _SUM)} {op} {_in(b, _SUM)}", _COMPARISON
        case Bool("not", (x,)):
            return f"not {_in(x, _NOT)}", _NOT
        case Bool(op, args):
            own = _AND if op == "and" else _OR
            return f" {op} ".join(_in(x, own + 1) for x in args), own
        case Cond(test, then, other):
            return f"{_in(then, _OR)} if {_in(test, _OR)} else {_in(other, _CONDITION)}", _CONDITION
        case Reduce(op, body, loops, where):
            parts = [_in(body, _CONDITION), *(f"for {letter} in {dim}" for letter, dim in loops)]
            if where is not None:
                parts.append(f"if {_in(where, _OR)}")
            return f"{op}({' '.join(parts)})", _ATOM


def _in(e: Expr, least: int) -> str:
    text, strength = _text(e)
    return text if strength >= least else f"({text})"
