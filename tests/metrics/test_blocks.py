"""Scores of blocks of codes: known answers for channels, gaps and swaps, and what noise scores."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from unweave.errors import UnweaveError
from unweave.metrics import block_mig, block_separation, swap_consistency
from unweave.streams import Stream

N = 4500  # of which 1,500 are held out
UPDATES = 200
BLOCKS = {"content": [0], "style": [1]}
OWN = {"content": [0]}
STREAM = Stream.of(7)


def entropy(p: NDArray[np.float64] | float) -> NDArray[np.float64]:
    """Entropy of a coin in nats."""
    q = np.clip(p, 1e-300, 1 - 1e-16)
    return np.asarray(-q * np.log(q) - (1 - q) * np.log1p(-q))


def flipped(bits: NDArray[np.int64], probability: float, name: str) -> NDArray[np.int64]:
    return bits ^ (STREAM.child(name).uniform(len(bits), 1)[:, 0] < probability)


def bits(k: int = 2) -> NDArray[np.int64]:
    return STREAM.child("factors").integers(N, [2] * k)


def test_a_binary_symmetric_channel() -> None:
    """A bit through a channel that flips it with probability p keeps 1 - h(p) / log 2 of its information."""
    factors = bits()
    codes = np.stack([flipped(factors[:, 0], 0.1, "content"), factors[:, 1]], axis=1)
    kept = 1 - float(entropy(0.1)) / np.log(2)  # 0.531
    found = block_separation(codes, factors, BLOCKS, OWN, updates=UPDATES)
    assert found.known == pytest.approx((kept + 1) / 2, abs=0.02)
    assert found.score == pytest.approx((kept + 1) / 2, abs=0.02)
    assert block_mig(codes, factors, BLOCKS, updates=UPDATES) == pytest.approx((kept + 1) / 2, abs=0.02)
    assert found.details["content.v0.accuracy"] == pytest.approx(0.9, abs=0.02)
    assert found.details["style.v0.accuracy"] == pytest.approx(0.5, abs=0.04)
    assert found.details["all.v0.accuracy"] == pytest.approx(0.9, abs=0.02)
    assert found.details["chance.v1.accuracy"] == pytest.approx(0.5, abs=0.04)


def test_a_gaussian_channel() -> None:
    """I(v; z) of z = v + noise, v = 1 or -1, is log 2 - E h(sigmoid(2 z)); by numerical integration."""
    factors = bits()
    noise = STREAM.child("noise").normal(N, 2)
    z = np.linspace(-9, 11, 20_001)
    density = np.exp(-0.5 * (z - 1) ** 2) / np.sqrt(2 * np.pi)
    kept = 1 - float(np.trapezoid(density * entropy(1 / (1 + np.exp(-2 * z))), z)) / np.log(2)  # 0.486
    found = block_separation(2 * factors - 1 + noise, factors, BLOCKS, OWN, updates=UPDATES)
    assert found.known == pytest.approx(kept, abs=0.03)
    assert found.score == pytest.approx(kept, abs=0.03)


def test_a_leak_is_subtracted() -> None:
    factors = bits()
    leak = flipped(factors[:, 0], 0.1, "leak")
    codes = np.stack([factors[:, 0], factors[:, 1], leak], axis=1)
    blocks = {"content": [0], "style": [1, 2]}
    leaked = 1 - float(entropy(0.1)) / np.log(2)
    found = block_separation(codes, factors, blocks, OWN, updates=UPDATES)
    assert found.known == pytest.approx(1, abs=0.01)
    assert found.score == pytest.approx(1 - leaked / 2, abs=0.02)


def test_a_block_is_read_as_a_whole() -> None:
    """A bit that is hidden in the signs of two codes: neither code knows anything, the block knows it."""
    factors = bits()
    hidden = np.abs(STREAM.child("size").normal(N, 2)) * (2 * STREAM.child("sign").integers(N, [2]) - 1)
    hidden[:, 1] = np.abs(hidden[:, 1]) * np.sign(hidden[:, 0]) * (2 * factors[:, 0] - 1)
    codes = np.hstack([hidden, factors[:, 1:]])
    both = block_separation(codes, factors, {"content": [0, 1], "style": [2]}, OWN, updates=UPDATES)
    assert both.details["content.v0.accuracy"] > 0.97
    assert both.score > 0.9
    alone = block_mig(codes, factors, {"a": [0], "b": [1], "c": [2]}, updates=UPDATES)
    assert alone == pytest.approx(0.5, abs=0.02)


def test_noise_and_copies_score_nothing() -> None:
    factors = Stream.of(3).integers(N, [4, 6])
    noise = Stream.of(4).normal(N, 2)
    nothing = block_separation(noise, factors, BLOCKS, OWN, updates=100)
    assert (nothing.score, nothing.known) == pytest.approx((0, 0), abs=0.01)
    copied, blocks = np.tile(factors, 2), {"content": [0, 1], "style": [2, 3]}
    twice = block_separation(copied, factors, blocks, OWN, updates=100)
    assert (twice.score, twice.known) == pytest.approx((0, 1), abs=0.02)
    assert block_mig(copied, factors, blocks, updates=100) == pytest.approx(0, abs=0.02)


def test_each_block_counts_once_whatever_the_number_of_its_factors() -> None:
    factors = Stream.of(5).integers(N, [2, 2, 2, 2])
    codes = np.stack([factors[:, 0], Stream.of(6).normal(N, 1)[:, 0]], axis=1)
    assert block_separation(codes, factors, BLOCKS, OWN, updates=50).score == pytest.approx(0.5, abs=0.02)


@pytest.mark.parametrize("blocks", [{}, {"content": []}, {"content": [0], "style": [0]}, {"content": [2]}])
def test_wrong_blocks_are_refused(blocks: dict[str, list[int]]) -> None:
    with pytest.raises(UnweaveError, match="blocks must name different codes from 0 to 1, such as"):
        block_mig(bits(), bits(), blocks)


@pytest.mark.parametrize("own", [{}, {"pose": [0]}, {"content": [2]}, {"content": [0], "style": [0]}])
def test_wrong_factors_of_blocks_are_refused(own: dict[str, list[int]]) -> None:
    with pytest.raises(UnweaveError, match="block_factors must name different factors of all blocks, or of"):
        block_separation(bits(), bits(), BLOCKS, own)


class Reader:
    """A decoder and judge that reads some columns of the codes as factors."""

    def __init__(self, columns: list[int], accuracy: list[float] | None = None) -> None:
        self.columns = columns
        self.accuracy = np.asarray(accuracy or [1.0] * len(columns))

    def __call__(self, codes: NDArray[Any]) -> NDArray[np.int64]:
        return np.asarray(codes[:, self.columns].astype(np.int64))


def test_swaps_of_perfect_blocks_are_consistent() -> None:
    factors = Stream.of(8).integers(2000, [4, 5, 2])
    blocks = {"content": [0], "style": [1, 2]}
    found = swap_consistency(factors, factors, blocks, OWN, Reader([0, 1, 2]))
    assert (found.score, found.reconstructed) == (1.0, 1.0)
    # Three blocks, each of which is swapped in its turn.
    three = swap_consistency(
        factors, factors, {"a": [0], "b": [1], "c": [2]}, {"a": [0], "b": [1]}, Reader([0, 1, 2])
    )
    assert three.score == 1.0


def test_a_decoder_that_takes_the_class_from_style_is_inconsistent() -> None:
    """The class of the style image is right by chance: its normalised share is 0, that of style 1."""
    factors = Stream.of(9).integers(4000, [4, 5])
    codes = np.hstack([factors, factors[:, :1]])  # the class is also in the last code, a code of style
    found = swap_consistency(codes, factors, {"content": [0], "style": [1, 2]}, OWN, Reader([2, 1]))
    assert found.details["swapped.v0.accuracy"] == pytest.approx(1 / 4, abs=0.03)
    assert found.score == pytest.approx(1 / 2, abs=0.03)
    assert found.reconstructed == 1.0


def test_swaps_are_measured_on_the_scale_of_the_judge() -> None:
    """A judge that is right in a share g of real images gives g for perfect swaps: (g - c) / (g - c) = 1."""
    factors = Stream.of(10).integers(4000, [4, 4])
    wrong = Stream.of(11).uniform(4000, 1)[:, 0] < 0.4

    class Unsure(Reader):
        def __call__(self, codes: NDArray[Any]) -> NDArray[np.int64]:
            read = super().__call__(codes)
            read[wrong[: len(read)], 0] = (read[wrong[: len(read)], 0] + 1) % 4
            return read

    found = swap_consistency(factors, factors, BLOCKS, OWN, Unsure([0, 1], [0.6, 1.0]))
    assert found.score == pytest.approx(1, abs=0.03)
    # A factor that the judge cannot read does not count; without any other there is no score.
    blind = swap_consistency(factors[:, ::-1], factors, BLOCKS, OWN, Reader([0, 1], [1.0, 0.3]))
    assert blind.score == pytest.approx(0, abs=0.03)
    with pytest.raises(UnweaveError, match="cannot read any factor of these data"):
        swap_consistency(factors, factors, BLOCKS, OWN, Reader([0, 1], [0.3, 0.3]))
