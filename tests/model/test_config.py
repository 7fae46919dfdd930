"""Configurations that do not describe a decoder are refused where they are built."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from decoders import CONFIGS
from glassformer.errors import UserError
from glassformer.model import (
    AttentionConfig,
    DecoderConfig,
    DropoutConfig,
    FeedForwardConfig,
    HeadConfig,
    LayerConfig,
    NormConfig,
    PositionConfig,
    read_config,
)
from options import OPTION_CONFIGS

ALL = {**CONFIGS, **OPTION_CONFIGS}

GOOD: dict[str, Any] = {
    "vocab_size": 5,
    "context": 4,
    "d": 6,
    "layers": [
        {
            "attention": {"heads": 2, "d_k": 3, "d_v": 3},
            "ffn": {"d_ff": 8, "activation": "relu", "bias": True},
        }
    ],
    "norm": {"eps": 1e-5},
    "position": {"kind": "none"},
    "head": {"bias": True},
}


def layer(**changes: Any) -> dict[str, Any]:
    """The layer of ``GOOD`` with other fields of attention, or another network under ``ffn``."""
    good = GOOD["layers"][0]
    ffn = changes.pop("ffn", good["ffn"])
    return {"attention": {**good["attention"], **changes}, "ffn": ffn}


@pytest.mark.parametrize("name", ALL)
def test_a_configuration_survives_json(name: str) -> None:
    config = ALL[name]
    assert DecoderConfig.model_validate_json(config.model_dump_json()) == config
    assert read_config(config.model_dump(mode="json")) == config


def test_what_is_not_said_is_as_documented() -> None:
    attention = AttentionConfig(heads=2, d_k=3, d_v=4)
    assert attention == AttentionConfig(heads=2, d_k=3, d_v=4, bias=False, kv_heads=None, window=None, qk_norm=False)
    ffn = FeedForwardConfig(d_ff=8)
    assert ffn == FeedForwardConfig(d_ff=8, activation="gelu", bias=True, gated=False)
    config = DecoderConfig(vocab_size=5, context=4, d=6, layers=(LayerConfig(attention=attention, ffn=ffn),))
    assert config.norm == NormConfig(eps=1e-5, kind="layernorm", position="pre", final=True)
    assert config.position == PositionConfig(kind="learned", base=10000.0)
    assert config.head == HeadConfig(bias=False, tied=False)
    assert config.dropout == DropoutConfig(embedding=0.0, attention=0.0, residual=0.0)


def test_plain_data_is_read() -> None:
    config = read_config(GOOD)
    assert config.layers[0].attention == AttentionConfig(heads=2, d_k=3, d_v=3)
    assert read_config({**GOOD, "norm": None}).norm is None


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"d": 0}, "d: .*greater than 0"),
        ({"layers": []}, "layers: .*at least one layer"),
        ({"layers": None}, "layers: .*valid tuple"),
        ({"layers": [None]}, "layers.0: "),
        ({"d": "6"}, "d: .*valid integer"),
        ({"d": True}, "d: .*valid integer"),
        ({"vocab_size": 5.0}, "vocab_size: .*valid integer"),
        ({"layers": [layer(d_k=0)]}, "layers.0.attention.d_k: .*greater than 0"),
        ({"layers": [layer(), {"attention": {"heads": 2, "d_k": 3}, "ffn": None}]}, "1.attention.d_v: Field required"),
        ({"layers": [{"attention": None, "ffn": None}]}, "attention: "),
        ({"layers": [layer(heads=6, kv_heads=4)]}, "6 heads cannot share 4 key-value heads"),
        ({"layers": [layer(kv_heads=0)]}, "attention.kv_heads: .*greater than 0"),
        ({"layers": [layer(window=0)]}, "attention.window: .*greater than 0"),
        ({"layers": [layer(), layer(), layer(heads=1)]}, "layers 0 and 2 have heads = 2 and 1"),
        ({"layers": [layer(), layer(kv_heads=1)]}, "layers 0 and 1 have kv_heads = 2 and 1"),
        ({"layers": [layer(), layer(d_k=4)]}, "d_k = 3 and 4"),
        ({"layers": [layer(), layer(d_v=4)]}, "d_v = 3 and 4"),
        ({"layers": [layer(window=2), layer(), layer(window=3)]}, "layers 0 and 2 have window = 2 and 3"),
        ({"layers": [layer(), layer(ffn=None), layer(ffn={"d_ff": 9})]}, "layers 0 and 2 have d_ff = 8 and 9"),
        ({"layers": [layer(d_k=0)] * 9}, "layers.3.attention.d_k: [^;]*; and 5 more"),
        ({"norm": {"eps": 0.0}}, "norm.eps: .*greater than 0"),
        ({"norm": {"eps": float("nan")}}, "norm.eps: .*"),
        ({"norm": {"eps": float("inf")}}, "norm.eps: .*finite"),
        ({"d": 1}, "LayerNorm over d = 1 coordinate"),
        ({"d": 1, "norm": {"kind": "rmsnorm"}}, "RMSNorm over d = 1 coordinate"),
        ({"norm": {"kind": "batchnorm"}}, "norm.kind: .*'layernorm' or 'rmsnorm'"),
        ({"norm": {"position": "middle"}}, "norm.position: .*'pre' or 'post'"),
        ({"layers": [layer(ffn={"d_ff": 8, "activation": "swish"})]}, "ffn.activation: .*'gelu', .* or 'relu2'"),
        ({"layers": [layer(ffn={"d_ff": 8, "gated": 1})]}, "ffn.gated: .*valid boolean"),
        ({"position": {"kind": "rotary"}}, "position.kind: .*'learned', .* or 'none'"),
        ({"position": {"kind": "rope"}}, "d_k = 3 must be even"),
        ({"position": {"kind": "rope", "base": 1.0}}, "position.base: .*greater than 1"),
        ({"position": {"kind": "learned", "base": 50.0}}, "position: .*'learned' computes no angles"),
        ({"head": {"tied": 0}}, "head.tied: .*valid boolean"),
        ({"head": {"bias": 1}}, "head.bias: .*valid boolean"),
        ({"layer": []}, 'layer: .*Did you mean "layers"'),
        ({"layers": [layer(dk=3)]}, 'attention.dk: .*Did you mean "d_k"'),
        ({"layers": [{**layer(), "atention": 1}]}, 'layers.0.atention: .*Did you mean "attention"'),
        ({"position": {"knd": "none"}}, 'position.knd: .*Did you mean "kind"'),
    ],
)
def test_data_that_describes_no_decoder_is_refused_by_the_name_of_the_field(
    changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(UserError, match=message):
        read_config({**GOOD, **changes})


def test_a_missing_feed_forward_network_must_be_said() -> None:
    with pytest.raises(UserError, match="ffn: Field required"):
        read_config({**GOOD, "layers": [{"attention": layer()["attention"]}]})


def test_layers_that_are_alike_are_written_once() -> None:
    config = read_config({**GOOD, "layers": [layer(window=2)] * 3})
    alike = DecoderConfig.alike(
        3, attention=config.layers[0].attention, ffn=config.layers[0].ffn, vocab_size=5, context=4, d=6,
        norm=config.norm, position=config.position, head=config.head,
    )  # fmt: skip
    assert alike == config
    assert (config.blocks, config.window, config.d_ff) == (3, 2, 8)


def test_layers_may_differ_in_all_but_their_sizes() -> None:
    layers = [layer(ffn=None), layer(window=2, bias=True, kv_heads=2), layer(ffn={"d_ff": 8, "gated": True})]
    config = read_config({**GOOD, "layers": layers})
    assert (config.blocks, config.window, config.d_ff) == (3, 2, 8)
    assert [x.attention.window for x in config.layers] == [None, 2, None]


def test_a_configuration_cannot_be_changed() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        NormConfig().eps = 1.0  # pyright: ignore[reportAttributeAccessIssue]
