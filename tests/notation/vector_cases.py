"""The cases of the conformance vectors, as definitions and shapes; ``vectors.py`` computes the rest."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

SIZES = {"n": 3, "n_k": 3, "H": 2, "d": 4, "d_k": 2, "d_v": 2, "d_ff": 5, "N": 4, "n_ctx": 6, "eps": 1e-5, "eta": 0.1}


@dataclass(frozen=True)
class Case:
    """One definition ``y[letters] = text``. ``shapes`` are the axes of random operands, ``given`` other operands."""

    title: str
    letters: str
    text: str
    shapes: dict[str, str] = field(default_factory=dict)
    given: dict[str, Any] = field(default_factory=dict)
    sizes: dict[str, float] = field(default_factory=dict)
    cells: Sequence[tuple[int, ...]] = ()


@dataclass(frozen=True)
class GradientCase:
    """Several contributions ``(consumer, letters, text)`` to ``x.grad``."""

    title: str
    contributions: tuple[tuple[str, str, str], ...]
    shapes: dict[str, str]
    cells: Sequence[tuple[int, ...]]


INF = math.inf
LOWER = [[1, 0, 0], [1, 1, 0], [1, 1, 1]]
BAND = [[1, 0, 0], [1, 1, 0], [0, 1, 1]]
BIG = [[1000.0, 999.0, -1000.0], [-1000.0, -1001.5, -2000.0], [0.5, 1000.0, -INF]]

CASES = (
    # literals, sizes, letters
    Case("a literal", "", "0.044715"),
    Case("pi", "", "2*pi"),
    Case("infinity", "", "-inf"),
    Case("a size", "", "d_ff"),
    Case("hyperparameters", "", "eta*eps"),
    Case("a letter as a number", "i", "i", cells=[(0,), (2,)]),
    Case("letters compared", "ij", "1 if j <= i else 0", cells=[(0, 0), (0, 2)]),
    Case("letters in arithmetic", "ij", "2*i - j", cells=[(0, 2)]),
    # cells
    Case("a copy", "ir", "X[i,r]", {"X": "ir"}, cells=[(1, 3)]),
    Case("a transpose", "rw", "E[w,r]", {"E": "wr"}, cells=[(3, 1)]),
    Case("a face", "ir", "X.grad[i,r] + X.new[i,r] + X.after[i,r]", {"X.grad": "ir", "X.new": "ir", "X.after": "ir"}),
    Case("a quantity without axes", "i", "nll[i]/count", {"nll": "i"}, {"count": 2.0}),
    Case("a value that does not depend on a letter", "ir", "mu[i]", {"mu": "i"}),
    # arithmetic
    Case("sum and difference", "i", "a[i] - b[i] + 0.5", {"a": "i", "b": "i"}, cells=[(0,), (1,), (2,)]),
    Case("a sum inside a sum", "i", "a[i] - (b[i] - (1 + a[i]))", {"a": "i", "b": "i"}),
    Case("a sum that begins with a sum", "i", "(a[i] + b[i]) - a[i]", {"a": "i", "b": "i"}),
    Case("products and quotients", "i", "a[i]*(b[i]*2)/(a[i]/b[i])/4", {"a": "i", "b": "i"}),
    Case("a product of sums", "i", "(a[i] + 1)*(b[i] - 1)*-a[i]", {"a": "i", "b": "i"}),
    Case("leading minus signs", "i", "-a[i]*b[i] - -a[i]/b[i]", {"a": "i", "b": "i"}, cells=[(0,), (1,), (2,)]),
    Case("powers", "i", "a[i]**2 + (a[i] - b[i])**3 - 2**b[i] + (-a[i])**4", {"a": "i", "b": "i"}),
    Case("a power of a power", "i", "(c[i]**2)**0.5 + c[i]**-1", given={"c": [0.5, 2.0, 9.0]}),
    Case("a root of a sum", "i", "x[i]/sqrt(var[i] + eps)", {"x": "i"}, {"var": [0.25, 1.0, 1e-7]}),
    Case("functions", "i", "exp(-a[i]**2) + sin(a[i]) + cos(a[i]) + tanh(a[i]) + erf(a[i]) + abs(a[i])", {"a": "i"}),
    Case("logarithm", "i", "ln(c[i])", given={"c": [1e-300, 0.5, 1e300]}, cells=[(0,), (1,), (2,)]),
    Case("two-place minimum and maximum", "i", "min(1, a[i]) + max(a[i], b[i], 0)", {"a": "i", "b": "i"}),
    Case("sizes of numbers", "i", "a[i]*3", given={"a": [1e-5, 123456.7, -2.5e20]}, cells=[(0,), (1,), (2,)]),
    Case(
        "tiny and large whole numbers", "i", "a[i]", given={"a": [4e-320, 2.0**53, 999999.5]}, cells=[(0,), (1,), (2,)]
    ),
    # lookups
    Case("a lookup", "ir", "E[t[i],r]", {"E": "wr"}, {"t": [3, 0, 3]}, cells=[(0, 2), (1, 0)]),
    Case("two lookups", "ir", "E[t[i],r] + P[pos[i],r]", {"E": "wr", "P": "sr"}, {"t": [2, 2, 1], "pos": [5, 0, 1]}),
    Case(
        "a lookup inside a sum",
        "hij",
        "sum(Q[h,i,c]*K[kv[h],j,c] for c in d_k)",
        {"Q": "hic", "K": "hjc"},
        {"kv": [1, 1]},
    ),
    Case("a table of two axes", "ij", "R[bucket[i,j]]", {"R": "c"}, {"bucket": [[0, 1, 1], [1, 0, 1], [1, 1, 0]]}),
    Case(
        "a lookup that misses where nobody looks",
        "i",
        "logits[i,y[i]] if scored[i] else 0",
        {"logits": "iw"},
        {"y": [-100, 3, 99], "scored": [0, 1, 0]},
        cells=[(0,), (1,)],
    ),
    Case(
        "a scatter",
        "wr",
        "sum(g[i,r] for i in n if t[i] == w)",
        {"g": "ir"},
        {"t": [3, 0, 3]},
        cells=[(3, 1), (0, 0), (1, 0)],
    ),
    # reductions
    Case("a whole sum", "ic", "sum(X[i,r]*W[r,c] for r in d)", {"X": "ir", "W": "rc"}, cells=[(0, 0), (2, 1)]),
    Case("a sum beside a bias", "ic", "sum(X[i,r]*W[r,c] for r in d) + b[c]", {"X": "ir", "W": "rc", "b": "c"}),
    Case("two letters", "ir", "sum(Z[h,i,e]*W[h,e,r] for h in H for e in d_v)", {"Z": "hie", "W": "her"}),
    Case("a sum of sums of terms", "i", "sum(a[i] - b[r] for r in d)", {"a": "i", "b": "r"}),
    Case("terms that are quotients", "i", "sum(x[i,r]/(1 + x[i,r]**2) for r in d)", {"x": "ir"}),
    Case("a negated sum", "i", "-sum(x[i,r] for r in d)*2", {"x": "ir"}),
    Case("a folded sum", "i", "sum(x[i,f] for f in d_ff)", {"x": "if"}, sizes={"d_ff": 12}, cells=[(0,), (1,)]),
    Case("a folded product", "if", "sum(x[i,r]*w[r,f] for r in d)/2", {"x": "ir", "w": "rf"}, sizes={"d": 9}),
    Case("six terms are not folded", "i", "sum(x[i,f] for f in d_ff)", {"x": "if"}, sizes={"d_ff": 6}),
    Case(
        "seven are, and equal ones keep their order",
        "",
        "sum(x[f] for f in d_ff)",
        given={"x": [1, -2, 2, 2, -2, 2, 1]},
        sizes={"d_ff": 7},
    ),
    Case(
        "zeros are counted",
        "i",
        "sum(A[i,j]*v[j] for j in n_k)",
        {"v": "j"},
        {"A": [[1, 0, 0], [0.25, 0.75, 0], [0, 0, 0]]},
        cells=[(0,), (1,), (2,)],
    ),
    Case(
        "an empty sum", "w", "sum(a[i] for i in n if t[i] == w) + 1", {"a": "i"}, {"t": [1, 1, 1]}, cells=[(0,), (1,)]
    ),
    Case("a mean", "i", "mean(x[i,r] for r in d)", {"x": "ir"}),
    Case("a folded mean inside a formula", "i", "sqrt(mean(x[i,r]**2 for r in d) + eps)", {"x": "ir"}, sizes={"d": 8}),
    Case(
        "a mean over a filter divides by all",
        "i",
        "mean(x[i,j] for j in n_k if allowed[i,j])",
        {"x": "ij"},
        {"allowed": LOWER},
    ),
    Case("a largest value", "i", "max(x[i,r] for r in d)", {"x": "ir"}),
    Case(
        "a folded largest value",
        "i",
        "x[i,first] - max(x[i,f] for f in d_ff)",
        {"x": "if"},
        {"first": 0},
        sizes={"d_ff": 8},
    ),
    Case(
        "a largest value over a filter",
        "i",
        "max(x[j] for j in n_k if allowed[i,j])",
        {"x": "j"},
        {"allowed": [[0, 0, 0], *LOWER[:2]]},
        cells=[(0,), (1,), (2,)],
    ),
    Case("a reduction over a constant", "i", "a[i] + sum(1 for r in d)", {"a": "i"}),
    Case("a count", "", "sum(1 if scored[i] else 0 for i in n)", given={"scored": [1, 0, 1]}),
    Case("a sum within a sum", "i", "sum(x[i,r]*sum(x[i,q] for q in d) for r in d)", {"x": "ir"}),
    Case("the same sum twice", "i", "sum(x[i,r] for r in d)*(1 - sum(x[i,r] for r in d))", {"x": "ir"}),
    # conditions
    Case(
        "a mask",
        "hij",
        "sum(Q[h,i,c]*K[h,j,c] for c in d_k)/sqrt(d_k) if allowed[i,j] else -inf",
        {"Q": "hic", "K": "hjc"},
        {"allowed": LOWER},
        cells=[(1, 2, 0), (0, 0, 2)],
    ),
    Case("a comparison", "if", "B[i,f] if B[i,f] > 0 else 0", {"B": "if"}, cells=[(0, 0), (0, 1), (0, 2), (1, 0)]),
    Case(
        "nested conditions",
        "i",
        "1 + (a[i] if a[i] > 1 else b[i] if b[i] >= 0 else -1)*2",
        {"b": "i"},
        {"a": [2.0, 0.5, -1.0]},
        cells=[(0,), (1,), (2,)],
    ),
    Case(
        "and, or, not",
        "ij",
        "x[j] if allowed[i,j] and not (x[j] < 0 or i == j) else 0",
        {"x": "j"},
        {"allowed": LOWER},
        cells=[(0, 0), (2, 0), (2, 1)],
    ),
    Case(
        "every comparison",
        "i",
        "sum(1 if a[i] < 1 else 0 for r in d) + (1 if a[i] != 2 else 0) + (3 if a[i] <= 1 else 4)",
        given={"a": [1.0, 2.0, 0.5]},
        cells=[(0,), (1,)],
    ),
    Case(
        "a Kronecker delta",
        "iw",
        "p[i,w] - (1 if w == y[i] else 0)",
        {"p": "iw"},
        {"y": [1, 3, 0]},
        cells=[(0, 1), (0, 2)],
    ),
    Case(
        "a condition inside a sum",
        "i",
        "sum(x[i,j] if allowed[i,j] else 0 for j in n_k)",
        {"x": "ij"},
        {"allowed": LOWER},
        cells=[(1,)],
    ),
    Case(
        "a filter of two conditions",
        "i",
        "sum(x[i,j] for j in n_k if allowed[i,j] if x[i,j] > 0)",
        {"x": "ij"},
        {"allowed": LOWER},
        cells=[(2,)],
    ),
    Case(
        "a branch that would divide by zero",
        "i",
        "1/a[i] if a[i] != 0 else 0",
        given={"a": [0.0, 4.0, -0.5]},
        cells=[(0,), (1,)],
    ),
    # softmax and log-sum-exp
    Case("softmax", "ij", "exp(S[i,j])/sum(exp(S[i,m]) for m in n_k)", {"S": "ij"}, cells=[(0, 1)]),
    Case(
        "softmax of masked scores",
        "ij",
        "exp(S[i,j])/sum(exp(S[i,m]) for m in n_k)",
        given={"S": [[0.5, -INF, -INF], [1.0, 0.0, -INF], [0.1, 0.2, -0.3]]},
        cells=[(0, 0), (1, 1), (1, 2)],
    ),
    Case(
        "softmax beyond the range of exp",
        "ij",
        "exp(S[i,j])/sum(exp(S[i,m]) for m in n_k)",
        given={"S": BIG},
        cells=[(0, 0), (0, 1), (1, 1), (2, 2)],
    ),
    Case("log-sum-exp", "i", "ln(sum(exp(S[i,j]) for j in n_k)) - S[i,0]", {"S": "ij"}, cells=[(1,)]),
    Case(
        "log-sum-exp beyond the range of exp",
        "i",
        "ln(sum(exp(S[i,j]) for j in n_k)) - 1",
        given={"S": BIG},
        cells=[(0,), (1,), (2,)],
    ),
    Case(
        "softmax of a product",
        "iw",
        "exp(2*z[i,w]/eta)/sum(exp(2*z[i,v]/eta) for v in N)",
        {"z": "iw"},
        sizes={"eta": 0.001},
        cells=[(0, 0)],
    ),
    Case(
        "cross-entropy",
        "i",
        "ln(sum(exp(z[i,v]) for v in N)) - z[i,y[i]] if scored[i] else 0",
        {"z": "iw"},
        {"y": [1, 3, -100], "scored": [1, 1, 0]},
        cells=[(1,), (2,)],
    ),
    Case("a sigmoid", "i", "1/(1 + exp(-x[i]))", given={"x": [-800.0, 0.0, 800.0]}, cells=[(0,), (1,)]),
    # whole lines of the model
    Case(
        "the gradient of masked scores",
        "ij",
        "A[i,j]*(g[i,j] - sum(A[i,m]*g[i,m] for m in n_k)) if allowed[i,j] else 0",
        {"g": "ij"},
        {"A": [[1, 0, 0], [0.25, 0.75, 0], [0, 0.5, 0.5]], "allowed": BAND},
        cells=[(1, 0), (2, 0), (2, 1)],
    ),
    Case(
        "the gradient of a norm",
        "ir",
        "(u[i,r] - mean(u[i,q] for q in d) - xhat[i,r]*mean(u[i,q]*xhat[i,q] for q in d))/sd[i]",
        {"u": "ir", "xhat": "ir"},
        {"sd": [0.5, 1.5, 2.0]},
        cells=[(1, 2)],
    ),
    Case("GELU", "if", "B[i,f]*(1 + erf(B[i,f]/sqrt(2)))/2", {"B": "if"}, cells=[(0, 3)]),
    Case(
        "the gradient of GELU",
        "if",
        "g[i,f]*((1 + erf(B[i,f]/sqrt(2)))/2 + B[i,f]*exp(-B[i,f]**2/2)/sqrt(2*pi))",
        {"B": "if", "g": "if"},
        cells=[(0, 3)],
    ),
    Case(
        "the gradient of logits",
        "iw",
        "up[i]*(p[i,w] - (1 if w == y[i] else 0)) if scored[i] else 0",
        {"p": "iw", "up": "i"},
        {"y": [1, 3, -100], "scored": [1, 1, 0]},
        cells=[(0, 1), (2, 1)],
    ),
    Case(
        "a step of gradient descent",
        "rc",
        "theta[r,c] - eta*theta.grad[r,c]",
        {"theta": "rc", "theta.grad": "rc"},
        cells=[(3, 1)],
    ),
)

GRADIENTS = (
    GradientCase(
        "through a residual and three projections",
        (
            ("R", "ir", "R.grad[i,r]"),
            ("K", "jr", "sum(K.grad[h,j,c]*W[r,h,c] for h in H for c in d_k)"),
            ("A", "ir", "A.grad[i,r]*(1 - sum(A.grad[i,q] for q in d)) if R.grad[i,r] > 0 else 0"),
        ),
        {"R.grad": "ir", "K.grad": "hjc", "W": "rhc", "A.grad": "ir"},
        [(0, 0), (1, 2), (2, 3)],
    ),
    GradientCase(
        "through one consumer",
        (("S", "ic", "sum(S.grad[i,j]*K[j,c] for j in n_k)/sqrt(d_k)"),),
        {"S.grad": "ij", "K": "jc"},
        [(2, 1)],
    ),
)

NUMBERS = (
    0.0, -0.0, 1.0, -3.0, 0.1, 1 / 3, -2 / 3, 1e-4, 1.23456789e-5, -9.999996e-5, 9.9999949e-5, 100000.5, 100001.5, 1234567.0,
    1234567.5, 999999.5, 0.5, 2.5e-10, 1e21, 1.5e300, 5e-324, 1e15, 1e15 - 1, 123456789012345680.0, 0.1 + 0.2, math.pi,
    12.3456789, 0.0787145032, 0.000123456789, 999999.9999999, 9.99999996, 0.0999999999, 1.0000005, INF, -INF, math.nan,
)  # fmt: skip
