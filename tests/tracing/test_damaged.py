"""Damage to a trace file: it is refused, or it did not matter. Never a traceback, never other numbers."""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from glassformer.errors import UserError
from glassformer.tracing import Trace, header_of, load_trace, save_trace, trace_toy24

Damage = Callable[[bytes], bytes]
OLD = ("toy24.schema1.trace", "toy24.schema2.trace")


def flips(data: bytes) -> st.SearchStrategy[Damage]:
    """One byte changed: anywhere, or where the layout and the names are, or among the numbers."""
    (size,) = struct.unpack("<Q", data[:8])
    places = st.one_of(
        st.integers(0, len(data) - 1),
        st.integers(0, 1200),
        st.integers(0, 8 + size - 1),
        st.integers(8 + size, len(data) - 1),
    )

    def flipped(place: int, by: int) -> Damage:
        return lambda data: data[:place] + bytes([data[place] ^ by]) + data[place + 1 :]

    return st.builds(flipped, places, st.one_of(st.integers(1, 255), st.sampled_from([1 << k for k in range(8)])))


def cuts(data: bytes) -> st.SearchStrategy[Damage]:
    """The end lost, or something in the middle, or something added."""
    places = st.integers(0, len(data) - 1)

    def cut(start: int, count: int, added: bytes) -> Damage:
        return lambda data: data[:start] + added + data[start + count :]

    counts = st.one_of(st.integers(1, 64), st.just(len(data)))
    return st.builds(cut, places, counts, st.one_of(st.just(b""), st.binary(max_size=16)))


def damages(data: bytes) -> st.SearchStrategy[Damage]:
    return st.one_of(flips(data), cuts(data))


@pytest.fixture(scope="module")
def trace() -> Trace:
    return trace_toy24()


@pytest.fixture(scope="module")
def whole(trace: Trace, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("traces") / "whole"
    save_trace(trace, path)
    return path


def opened(path: Path, data: bytes) -> Trace | None:
    """What ``data`` opens as; None where it is refused."""
    path.write_bytes(data)
    try:
        return load_trace(path)
    except UserError:
        return None


def same(a: Trace, b: Trace) -> bool:
    return (
        set(a.values) == set(b.values)
        and all(np.array_equal(a.values[name], b.values[name]) for name in a.values)
        and header_of(a) == header_of(b)
    )


def check(whole: Path, examples: int) -> None:
    data, before = whole.read_bytes(), load_trace(whole)
    assert same(before, load_trace(whole))

    @given(damages(data))
    @settings(max_examples=examples, deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True)
    def holds(damage: Damage) -> None:
        found = opened(whole.with_name("damaged"), damage(data))
        assert found is None or same(found, before)

    holds()


def test_a_damaged_file_is_refused_or_says_the_same(whole: Path) -> None:
    check(whole, 150)


@pytest.mark.full
def test_a_damaged_file_is_refused_or_says_the_same_many_times(whole: Path) -> None:
    check(whole, 4000)


@pytest.mark.parametrize("name", OLD)
def test_a_damaged_file_of_an_earlier_version_never_ends_in_a_traceback(
    name: str, data_folder: Path, tmp_path: Path
) -> None:
    """It has no checksum, so that damage among its numbers cannot be told from other numbers."""
    data = (data_folder / name).read_bytes()

    @given(damages(data))
    @settings(
        max_examples=60,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow],
        derandomize=True,
    )
    def holds(damage: Damage) -> None:
        opened(tmp_path / "damaged", damage(data))

    holds()


def test_every_kind_of_number_is_covered_by_the_checksum(trace: Trace, whole: Path) -> None:
    """The last bit of one number, and two numbers in exchange."""
    data = whole.read_bytes()
    (size,) = struct.unpack("<Q", data[:8])
    for place in (8 + size, len(data) - 1, len(data) - 8):
        with pytest.raises(UserError, match="not those that were written"):
            opened_or_raise(whole, data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :])


def opened_or_raise(whole: Path, data: bytes) -> Trace:
    path = whole.with_name("other")
    path.write_bytes(data)
    return load_trace(path)
