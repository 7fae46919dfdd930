"""Faults of losses, gradients, norms, trainers and collators."""

from __future__ import annotations

from mutants import Mutant

MODEL, TRAINER, EXPERTS = "small_decoder.py", "small_trainer.py", "small_experts.py"
GUARD = "if not scored.any():\n            return given.sum() * 0\n        log_p"
SOFTMAX = "scores = scores.masked_fill(~allowed[:, None], torch.finfo(x.dtype).min)\n        a = F.dropout(scores.softmax(-1),"
MASK = "scores = scores.masked_fill(~allowed[:, None], torch.finfo(x.dtype).min)"

MODELS = [
    Mutant(
        "each token scored where it stands", None, "a common slip", MODEL,
        "given, wanted = logits[:, :-1].flatten(0, 1), labels[:, 1:].flatten()",
        "given, wanted = logits.flatten(0, 1), labels.flatten()", "alignment.value",
    ),
    Mutant(
        "shifted twice", None, "a common slip", MODEL,
        "logits[:, :-1].flatten(0, 1), labels[:, 1:].flatten()",
        "logits[:, :-2].flatten(0, 1), labels[:, 2:].flatten()", "alignment.value",
    ),
    Mutant(
        "wrapped element kept", 37, "huggingface/trl#2568", MODEL,
        "logits[:, :-1].flatten(0, 1), labels[:, 1:].flatten()",
        "logits.flatten(0, 1), labels.roll(-1, 1).flatten()", "alignment.value",
    ),
    Mutant(
        "divided by all positions", 43, "OpenNMT/OpenNMT-py#526", MODEL,
        "self.config.smoothing * smooth).mean()", "self.config.smoothing * smooth).sum() / scored.numel()",
        "loss-mask.columns",
    ),
    Mutant(
        "mean of the rows' means", 26, "axolotl-ai-cloud/axolotl#3988", MODEL,
        "loss = None if labels is None else self.loss(logits, labels)",
        "loss = None if labels is None else torch.stack([self.loss(x[None], y[None]) for x, y in zip(logits, labels)]).mean()",
        "alignment.value",
    ),
    Mutant(
        "smoothing over ignored targets too", 39, "pytorch/pytorch#73205", MODEL,
        "smooth = -log_p.mean(-1)\n", "smooth = -given.log_softmax(-1).mean()\n", "loss-mask.columns", None,
        {"smoothing": 0.1},
    ),
    Mutant(
        "no target is divided by no target", 42, "every head of transformers", MODEL, GUARD, "log_p",
        "loss-mask.nothing",
    ),
    Mutant(
        "targets masked by id", 35, "mlabonne/llm-course#33", MODEL,
        "scored = wanted != -100", "scored = (wanted != -100) & (wanted != self.config.pad)", "loss-mask.end", None,
        {"pad": 1},
    ),
    Mutant(
        "log of a softmax", None, "a common slip", MODEL,
        "given[scored].log_softmax(-1)", "given[scored].exp().div(given[scored].exp().sum(-1, keepdim=True)).log()",
        "distribution.large",
    ),
    Mutant(
        "backward pass without the part through the keys", 48, "NVIDIA/Megatron-LM#1464", MODEL,
        "scores = q @ k.transpose(2, 3)", "scores = q @ k.detach().transpose(2, 3)", "gradient.differences",
    ),
    Mutant(
        "one of two uses cut off", 49, "pytorch/torchtitan#1373", MODEL,
        "logits = self.head(self.norm(x))", "logits = F.linear(self.norm(x), self.head.weight.detach())",
        "tied.gradients", None, {"tied": True},
    ),
    Mutant(
        "backward pass with the documents of the first row", 34, "fla-org/flash-linear-attention#955", MODEL,
        SOFTMAX,
        "right = scores.masked_fill(~allowed[:, None], torch.finfo(x.dtype).min).softmax(-1)\n"
        "        wrong = scores.masked_fill(~allowed[:1, None], torch.finfo(x.dtype).min).softmax(-1)\n"
        "        a = F.dropout(right.detach() + wrong - wrong.detach(),", "gradient.documents",
    ),
    Mutant(
        "gradient of an activation off by a little", 48, "fla-org/flash-linear-attention#836", MODEL,
        "h = F.gelu(self.up(self.norm2(x)))", "h = F.gelu(self.up(self.norm2(x)))\n        h = h + 1e-3 * (h - h.detach())",
        "gradient.differences",
    ),
    Mutant(
        "other masks of dropout when computed again", 47, "allenai/OLMo-core#828", MODEL,
        "earlier, use_reentrant=False)", "earlier, use_reentrant=False, preserve_rng_state=False)", "recompute.gradients",
    ),
    Mutant(
        "head with a copy of the table", 51, "facebookresearch/lingua#75", MODEL,
        "self.head.weight = self.embed.weight", "self.head.weight = nn.Parameter(self.embed.weight.clone())", "tied.flag",
        None, {"tied": True},
    ),
    Mutant(
        "head not tied at all", 53, "karpathy/nanoGPT#21", MODEL, "if config.tied:", "if config.tied is None:",
        "tied.flag", None, {"tied": True},
    ),
    Mutant(
        "row of the end of text frozen as padding", 54, "huggingface/transformers#19265", MODEL,
        "nn.Embedding(config.vocab_size, config.d)", "nn.Embedding(config.vocab_size, config.d, padding_idx=1)",
        "locality.end-row",
    ),
    Mutant(
        "every row has a gradient", None, "a common slip", MODEL,
        "loss = None if labels is None else self.loss(logits, labels)",
        "loss = None if labels is None else self.loss(logits, labels)\n"
        "        stray = (self.embed.weight - self.embed.weight.detach()).sum()\n"
        "        logits = logits + stray * torch.arange(logits.shape[-1])", "locality.rows",
    ),
    Mutant(
        "epsilon of the config ignored", 58, "ggml-org/llama.cpp#2373", MODEL, "self.eps = eps", "self.eps = 1e-6",
        "norm.epsilon",
    ),
    Mutant(
        "epsilon outside the root", 58, "a common slip", MODEL,
        "torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps)",
        "(x.pow(2).mean(-1, keepdim=True).sqrt() + self.eps).reciprocal()", "norm.definition",
    ),
    Mutant(
        "norm over positions too", 58, "a common slip", MODEL,
        "return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps) * self.weight",
        "x = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps) * self.weight\n"
        "        return x - 0.0001 * x.mean(1, keepdim=True)", "norm.positions",
    ),
    Mutant(
        "norm in bfloat16", 59, "unsloth.ai/blog/gemma-bugs", MODEL,
        "torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps)",
        "torch.rsqrt(x.bfloat16().pow(2).mean(-1, keepdim=True) + self.eps).to(x.dtype)", "precision.resolution",
    ),
    Mutant(
        "scores over the root of d", 63, "FareedKhan-dev/train-llm-from-scratch#3", MODEL,
        "math.sqrt(self.d_k)", "math.sqrt(self.config.d)", "heads.scale",
    ),
    Mutant(
        "scores over the root of the number of heads", 63, "mlc-ai/mlc-llm#3426", MODEL,
        "math.sqrt(self.d_k)", "math.sqrt(self.heads)", "heads.scale",
    ),
    Mutant(
        "key heads tiled instead of repeated", 64, "ekzhang/jax-js#180", MODEL,
        "k = k.repeat_interleave(self.heads // self.kv_heads, 1)", "k = k.repeat(1, self.heads // self.kv_heads, 1, 1)",
        "heads.groups",
    ),
    Mutant(
        "key heads that nobody reads", 64, "onnx/onnx#7274", MODEL,
        "k = k.repeat_interleave(self.heads // self.kv_heads, 1)",
        "k = k[:, [h // self.heads for h in range(self.heads)]]", "heads.groups",
    ),
    Mutant(
        "a head that is lost in the merge", 29, "reczoo/FuxiCTR#30", MODEL,
        "y = (a @ v).transpose(1, 2)", "y = (a @ v)[:, [0, 1, 2, 2]].transpose(1, 2)", "heads.effect",
    ),
    Mutant(
        "misspelt arguments swallowed", None, "a common slip", MODEL,
        "use_cache: bool = False,\n", "use_cache: bool = False,\n        **others: Any,\n", "arguments.unknown",
    ),
    Mutant(
        "mask accepted and ignored", 24, "TransformerLensOrg/TransformerLens#1760", MODEL,
        "torch.int64) if attention_mask is None else attention_mask",
        "torch.int64) if attention_mask is None else torch.ones_like(attention_mask)", "arguments.mask",
    ),
    Mutant(
        "missing keys left as they are", 78, "huggingface/transformers#46620", MODEL,
        "    def allowed(self, mask",
        "    def load_state_dict(self, state: Any, strict: bool = True, assign: bool = False) -> Any:\n"
        "        return super().load_state_dict(state, strict=False)\n\n    def allowed(self, mask", "loading.total",
    ),
    Mutant(
        "initialised again after loading", 78, "huggingface/transformers#46620", MODEL,
        "    def allowed(self, mask",
        "    def load_state_dict(self, state: Any, strict: bool = True, assign: bool = False) -> Any:\n"
        "        found = super().load_state_dict(state)\n        nn.init.ones_(self.norm.weight)\n        return found\n\n"
        "    def allowed(self, mask", "loading.round-trip",
    ),
    Mutant(
        "padding counted in the balance of experts", 86, "NVIDIA/Megatron-LM#1984", EXPERTS,
        "real = mask.to(p.dtype)[..., None]\n", "real = torch.ones_like(mask).to(p.dtype)[..., None]\n", "auxiliary.padding",
    ),
]  # fmt: skip

