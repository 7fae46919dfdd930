"""The 24-parameter Transformer by hand: forward, all gradients, one update, and forward again.

Run it as it is for a readable table, with --json for every number. It needs nothing but the standard library, so each
line can be followed with a pencil. Tokens A, B, C are 0, 1, 2; the text is "A B", C should follow, and only the last
position is scored.

Convention: a vector is a row, a position is a row of X, and a layer multiplies from the right: Y = X W.
G["M"], the gradient of the loss L with respect to M, has the shape of M and is defined by dL = sum of G["M"] * dM over
all cells. For Y = X W we have dY = dX W + X dW; reading off what multiplies dX and dW gives the two rules used below:
    G["X"] = G["Y"] W^T        G["W"] = X^T G["Y"]
"""

import argparse
import json
import math

TOKENS, TARGET, ETA, STEP = [0, 1], 2, 0.1, 1e-5
PARAMETERS = {
    "E": [[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]],  # one row a token
    "W_Q": [[0.0], [1.0]],
    "W_K": [[1.0], [0.0]],
    "W_V": [[1.0, 0.0], [0.0, 1.0]],
    "W_O": [[1.0, 0.0], [0.0, 1.0]],
    "U": [[1.0, 0.0, -1.0], [0.0, 1.0, 0.0]],  # one column a token
}


def T(a):
    return [list(column) for column in zip(*a)]


def mul(a, b):
    return [[sum(x * y for x, y in zip(row, column)) for column in zip(*b)] for row in a]


def add(*summands):
    return [[sum(cells) for cells in zip(*rows)] for rows in zip(*summands)]


def scale(factor, a):
    return [[factor * x for x in row] for row in a]


def softmax(row):
    top = max(row)  # taking the same number from every score changes nothing, and exp can no longer overflow
    weights = [math.exp(x - top) for x in row]  # exp(-inf) is exactly 0: a masked position gets no weight
    return [w / sum(weights) for w in weights]


def forward(P):
    """Every quantity on the way from the tokens to the loss, by name."""
    F = {"X": [P["E"][t][:] for t in TOKENS]}  # look up the row of each token
    F["Q"], F["K"], F["V"] = mul(F["X"], P["W_Q"]), mul(F["X"], P["W_K"]), mul(F["X"], P["W_V"])
    scores = scale(1 / math.sqrt(len(F["Q"][0])), mul(F["Q"], T(F["K"])))
    F["S"] = [[s if j <= i else -math.inf for j, s in enumerate(row)] for i, row in enumerate(scores)]  # no future
    F["A"] = [softmax(row) for row in F["S"]]
    F["Z"] = mul(F["A"], F["V"])  # each row: a mixture of the values that its position may read
    F["R"] = add(F["X"], mul(F["Z"], P["W_O"]))  # the residual keeps X
    F["h"] = F["R"][-1]  # the last position predicts the next token
    F["logits"] = mul([F["h"]], P["U"])[0]
    F["p"] = softmax(F["logits"])
    F["L"] = -math.log(F["p"][TARGET])
    return F


def backward(P, F):
    """The gradient of L with respect to every quantity, from the loss back to the embedding."""
    root, G = math.sqrt(len(F["Q"][0])), {}
    # L = ln(sum_w exp logits_w) - logits_target, so dL/dlogits_w = p_w - (1 if w is the target).
    G["logits"] = [p - (w == TARGET) for w, p in enumerate(F["p"])]
    # logits = h U, and h is the last row of R; no other row of R reaches the loss.
    G["h"] = mul([G["logits"]], T(P["U"]))[0]
    G["R"] = [[0.0] * len(F["h"]) for _ in TOKENS[1:]] + [G["h"]]
    G["U"] = mul(T([F["h"]]), [G["logits"]])
    # R = X + Z W_O: the sum hands its gradient to both terms; the term Z W_O first.
    G["W_O"] = mul(T(F["Z"]), G["R"])
    G["Z"] = mul(G["R"], T(P["W_O"]))
    # Z = A V.
    G["A"] = mul(G["Z"], T(F["V"]))
    G["V"] = mul(T(F["A"]), G["Z"])
    # Each row of A is a softmax: dA_j = A_j (dS_j - sum_m A_m dS_m). This Jacobian is symmetric, so the gradient has
    # the same form. A masked cell has A = 0, and therefore gradient 0 without a rule of its own.
    G["S"] = [[a * (g - sum(x * y for x, y in zip(A, GA))) for a, g in zip(A, GA)] for A, GA in zip(F["A"], G["A"])]
    # S = Q K^T / sqrt(d_k) where allowed; K enters transposed, so its gradient takes the transpose of G["S"].
    G["Q"] = scale(1 / root, mul(G["S"], F["K"]))
    G["K"] = scale(1 / root, mul(T(G["S"]), F["Q"]))
    # Q = X W_Q, K = X W_K, V = X W_V. X is read four times, by the residual too: its four gradients add up.
    for W, Y in (("W_Q", "Q"), ("W_K", "K"), ("W_V", "V")):
        G[W] = mul(T(F["X"]), G[Y])
    G["X"] = add(G["R"], *(mul(G[Y], T(P[W])) for W, Y in (("W_Q", "Q"), ("W_K", "K"), ("W_V", "V"))))
    # Row i of X is the row of E of token i: each row of E collects from the positions that looked it up.
    read_by = [[i for i, t in enumerate(TOKENS) if t == token] for token in range(len(P["E"]))]
    G["E"] = [[sum((G["X"][i][r] for i in rows), 0.0) for r in range(len(F["h"]))] for rows in read_by]
    return G


