"""Faults of what is done with caches, each one changed line of ``small_decoder.py``."""

from __future__ import annotations

from mutants import Mutant

FILE = "small_decoder.py"


def _mutant(name: str, entry: int | None, source: str, old: str, new: str, law: str) -> Mutant:
    return Mutant(name=name, entry=entry, source=source, file=FILE, old=old, new=new, law=law)


JOIN = """        raise ValueError("what stands in the second cache was read from position 0, and read nothing of the first")"""

MUTANTS: list[Mutant] = [
    _mutant("caches are joined without rotating", 19, "MemOS#2315", JOIN,
            "        self[:] = [(torch.cat([k, a], 2), torch.cat([v, b], 2)) for (k, v), (a, b) in zip(self, other)]",
            "cache-algebra.join"),
    _mutant("values are not reordered", None, "", "(k[rows], v[rows])", "(k[rows], v)", "cache-algebra.reorder"),
    _mutant("rows are tiled instead of repeated", 64, "jax-js#180",
            "(k.repeat_interleave(times, 0), v.repeat_interleave(times, 0))",
            "(k.repeat(times, 1, 1, 1), v.repeat(times, 1, 1, 1))", "cache-algebra.repeat"),
    _mutant("one position too many is kept", None, "", "(k[:, :, :length], v[:, :, :length])",
            "(k[:, :, :length + 1], v[:, :, :length + 1])", "cache-algebra.crop"),
    _mutant("the last positions are kept, not the first", None, "", "(k[:, :, :length], v[:, :, :length])",
            "(k[:, :, -length:], v[:, :, -length:])", "cache-algebra.crop"),
    _mutant("the model counts positions, not the cache", None, "",
            "        positions = key_positions[:, past:] if position_ids is None else position_ids\n",
            "        self.read = n if past == 0 else self.read + n\n"
            "        positions = torch.arange(self.read - n, self.read).expand(b, -1)\n", "cache-algebra.copy"),
]  # fmt: skip

NOT_EXPRESSED: dict[int, str] = {}
