"""Settings of a run: refused where they make no sense, the same when read back, and the schedule they describe."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from glassformer.errors import UserError
from glassformer.training import OptimizerConfig, ScheduleConfig, TrainingConfig
from glassformer.training import precision as module
from glassformer.training.config import default_threads
from glassformer.training.precision import has_bfloat16, resolved


@pytest.mark.parametrize(
    "values",
    [
        {},
        {"steps": 1, "seconds": 1.0},
        {"steps": 0},
        {"seconds": 0.0},
        {"seconds": math.nan},
        {"seconds": math.inf},
        {"steps": 1, "batch": 0},
        {"steps": 1, "accumulation": 0},
        {"steps": 1, "precision": "float16"},
        {"steps": 1, "seed": -1},
        {"steps": 1, "optimizer": {"learning_rate": math.nan}},
        {"steps": 1, "optimizer": {"eps": 0.0}},
        {"steps": 1, "optimizer": {"clip": 0.0}},
        {"steps": 1, "optimizer": {"kind": "sgd"}},
        {"steps": 1, "schedule": {"warmup": 1.0}},
        {"steps": 1, "checkpoint": {"keep": 0}},
        {"steps": 1, "checkpoint": {"every_seconds": 0}},
        {"steps": 1, "checkpoint": {"every_seconds": math.inf}},
        {"steps": 1, "unknown": 1},
    ],
)
def test_settings_that_make_no_sense_are_refused_where_they_are_built(values: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        TrainingConfig.model_validate(values)


@pytest.mark.parametrize(
    ("section", "values", "message"),
    [
        (OptimizerConfig, {"kind": "gradient_descent", "beta_1": 0.9}, "beta_1 belongs to adamw; gradient_descent has"),
        (OptimizerConfig, {"kind": "gradient_descent", "weight_decay": 0.0}, "weight_decay belongs to adamw"),
        (ScheduleConfig, {"decay": 0.2}, "decay belongs to trapezoid; cosine has none"),
        (
            ScheduleConfig,
            {"kind": "constant", "floor": 0.1},
            "floor belongs to cosine and trapezoid; constant has none",
        ),
        (ScheduleConfig, {"kind": "trapezoid", "warmup": 0.6, "decay": 0.5}, "add up to more than 1"),
    ],
)
def test_a_setting_without_effect_is_refused_and_never_ignored(
    section: type[OptimizerConfig | ScheduleConfig], values: dict[str, object], message: str
) -> None:
    with pytest.raises(ValidationError, match=message):
        section.model_validate(values)


@pytest.mark.parametrize("optimizer", ["adamw", "gradient_descent"])
@pytest.mark.parametrize("schedule", ["cosine", "trapezoid", "constant"])
def test_settings_written_out_and_read_back_are_the_same(optimizer: str, schedule: str) -> None:
    config = TrainingConfig.model_validate(
        {"steps": 3, "optimizer": {"kind": optimizer}, "schedule": {"kind": schedule}}
    )
    written = config.model_dump(mode="json")
    assert TrainingConfig.model_validate(written) == config
    assert ("beta_1" in written["optimizer"]) == (optimizer == "adamw")
    assert ("decay" in written["schedule"]) == (schedule == "trapezoid")


@pytest.mark.parametrize(
    ("kind", "factors"),
    [
        ("cosine", {0.0: 0, 0.05: 0.5, 0.1: 1, 0.55: (1 + 0.25) / 2, 1.0: 0.25}),
        ("trapezoid", {0.0: 0, 0.05: 0.5, 0.1: 1, 0.5: 1, 0.6: 1, 0.8: (1 + 0.25) / 2, 1.0: 0.25}),
        ("constant", {0.0: 0, 0.05: 0.5, 0.1: 1, 0.5: 1, 1.0: 1}),
    ],
)
def test_the_learning_rate_rises_and_then_follows_its_kind(kind: str, factors: dict[float, float]) -> None:
    parts = {"cosine": {"floor": 0.25}, "trapezoid": {"floor": 0.25, "decay": 0.4}, "constant": {}}[kind]
    schedule = ScheduleConfig.model_validate({"kind": kind, "warmup": 0.1, **parts})
    for share, factor in factors.items():
        assert schedule.factor(share) == pytest.approx(factor), share
    config = TrainingConfig(steps=1, optimizer=OptimizerConfig(learning_rate=2.0), schedule=schedule)
    assert config.rate(0.05) == pytest.approx(1.0)


@given(
    st.sampled_from(["cosine", "trapezoid", "constant"]),
    st.floats(0, 0.5),
    st.floats(0, 1),
    st.floats(0.01, 0.5),
    st.floats(0, 1),
)
def test_the_factor_stays_between_0_and_1_and_after_warm_up_above_the_floor(
    kind: str, warmup: float, floor: float, decay: float, share: float
) -> None:
    parts = {"cosine": {"floor": floor}, "trapezoid": {"floor": floor, "decay": decay}, "constant": {}}[kind]
    factor = ScheduleConfig.model_validate({"kind": kind, "warmup": warmup, **parts}).factor(share)
    assert 0 <= factor <= 1 + 1e-12
    if share >= warmup and kind != "constant":
        assert factor >= floor - 1e-12


def test_a_small_model_gets_one_thread_and_a_large_one_at_most_four() -> None:
    assert default_threads(64) == 1
    assert 1 <= default_threads(512) <= 4


@pytest.mark.parametrize(
    ("able", "asked", "d", "taken"),
    [
        (True, "auto", 384, "bfloat16"),
        (True, "auto", 383, "float32"),
        (False, "auto", 384, "float32"),
        (True, "bfloat16", 16, "bfloat16"),
        (False, "float32", 16, "float32"),
    ],
)
def test_the_precision_is_settled_before_the_run(
    monkeypatch: pytest.MonkeyPatch, able: bool, asked: str, d: int, taken: str
) -> None:
    monkeypatch.setattr(module, "has_bfloat16", lambda: able)
    config = resolved(TrainingConfig.model_validate({"steps": 1, "precision": asked}), d)
    assert config.precision == taken
    assert config.threads is not None
    assert resolved(config, d) == config


def test_bfloat16_on_a_processor_without_it_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "has_bfloat16", lambda: False)
    with pytest.raises(UserError, match="This processor has no bfloat16 arithmetic"):
        resolved(TrainingConfig(steps=1, precision="bfloat16"), 512)


@pytest.mark.parametrize(
    ("text", "able"),
    [
        ("processor : 0\nflags\t\t: fpu avx2 avx512_bf16 sse\n", True),
        ("flags : fpu amx_bf16\n", True),
        ("Features : fp asimd bf16 i8mm\n", True),
        ("flags : fpu avx2 avx512f\n", False),
        ("model name : with bf16 in its name\nflags : fpu\n", False),
        ("", False),
    ],
)
def test_the_processor_says_itself_whether_it_has_bfloat16(tmp_path: Path, text: str, able: bool) -> None:
    (tmp_path / "cpuinfo").write_text(text)
    assert has_bfloat16(tmp_path / "cpuinfo") is able
    assert has_bfloat16(tmp_path / "nothing") is False
