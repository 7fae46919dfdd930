"""Faults of decoding rules, each one changed line of ``small_sampler.py``."""

from __future__ import annotations

from mutants import Mutant

FILE = "small_sampler.py"


def _mutant(name: str, entry: int | None, source: str, old: str, new: str, law: str) -> Mutant:
    return Mutant(name=name, entry=entry, source=source, file=FILE, old=old, new=new, law=law)


MUTANTS: list[Mutant] = [
    _mutant("top-p drops the token that crosses", 65, "esm#360", "before = ordered.cumsum(0) - ordered",
            "before = ordered.cumsum(0)", "rules.top-p"),
    _mutant("top-p keeps one more", 65, "gluon-nlp#1481", "order[before >= top_p]",
            "order[before - ordered >= top_p]", "rules.top-p"),
    _mutant("no renormalisation between filters", 66, "mlx-lm#388",
            "p = p.index_fill(0, order[top_k:], 0.0)\n        p = p / p.sum()",
            "p = p.index_fill(0, order[top_k:], 0.0)", "rules.order"),
    _mutant("top-k keeps k + 1", 66, "mesh-transformer-jax#164", "order[top_k:]", "order[top_k + 1:]", "rules.top-k"),
    _mutant("filtered tokens keep a little", 67, "pytorch#48841", "    return p\n\n\ndef draw",
            "    return p + 1e-6\n\n\ndef draw",
            "rules.top-k"),
    _mutant("filtered tokens are drawn", 67, "transformers#23088", "return (p.log() + noise)",
            "return ((p + 1e-3).log() + noise)",
            "rules.filtered"),
    _mutant("the noise has an end", 69, "tt-metal#56016", "noise = -(-u.log()).log()",
            "noise = -(-(0.99 * u).log()).log()",
            "rules.frequencies"),
    _mutant("scores forget the temperature", 70, "trl#3029",
            "return distribution(logits, temperature=temperature, top_k=top_k, top_p=top_p).log()",
            "return distribution(logits, top_k=top_k, top_p=top_p).log()", "score.sampling"),
    _mutant("scores forget the filters", 70, "OpenRLHF#853",
            "return distribution(logits, temperature=temperature, top_k=top_k, top_p=top_p).log()",
            "return distribution(logits, temperature=temperature).log()", "score.sampling"),
    _mutant("temperature multiplies", None, "", "logits.double() / temperature", "logits.double() * temperature",
            "rules.temperature"),
    _mutant("temperature 0 takes the smallest", None, "", "logits.argmax()", "logits.argmin()", "rules.greedy"),
    _mutant("temperature has a floor", None, "", "logits.double() / temperature",
            "logits.double() / max(temperature, 0.5)",
            "rules.cold"),
    _mutant("the last filter is not renormalised", None, "",
            "p = torch.where(p >= min_p * p.max(), p, 0.0)\n        p = p / p.sum()",
            "p = torch.where(p >= min_p * p.max(), p, 0.0)",
            "rules.min-p"),
    _mutant("min-p is absolute", None, "", "p >= min_p * p.max()", "p >= min_p", "rules.min-p"),
    _mutant("the seed is ignored", None, "", "torch.Generator().manual_seed(seed)", "None", "rules.seeds"),
    _mutant("the seed is one", None, "", "manual_seed(seed)", "manual_seed(0)", "rules.other-seeds"),
    _mutant("logits are normalised by their size", None, "", "z = logits.double() / temperature",
            "z = logits.double() / logits.abs().max() / temperature", "rules.distribution"),
]  # fmt: skip

NOT_EXPRESSED: dict[int, str] = {}
