"""Streams: known answers, uniformity, and independence of how they are read."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unweave.errors import UnweaveError
from unweave.streams import Stream, _philox

# Known-answer vectors of Philox4x32-10 from the Random123 distribution: counter, key, output.
KNOWN_ANSWERS = [
    ([0] * 4, [0] * 2, [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]),
    ([0xFFFFFFFF] * 4, [0xFFFFFFFF] * 2, [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD]),
    (
        [0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344],
        [0xA4093822, 0x299F31D0],
        [0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1],
    ),
]


def philox(*words: int) -> list[int]:
    c0, c1, c2, c3, k0, k1 = (np.uint64(word) for word in words)
    return [int(word) for word in _philox(c0, c1, c2, c3, k0, k1)]


@pytest.mark.parametrize(("counter", "key", "expected"), KNOWN_ANSWERS)
def test_philox_known_answers(counter: list[int], key: list[int], expected: list[int]) -> None:
    assert philox(*counter, *key) == expected


def test_bits_are_philox_of_column_row_and_step() -> None:
    stream = Stream(key=0x299F31D0A4093822, step=0x03707344, first=(0x13198A2E << 32) + 0x85A308D3)
    words = stream.bits(1, 4 * 0x20 + 4)
    known = philox(0x20, 0x85A308D3, 0x13198A2E, 0x03707344, 0xA4093822, 0x299F31D0)
    assert words[0, -4:].tolist() == known


@given(
    seed=st.integers(0, 2**40),
    rows=st.integers(0, 40),
    columns=st.integers(0, 9),
    start=st.integers(0, 40),
    more=st.integers(0, 9),
)
@settings(deadline=None)
def test_a_part_of_a_stream_equals_that_part_of_the_whole(
    seed: int, rows: int, columns: int, start: int, more: int
) -> None:
    stream = Stream.of(seed).child("part").at(7)
    whole = stream.bits(start + rows, columns + more)
    np.testing.assert_array_equal(stream.skip(start).bits(rows, columns), whole[start:, :columns])


def test_purposes_seeds_and_steps_give_different_numbers() -> None:
    root = Stream.of(0)
    streams = [
        root,
        Stream.of(1),
        root.child("a"),
        root.child("b"),
        root.child("a", "b"),
        root.child("ab"),
        root.child(1),
        root.child("1"),
        root.at(1),
        root.child("a").at(1),
    ]
    firsts = {stream.bits(1, 2).tobytes() for stream in streams}
    assert len(firsts) == len(streams)


def test_global_generators_play_no_part() -> None:
    np.random.seed(1)  # noqa: NPY002
    first = Stream.of(3).uniform(5, 2)
    drawn = np.random.random()  # noqa: NPY002
    np.random.seed(1)  # noqa: NPY002
    assert np.random.random() == drawn, "the stream moved the global generator"  # noqa: NPY002
    np.testing.assert_array_equal(Stream.of(3).uniform(5, 2), first)


def test_uniform_moments_and_open_interval() -> None:
    draws = Stream.of(0).uniform(200_000, 3)
    assert 0 < draws.min() < draws.max() < 1
    np.testing.assert_allclose(draws.mean(axis=0), 1 / 2, atol=4 / np.sqrt(12 * 200_000))
    np.testing.assert_allclose(draws.var(axis=0), 1 / 12, rtol=0.01)
    assert np.abs(np.corrcoef(draws.T) - np.eye(3)).max() < 4 / np.sqrt(200_000)
    assert (draws.astype(np.float32) == draws).all(), "exact in float32"


def test_integers_are_uniform_chi_square() -> None:
    sizes = (1, 2, 3, 6, 40, 183)
    draws = Stream.of(5).integers(100_000, sizes)
    for column, size in enumerate(sizes):
        counts = np.bincount(draws[:, column], minlength=size)
        assert len(counts) == size
        expected = 100_000 / size
        chi_square = ((counts - expected) ** 2 / expected).sum()
        assert chi_square <= size - 1 + 5 * np.sqrt(2 * size)


def test_bytes_are_uniform() -> None:
    counts = np.bincount(Stream.of(1).bytes(1000, 1023).ravel(), minlength=256)
    expected = 1000 * 1023 / 256
    assert ((counts - expected) ** 2 / expected).sum() < 255 + 5 * np.sqrt(2 * 255)


def test_permutations_are_permutations_and_uniform() -> None:
    draws = Stream.of(2).permutations(24_000, 4)
    np.testing.assert_array_equal(np.sort(draws, axis=1), np.tile(np.arange(4), (24_000, 1)))
    _, counts = np.unique(draws, axis=0, return_counts=True)
    assert len(counts) == 24
    assert ((counts - 1000) ** 2 / 1000).sum() < 23 + 5 * np.sqrt(2 * 23)


@pytest.mark.parametrize("seed", [-1, 1.5, "0", None, True])
def test_bad_seeds_are_refused(seed: object) -> None:
    with pytest.raises(UnweaveError, match="seed must be a whole number >= 0 or a Stream"):
        Stream.of(seed)  # type: ignore[arg-type]
