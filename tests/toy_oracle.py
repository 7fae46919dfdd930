"""The 24-parameter model once more, in plain torch without a line of the package: the oracle of the toy tests."""

from __future__ import annotations

import torch

START = {
    "E": [[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]],
    "W_Q": [[0.0], [1.0]],
    "W_K": [[1.0], [0.0]],
    "W_V": [[1.0, 0.0], [0.0, 1.0]],
    "W_O": [[1.0, 0.0], [0.0, 1.0]],
    "U": [[1.0, 0.0, -1.0], [0.0, 1.0, 0.0]],
}


def forward(parameters: dict[str, torch.Tensor], tokens: list[int], target: int) -> dict[str, torch.Tensor]:
    """Every step of chapter 11 with the scored row last."""
    X = parameters["E"][tokens]
    Q, K, V = (X @ parameters[name] for name in ("W_Q", "W_K", "W_V"))
    n = len(tokens)
    S = (Q @ K.T).masked_fill(torch.ones(n, n, dtype=torch.bool).triu(1), -torch.inf)
    A = S.softmax(-1)
    Z = A @ V
    R = X + Z @ parameters["W_O"]
    h = R[-1]
    logits = h @ parameters["U"]
    p = logits.softmax(-1)
    L = -logits.log_softmax(-1)[target]
    return {"X": X, "Q": Q, "K": K, "V": V, "S": S, "A": A, "Z": Z, "R": R, "h": h, "logits": logits, "p": p, "L": L}


def step(parameters: dict[str, list], tokens: list[int], target: int, eta: float) -> dict[str, dict[str, list]]:
    """Forward, gradients by autograd, joint update, forward after; nested lists, minus infinity as None."""
    leaves = {k: torch.tensor(v, dtype=torch.float64, requires_grad=True) for k, v in parameters.items()}
    values = forward(leaves, tokens, target)
    names = [name for name in values if name not in ("L", "p")]
    everything = [*leaves, *names]
    grads = torch.autograd.grad(
        values["L"], [*leaves.values(), *(values[name] for name in names)], allow_unused=True, materialize_grads=True
    )
    gradients = dict(zip(everything, grads, strict=True))
    updated = {k: (v - eta * gradients[k]).detach() for k, v in leaves.items()}
    return {
        "parameters": _lists(leaves),
        "forward": _lists(values),
        "gradients": _lists(gradients),
        "updated": _lists(updated),
        "forward_after": _lists(forward(updated, tokens, target)),
    }


def _lists(tensors: dict[str, torch.Tensor]) -> dict[str, list]:
    return {k: _plain(v.detach().tolist()) for k, v in tensors.items()}


def _plain(x):
    if isinstance(x, list):
        return [_plain(part) for part in x]
    return None if x == -float("inf") else x
