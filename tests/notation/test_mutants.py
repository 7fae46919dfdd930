"""No wrong version of a definition survives: mechanical ones of every line, and the mistakes people make by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from glassformer.model import definitions
from glassformer.notation import Statement, evaluate, key
from glassformer.notation.check import check_program
from glassformer.notation.tree import Expr
from glassformer.tracing.replay import replay
from options import OPTION_CONFIGS

from .mutation import mutants, mutators
from .source_text import source_text
from .wrong_versions import (
    CHECKER,
    GUARDS,
    KINDS,
    ORDER,
    TARGETS,
    VALUES,
    ZERO_IN_THEORY,
    case,
    exchanged,
    fate,
    line_of,
    numbers,
    short,
    statements_of,
    tally,
    title,
    written,
)

JACOBIAN = "attn.A[h,i,j]*(attn.A.grad[h,i,j] - sum(attn.A[h,i,m]*attn.A.grad[h,i,m] for m in n))"
LOGITS = "loss.nll.grad[i]*(head.p[i,w] - (1 if w == loss.y[i] else 0))"
EVEN = "the cosine of an angle is that of its opposite"
AT_THE_KINK = "at 0 both branches are 0"
ANGLE = "s/base**(2*embed.pair[r]/d)"
NOTHING_BUT_LEFT_OUT = "a number is 0 after dropout exactly where it was left out: none was 0 before"

# Every wrong version that computes the same numbers from any parameters, with the reason why it does.
EQUIVALENT = {
    ("gelu", "backward", "attn.S.grad via attn.A"): {
        JACOBIAN: "A is exactly 0 where reading is not allowed, so the mask is said twice",
        f"{JACOBIAN} if mask.allowed[i,i] else 0": "a row may always read itself: the same as no mask",
        f"{JACOBIAN} if mask.allowed[j,j] else 0": "a row may always read itself: the same as no mask",
    },
    ("gelu", "backward", "head.logits.grad via loss.nll"): {
        f"{LOGITS} if loss.nll[i] else 0": "the loss of a row is 0 exactly where the row is not scored",
    },
    ("relu", "backward", "ffn.B.grad via ffn.C"): {
        "ffn.C.grad[i,f] if ffn.C[i,f] > 0 else 0": "what comes out of ReLU is positive exactly where what went in is",
    },
    ("relu", "forward", "ffn.C"): {
        "ffn.B[i,f] if ffn.B[i,f] >= 0 else 0": AT_THE_KINK,
    },
    ("relu2", "backward", "ffn.B.grad via ffn.C"): {
        "2*ffn.B[i,f]*ffn.C.grad[i,f] if ffn.B[i,f] >= 0 else 0": AT_THE_KINK,
        "2*ffn.B[i,f]*ffn.C.grad[i,f] if ffn.C[i,f] > 0 else 0": "a square is positive exactly where its root is",
    },
    ("relu2", "forward", "ffn.C"): {
        "ffn.B[i,f]**2 if ffn.B[i,f] >= 0 else 0": AT_THE_KINK,
    },
    ("shared", "forward", "rope.cos_"): {
        "cos(-(embed.pos[i]*rope.freq[c]))": EVEN,
    },
    ("shared", "forward", "heads.kv"): {
        f"sum(1 if k*H <= h*G else 0 for k in {size}) - 1": "as h < H, no k from G on is counted: any longer range does"
        for size in ("H", "N", "base", "d", "d_ff", "d_k", "d_v", "n", "window")
    },
    ("packed", "forward", "embed.pair"): {
        f"sum(1 if 2*q + 2 <= r else 0 for q in {size})": "only q below r/2 are counted: any range that has those does"
        for size in ("N", "base", "d_ff", "d_v", "n", "n_ctx")
    },
    ("packed", "forward", "embed.P"): {
        f"sin({ANGLE}) if r == 2*embed.pair[r] else cos(-({ANGLE}))": EVEN,
        f"sin({ANGLE}) if r <= 2*embed.pair[r] else cos({ANGLE})": "r is 2 pair or one more, never less",
    },
    ("options", "backward", "embed.X.grad via embed.X_D"): {
        "embed.X_D.grad[i,r]/(1 - p_embed) if embed.X_D[i,r] else 0": NOTHING_BUT_LEFT_OUT,
    },
    ("options", "backward", "attn.O.grad via O_D"): {
        "O_D.grad[i,r]/(1 - p_resid) if O_D[i,r] else 0": NOTHING_BUT_LEFT_OUT,
    },
    ("options", "backward", "ffn.F.grad via F_D"): {
        "F_D.grad[i,r]/(1 - p_resid) if F_D[i,r] else 0": NOTHING_BUT_LEFT_OUT,
    },
}  # fmt: skip

PARTS = [(kind, part) for kind in KINDS for part in ("backward", "forward")]


@pytest.mark.parametrize("kind", KINDS)
def test_the_right_definitions_pass_every_guard(kind: str) -> None:
    here = case(kind)
    check_program(here.program)
    law = replay(here.program, (), here.values)
    assert law.holds, law.violations()
    assert law.worst.keys() >= {key(s.target, s.face) for s in here.program.statements}
    for s in (here.program.forward[-1], here.program.backward[0]):
        assert fate(here, s, s.expr).by is None


@pytest.mark.parametrize(("kind", "part"), PARTS)
def test_every_wrong_version_is_caught_unless_it_is_listed_as_equivalent(kind: str, part: str) -> None:
    listed = {name: set(texts) for (a, p, name), texts in EQUIVALENT.items() if (a, p) == (kind, part)}
    survivors = {name: set(texts) for name, texts in tally(kind, part).survivors.items()}
    for name in ZERO_IN_THEORY:
        assert_only_noise(survivors.pop(name, set()))
    assert survivors == listed


def assert_only_noise(texts: set[str]) -> None:
    """A gradient that is zero up to rounding stays so when scaled; whether the law sees it is left to rounding."""
    assert texts <= {f"{sign}{op}(attn.K.grad[h,j,c] for j in n)" for sign in ("", "-") for op in ("sum", "mean")}


def test_every_line_of_every_option_has_at_least_three_wrong_versions() -> None:
    """Of gradients and of definitions: what an option brings is among what the kinds below change."""
    changed = {
        line_of(s): len(mutants(s, case(kind).around())) for kind, part in PARTS for s in statements_of(kind, part)
    }
    assert min(changed.values()) >= 3
    lines = {
        line_of(s)
        for config in OPTION_CONFIGS.values()
        for packed in (False, True)
        for s in definitions(config, 6, packed=packed, dropout=True).statements
    }
    assert lines <= set(changed)


@pytest.mark.parametrize("part", ["backward", "forward"])
def test_wrong_values_are_off_by_a_million_times_what_the_law_allows(part: str) -> None:
    assert min(tally(kind, part).closest for kind in KINDS) > 64e6


def test_each_guard_catches_something_and_half_is_caught_before_any_number() -> None:
    """Printed with `pytest -rP`: how many wrong versions of each kind each guard caught."""
    for part in ("backward", "forward"):
        tallies = [tally(kind, part) for kind in KINDS]
        caught = {guard: sum(t.by(guard) for t in tallies) for guard in GUARDS}
        alive = sum(len(texts) for t in tallies for texts in t.survivors.values())
        print(f"{part}: {sum(t.total for t in tallies)} wrong versions; {caught}; {alive} equivalent")
        for change in {what for t in tallies for what, _ in t.caught}:
            row = {guard: sum(t.caught[change, guard] for t in tallies) for guard in GUARDS}
            print(f"    {change}: {', '.join(f'{count} by {guard}' for guard, count in row.items() if count)}")
    gradients = tally("gelu", "backward")
    assert gradients.total > 2000
    assert gradients.by(CHECKER) > gradients.total / 2  # measured: 7 of 10
    assert gradients.by(VALUES) > 700
    assert tally("gelu", "forward").by(ORDER) > 0


def test_every_kind_of_change_was_made_to_some_gradient() -> None:
    made = {what for kind in KINDS for what, _ in tally(kind, "backward").caught}
    assert made == set(mutators(case().around()))


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_equivalent_versions_give_the_same_bits_from_other_parameters(seed: int) -> None:
    for (kind, part, name), texts in EQUIVALENT.items():
        here = case(kind)
        (statement,) = (s for s in statements_of(kind, part) if title(s) == name)
        expected = value(kind, seed, statement, statement.expr)
        by_text = {short(source_text(m.expr)): m.expr for m in mutants(statement, here.around())}
        for text in texts:
            assert np.array_equal(value(kind, seed, statement, by_text[text]), expected), text


def value(kind: str, seed: int, statement: Statement, expr: Expr) -> np.ndarray[Any, Any]:
    there = case(kind, seed=seed)
    return evaluate(expr, statement.letters, there.values, there.program.scalars)


def test_the_facts_that_make_them_equivalent_hold() -> None:
    values = case().values
    A, allowed, nll = (values[f"{id}"] for id in ("blocks.0.attn.A", "mask.allowed", "loss.nll"))
    assert (A[:, ~allowed] == 0).all()
    assert (A[:, allowed] > 0).all()
    assert allowed.diagonal().all()
    assert np.array_equal(nll == 0, np.array(TARGETS) < 0)
    B, C = (case("relu").values[f"blocks.0.ffn.{name}"] for name in ("B", "C"))
    assert np.array_equal(B > 0, C > 0)
    assert (B == 0).any(), "no unit stands at the kink, so nothing was asked about it"
    values = case("options").values
    for place, name in (("embed", "X"), ("blocks.0", "O"), ("blocks.0", "F")):
        assert np.array_equal(values[f"{place}.{name}_D"] != 0, values[f"{place}.kept_{name}"])


@pytest.mark.parametrize("kind", ["gelu", "options"])
def test_no_contribution_can_be_forgotten(kind: str) -> None:
    here = case(kind)
    for s in here.program.backward:
        assert numbers(here, exchanged(here.program, s), s).by in (VALUES, ORDER), title(s)


@pytest.mark.parametrize("kind", ["gelu", "options"])
def test_no_contribution_can_be_written_twice(kind: str) -> None:
    here = case(kind)
    for s in here.program.backward:
        if title(s) not in ZERO_IN_THEORY:
            assert numbers(here, exchanged(here.program, s, s, s), s).by == VALUES, title(s)


@pytest.mark.parametrize("kind", ["gelu", "options"])
def test_no_definition_can_be_forgotten(kind: str) -> None:
    here = case(kind)
    unread = {"head.p", "loss.L"}
    for s in here.program.forward:
        if s.target not in unread:
            assert numbers(here, exchanged(here.program, s), s).by == ORDER, title(s)


NORM = "blocks.0.norm1.xhat"
BY_HAND = {
    "gamma outside LayerNorm's means": (NORM, """
        X.grad[i,r] += gamma[r]*(
            Y.grad[i,r] - mean(Y.grad[i,q] for q in d) - xhat[i,r]*mean(Y.grad[i,q]*xhat[i,q] for q in d)
        )/sd[i]"""),
    "LayerNorm's mean and deviation held constant": (NORM, "X.grad[i,r] += xhat.grad[i,r]/sd[i]"),
    "LayerNorm's deviation held constant": (NORM, """
        X.grad[i,r] += (xhat.grad[i,r] - mean(xhat.grad[i,q] for q in d))/sd[i]"""),
    "LayerNorm's gradient over the deviation without epsilon": (NORM, """
        X.grad[i,r] += (
            xhat.grad[i,r] - mean(xhat.grad[i,q] for q in d) - xhat[i,r]*mean(xhat.grad[i,q]*xhat[i,q] for q in d)
        )/sqrt(var[i])"""),
    "LayerNorm's gradient for a sample variance": (NORM, """
        X.grad[i,r] += (
            xhat.grad[i,r] - mean(xhat.grad[i,q] for q in d)
            - xhat[i,r]*sum(xhat.grad[i,q]*xhat[i,q] for q in d)/(d - 1)
        )/sd[i]"""),
    "softmax's gradient without the subtraction": ("blocks.0.attn.A", """
        S.grad[h,i,j] += A[h,i,j]*A.grad[h,i,j] if allowed[i,j] else 0"""),
    "softmax's gradient as if its Jacobian were diagonal": ("blocks.0.attn.A", """
        S.grad[h,i,j] += A[h,i,j]*(1 - A[h,i,j])*A.grad[h,i,j] if allowed[i,j] else 0"""),
    "softmax's gradient summed over rows": ("blocks.0.attn.A", """
        S.grad[h,i,j] += A[h,i,j]*(A.grad[h,i,j] - sum(A[h,m,j]*A.grad[h,m,j] for m in n_k)) if allowed[i,j] else 0"""),
    "no scale in the queries' gradient": ("blocks.0.attn.S", """
        Q.grad[h,i,c] += sum(S.grad[h,i,j]*K[h,j,c] for j in n_k)"""),
    "the model's dimension as scale": ("blocks.0.attn.S", """
        K.grad[h,j,c] += sum(S.grad[h,i,j]*Q[h,i,c] for i in n)/sqrt(d)"""),
    "the scale once more, from the forward pass": ("blocks.0.attn.S", """
        K.grad[h,j,c] += sum(S.grad[h,i,j]*Q[h,i,c] for i in n)/sqrt(d_k)/sqrt(d_k)"""),
    "keys read the transposed scores": ("blocks.0.attn.S", """
        K.grad[h,j,c] += sum(S.grad[h,j,i]*Q[h,i,c] for i in n)/sqrt(d_k)"""),
    "values mixed by the transposed coefficients": ("blocks.0.attn.Z", """
        V.grad[h,j,e] += sum(A[h,j,i]*Z.grad[h,i,e] for i in n)"""),
    "heads averaged, not added": ("blocks.0.attn.Q", """
        X.grad[i,r] += mean(sum(Q.grad[h,i,c]*W_Q[r,h,c] for c in d_k) for h in H)"""),
    "a bias's gradient averaged over rows": ("blocks.0.attn.O", "b_O.grad[r] += mean(O.grad[i,r] for i in n)"),
    "half of the residual path": ("blocks.0.R", "X.grad[i,r] += R.grad[i,r]/2"),
    "GELU's derivative without the density": ("blocks.0.ffn.C", """
        B.grad[i,f] += C.grad[i,f]*(1 + erf(B[i,f]/sqrt(2)))/2"""),
    "GELU's derivative of the tanh approximation": ("blocks.0.ffn.C", """
        B.grad[i,f] += C.grad[i,f]*(
            (1 + tanh(sqrt(2/pi)*(B[i,f] + 0.044715*B[i,f]**3)))/2
            + B[i,f]*(1 - tanh(sqrt(2/pi)*(B[i,f] + 0.044715*B[i,f]**3))**2)/2*sqrt(2/pi)*(1 + 0.134145*B[i,f]**2)
        )"""),
    "the loss not averaged": ("loss.L", "nll.grad[i] += L.grad"),
    "the loss averaged over all positions": ("loss.L", "nll.grad[i] += L.grad/n"),
    "cross-entropy without the one-hot target": ("loss.nll", """
        logits.grad[i,w] += nll.grad[i]*p[i,w] if scored[i] else 0"""),
    "positions that are not scored learn too": ("loss.nll", """
        logits.grad[i,w] += nll.grad[i]*(p[i,w] - (1 if w == y[i] else 0))"""),
    "a repeated token averaged": ("embed.X", """
        E.grad[w,r] += sum(X.grad[i,r] for i in n if t[i] == w)/max(1, sum(1 for i in n if t[i] == w))"""),
    "every position learns from every row": ("embed.X", "P.grad[s,r] += sum(X.grad[i,r] for i in n)"),
    "sample variance": ("blocks.0.norm1.var", "var[i] = sum((X[i,r] - mu[i])**2 for r in d)/(d - 1)"),
    "epsilon outside the root": ("blocks.0.norm1.sd", "sd[i] = sqrt(var[i]) + eps"),
    "scores without the mask": ("blocks.0.attn.S", "S[h,i,j] = sum(Q[h,i,c]*K[h,j,c] for c in d_k)/sqrt(d_k)"),
    "scores without the scale": ("blocks.0.attn.S", """
        S[h,i,j] = sum(Q[h,i,c]*K[h,j,c] for c in d_k) if allowed[i,j] else -inf"""),
    "a mask that hides the row itself": ("mask.allowed", "allowed[i,j] = 1 if j < i else 0"),
    "softmax over the rows": ("blocks.0.attn.A", "A[h,i,j] = exp(S[h,i,j])/sum(exp(S[h,m,j]) for m in n_k)"),
    "GELU by tanh": ("blocks.0.ffn.C", """
        C[i,f] = B[i,f]*(1 + tanh(sqrt(2/pi)*(B[i,f] + 0.044715*B[i,f]**3)))/2"""),
    "the mean loss of all positions": ("loss.L", "L = sum(nll[i] for i in n)/n"),
}  # fmt: skip

QUERIES = "blocks.0.attn.qk_norm.Qhat"
BY_HAND_IN_OPTIONS = {
    "the gain outside QK-norm's mean": (QUERIES, """
        Q.grad[h,i,c] += gamma_Q[c]*(
            Q_N.grad[h,i,c] - Qhat[h,i,c]*mean(Q_N.grad[h,i,a]*Qhat[h,i,a] for a in d_k)
        )/rms_Q[h,i]"""),
    "QK-norm's root mean square held constant": (QUERIES, "Q.grad[h,i,c] += Qhat.grad[h,i,c]/rms_Q[h,i]"),
    "a length in the place of a root mean square": (QUERIES, """
        Q.grad[h,i,c] += (
            Qhat.grad[h,i,c] - Qhat[h,i,c]*sum(Qhat.grad[h,i,a]*Qhat[h,i,a] for a in d_k)
        )/rms_Q[h,i]"""),
    "epsilon outside QK-norm's root": ("blocks.0.attn.qk_norm.rms_K", """
        rms_K[k,j] = sqrt(mean(K[k,j,c]**2 for c in d_k)) + eps"""),
    "heads averaged in the gradient of a gain": ("blocks.0.attn.qk_norm.Q_N", """
        gamma_Q.grad[c] += sum(Q_N.grad[h,i,c]*Qhat[h,i,c] for h in H for i in n)/H"""),
    "the gradient not scaled by dropout": ("blocks.0.attn.A_D", """
        A.grad[h,i,j] += A_D.grad[h,i,j] if kept_A[h,i,j] else 0"""),
    "the gradient divided by the rate": ("blocks.0.attn.A_D", """
        A.grad[h,i,j] += A_D.grad[h,i,j]/p_attn if kept_A[h,i,j] else 0"""),
    "what was left out learns too": ("blocks.0.O_D", "O.grad[i,r] += O_D.grad[i,r]/(1 - p_resid)"),
    "the rate of another place": ("embed.X_D", "X_D[i,r] = X[i,r]/(1 - p_resid) if kept_X[i,r] else 0"),
    "not scaled in training": ("blocks.0.F_D", "F_D[i,r] = F[i,r] if kept_F[i,r] else 0"),
}  # fmt: skip


@pytest.mark.parametrize("mistake", [*BY_HAND, *BY_HAND_IN_OPTIONS])
def test_a_mistake_made_by_hand_breaks_the_replay_law(mistake: str) -> None:
    assert fate_by_hand(mistake, None) == VALUES


def fate_by_hand(mistake: str, gamma: float | None) -> str | None:
    """What catches the mistake in a decoder whose norms have the scale ``gamma`` (None: random)."""
    consumer, text = {**BY_HAND, **BY_HAND_IN_OPTIONS}[mistake]
    here = case("options" if mistake in BY_HAND_IN_OPTIONS else "gelu", gamma=gamma)
    (wrong,) = written(here.program, consumer, text)
    (right,) = (
        s for s in here.program.statements if (s.consumer, s.target, s.face) == (consumer, wrong.target, wrong.face)
    )
    return numbers(here, exchanged(here.program, right, wrong), right).by


def test_gamma_outside_the_means_passes_the_replay_law_when_gamma_is_1() -> None:
    """Why no rule is tested at trivial parameters: there the wrong gradient has the right numbers."""
    assert fate_by_hand("gamma outside LayerNorm's means", gamma=1.0) != VALUES
    assert fate_by_hand("gamma outside LayerNorm's means", gamma=1.5) != VALUES
