"""What a run is told, in one file: data, model, training, all with defaults, written and read as TOML.

    [data]
    tokenizer = "bytes"
    [model]
    d = 128
    positions = "rope"
    [training]
    steps = 2000

``ModelRecipe`` says in flat words what ``DecoderConfig`` says in nested ones; the vocabulary comes from the text. Every
key can be set alone: ``settings(["model.d=128"])``.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import tomli_w
from pydantic import BaseModel, Field, ValidationError, model_validator

from ..errors import UserError
from ..model import DecoderConfig, read_config
from ..text.visible import visible
from .config import NONE, TrainingConfig
from .faults import setting_fault
from .settings import Settings, WithoutEffect

Size = Annotated[int, Field(ge=1, lt=2**31)]


class DataRecipe(Settings):
    """How a text becomes tokens.

    ``tokenizer`` is ``characters`` (one token each) or ``bytes`` (byte pairs merged until there are ``vocab_size``
    tokens, or the text offers no more). ``isolated`` keeps documents that share a row from reading one another.
    ``field`` names the field of a JSON line or the column of a Parquet table that holds the text (``text`` if None).
    ``clinic`` is ``zh`` or ``en`` where the run learns the clinic language in the place of a text; nothing else here
    applies then.
    """

    tokenizer: Literal["characters", "bytes"] = "characters"
    vocab_size: int = Field(default=1024, ge=260, le=1_000_000)
    isolated: bool = False
    field: str | None = None
    clinic: Literal["zh", "en"] | None = None

    def idle(self) -> Mapping[str, str]:
        if self.clinic is not None:
            return dict.fromkeys(
                ("tokenizer", "vocab_size", "isolated", "field"), "has no effect: the clinic language has its own words"
            )
        return {} if self.tokenizer == "bytes" else {"vocab_size": "has no effect: each character is a token"}


class ModelRecipe(Settings):
    """A decoder whose blocks are alike, but for the window.

    ``d_k`` and ``d_v`` are ``d/heads`` unless given; ``d_ff`` is ``4 d``, with a gate two thirds of that, and 0 means no
    feed-forward network. ``windowed`` says which blocks have the ``window``: all, or every other, the first among them.
    ``dropout`` is the rate everywhere: embedding, attention, residual.
    """

    d: Size = 64
    blocks: Size = 2
    context: Size = 64
    heads: Size = 4
    kv_heads: Size | None = None
    d_k: Size | None = None
    d_v: Size | None = None
    qk_norm: bool = False
    window: Size | None = None
    windowed: Literal["all", "alternate"] = "all"
    d_ff: int | None = Field(default=None, ge=0, lt=2**31)
    activation: Literal["gelu", "gelu_tanh", "silu", "relu", "relu2"] = "gelu"
    gated: bool = False
    norm: Literal["layernorm", "rmsnorm", "none"] = "layernorm"
    norm_position: Literal["pre", "post"] = "pre"
    final_norm: bool = True
    eps: float = Field(default=1e-5, gt=0, allow_inf_nan=False)
    positions: Literal["learned", "sinusoidal", "rope", "none"] = "learned"
    position_base: float = Field(default=10_000.0, gt=1, allow_inf_nan=False)
    attention_bias: bool = False
    ffn_bias: bool = True
    head_bias: bool = False
    tied_head: bool = False
    dropout: float = Field(default=0.0, ge=0, lt=1)

    def idle(self) -> Mapping[str, str]:
        reasons: dict[str, str] = {}
        if self.norm == "none":
            # QK-norm alone has an epsilon of its own
            reasons |= dict.fromkeys(("norm_position", "final_norm", "eps"), "has no effect: there is no norm")
        if self.d_ff == 0:
            nothing = "has no effect: there is no feed-forward network"
            reasons |= dict.fromkeys(("activation", "gated", "ffn_bias"), nothing)
        if self.positions not in ("sinusoidal", "rope"):
            reasons["position_base"] = f"has no effect: positions are {self.positions}"
        if self.window is None:
            reasons["windowed"] = "has no effect: there is no window"
        return reasons

    def config(self, vocab_size: int) -> DecoderConfig:
        """The decoder for a vocabulary of ``vocab_size`` tokens. Raises ``UserError`` for sizes that do not fit."""
        if self.d % self.heads and None in (self.d_k, self.d_v):
            fitting = [h for h in range(1, self.d + 1) if self.d % h == 0]
            near = sorted(sorted(fitting, key=lambda h: abs(h - self.heads))[:3])
            raise UserError(
                f"{self.heads} heads do not divide d = {self.d}.",
                "",
                f"Use {' or '.join(map(str, near))} heads, another d, or give d_k and d_v.",
            )
        window = [self.window if self.windowed == "all" or not number % 2 else None for number in range(self.blocks)]
        return read_config(
            {
                "vocab_size": vocab_size,
                "context": self.context,
                "d": self.d,
                "layers": tuple({"attention": {**self._attention(), "window": w}, "ffn": self._ffn()} for w in window),
                "norm": self._norm(),
                "position": {"kind": self.positions, "base": self.position_base},
                "head": {"bias": self.head_bias, "tied": self.tied_head},
                "dropout": dict.fromkeys(("embedding", "attention", "residual"), self.dropout),
            }
        )

    def _attention(self) -> dict[str, Any]:
        share = self.d // self.heads
        return {
            "heads": self.heads,
            "d_k": self.d_k or share,
            "d_v": self.d_v or share,
            "kv_heads": self.kv_heads,
            "bias": self.attention_bias,
            "qk_norm": self.qk_norm,
        }

    def _ffn(self) -> dict[str, Any] | None:
        if self.d_ff == 0:
            return None
        # A gate is a third matrix: two thirds of the width keep the number of parameters.
        d_ff = self.d_ff or (8 * self.d // 3 if self.gated else 4 * self.d)
        return {"d_ff": d_ff, "activation": self.activation, "gated": self.gated, "bias": self.ffn_bias}

    def _norm(self) -> dict[str, Any] | None:
        if self.norm == "none":
            return None
        return {"kind": self.norm, "eps": self.eps, "position": self.norm_position, "final": self.final_norm}


class Recipe(Settings):
    """``data``, ``model`` and ``training`` of one run."""

    data: DataRecipe = DataRecipe()
    model: ModelRecipe = ModelRecipe()
    training: TrainingConfig

    @model_validator(mode="after")
    def _context_of_a_language(self) -> Recipe:
        if self.data.clinic is not None and "context" in self.model.model_fields_set:
            raise WithoutEffect("model.context", "has no effect: it is the longest sentence of the clinic language")
        return self

    def toml(self) -> str:
        """The recipe as a TOML file, which ``read_recipe`` reads; what is not set, or has no effect, is left out."""
        values = _without_none(self.model_dump(mode="json"))
        if self.training.optimizer.clip is None:
            values["training"]["optimizer"]["clip"] = NONE
        if self.data.clinic is not None:
            del values["model"]["context"]
        return tomli_w.dumps(values)


def read_recipe(values: Mapping[str, Any], names: Mapping[str, str] | None = None) -> Recipe:
    """The recipe that plain nested ``values`` describe.

    Raises ``UserError`` naming the key, by what ``names`` calls it where it is there, and the nearest one if it is unknown.
    """
    try:
        return Recipe.model_validate(values)
    except ValidationError as problem:
        keys = _keys(Recipe)
        sections = sorted({key[:place] for key in keys for place, sign in enumerate(key) if sign == "."})
        raise setting_fault(problem.errors()[0], names or {}, keys, sections) from None


def read_settings_file(path: Path) -> dict[str, Any]:
    """The nested values of the TOML file at ``path``. Raises ``UserError`` when it is missing or is no TOML."""
    name = visible(str(path), keep="")
    try:
        return tomllib.loads(path.read_bytes().decode("utf-8"))
    except FileNotFoundError:
        raise UserError(f"There is no file {name}.", "", "Give the path of a TOML file.") from None
    except (OSError, UnicodeDecodeError) as problem:
        raise UserError(f"{name} cannot be read.", f"{problem}.", "Give the path of a TOML file.") from None
    except (ValueError, RecursionError) as problem:  # TOML's own errors, and numbers or nesting beyond what is read
        raise UserError(
            f"{name} is not TOML.",
            f"{visible(str(problem), keep='')}.",
            "Write for example: [model] and below it d = 128",
        ) from None


def settings(assignments: Sequence[str]) -> dict[str, Any]:
    """``["model.d=128"]`` as nested values; a value is TOML, or else a word. Raises ``UserError`` for any other form."""
    values: dict[str, Any] = {}
    for text in assignments:
        key, equals, value = (part.strip() for part in text.partition("="))
        parts = key.split(".")
        if not equals or not value or "" in parts:
            raise UserError(
                f'"{visible(text, keep="")}" does not set anything.', "", "Write for example --set model.d=128."
            )
        values = merged(values, _nested(parts, _value(value)))
    return values


def merged(first: Mapping[str, Any], second: Mapping[str, Any]) -> dict[str, Any]:
    """Both, part by part; where they differ, ``second`` counts."""
    both = dict(first)
    for key, value in second.items():
        before = both.get(key)
        both[key] = merged(before, value) if isinstance(before, Mapping) and isinstance(value, Mapping) else value
    return both


def _nested(parts: Sequence[str], value: Any) -> dict[str, Any]:
    return {parts[0]: value if len(parts) == 1 else _nested(parts[1:], value)}


def _value(text: str) -> Any:
    try:
        read = tomllib.loads(f"v = {text}")
    except (ValueError, RecursionError):
        return text
    return read["v"] if len(read) == 1 else text  # a line break in it would begin another setting


def _keys(model: type[BaseModel], before: str = "") -> list[str]:
    """Every dotted key that can be set."""
    keys: list[str] = []
    for name, field in model.model_fields.items():
        part = field.annotation
        inside = isinstance(part, type) and issubclass(part, BaseModel)
        keys += _keys(part, f"{before}{name}.") if inside and isinstance(part, type) else [before + name]
    return keys


def _without_none(data: Any) -> Any:
    if isinstance(data, Mapping):
        return {key: _without_none(value) for key, value in data.items() if value is not None}
    return data
