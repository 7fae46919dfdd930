"""A tiny configuration of any architecture of ``transformers``: two layers of each kind, everything else small."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

VOCABULARY = 99
CONTEXT = 64
WINDOW = 5


@dataclass(frozen=True, slots=True)
class Sizes:
    """Width, heads and width of a head; architectures differ in which of them must divide which.

    ``fill`` gives a value to settings that are None by default too.
    """

    d: int = 32
    heads: int = 4
    kv_heads: int = 2
    head_dim: int = 8
    fill: bool = False


TRIED = (
    Sizes(), Sizes(fill=True), Sizes(kv_heads=4), Sizes(d=64, head_dim=16), Sizes(d=64, heads=8, kv_heads=8),
    Sizes(d=128, head_dim=32),
)  # fmt: skip
"""The sizes that are tried in turn, until a model can be built and run."""

WIDTHS = frozenset({
    "hidden_size", "d_model", "n_embd", "dim", "embedding_size", "emb_dim", "n_embed", "word_embed_proj_dim", "width",
    "model_dim", "attention_hidden_size", "lru_width", "embed_dim", "encoder_hidden_size", "output_hidden_size",
    "encoder_embed_dim", "decoder_embed_dim", "projection_dim", "audio_embed_dim", "text_hidden_size", "out_hidden_size",
})  # fmt: skip
LAYERS = frozenset({
    "num_hidden_layers", "n_layer", "num_layers", "n_layers", "encoder_layers", "decoder_layers", "num_decoder_layers",
    "num_encoder_layers", "depth", "num_blocks", "layers",
})  # fmt: skip
HEADS = frozenset({
    "num_attention_heads", "n_head", "n_heads", "num_heads", "encoder_attention_heads", "decoder_attention_heads",
    "num_decoder_attention_heads", "num_encoder_attention_heads", "attention_heads", "mamba_n_heads", "mamba_num_heads",
    "linear_num_value_heads", "num_global_heads",
})  # fmt: skip
KV_HEADS = frozenset({
    "num_key_value_heads", "num_kv_heads", "kv_n_heads", "num_global_key_value_heads", "linear_num_key_heads",
    "n_head_kv", "swa_num_key_value_heads", "num_key_value_attention_heads",
})  # fmt: skip
HEAD_DIMS = frozenset({
    "head_dim", "d_kv", "qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim", "qk_head_dim", "attention_head_dim",
    "global_head_dim", "kv_channels", "linear_key_head_dim", "linear_value_head_dim", "swa_head_dim", "index_head_dim",
    "attention_head_size", "dim_head", "attention_key_size", "attention_value_size", "rotary_dim", "mamba_head_dim",
})  # fmt: skip
INNER = frozenset({
    "intermediate_size", "ffn_dim", "d_ff", "d_inner", "encoder_ffn_dim", "decoder_ffn_dim", "ffn_hidden_size",
    "n_inner", "dim_ff",
    "moe_intermediate_size", "shared_expert_intermediate_size", "shared_intermediate_size", "feed_forward_size",
    "intermediate_size_mlp", "dense_intermediate_size", "moe_shared_expert_intermediate_size", "block_ff_dim",
    "expert_ffn_hidden_size", "moe_ffn_hidden_size", "mlp_hidden_size",
})  # fmt: skip
POSITIONS = frozenset({
    "max_position_embeddings", "n_positions", "n_ctx", "max_seq_len", "seq_length", "max_sequence_length",
    "max_source_positions", "max_target_positions", "context_length",
})  # fmt: skip
VOCABULARIES = frozenset({"n_vocab", "vocab_size_per_layer_input"})
EXPERTS = frozenset({"num_experts", "n_routed_experts", "num_local_experts", "moe_num_experts", "num_routed_experts"})
CHOSEN = frozenset({"num_experts_per_tok", "moe_topk", "num_experts_per_token", "moe_k", "top_k_experts", "moe_top_k"})
RANKS = frozenset({"q_lora_rank", "kv_lora_rank", "lora_rank", "o_lora_rank", "dt_rank", "time_step_rank"})
STATES = frozenset({"state_size", "ssm_state_size", "mamba_d_state", "conv_dim"})
WINDOWS = frozenset(
    {"sliding_window", "attention_window_size", "window_size", "local_attention", "attention_chunk_size"}
)
ONE = frozenset({"n_group", "topk_group", "n_groups", "mamba_n_groups", "n_shared_experts", "first_k_dense_replace"})

FILLED = HEAD_DIMS | KV_HEADS | CHOSEN | EXPERTS | INNER | WIDTHS | VOCABULARIES | ONE | {"vocab_size"}

FOREIGN = frozenset({"transformers_version", "architectures", "dtype"})
"""What a configuration says of its file and not of the model."""

LAYER_KINDS = ("layer_types", "layers_block_type", "mlp_layer_types")
"""Lists that say the kind of each layer; the tiny model has each kind once."""

OWN: Mapping[str, Mapping[str, Any]] = {
    "bailing_hybrid": {"n_group": 1, "topk_group": 1, "first_k_dense_replace": 1},
    "bamba": {"attn_layer_indices": [1], "mamba_n_heads": 8, "mamba_d_head": 8},
    "cohere_compass_text": {"rope_parameters": {"full_attention": {"rope_type": "default", "rope_theta": 10000.0}}},
    "dbrx": {"attn_config": {"kv_n_heads": 2, "clip_qkv": 8.0, "rope_theta": 10000.0},
             "ffn_config": {"ffn_hidden_size": 64, "moe_num_experts": 4, "moe_top_k": 2}},
    "esm": {"vocab_size": VOCABULARY, "mask_token_id": 4, "pad_token_id": 0},
    "gemma3n_text": {
        "num_kv_shared_layers": 0, "hidden_size_per_layer_input": 8, "laurel_rank": 4, "altup_num_inputs": 2,
    },
    "gpt_neo": {"attention_types": [[["global", "local"], 1]], "window_size": WINDOW},
    "granitemoehybrid": {"layer_types": ["mamba", "attention"], "mamba_n_heads": 8, "mamba_d_head": 8},
    "jamba": {"attn_layer_period": 2, "attn_layer_offset": 1, "expert_layer_period": 2, "expert_layer_offset": 1},
    "lfm2_moe": {"layer_types": ["conv", "full_attention"], "num_dense_layers": 1},
    "longcat_flash": {"qk_head_dim": 16, "zero_expert_num": 2},
    "mamba2": {"num_heads": 8, "head_dim": 8},
    "minicpm3": {"dim_model_base": 4},  # an eighth of the width, where the default is a tenth: it divides the logits
    "recurrent_gemma": {"block_types": ["recurrent", "attention"]},
    "reformer": {
        "axial_pos_shape": [8, 8], "axial_pos_embds_dim": [16, 16], "attn_layers": ["local", "lsh"],
        "local_attn_chunk_length": 4, "lsh_attn_chunk_length": 4, "num_hashes": 1, "num_buckets": 2,
    },
    "rwkv": {"attention_hidden_size": 32},
    "xmod": {"languages": ["en_XX"], "default_language": "en_XX"},
    "zamba": {
        "num_hidden_layers": 4, "layers_block_type": ["mamba", "hybrid", "mamba", "hybrid"], "attention_hidden_size": 64,
        "attention_head_dim": 16, "mamba_d_state": 8, "mamba_dt_rank": 4,
    },
    "zamba2": {
        "num_hidden_layers": 4, "layers_block_type": ["mamba", "hybrid", "mamba", "hybrid"], "attention_hidden_size": 64,
        "attention_head_dim": 16, "n_mamba_heads": 8, "mamba_ngroups": 1, "adapter_rank": 4,
    },
}  # fmt: skip
"""What no general rule gives."""


Usual = Callable[[str], Mapping[str, Any]]
"""What a configuration of a model type says when it stands alone."""


def tiny(
    defaults: Mapping[str, Any], sizes: Sizes, model_type: str = "", usual: Usual = lambda _: {}
) -> dict[str, Any]:  # fmt: skip
    """The settings of ``defaults``, a configuration as a dict, that must change to make it small.

    Configurations inside it are made small too; only what changes is returned, and in those also what differs from their
    ``usual`` settings: given as a dict they would otherwise forget that they are a decoder, or tied.
    """
    changed: dict[str, Any] = {}
    layers = _layers(defaults)
    for name, value in defaults.items():
        if isinstance(value, Mapping) and "model_type" in value:
            changed[name] = _inside(value, sizes, usual)
            continue
        new = _small(name, value, defaults, sizes, layers)
        if new is not None and new != value:
            changed[name] = new
    changed |= _special(defaults)
    return changed | dict(OWN.get(model_type or str(defaults.get("model_type", "")), {}))


def _inside(value: Mapping[str, Any], sizes: Sizes, usual: Usual) -> dict[str, Any]:
    """A small configuration in the place of ``value``, which stands inside another."""
    model_type = str(value["model_type"])
    alone = usual(model_type)
    own = {name: said for name, said in value.items() if name in alone and alone[name] != said}
    kept = {name: said for name, said in own.items() if name not in FOREIGN and not isinstance(said, Mapping)}
    return {"model_type": model_type, **kept, **tiny(value, sizes, usual=usual)}


def _layers(defaults: Mapping[str, Any]) -> int:
    kinds = [len(set(value)) for name in LAYER_KINDS if isinstance(value := defaults.get(name), list)]
    return max([2, *kinds])


def _small(name: str, value: Any, defaults: Mapping[str, Any], sizes: Sizes, layers: int) -> Any:
    """The small value of a setting, or None where it stays."""
    if name in LAYER_KINDS and isinstance(value, list):
        return _each_kind(value, layers)
    if value is None and sizes.fill and name in FILLED:
        value = 1 << 30
    if not isinstance(value, int | float) or isinstance(value, bool) or value <= 0:
        return None
    if name in VOCABULARIES or name.endswith("vocab_size"):
        return VOCABULARY
    if name in LAYERS:
        return layers
    if name in KV_HEADS:
        return _kv(value, defaults, sizes)
    table: tuple[tuple[frozenset[str], int], ...] = (
        (WIDTHS, sizes.d), (HEADS, sizes.heads), (HEAD_DIMS, sizes.head_dim), (INNER, 2 * sizes.d),
        (POSITIONS, CONTEXT), (EXPERTS, 4), (CHOSEN, 2), (RANKS, sizes.d // 2), (STATES, 8), (WINDOWS, WINDOW), (ONE, 1),
    )  # fmt: skip
    small = next((small for names, small in table if name in names), None)
    return None if small is None or value < small else small


def _kv(value: int | float, defaults: Mapping[str, Any], sizes: Sizes) -> int:
    heads = next((defaults[h] for h in sorted(HEADS) if isinstance(defaults.get(h), int)), value)
    return sizes.heads if value >= heads else 1 if value == 1 else sizes.kv_heads


def _each_kind(kinds: Sequence[Any], layers: int) -> list[Any]:
    """``layers`` kinds, each that occurs at least once, in their order."""
    found = list(dict.fromkeys(kinds))
    return [*found, *[found[-1]] * (layers - len(found))]


def _special(defaults: Mapping[str, Any]) -> dict[str, Any]:
    """Ids of special tokens inside the small vocabulary, apart from one another where they were."""
    names = [n for n, v in defaults.items() if n.endswith("_token_id") and isinstance(v, int | list)]
    large = [n for n in names if max([defaults[n]] if isinstance(defaults[n], int) else defaults[n]) >= VOCABULARY]
    usual = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 0, "sep_token_id": 3}
    rest = iter(range(VOCABULARY - 1, 40, -1))
    return {name: usual[name] if name in usual else next(rest) for name in large}
