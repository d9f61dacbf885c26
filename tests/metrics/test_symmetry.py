"""D_LSBD and equivariance: codes that turn, codes that do not, and the authors' numbers."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from metrics.grids import grid, noise
from unweave.errors import UnweaveError
from unweave.metrics import Representation, d_lsbd, equivariance
from unweave.metrics.equivariance import mean_gain, shift_fits
from unweave.metrics.orbits import Orbits, orbits_of
from unweave.streams import Stream

SIZES = (12, 9)
TURN = np.linalg.qr(Stream.of(1).normal(4, 4))[0]


def circle(values: NDArray[Any], size: int, frequency: int = 1) -> NDArray[np.float64]:
    angles = 2 * np.pi * frequency * values / size
    return np.stack([np.cos(angles), np.sin(angles)], axis=1)


def torus(factors: NDArray[np.int64]) -> NDArray[np.float64]:
    return np.hstack([circle(factors[:, 0], 12), circle(factors[:, 1], 9, 2)])


def alternating(factors: NDArray[np.int64]) -> NDArray[np.float64]:
    return np.stack([(-1.0) ** factors[:, 0] + 0.3 * factors[:, 1], 0.05 * factors[:, 0]], axis=1)


def rows(encode: Callable[[NDArray[np.int64]], NDArray[Any]], *sizes: int) -> Representation:
    """All points of a grid as known rows."""
    factors = grid(*sizes)
    return Representation.from_rows(encode(factors), factors)


def test_a_torus_is_found_whatever_its_frequencies_and_its_axes() -> None:
    for encode in (torus, lambda factors: torus(factors) @ TURN, lambda factors: 5 + torus(factors) * 1e-3):
        result = d_lsbd(rows(encode, *SIZES), [0, 1])
        assert result.score == pytest.approx(0, abs=1e-9)
        assert result.shared == pytest.approx(0, abs=1e-9)
        assert result.frequencies.tolist() == [[1], [2]]
        assert equivariance(rows(encode, *SIZES), [0, 1]).score == pytest.approx(1)
        assert equivariance(rows(encode, *SIZES), [0, 1]).rotation == pytest.approx(1)


@pytest.mark.parametrize(
    ("encode", "published"),
    [
        # Printed by dlsbd_k_torus of the authors' lsbd_vae/metrics/dlsbd_metric.py for the frequencies with
        # the least distance, for codes z.reshape(12, 9, -1), times N / (N - 1) with N = 108.
        (lambda factors: np.tanh(1.5 * torus(factors) @ TURN), [0.0258995002, 0.0259000094]),
        (
            lambda factors: np.stack([factors[:, 0], factors[:, 1], 0.01 * factors[:, 0] ** 2.0], axis=1),
            [0.2271510120, 0.8397131468],
        ),
        (lambda factors: Stream.of(7).normal(len(factors), 5), [0.9714279788, 0.9701880464]),
        # Six turns of twelve values: the code changes its sign at each of them.
        (alternating, [0.5, 0.8397131468]),
    ],
)
def test_numbers_of_the_authors(
    encode: Callable[[NDArray[np.int64]], NDArray[np.float64]], published: list[float]
) -> None:
    result = d_lsbd(rows(encode, *SIZES), [0, 1], factor_names=["a", "b"])
    assert [result.details["a"], result.details["b"]] == pytest.approx(published, abs=1e-9)
    assert result.score == pytest.approx(np.mean(published), abs=1e-9)


def test_a_line_has_the_share_of_its_first_harmonic() -> None:
    """A line has 6 / pi^2 of its variance in the first harmonic, and is one of two coordinates.

    So the share that turns is 3 / (2 pi^2).
    """
    result = d_lsbd(rows(lambda factors: factors[:, :1] * 0.3, 500, 2), [0])
    assert result.score == pytest.approx(1 - 1.5 / np.pi**2, abs=1e-4)
    ellipse = rows(lambda factors: circle(factors[:, 0], 12) * [3.0, 0.1], 12, 2)
    assert d_lsbd(ellipse, [0]).score == pytest.approx(0, abs=1e-9)


def test_each_shape_has_a_frequency_of_its_own() -> None:
    """Codes of a square repeat after a quarter turn, those of an ellipse after half a turn."""

    def encode(factors: NDArray[np.int64]) -> NDArray[np.float64]:
        turns = np.array([4, 2, 1])[factors[:, 0]]
        return circle(factors[:, 1] * turns, 40)

    by_shape = d_lsbd(rows(encode, 3, 40), [1], categorical=[0])
    assert by_shape.score == pytest.approx(0, abs=1e-9)
    assert by_shape.frequencies.tolist() == [[4, 2, 1]]
    assert d_lsbd(rows(encode, 3, 40), [1]).score == pytest.approx(2 / 3)


def test_planes_that_differ_between_objects_are_seen_by_shared_only() -> None:
    def encode(factors: NDArray[np.int64]) -> NDArray[np.float64]:
        codes = np.zeros((len(factors), 8))
        for j in range(4):
            own = factors[:, 0] == j
            codes[own, 2 * j : 2 * j + 2] = circle(factors[own, 1], 10)
        return codes

    result = d_lsbd(rows(encode, 4, 10), [1])
    assert result.score == pytest.approx(0, abs=1e-9)
    assert result.shared > 0.7
    # A mirrored plane is no mistake of the object, and one map cannot turn both ways.
    mirrored = rows(
        lambda factors: circle(factors[:, 1], 10) * np.array([1, -1]) ** factors[:, :1] + [0, 0], 2, 10
    )
    assert d_lsbd(mirrored, [1]).score == pytest.approx(0, abs=1e-9)
    assert d_lsbd(mirrored, [1]).shared > 0.4


def test_noise_scores_as_shuffled_orbits_do() -> None:
    drawn = Representation(lambda factors, stream: stream.normal(len(factors), 6), (40, 5))
    result = d_lsbd(drawn, [0])
    assert result.score == pytest.approx(result.chance, abs=0.01)
    assert result.score > 0.9
    assert equivariance(drawn, [0]).score == pytest.approx(0, abs=0.01)


def test_codes_that_ignore_the_factor() -> None:
    ignoring = rows(lambda factors: factors[:, 1:] * 0.7 + 0.1, 12, 5)
    assert d_lsbd(ignoring, [0]).score == 1
    assert equivariance(ignoring, [0]).score == 0


def test_drawn_orbits_and_known_rows_agree() -> None:
    """With one circular factor and 5 objects, 200 draws are all objects, in unequal shares."""

    def encode(factors: NDArray[np.int64]) -> NDArray[np.float64]:
        return np.hstack([circle(factors[:, 0], 12), 0.2 * factors[:, 1:] * circle(factors[:, 0], 12, 3)])

    known = d_lsbd(rows(encode, 12, 5), [0])
    asked = Representation(lambda factors, _: encode(factors), (12, 5))
    drawn = d_lsbd(asked, [0], orbits=20)
    assert drawn.score == pytest.approx(known.score, abs=0.02)
    assert d_lsbd(asked, [0], orbits=20, seed=1).score != drawn.score


def test_drawn_orbits_of_a_torus_are_not_biased() -> None:
    """One plane with the sum of all angles: dlsbd_k_torus of the authors gives 1 for each of them."""

    def entangled(factors: NDArray[np.int64], stream: Stream) -> NDArray[np.float64]:
        return circle(factors[:, :3].sum(axis=1), 10)

    drawn = d_lsbd(Representation(entangled, (10, 10, 10, 5)), [0, 1, 2])
    assert min(drawn.details.values()) > 0.96

    def bent(factors: NDArray[np.int64]) -> NDArray[np.float64]:
        planes = [circle(factors[:, j], 10) @ [[1, 0.3 * j], [0.2, 1]] for j in range(3)]
        mixed = np.hstack(planes) @ np.linalg.qr(Stream.of(2).normal(6, 6))[0]
        return np.asarray(np.tanh(1.5 * mixed))

    asked = Representation(lambda factors, _: bent(factors), (10, 10, 10, 5))
    known = d_lsbd(rows(bent, 10, 10, 10), [0, 1, 2])
    assert d_lsbd(asked, [0, 1, 2]).score == pytest.approx(known.score, abs=0.002)


def test_rows_of_incomplete_orbits_are_left_out_and_equal_rows_are_averaged() -> None:
    factors = grid(6, 4)
    codes = circle(factors[:, 0], 6) + 0.1 * noise(24, 2)
    broken = Representation.from_rows(
        np.concatenate([codes[1:], codes[-1:] + 1, codes[-1:] - 1]),
        np.concatenate([factors[1:], factors[-1:], factors[-1:]]),
    )
    # Without row 0, the orbit of the first base lacks a value.
    kept = factors[:, 1] > 0
    whole = Representation.from_rows(codes[kept], factors[kept])
    assert d_lsbd(broken, [0]).score == pytest.approx(d_lsbd(whole, [0]).score)
    pairs = np.array([[0, 0], [1, 0], [1, 1], [2, 1], [2, 2], [0, 2]])
    few = Representation.from_rows(codes[:12], pairs.repeat(2, axis=0))
    with pytest.raises(UnweaveError, match="no orbit of factor 0 is complete"):
        d_lsbd(few, [0])


def test_a_value_that_one_row_has_keeps_its_place_on_the_circle() -> None:
    """The fifth value of the second orbit is missing, so only one row has this value."""
    factors = np.delete(grid(2, 12), 17, axis=0)
    known = Representation.from_rows(circle(factors[:, 1], 12), factors)
    result = d_lsbd(known, [1])
    assert result.score == pytest.approx(0, abs=1e-9)
    assert result.frequencies.tolist() == [[1]]
    assert d_lsbd(known, {1: 12}).score == pytest.approx(0, abs=1e-9)
    assert equivariance(known, [1]).score == pytest.approx(1)


def test_one_orbit_is_enough() -> None:
    angles = np.arange(12)[::-1, None]
    alone = Representation.from_rows(circle(angles[:, 0], 12, 5), angles)
    assert d_lsbd(alone, [0]).score == pytest.approx(0)
    assert d_lsbd(alone, [0]).frequencies.tolist() == [[5]]
    assert equivariance(alone, [0]).score == pytest.approx(1)


def test_an_orbit_that_is_drawn_often_is_shuffled_once() -> None:
    """Of three objects, 200 orbits are drawn; in random order they score as three shuffled orbits do."""
    drawn = Representation(lambda factors, _: circle(factors[:, 0], 8), (8, 3))
    chances = [d_lsbd(drawn, [0], seed=seed).chance for seed in range(40)]
    known = [d_lsbd(rows(lambda f: circle(f[:, 0], 8), 8, 3), [0], seed=seed).chance for seed in range(40)]
    assert np.mean(chances) == pytest.approx(np.mean(known), abs=0.04)


def test_a_period_leaves_out_the_values_that_come_again() -> None:
    """The last of 13 values is the first again, as in the orientations of dSprites."""
    encode = rows(lambda factors: circle(factors[:, 0], 12, 2), 13, 3)
    assert d_lsbd(encode, {0: 12}).score == pytest.approx(0, abs=1e-9)
    assert d_lsbd(encode, [0]).score > 0.01
    assert equivariance(encode, {0: 12}).score == pytest.approx(1)
    with pytest.raises(UnweaveError, match="the period of factor 0 must be 1 to 13"):
        d_lsbd(encode, {0: 14})


def test_wrong_factors_are_refused() -> None:
    known = rows(torus, *SIZES)
    for columns in ([], [2], [0, 0], [0.5], [-1]):
        with pytest.raises(UnweaveError, match="`circular` must list different factors"):
            d_lsbd(known, columns)  # type: ignore[arg-type]
    with pytest.raises(UnweaveError, match="`categorical` must list"):
        d_lsbd(known, [0], categorical=[7])
    with pytest.raises(UnweaveError, match="orbits must be a whole number, 2 or more"):
        equivariance(known, [0], orbits=1)


def test_shifts_of_a_factor_that_is_not_circular_stay_in_range() -> None:
    """Codes of a line all move by the same amount, so an affine map is exact."""
    line = Representation(lambda factors, _: factors @ np.array([[1.0, 0.5], [0.0, 2.0]]), (6, 7))
    bases = Stream.of(0).integers(30, line.sizes)
    orbits = orbits_of(line, 0, 6, bases, Stream.of(1))
    fits = shift_fits(*orbits.split(Stream.of(2)), False, Stream.of(3))
    assert [fit.shift for fit in fits] == [1, 2, 3, 4, 5]
    assert [fit.linear for fit in fits] == pytest.approx([1.0] * 5)
    assert [fit.gain for fit in fits] == pytest.approx([1.0] * 5)
    assert all(fit.chance < 0.5 for fit in fits)
    assert fits[0].identity > fits[4].identity


def test_the_gain_over_shifts_of_different_spread_is_that_of_all_errors() -> None:
    """A code that is the factor itself has one value after the largest shift, where nothing is to explain."""
    for power in (1, 2):
        codes = np.arange(6.0)[None, :, None].repeat(2, axis=0) ** power
        orbits = Orbits(np.array([[0, 0], [0, 1]]), codes)
        fits = shift_fits(orbits, orbits, False, Stream.of(0))
        errors, guesses = 0.0, 0.0
        for shift in range(1, 6):
            before, after = codes[0, :-shift, 0], codes[0, shift:, 0]
            line = np.poly1d(np.polyfit(before, after, 1) if shift < 5 else [0.0, after[0]])
            errors += ((after - line(before)) ** 2).sum()
            guesses += min(((after - before) ** 2).sum(), ((after - after.mean()) ** 2).sum())
        assert mean_gain([fit.linear for fit in fits], fits) == pytest.approx(1 - errors / guesses)
        assert power > 1 or errors == pytest.approx(0)


def test_no_base_is_in_both_halves() -> None:
    bases = Stream.of(0).integers(50, (1, 3, 4))
    one, other = Orbits(bases, noise(50, 6).reshape(50, 3, 2)).split(Stream.of(1))
    assert len(one.bases) + len(other.bases) == 50
    assert not {tuple(base) for base in one.bases} & {tuple(base) for base in other.bases}


def test_one_map_must_fit_all_objects() -> None:
    """If half of the objects turn the other way, the best map for a shift by the angle s is cos(s) z.

    Its error is sin(s)^2 of the variance; that of z itself is 2 - 2 cos(s).
    """

    def encode(factors: NDArray[np.int64], stream: Stream) -> NDArray[np.float64]:
        directions = np.where(factors[:, 1] % 2, -1, 1)
        return circle(factors[:, 0] * directions, 12)

    angles = 2 * np.pi * np.arange(1, 12) / 12
    errors, guesses = np.sin(angles) ** 2, np.minimum(2 - 2 * np.cos(angles), 1)
    score = equivariance(Representation(encode, (12, 1000)), [0], orbits=800).score
    assert score == pytest.approx(1 - errors.sum() / guesses.sum(), abs=0.02)