PARTS = [
    Mutant(
        "wrapped element kept in the sum", 37, "huggingface/trl#2568", TRAINER,
        "    wanted[:, -1] = IGNORED  # the wrapped element\n", "", "alignment.function", None, {"subject": "loss"},
    ),
    Mutant(
        "log-probabilities without a mask", 38, "0xallam/Direct-Preference-Optimization#4", TRAINER,
        "return -(log_p * scored).sum()", "return -log_p.sum()", "loss-mask.function-columns", None,
        {"subject": "sequence"},
    ),
    Mutant(
        "smoothing over ignored targets too", 39, "pytorch/pytorch#73205", TRAINER,
        "smooth = -log_p.mean(-1) * scored", "smooth = -log_p.mean(-1)", "loss-mask.function-columns", None,
        {"subject": "loss"},
    ),
    Mutant(
        "fused backward for a scalar above", 40, "linkedin/Liger-Kernel#678", TRAINER,
        "return gradient * upstream[:, None], None", "return gradient, None", "gradient.function", None,
        {"subject": "fused"},
    ),
    Mutant(
        "fused backward at ignored rows", 40, "linkedin/Liger-Kernel#1338", TRAINER,
        "        gradient = gradient * scored[:, None]\n", "", "gradient.function", None, {"subject": "fused"},
    ),
    Mutant(
        "no target is divided by no target", 42, "every head of transformers", TRAINER,
        "each.sum() / scored.sum().clamp(min=1)", "each.sum() / scored.sum()", "loss-mask.function-nothing", None,
        {"subject": "loss"},
    ),
    Mutant(
        "reduction ignored", 43, "OpenNMT/OpenNMT-py#526", TRAINER, 'if reduction == "sum":', 'if reduction == "never":',
        "alignment.function", None, {"subject": "sum"},
    ),
    Mutant(
        "labels shifted inside each part", 81, "NVIDIA/Megatron-LM#673", TRAINER,
        "following = torch.cat([labels[:, 1:], torch.full_like(labels[:, :1], IGNORED)], 1)",
        "following = torch.cat([F.pad(y[:, 1:], (0, 1), value=IGNORED) for y in labels.chunk(ranks, 1)], 1)",
        "alignment.function", None, {"subject": "parallel"},
    ),
    Mutant(
        "labels masked by id", 35, "huggingface/trl#6357", TRAINER,
        "labels = torch.where(inside, ids, IGNORED)", "labels = torch.where(ids != pad, ids, IGNORED)",
        "loss-mask.collator-end", None, {"subject": "padded"},
    ),
    Mutant(
        "end of turn not a target", 36, "meta-pytorch/torchtune#949", TRAINER,
        "labels = torch.where(inside, ids, IGNORED)",
        "labels = torch.where(torch.arange(n) < lengths[:, None] - 1, ids, IGNORED)", "loss-mask.collator-end", None,
        {"subject": "padded"},
    ),
    Mutant(
        "padding is a target", 41, "axolotl-ai-cloud/axolotl#2227", TRAINER,
        "labels = torch.where(inside, ids, IGNORED)", "labels = ids", "loss-mask.collator-tokens", None,
        {"subject": "padded"},
    ),
    Mutant(
        "metric over padding", 26, "axolotl-ai-cloud/axolotl#3988", TRAINER,
        "inside = torch.arange(n) < lengths[:, None]", "inside = torch.arange(n) < n + 0 * lengths[:, None]",
        "loss-mask.collator-tokens", None, {"subject": "padded"},
    ),
    Mutant(
        "first token of the next document scored", 33, "huggingface/trl#784", TRAINER,
        "    labels[:, starts] = IGNORED\n", "", "loss-mask.collator-seams", None, {"subject": "packed"},
    ),
    Mutant(
        "labels shifted by the collator too", None, "a common slip", TRAINER,
        "labels = ids.clone()", "labels = ids.roll(-1, 1)", "alignment.collator", None, {"subject": "packed"},
    ),
    Mutant(
        "mean of means", 44, "unsloth.ai/blog/gradient", TRAINER, "(loss / total).backward()",
        "(loss / max(1, int((labels[:, 1:] != IGNORED).sum())) / len(pairs)).backward()", "accumulation.unequal", None,
        {"subject": "trainer"},
    ),
    Mutant(
        "divided by the count and by the steps", 45, "unslothai/unsloth-zoo#1023", TRAINER, "(loss / total).backward()",
        "(loss / total / len(pairs)).backward()", "accumulation.unequal", None, {"subject": "trainer"},
    ),
    Mutant(
        "last window divided by the usual count", 46, "Lightning-AI/pytorch-lightning#19987", TRAINER,
        "(loss / total).backward()",
        "(loss / max(1, int((labels[:, 1:] != IGNORED).sum())) / self.settings.accumulation).backward()",
        "accumulation.incomplete", None, {"subject": "trainer"},
    ),
    Mutant(
        "mean of each rank averaged", 80, "pytorch/torchtitan#1803", TRAINER,
        "/ everywhere * len(shards)", "/ max(1, _count)", "accumulation.unequal", None, {"subject": "ranks"},
    ),
    Mutant(
        "scaled by the number of ranks once too often", 81, "NVIDIA/Megatron-LM#906", TRAINER,
        "+ gradient / len(shards)", "+ gradient", "accumulation.unequal", None, {"subject": "ranks"},
    ),
    Mutant(
        "a rank without a target", 81, "NVIDIA/Megatron-LM#1764", TRAINER,
        "/ everywhere * len(shards)", "/ _count * (_count / everywhere) * len(shards)", "accumulation.idle", None,
        {"subject": "ranks"},
    ),
    Mutant(
        "norm of half of the parameters", 50, "pytorch/pytorch#72548", TRAINER,
        "for g in gradients.values()).sqrt()", "for g in list(gradients.values())[::2]).sqrt()", "clip.norm", None,
        {"subject": "trainer"},
    ),
    Mutant(
        "each gradient counted twice in the norm", 50, "pytorch/pytorch#170862", TRAINER,
        "sum(g.square().sum() for g", "sum(2 * g.square().sum() for g", "clip.norm", None, {"subject": "trainer"},
    ),
    Mutant(
        "each parameter clipped by itself", 50, "a common slip", TRAINER,
        "g * min(1.0, largest / float(norm))", "g * min(1.0, largest / float(g.norm()))", "clip.norm", None,
        {"subject": "trainer"},
    ),
    Mutant(
        "decay inside the moments", None, "Loshchilov and Hutter 2019", TRAINER,
        "g = gradients[name]\n", "g = gradients[name] + s.weight_decay * p\n", "step.definition", None,
        {"subject": "trainer"},
    ),
    Mutant(
        "bias of the second moment left in", None, "a common slip", TRAINER,
        "v_hat = v[name] / (1 - s.beta_2**k)", "v_hat = v[name]", "step.definition", None, {"subject": "trainer"},
    ),
    Mutant(
        "moments start anew with each step", None, "a common slip", TRAINER,
        "m[name] = s.beta_1 * m[name] + (1 - s.beta_1) * g", "m[name] = (1 - s.beta_1) * g", "step.definition", None,
        {"subject": "trainer"},
    ),
    Mutant(
        "one group after another", None, "the notes, 11.6", TRAINER,
        "            self.model.load_state_dict(after)\n",
        "            self.model.load_state_dict(after)\n            gradients = self.gradients(pairs)\n", "step.joint", None,
        {"subject": "trainer"},
    ),
    Mutant(
        "schedule counts micro-batches", None, "a common slip", TRAINER,
        "rate = self.settings.learning_rate * min(1.0, (done + 1) / self.settings.warmup)",
        "rate = self.settings.learning_rate * min(1.0, (done * accumulation + _micro + 1) / self.settings.warmup)",
        "step.rate", None, {"subject": "trainer"},
    ),
    Mutant(
        "warm-up begins again after a resume", None, "a common slip", TRAINER,
        "min(1.0, (done + 1) / self.settings.warmup)", "min(1.0, (done - resumed_at + 1) / self.settings.warmup)",
        "step.rate", None, {"subject": "trainer"},
    ),
]  # fmt: skip

NOT_EXPRESSED = {
    52: "nothing here is resized",
    55: "a fault of positions, which belongs to their own law",
    59: "of its eight divergences: activations and the order of casts are no fault without a reference to compare with",
    84: "rows without a key, which belong to their own law",
}
