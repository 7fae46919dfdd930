"""Correct models of unusual kinds, and ways of calling that a model never offered: no law is raised against them."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor, nn

from glassformer.laws import Report, Verdict, check_subject
from glassformer.laws.bench import Bench
from glassformer.laws.probes.position_tables import closed_slopes
from glassformer.laws.runs import Claim, cells, once, row_by_row
from glassformer.laws.subjects.base import Continued, Kind
from glassformer.laws.subjects.layers import changed, heard
from glassformer.laws.subjects.module import CallableSubject
from glassformer.laws.verdict import NotSupported
from glassformer.laws.weights import without_dropout

from .mutants_forward import DECODER
from .test_forward import OWN, subject_of, violated

V, D = 30, 16


class Parts(nn.Module):
    """A post-norm stack of ``nn.TransformerEncoderLayer`` with learned positions by slot; what it takes is a subclass's."""

    def __init__(self, layers: int = 2, *, positions: bool = True) -> None:
        super().__init__()
        self.embed = nn.Embedding(V, D)
        self.place = nn.Embedding(32, D) if positions else None
        self.layers = nn.ModuleList(nn.TransformerEncoderLayer(D, 2, 24, batch_first=True) for _ in range(layers))
        self.head = nn.Linear(D, V)

    def run(self, x: Tensor, hidden: Tensor | None = None, *, causal: bool = True) -> Tensor:
        n = x.shape[1]
        if self.place is not None:
            x = x + self.place(torch.arange(n))
        banned = torch.ones(n, n, dtype=torch.bool).triu(1) if causal else torch.zeros(n, n, dtype=torch.bool)
        for layer in self.layers:
            x = layer(x, src_mask=banned, src_key_padding_mask=hidden)
        return self.head(x)


class Slots(Parts):
    """Counts positions from the first slot and takes none."""

    def forward(self, ids: Tensor, attention_mask: Tensor | None = None) -> Tensor:
        hidden = None if attention_mask is None else attention_mask == 0
        # A pad may read itself, so that no row is empty.
        n = ids.shape[1]
        x = self.embed(ids) + self.place(torch.arange(n))
        banned = torch.ones(n, n, dtype=torch.bool).triu(1)[None].expand(ids.shape[0], n, n)
        if hidden is not None:
            banned = banned | (hidden[:, None] & ~torch.eye(n, dtype=torch.bool))
        for layer in self.layers:
            x = layer(x, src_mask=banned.repeat_interleave(2, 0))
        return self.head(x)


class Inverse(Parts):
    """Its mask says what is hidden; to a row that sees nothing torch's own layers give NaN."""

    def forward(self, ids: Tensor, key_padding_mask: Tensor | None = None) -> Tensor:
        return self.run(self.embed(ids), None if key_padding_mask is None else key_padding_mask.bool())


class Types(Parts):
    """Its segments are the first and the second sentence."""

    def __init__(self) -> None:
        super().__init__()
        self.kinds = nn.Embedding(2, D)

    def forward(self, ids: Tensor, segment_ids: Tensor | None = None) -> Tensor:
        kinds = torch.zeros_like(ids) if segment_ids is None else segment_ids
        return self.run(self.embed(ids) + self.kinds(kinds), causal=False)


class Nameless(Parts):
    """One causal layer and no positions at all."""

    def __init__(self) -> None:
        super().__init__(1, positions=False)

    def forward(self, ids: Tensor) -> Tensor:
        return self.run(self.embed(ids))