def central_differences(P):
    """(L(theta + step) - L(theta - step)) / (2 step) for each of the 24 cells: no chain rule at all."""

    def loss(name, i, j, by):
        rows = [row[:] for row in P[name]]
        rows[i][j] += by
        return forward({**P, name: rows})["L"]

    cells = [(name, i, j) for name, rows in P.items() for i, row in enumerate(rows) for j in range(len(row))]
    return {cell: (loss(*cell, STEP) - loss(*cell, -STEP)) / (2 * STEP) for cell in cells}


def compute():
    """Every number in one dictionary, and the central difference of each cell."""
    F, D = forward(PARAMETERS), central_differences(PARAMETERS)
    G = backward(PARAMETERS, F)
    worst = max(abs(G[name][i][j] - D[name, i, j]) for name, i, j in D)
    assert len(D) == 24
    assert worst < 3e-11, f"chain rule and central differences disagree by {worst}"
    # One joint update: every gradient was taken at the old parameters, none at a half-updated model.
    new = {name: add(rows, scale(-ETA, G[name])) for name, rows in PARAMETERS.items()}
    numbers = {"input": TOKENS, "target": TARGET, "eta": ETA, "parameters": PARAMETERS, "forward": F, "gradients": G}
    numbers |= {"updated": new, "forward_after": forward(new), "central_difference_max_abs_diff": worst}
    return numbers | {"epsilon": STEP}, D


def show(numbers, differences):
    """Print each quantity before the update, its gradient and its value after; then the 24 parameters one a line."""
    forms = [numbers[part] for part in ("forward", "gradients", "forward_after")]
    print(f"{'':8}{'forward':>11}{'':22}{'gradient':>11}{'':22}{'after':>11}")
    for name in numbers["forward"]:
        blocks = [form.get(name, []) for form in forms]  # p and L have no gradient here: p is skipped, L is the start
        blocks = [b if isinstance(b, list) and b and isinstance(b[0], list) else [b] for b in blocks]
        for i, rows in enumerate(zip(*blocks)):
            texts = ("".join(f"{x + 0.0:11.6f}" for x in (r if isinstance(r, list) else [r])) for r in rows)
            print(f"{'' if i else name:8}" + "".join(f"{text:33}" for text in texts).rstrip())
    print(f"\n{'cell':8}{'value':>11}{'gradient':>11}{'central - gradient':>23}{'new value':>11}")
    for (name, i, j), slope in differences.items():
        old, g, new = (numbers[part][name][i][j] for part in ("parameters", "gradients", "updated"))
        print(f"{f'{name}[{i},{j}]':8}{old:11.6f}{g + 0.0:11.6f}{slope - g:23.1e}{new:11.6f}")


if __name__ == "__main__":
    options = argparse.ArgumentParser(description="The 24-parameter Transformer, computed by hand.")
    options.add_argument("--json", action="store_true", help="print every number instead of a table")
    as_json, (numbers, differences) = options.parse_args().json, compute()
    if as_json:
        numbers["forward"]["S"][0][1] = numbers["forward_after"]["S"][0][1] = None  # JSON has no minus infinity
        print(json.dumps(numbers, indent=1, allow_nan=False))
    else:
        show(numbers, differences)
