"""The fixed sentence cut by tokenizers that were really trained."""

from __future__ import annotations

from glassformer.book.cuts import SIZES, cuts
from glassformer.text.clinic import SENTENCE


def test_every_cut_is_the_whole_sentence_and_a_larger_vocabulary_has_fewer_pieces() -> None:
    (table,) = cuts().tables
    hand, *trained = table.rows
    assert hand[2:] == (7, " | ".join(SENTENCE))
    assert [row[1] for row in trained] == list(SIZES)
    counts = []
    for _, _, count, pieces in trained:
        assert isinstance(pieces, str)
        parts = [
            bytes.fromhex(piece[1:-1]) if piece.startswith("<") else piece.encode() for piece in pieces.split(" | ")
        ]
        assert b"".join(parts).decode() == "".join(SENTENCE)
        assert count == len(parts)
        counts.append(len(parts))
    assert counts == sorted(counts, reverse=True)
    assert 7 not in counts


def test_the_cuts_are_the_same_at_every_call() -> None:
    assert cuts() == cuts()
