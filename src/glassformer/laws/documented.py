"""Ways of calling that a library documents as unsupported: there a violation is a documented limit."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..bilingual import Words, words
from .subjects.base import ModelSubject
from .verdict import Result, Verdict


@dataclass(frozen=True, slots=True)
class Limit:
    """Subjects whose class (with its module) matches ``subject`` break ``probe`` as their documentation says.

    Both are regular expressions that must match in full; ``says`` tells what the documentation says, and where.
    """

    subject: str
    probe: str
    says: Words


LIMITS: Sequence[Limit] = (
    Limit(
        r"transformers\.models\..*", r"packing\.(positions-with-ones-mask|cache)",
        words(
            "transformers honours restarted positions only without a mask and without a cache: masking_utils.py, "
            "_preprocess_mask_arguments: “only if the 2D attention mask is explicitly None, and we don't have cache”",
            "transformers 仅在不给掩码、也不用缓存时才按重新开始的位置隔离文档（masking_utils.py，"
            "_preprocess_mask_arguments：“only if the 2D attention mask is explicitly None, and we don't have cache”）",
        ),
    ),
    Limit(
        r"transformers\.models\.rwkv\..*", r"arguments\.mask|generate\.padded|padding\..*",
        words(
            "RWKV says when it is given one that attention_mask is unused (modeling_rwkv.py)",
            "RWKV 收到 attention_mask 时会声明它未被使用（modeling_rwkv.py）",
        ),
    ),
    Limit(
        r"transformers\.models\.reformer\..*", r"prefix\..*|causality\.past|cache\..*",
        words(
            "Reformer hashes and chunks the whole text; with LSH layers a longer text has other buckets "
            "(documentation of Reformer in transformers: LSH self attention)",
            "Reformer 对整段文本做哈希与分块；LSH 层在更长文本中分桶不同（transformers 文档：Reformer，LSH 自注意力）",
        ),
    ),
    Limit(
        r"transformers\.models\.recurrent_gemma\..*", r"positions\.shift",
        words(
            "RecurrentGemma takes position 0 as the begin of a document and does not damp what is read there "
            "(modeling_recurrent_gemma.py, _rnn_scan: “reset: Indicator of document boundaries”)",
            "RecurrentGemma 把位置 0 当作文档开头，此处的输入不作衰减"
            "（modeling_recurrent_gemma.py，_rnn_scan：“reset: Indicator of document boundaries”）",
        ),
    ),
    Limit(
        r"transformers\.models\.jetmoe\..*", r"heads\.groups",
        words(
            "JetMoE's query heads are experts chosen per token; keys are repeated once for each of them, in that order "
            "(modeling_jetmoe.py, JetMoeAttention: key_states.repeat(1, self.top_k, 1, 1))",
            "JetMoE 的查询头是逐词元选出的专家，键按专家依次整组重复"
            "（modeling_jetmoe.py，JetMoeAttention：key_states.repeat(1, self.top_k, 1, 1)）",
        ),
    ),
    Limit(
        r"transformers\.models\.hrm_text\..*", r"gradient\.(differences|descent)",
        words(
            "HRM sends gradients through its last cycles only (modeling_hrm_text.py: torch.no_grad() below grad_threshold)",
            "HRM 只让梯度穿过最后几个循环（modeling_hrm_text.py：grad_threshold 之前用 torch.no_grad()）",
        ),
    ),
    Limit(
        r"transformers\.models\.(bart|mbart|plbart|pegasus|bigbird_pegasus|blenderbot|blenderbot_small|marian|mvp|trocr|whisper)"
        r"\.modeling_\w+\.\w+ForCausalLM",
        r"alignment\.value|loss-mask\.parts|gradient\.loss",
        words(
            "decoders of the Bart family say of labels, in the docstring of forward: “The labels are **not shifted** inside "
            "the model”; shift them before the call",
            "Bart 一族的解码器在 forward 的文档字符串中说明标签：“The labels are **not shifted** inside the model”；"
            "请在调用前自行移位",
        ),
    ),
    Limit(
        r"transformers\.models\.cpmant\..*", r"arguments\.mask|generate\.padded|padding\..*",
        words(
            "CPM-Ant's attention_mask is a “dummy parameter for text-generation pipeline” (modeling_cpmant.py, "
            "CpmAntForCausalLM.forward); pads are the tokens of id 0",
            "CPM-Ant 的 attention_mask 是“dummy parameter for text-generation pipeline”"
            "（modeling_cpmant.py，CpmAntForCausalLM.forward）；编号为 0 的词元即填充",
        ),
    ),
    Limit(
        r"transformers\.models\.gemma3n\..*", r"flags\.embeds",
        words(
            "Gemma 3n says of per_layer_inputs (modeling_gemma3n.py, docstring of forward): “If calling the `forward` with "
            "`inputs_embeds` instead of `input_ids`, you should precompute them”",
            "Gemma 3n 说明 per_layer_inputs（modeling_gemma3n.py，forward 的文档字符串）：“If calling the `forward` with "
            "`inputs_embeds` instead of `input_ids`, you should precompute them”",
        ),
    ),
)  # fmt: skip
"""Kept short on purpose: what is documented nowhere is a violation."""


def documented(result: Result, subject: Any, limits: Sequence[Limit] = LIMITS) -> Result:
    """``result``, or as a documented limit where one says that this subject breaks this probe."""
    if result.verdict is not Verdict.VIOLATED or not isinstance(subject, ModelSubject):
        return result
    cls = type(subject.module)
    name = f"{cls.__module__}.{cls.__qualname__}"
    for limit in limits:
        if re.fullmatch(limit.subject, name) and re.fullmatch(limit.probe, result.probe):
            return replace(result, verdict=Verdict.DOCUMENTED, reason=limit.says)
    return result
