"""Faults of decoding loops, each one changed line of ``small_generator.py``."""

from __future__ import annotations

from mutants import Mutant

FILE = "small_generator.py"


def _mutant(name: str, entry: int | None, source: str, old: str, new: str, law: str) -> Mutant:
    return Mutant(name=name, entry=entry, source=source, file=FILE, old=old, new=new, law=law)


STEP = "mask, positions = torch.cat([mask, torch.ones(b, 1, dtype=torch.int64)], 1), positions[:, -1:] + 1"
START = "positions = (mask.cumsum(1) - 1).clamp(min=0)"
SCORE = "score = score + torch.where(finished, 0.0, logits.log_softmax(-1).gather(1, token[:, None])[:, 0])"

MUTANTS: list[Mutant] = [
    _mutant("the loop numbers positions from two", 10, "RoBERTa-family decoders", START, START + " + 2",
            "generate.loop"),
    _mutant("the loop numbers positions by slot", 22, "transformers#22161",
            START, "positions = torch.arange(width).expand(b, -1)",
            "generate.batch"),
    _mutant("positions stand still after the prompt", 18, "lag-llama#81", STEP, STEP.replace("+ 1",
            "+ 0"), "generate.loop"),
    _mutant("the mask of pads is dropped", 24, "TransformerLens#1760", "out = self.model(x, attention_mask=mask,",
            "out = self.model(x, attention_mask=torch.ones_like(mask),", "generate.batch"),
    _mutant("pads become visible after the first token", 14, "LLMs-from-scratch#697", STEP,
            "mask, positions = torch.ones(b, mask.shape[1] + 1, dtype=torch.int64), positions[:, -1:] + 1",
            "generate.batch"),
    _mutant("a length counter counts rows", 31, "transformers#23127",
            "            length += 1\n            for row, prompt in enumerate(prompts):\n",
            "            for row, prompt in enumerate(prompts):\n                length += 1\n", "rows.beams"),
    _mutant("the penalty counts the prompt", 31, "transformers#25455",
            "best[0][0] / length**penalty) for _, best", "best[0][0] / (len(p) + length)**penalty) for p, best",
            "rows.length-penalty"),
    _mutant("beams forget what came before", None, "", "(total + float(log_p[i])", "(float(log_p[i])", "score.beams"),
    _mutant("the finished flag toggles", 68, "mistral-inference#214", "finished = finished | (token == end)",
            "finished = finished ^ (token == end)", "rows.finished"),
    _mutant("only all rows together end", 68, "flash-attention#2784", "finished = finished | (token == end)",
            "finished = (token == end).all().expand(b)", "rows.finished"),
    _mutant("the batch ends with its first row", 68, "h-transformer-1d#9", "if finished.all():",
            "if finished.any():", "rows.finished"),
    _mutant("scores are those of the temperature", 70, "trl#3029", "logits.log_softmax(-1).gather",
            "(logits / (temperature or 1)).log_softmax(-1).gather", "score.sampled"),
    _mutant("the score is of the arg-max", None, "", "score = score + torch.where(finished, 0.0, logits.log_softmax(-1)"
            ".gather(1, token[:, None])[:, 0])", "score = score + logits.log_softmax(-1).amax(-1)", "score.sampled"),
    _mutant("a partial stop string is forgotten", None, "stop a b in a a b",
            "            while not stop.startswith(held):\n                shown, held = shown + held[0], held[1:]",
            "            if not stop.startswith(held):\n                shown, held = shown + held, ''",
            "rows.stop-strings"),
    _mutant("a stop string must lie in one token", None, "stop across borders", "    for part in parts:\n",
            "    for part in parts:\n        shown, held = shown + held, ''\n", "rows.stop-strings"),
    _mutant("refused drafts are drawn anew from the target", None, "speculation", "rest = (p - q).clamp(min=0)",
            "rest = p",
            "speculative.distribution"),
    _mutant("drafts are accepted too readily", None, "speculation", ".clamp(max=1)", ".clamp(max=1).sqrt()",
            "speculative.distribution"),
]  # fmt: skip

NOT_EXPRESSED: dict[int, str] = {}
