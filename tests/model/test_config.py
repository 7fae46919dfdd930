"""Configurations that do not describe a decoder are refused where they are built."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from decoders import CONFIGS
from glassformer.errors import UserError
from glassformer.model import AttentionConfig, DecoderConfig, NormConfig, read_config
from options import OPTION_CONFIGS

ALL = {**CONFIGS, **OPTION_CONFIGS}

GOOD: dict[str, Any] = {
    "vocab_size": 5,
    "context": 4,
    "d": 6,
    "blocks": 1,
    "attention": {"heads": 2, "d_k": 3, "d_v": 3},
    "norm": {"eps": 1e-5},
    "ffn": {"d_ff": 8, "activation": "relu", "bias": True},
    "positions": "none",
    "head_bias": True,
}


@pytest.mark.parametrize("name", ALL)
def test_a_configuration_survives_json(name: str) -> None:
    config = ALL[name]
    assert DecoderConfig.model_validate_json(config.model_dump_json()) == config
    assert read_config(config.model_dump(mode="json")) == config


def test_plain_data_is_read() -> None:
    config = read_config(GOOD)
    assert config.attention == AttentionConfig(heads=2, d_k=3, d_v=3)
    assert read_config({**GOOD, "norm": None}).norm is None


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"d": 0}, "d: .*greater than 0"),
        ({"blocks": -1}, "blocks: .*greater than 0"),
        ({"d": "6"}, "d: .*valid integer"),
        ({"d": True}, "d: .*valid integer"),
        ({"vocab_size": 5.0}, "vocab_size: .*valid integer"),
        ({"attention": {"heads": 2, "d_k": 0, "d_v": 3}}, "attention.d_k: .*greater than 0"),
        ({"attention": {"heads": 2, "d_k": 3}}, "attention.d_v: Field required"),
        ({"attention": None}, "attention: "),
        ({"attention": {"heads": 6, "d_k": 3, "d_v": 3, "kv_heads": 4}}, "6 heads cannot share 4 key-value heads"),
        ({"attention": {"heads": 2, "d_k": 3, "d_v": 3, "kv_heads": 0}}, "attention.kv_heads: .*greater than 0"),
        ({"attention": {"heads": 2, "d_k": 3, "d_v": 3, "window": 0}}, "attention.window: .*greater than 0"),
        ({"norm": {"eps": 0.0}}, "norm.eps: .*greater than 0"),
        ({"norm": {"eps": float("nan")}}, "norm.eps: .*"),
        ({"norm": {"eps": float("inf")}}, "norm.eps: .*finite"),
        ({"d": 1}, "LayerNorm over d = 1 coordinate"),
        ({"d": 1, "norm": {"kind": "rmsnorm"}}, "RMSNorm over d = 1 coordinate"),
        ({"norm": {"kind": "batchnorm"}}, "norm.kind: .*'layernorm' or 'rmsnorm'"),
        ({"norm": {"position": "middle"}}, "norm.position: .*'pre' or 'post'"),
        ({"ffn": {"d_ff": 8, "activation": "swish"}}, "ffn.activation: .*'gelu', .* or 'relu2'"),
        ({"ffn": {"d_ff": 8, "gated": 1}}, "ffn.gated: .*valid boolean"),
        ({"positions": "rotary"}, "positions: .*'learned', .* or 'none'"),
        ({"positions": "rope"}, "d_k = 3 must be even"),
        ({"position_base": 1.0}, "position_base: .*greater than 1"),
        ({"tied_head": 0}, "tied_head: .*valid boolean"),
        ({"head_bias": 1}, "head_bias: .*valid boolean"),
        ({"block": 2}, 'block: .*Did you mean "blocks"'),
        ({"attention": {"heads": 2, "dk": 3, "d_k": 3, "d_v": 3}}, 'attention.dk: .*Did you mean "d_k"'),
    ],
)
def test_data_that_describes_no_decoder_is_refused_by_the_name_of_the_field(
    changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(UserError, match=message):
        read_config({**GOOD, **changes})


def test_a_missing_feed_forward_network_must_be_said() -> None:
    with pytest.raises(UserError, match="ffn: Field required"):
        read_config({name: value for name, value in GOOD.items() if name != "ffn"})


def test_a_configuration_cannot_be_changed() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        NormConfig().eps = 1.0  # pyright: ignore[reportAttributeAccessIssue]