class Scaled(Parts):
    """Multiplies the rows of its table and takes embeddings that are so multiplied; normalises over the batch."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(D)

    def forward(self, ids: Tensor | None = None, inputs_embeds: Tensor | None = None) -> Tensor:
        x = self.embed(ids) * math.sqrt(D) if inputs_embeds is None else inputs_embeds
        return self.run(self.norm(x.transpose(1, 2)).transpose(1, 2))


class Experts(Parts):
    """The second layer chooses one of two maps for each token."""

    def __init__(self) -> None:
        super().__init__()
        self.router, self.experts = nn.Linear(D, 2), nn.Parameter(torch.randn(2, D, D) / 4)

    def forward(self, ids: Tensor) -> Tensor:
        x = self.embed(ids)
        p, chosen = self.router(x).softmax(-1).max(-1)
        return self.run(x + p[..., None] * torch.einsum("bnr,bnrs->bns", x, self.experts[chosen]))


@pytest.mark.parametrize("kind", [Slots, Types, Nameless, Scaled, Experts])
def test_a_correct_model_of_another_kind_breaks_no_law(kind: type[Parts]) -> None:
    assert not violated(_checked(kind()))


@pytest.mark.parametrize(
    ("kind", "probe", "verdict", "reason"),
    [
        (Slots, "padding.left", Verdict.NOT_SUPPORTED, "counted from the first slot"),
        (Slots, "padding.right", Verdict.HOLDS, ""),
        (Inverse, "padding.right", Verdict.HOLDS, ""),
        (Inverse, "masked-rows.forward", Verdict.VIOLATED, ""),
        (Types, "packing.segments", Verdict.NOT_SUPPORTED, "types, not documents"),
        (Types, "padding.segments", Verdict.NOT_SUPPORTED, "types, not documents"),
        (Nameless, "positions.order", Verdict.NOT_APPLICABLE, "not known to have positions"),
        (Scaled, "flags.embeds", Verdict.HOLDS, ""),
        (Scaled, "flags.training", Verdict.NOT_APPLICABLE, "norms over the batch"),
        (Slots, "cross-attention.pads", Verdict.NOT_APPLICABLE, "no source"),
        (Slots, "window.forward", Verdict.NOT_APPLICABLE, "no causal window"),
    ],
)
def test_what_cannot_be_decided_says_why(kind: type[Parts], probe: str, verdict: Verdict, reason: str) -> None:
    result = _checked(kind(), probe)[probe]
    assert result.verdict is verdict
    assert reason in (result.reason or {"en": ""})["en"]


def _checked(model: Parts, *only: str) -> Report:
    torch.manual_seed(0)
    for p in model.parameters():
        nn.init.normal_(p, std=0.4)
    subject = CallableSubject(model, vocab_size=V, context=32)
    if isinstance(model, Types):
        subject.kind = Kind.MASKED
    return check_subject(subject, only=only or OWN)


class Sinusoids(Nameless):
    """Adds a table of sinusoids, with each frequency a sine and a cosine, or with none that belong together."""

    def __init__(self, *, paired: bool) -> None:
        super().__init__()
        at, c = torch.arange(32.0)[:, None], torch.arange(D // 2)
        sines, cosines = at / 10000 ** (2 * c / D), at / 10000 ** ((2 * c if paired else 2 * c + 1) / D)
        self.register_buffer("table", torch.stack([sines.sin(), cosines.cos()], -1).flatten(1))

    def forward(self, ids: Tensor) -> Tensor:
        return self.run(self.embed(ids) + self.table[: ids.shape[1]])


@pytest.mark.parametrize("paired", [True, False])
def test_a_table_of_sinusoids_is_held_to_its_closed_form(paired: bool) -> None:
    report = _checked(Sinusoids(paired=paired), "positions.sinusoid")
    assert violated(report) == ([] if paired else ["positions.sinusoid"])


@pytest.mark.parametrize("heads", range(1, 17))
def test_slopes_fall_by_one_factor_within_each_power_of_two(heads: int) -> None:
    slopes, below = closed_slopes(heads), 2 ** int(math.log2(heads))
    assert slopes.shape == (heads,)
    assert float(slopes[below - 1]) == 2.0**-8
    first = slopes[:below]
    torch.testing.assert_close(first[1:] / first[:-1], torch.full_like(first[1:], 2 ** (-8 / below)))
    assert len(set(slopes.tolist())) == heads


def test_rows_taken_apart_claim_what_they_claimed_together() -> None:
    ids = torch.arange(12).reshape(3, 4)
    claim = Claim(
        left=once(ids, mask=torch.ones_like(ids)), right=once(ids[[1, 2]]),
        left_at=cells([(1, 0), (2, 3), (1, 2)]), right_at=cells([(0, 1), (1, 3), (0, 2)]),
    )  # fmt: skip
    first, second = row_by_row(claim)
    assert first.left.calls[0].ids.tolist() == first.right.calls[0].ids.tolist() == [[4, 5, 6, 7]]
    assert first.left_at.positions.tolist() == [0, 2]
    assert first.right_at is not None
    assert first.right_at.positions.tolist() == [1, 2]
    assert second.left.calls[0].mask is not None
    assert second.left.calls[0].ids.tolist() == second.right.calls[0].ids.tolist() == [[8, 9, 10, 11]]


def test_dropout_comes_back_as_it_was() -> None:
    model = Parts()
    before = [part.p for part in model.modules() if isinstance(part, nn.Dropout)]
    with without_dropout(model):
        assert all(part.p == 0 for part in model.modules() if isinstance(part, nn.Dropout))
    assert [part.p for part in model.modules() if isinstance(part, nn.Dropout)] == before
    assert any(before)


def test_hooks_are_gone_when_a_layer_raises() -> None:
    layer = nn.Linear(2, 2)
    with pytest.raises(Exception, match="does not pass"), heard([layer]), changed(layer, lambda x: x):
        layer(torch.zeros(2, 2))
    assert not layer._forward_hooks
    assert not layer._forward_pre_hooks


class Opposite(Slots):
    """Its mask of zeros shows everything."""

    def forward(self, ids: Tensor, attention_mask: Tensor | None = None) -> Tensor:
        return super().forward(ids, None if attention_mask is None else 1 - attention_mask)


def test_a_mask_of_another_meaning_is_not_taken_for_ours() -> None:
    assert not violated(_checked(Opposite(), "padding", "masked-rows"))


SINGLE_NORM = (
    "return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps) * self.weight",
    "return (x.float() * torch.rsqrt(x.float().pow(2).mean(-1, keepdim=True) + self.eps)).to(x.dtype) * self.weight",
)


@pytest.mark.parametrize("norm", [(None, ""), SINGLE_NORM])
def test_a_part_that_always_computes_in_single_precision_sets_no_bound_that_nothing_breaks(
    norm: tuple[str | None, str],
) -> None:
    bench = Bench(subject_of(DECODER, {"positions": "learned"}, *norm), torch.float64)
    assert bench.single_tolerance < 0.1


def test_restarted_positions_isolate_nothing_by_the_rounding_of_a_norm_in_single_precision() -> None:
    result = check_subject(subject_of(DECODER, {"positions": "learned"}, *SINGLE_NORM), only=["packing.positions"])
    assert result["packing.positions"].verdict is Verdict.NOT_SUPPORTED


class Apart(Parts):
    """No token reads another, and its own positions begin at 2."""

    def forward(self, ids: Tensor, position_ids: Tensor | None = None) -> Tensor:
        at = torch.arange(ids.shape[1])[None] + 2 if position_ids is None else position_ids
        assert self.place is not None
        return self.head(self.embed(ids) + self.place(at))


def test_documents_that_do_not_read_each_other_are_not_kept_apart_by_anything() -> None:
    result = _checked(Apart(), "packing.positions")["packing.positions"]
    assert result.verdict is Verdict.NOT_SUPPORTED
    assert "nothing to keep apart" in (result.reason or {"en": ""})["en"]


class Mixer(nn.Module):
    """Reads the last ``kernel`` tokens through a convolution, or adds up the last ``window``."""

    def __init__(self, *, kernel: int | None = None, window: int = 0) -> None:
        super().__init__()
        self.window = window
        self.conv = nn.Conv1d(D, D, kernel, padding=kernel - 1) if kernel is not None else None
        self.map = nn.Linear(D, D)

    def forward(self, x: Tensor) -> Tensor:
        n = x.shape[1]
        if self.conv is not None:
            return x + self.conv(x.transpose(1, 2))[..., :n].transpose(1, 2)
        distance = torch.arange(n)[:, None] - torch.arange(n)
        return x + ((distance >= 0) & (distance < self.window)).to(x.dtype) @ self.map(x)


class Mixed(Parts):
    """A short convolution beside a window, in any order of lengths."""

    def __init__(self, kernel: int, window: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList([Mixer(kernel=kernel), Mixer(window=window)])

    def forward(self, ids: Tensor) -> Tensor:
        x = self.embed(ids)
        for layer in self.layers:
            x = layer(x)
        return self.head(x)


@pytest.mark.parametrize(("kernel", "window", "verdict"), [(7, 5, "holds"), (3, 5, "holds"), (7, 6, "violated")])
def test_a_short_convolution_is_not_taken_for_the_window(kernel: int, window: int, verdict: str) -> None:
    torch.manual_seed(0)
    subject = CallableSubject(Mixed(kernel, window), vocab_size=V, context=32, window=5)
    assert check_subject(subject, only=["window.forward"])["window.forward"].verdict == verdict


class Prompted(CallableSubject):
    """Keeps the prompts that its loop is given."""

    def continued(self, module: nn.Module, ids: Tensor, count: int, mask: Tensor | None = None) -> Continued:
        assert mask is not None
        self.at_pads = ids[mask == 0].tolist()
        raise NotSupported("no loop", "没有循环")


def test_pads_of_prompts_have_the_id_by_which_a_model_without_a_mask_knows_them() -> None:
    torch.manual_seed(0)
    subject = Prompted(Slots(), vocab_size=V, context=32)
    subject.facts.pad = 7
    check_subject(subject, only=["generate.padded"])
    assert set(subject.at_pads) == {7}


class Drawn(Slots):
    """In training what it reads is turned over by chance, seldom left as it is: two seeds may agree."""

    def forward(self, ids: Tensor, attention_mask: Tensor | None = None) -> Tensor:
        logits = super().forward(ids, attention_mask)
        return logits.flip(-1) if self.training and bool(torch.rand(()) > 0.1) else logits


class Turned(Slots):
    """In training what it reads is turned over, always."""

    def forward(self, ids: Tensor, attention_mask: Tensor | None = None) -> Tensor:
        logits = super().forward(ids, attention_mask)
        return logits.flip(-1) if self.training else logits


@pytest.mark.parametrize(("model", "verdict"), [(Drawn, Verdict.NOT_SUPPORTED), (Turned, Verdict.VIOLATED)])
def test_training_that_draws_lots_is_not_taken_for_a_fault_when_two_seeds_agree(
    model: type[Slots], verdict: Verdict
) -> None:
    report = check_subject(CallableSubject(model(), kind=Kind.CAUSAL), only=["flags.training"])
    assert report["flags.training"].verdict is verdict, report["flags.training"].reason
