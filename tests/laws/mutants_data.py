"""Faults of loaders and data files, each one changed line of ``small_loader.py``."""

from __future__ import annotations

from mutants import Mutant

FILE = "small_loader.py"


def _mutant(name: str, entry: int | None, source: str, old: str, new: str, law: str) -> Mutant:
    return Mutant(name=name, entry=entry, source=source, file=FILE, old=old, new=new, law=law)


WIDTH = '"<u2" if vocab_size <= 1 << 16 else "<u4"'

MUTANTS: list[Mutant] = [
    _mutant("ids are stored in two bytes", 74, "transformers#2825", WIDTH, '"<u2"', "data.ids"),
    _mutant("ids are stored in two bytes with a sign", 74, "knnlm#6",
            WIDTH, '"<i2" if vocab_size <= 1 << 16 else "<u4"', "data.ids"),
    _mutant("the border of two bytes is off by one", 74, "fairseq#3765", "vocab_size <= 1 << 16",
            "vocab_size <= 1 + (1 << 16)",
            "data.ids"),
    _mutant("the last window is dropped", None, "", "range(0, m - 1, n)", "range(0, m - n, n)", "data.tokens"),
    _mutant("windows do not share a token", None, "", "range(0, m - 1, n)", "range(0, m - 1, n + 1)", "data.tokens"),
    _mutant("every rank reads everything", 82, "datasets#5360", "return order(epoch)[rank::ranks]",
            "return order(epoch)", "data.once"),
    _mutant("each rank shuffles for itself", 82, "transformers#11254", "return order(epoch)[rank::ranks]",
            "return order(epoch + 7 * rank)[rank::ranks]", "data.once"),
    _mutant("ranks deal out by another number", 82, "dreamzero#91", "[rank::ranks]", "[rank::ranks + (ranks > 1)]",
            "data.once"),
    _mutant("the order depends on the number of ranks", 82, "transformers#37932", "return order(epoch)[rank::ranks]",
            "return order(epoch + 7 * ranks)[rank::ranks]", "data.ranks"),
    _mutant("nothing is shuffled", 83, "Lightning#2703", "    random.Random(SEED + epoch).shuffle(samples)\n", "",
            "data.epochs"),
    _mutant("every epoch is shuffled alike", 83, "set_epoch forgotten", "random.Random(SEED + epoch)",
            "random.Random(SEED)",
            "data.epochs"),
    _mutant("the epoch is 0 after a resume", 79, "accelerate#2016", "state = epoch", "state = 0", "resume.order"),
    _mutant("what was read is read again", 79, "verl#7401", "[after:]", "[max(0, after - 1):]", "resume.order"),
    _mutant("the next epoch is skipped", 79, "minimind#645", "samples(state + 1, rank, ranks)",
            "samples(state + 2, rank, ranks)",
            "resume.order"),
    _mutant("the permutation is drawn from random numbers of the moment", 79, "transgenic#59",
            "random.Random(SEED + epoch).shuffle(samples)", "random.shuffle(samples)", "resume.order"),
    _mutant("the skip outlives its epoch", 79, "ms-swift#10050", "samples(state + 1, rank, ranks)",
            "samples(state + 1, rank, ranks)[after:]", "resume.order"),
]  # fmt: skip

NOT_EXPRESSED: dict[int, str] = {}
