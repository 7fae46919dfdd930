"""What stands beside a violation: the mask that was used, and a program that shows the fault without this package."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from glassformer.laws import check_subject
from glassformer.laws.spy import drawn, spying
from glassformer.laws.subjects.module import CallableSubject
from mutants import mutated

SMALL = Path(__file__).parent / "small_decoder.py"
TRIANGLE = ("allowed = j <= i\n", "allowed = j <= i + 1\n")
TOP_LEFT = ("torch.arange(past, total)[:, None]", "torch.arange(n)[:, None]")


class FromFile(CallableSubject):
    """A small decoder whose program imports it from a file."""

    def building(self) -> Sequence[str]:
        return ("from faulty import SmallDecoder", "model = SmallDecoder()")


@pytest.mark.parametrize(("change", "probe"), [(TRIANGLE, "causality.forward"), (TOP_LEFT, "cache.uneven")])
def test_the_program_of_a_violation_shows_it_without_this_package(
    change: tuple[str, str], probe: str, tmp_path: Path
) -> None:
    model = mutated("small_decoder.py", *change).SmallDecoder()
    result = check_subject(FromFile(model), only=(probe,))[probe]
    assert result.program is not None
    assert "glassformer" not in result.program
    (tmp_path / "faulty.py").write_text(SMALL.read_text(encoding="utf-8").replace(*change), encoding="utf-8")
    (tmp_path / "shows.py").write_text(result.program, encoding="utf-8")
    done = subprocess.run([sys.executable, "shows.py"], cwd=tmp_path, capture_output=True, text=True, check=True)
    shown = re.fullmatch(r"largest difference: (\S+) ; standard deviation of the logits: (\S+)\n", done.stdout)
    assert shown is not None
    assert float(shown[1]) > 1e-2 * float(shown[2])


def test_the_mask_of_a_leak_is_drawn_with_the_position_too_many() -> None:
    model = mutated("small_decoder.py", *TRIANGLE).SmallDecoder()
    result = check_subject(CallableSubject(model), only=("causality.forward",))["causality.forward"]
    assert result.place is not None
    n = len(result.place.mask)
    assert result.place.mask == tuple(("#" * min(n, i + 2)).ljust(n, ".") for i in range(n))
    assert result.place.file is not None
    assert result.place.file.endswith("small_decoder.py")


class Written(nn.Module):
    """Attention in torch's own words: ``softmax`` of a product, or the fused kernel."""

    def __init__(self, fused: bool) -> None:
        super().__init__()
        self.fused = fused

    def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        if self.fused:
            return F.scaled_dot_product_attention(q, k, v, is_causal=True)
        scores = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5
        triangle = torch.ones(scores.shape[-2:], dtype=torch.bool).tril()
        return scores.masked_fill(~triangle, -torch.inf).softmax(-1) @ v


def test_attention_is_seen_alike_in_the_fused_kernel_and_written_out() -> None:
    q, k, v = torch.randn(3, 2, 3, 5, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    seen = []
    for fused in (True, False):
        model = nn.ModuleDict({"attention": Written(fused)})
        with spying(model, 5) as spy:
            model["attention"](q, k, v)
        (one,) = spy.seen
        seen.append(one)
        assert one.module == "attention"
        assert one.d_k == 4
        assert drawn(one.reads()) == ("#....", "##...", "###..", "####.", "#####")
        torch.testing.assert_close(one.product, q @ k.transpose(-2, -1))
    torch.testing.assert_close(seen[0].weights, seen[1].weights)


class Raises(nn.Module):
    """Fails in training mode, after it has moved every random number there is."""

    def __init__(self) -> None:
        super().__init__()
        self.vocab_size = 30
        self.embed, self.head = nn.Embedding(30, 8), nn.Linear(8, 30)

    def forward(self, ids: Tensor) -> Tensor:
        torch.rand(3)
        if self.training:
            raise ValueError("not in training")
        return self.head(self.embed(ids))


def test_a_model_that_raises_ends_in_verdicts_and_is_left_as_it_was() -> None:
    model = Raises().train()
    model.head.weight.grad = torch.ones_like(model.head.weight)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    random = torch.get_rng_state()
    found = check_subject(CallableSubject(model))
    assert any("not in training" in (result.reason or {}).get("en", "") for result in found)
    assert torch.equal(torch.get_rng_state(), random)
    assert model.training
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert torch.equal(model.head.weight.grad, torch.ones_like(model.head.weight))
    assert not any(part._forward_hooks or part._forward_pre_hooks for part in model.modules())
