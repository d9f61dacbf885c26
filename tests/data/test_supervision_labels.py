"""Labellers against labels worked out by hand, and against exact probabilities."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from itertools import combinations

import numpy as np
import pytest
from scipy.stats import chisquare

from unweave.data.grid import Card, Factor, GroundTruth
from unweave.data.supervision import (
    Binned,
    Chosen,
    Labelled,
    Labeller,
    Noisy,
    Partial,
    Perfect,
    Permuted,
    labelled,
    split,
)
from unweave.errors import UnweaveError
from unweave.streams import Stream

DSPRITES = (3, 6, 40, 32, 32)


def grid(sizes: Sequence[int]) -> GroundTruth:
    return GroundTruth(
        name="toy",
        factors=tuple(Factor("abcdefgh"[j], size) for j, size in enumerate(sizes)),
        shape=(1, 2, 2),
        render=lambda factors, _stream: np.zeros((len(factors), 1, 2, 2), np.uint8),
        card=Card("Toy", "none", "none"),
        source="made by hand",
    )


def test_perfect_labels_are_the_factors() -> None:
    points = labelled(grid((3, 1, 4)), 50, seed=1)
    assert np.array_equal(points.labels, points.factors)
    assert (points.names, points.sizes, points.observed) == (("a", "b", "c"), (3, 1, 4), (0, 1, 2))
    assert len(points) == 50


def test_points_do_not_depend_on_the_labeller() -> None:
    expected = labelled(grid(DSPRITES), 100, seed=4).factors
    for labeller in (Binned(), Noisy(), Permuted(), Partial()):
        assert np.array_equal(labelled(grid(DSPRITES), 100, seed=4, labeller=labeller).factors, expected)


@pytest.mark.parametrize(
    ("size", "bins", "expected"),
    [
        (6, 5, [0, 0, 1, 2, 3, 4]),  # by hand: floor(5 v / 6)
        (10, 5, [0, 0, 1, 1, 2, 2, 3, 3, 4, 4]),
        (5, 5, [0, 1, 2, 3, 4]),
        (3, 5, [0, 1, 2]),
        (4, 1, [0, 0, 0, 0]),
        (10, 6, [0, 0, 1, 1, 2, 3, 3, 4, 4, 5]),  # floating point gives 2 for value 5
    ],
)
def test_binned(size: int, bins: int, expected: list[int]) -> None:
    points = Binned(bins)(grid((size, 2)), np.stack([np.arange(size), np.zeros(size, int)], 1), Stream.of(0))
    assert points.labels[:, 0].tolist() == expected
    assert points.sizes == (max(expected) + 1, min(2, bins))


@pytest.mark.parametrize("size", DSPRITES)
def test_five_bins_equal_the_predecessors(size: int) -> None:
    values = np.arange(size)[:, None]
    predecessor = np.minimum(values // (size / 5), 4) if size > 5 else values
    assert np.array_equal(Binned()(grid((size,)), values, Stream.of(0)).labels, predecessor)


def test_noisy_replaces_each_label_on_its_own_by_any_value() -> None:
    points = labelled(grid((2, 3)), 20_000, seed=0, labeller=Noisy(0.3))
    offset = (points.labels - points.factors) % [2, 3]
    # A uniform value is the true one in 1/2 and 1/3 of the cases: wrong are 0.3 / 2, and twice 0.3 / 3.
    expected = np.outer([0.85, 0.15], [0.8, 0.1, 0.1]).ravel()
    counts = np.bincount(offset @ [3, 1], minlength=6)
    assert chisquare(counts, 20_000 * expected).pvalue > 1e-3


def test_noisy_at_its_ends() -> None:
    never, always = (labelled(grid((2, 3)), 3000, seed=0, labeller=Noisy(p)) for p in (0, 1))
    assert np.array_equal(never.labels, never.factors)
    joint = np.bincount(np.hstack([always.factors, always.labels]) @ [18, 6, 3, 1], minlength=36)
    assert chisquare(joint).pvalue > 1e-3  # nothing of the factors is left in the labels


def test_permuted_is_one_permutation_a_factor_and_seed() -> None:
    def table(seed: int) -> list[dict[int, int]]:
        points = labelled(grid((7, 7)), 500, seed, Permuted())
        maps = [dict(zip(points.factors[:, j], points.labels[:, j], strict=True)) for j in range(2)]
        for j, renamed in enumerate(maps):
            assert sorted(renamed) == sorted(renamed.values()) == list(range(7))
            assert all(
                renamed[v] == w for v, w in zip(points.factors[:, j], points.labels[:, j], strict=True)
            )
        return maps

    assert table(0)[0] != table(0)[1]
    assert table(0) != table(1)


def test_partial_observes_a_random_subset_that_belongs_to_the_seed() -> None:
    points = labelled(grid((3, 1, 4, 2)), 20, seed=0, labeller=Partial(2))
    assert np.array_equal(points.labels, points.factors[:, points.observed])
    assert points.names == tuple("abcd"[j] for j in points.observed)
    assert points.sizes == tuple((3, 1, 4, 2)[j] for j in points.observed)
    subsets = Counter(labelled(grid((3, 1, 4, 2)), 0, seed, Partial(2)).observed for seed in range(600))
    assert set(subsets) == set(combinations(range(4), 2))
    assert chisquare(list(subsets.values())).pvalue > 1e-3


def test_partial_with_a_seed_of_its_own_observes_the_same_factors_in_all_sets() -> None:
    sets = [labelled(grid(DSPRITES), 5, seed, Partial(2, seed=3)) for seed in range(8)]
    assert len({points.observed for points in sets}) == 1
    others = {labelled(grid(DSPRITES), 5, 0, Partial(2, seed=seed)).observed for seed in range(20)}
    assert len(others) > 4
    for points in sets:
        assert np.array_equal(points.labels, points.factors[:, points.observed])


@pytest.mark.parametrize(
    ("factors", "observed"),
    [("first", (0,)), ("all", (0, 1, 2)), ("b", (1,)), ("c, a", (2, 0))],
)
def test_chosen_labels_the_named_factors_in_their_order(factors: str, observed: tuple[int, ...]) -> None:
    points = labelled(grid((3, 5, 4)), 30, 0, Chosen(factors))
    assert points.observed == observed
    assert np.array_equal(points.labels, points.factors[:, observed])
    assert points.sizes == tuple((3, 5, 4)[column] for column in observed)
    assert points.names == tuple("abc"[column] for column in observed)


@pytest.mark.parametrize(
    ("n", "share", "train"), [(10, 0.95, 10), (10, 0.5, 5), (100, 0.07, 7), (3, 0, 0), (3, 1, 3)]
)
def test_split(n: int, share: float, train: int) -> None:
    points = labelled(grid((5, 5)), n, seed=0, labeller=Partial(1))
    for part, expected in zip(split(points, share), (slice(0, train), slice(train, n)), strict=True):
        assert np.array_equal(part.factors, points.factors[expected])
        assert np.array_equal(part.labels, points.labels[expected])
        assert part.names == points.names


@pytest.mark.parametrize("labeller", [Perfect(), Binned(2), Noisy(0.5), Permuted(), Partial(2)], ids=str)
def test_rows_depend_on_the_seed_and_their_number_alone(labeller: Labeller) -> None:
    def draw(n: int, seed: int | Stream) -> Labelled:
        return labelled(grid((4, 3, 5)), n, seed, labeller)

    many = draw(100, 7)
    for part, expected in [
        (draw(10, 7), slice(0, 10)),
        (draw(60, Stream.of(7).skip(40)), slice(40, 100)),
        (draw(0, 7), slice(0, 0)),
    ]:
        assert np.array_equal(part.factors, many.factors[expected])
        assert np.array_equal(part.labels, many.labels[expected])
        assert part.observed == many.observed
    assert not np.array_equal(draw(100, 8).labels, many.labels)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda t: labelled(t, 5, 0, Noisy), "a labeller is an object such as Perfect"),  # type: ignore[arg-type]
        (lambda t: labelled(t, -1, 0), "number of labelled points must be a whole number >= 0; got -1"),
        (lambda t: labelled(t, 1, 0, Chosen("aa")), r'toy has no factor "aa"\. Did you mean'),
        (lambda t: labelled(t, 1, 0, Chosen("a,b,a")), 'each factor can be named once; got "a,b,a"'),
        (lambda _: Binned(0), "bins must be a whole number >= 1; got 0"),
        (lambda _: Noisy(1.5), r"probability must be a number in \[0, 1\]; got 1.5"),
        (lambda _: Noisy("0.1"), r"probability must be a number in \[0, 1\]; got '0.1'"),  # type: ignore[arg-type]
        (lambda t: labelled(t, 5, 0, "noisy"), r"such as Perfect\(\) or Noisy\(0.1\); got 'noisy'"),  # type: ignore[arg-type]
        (lambda _: Partial(0), "observed must be a whole number >= 1"),
        (lambda t: labelled(t, 5, 0, Partial(4)), "toy has 3 factors, so at most 3 can be observed; got 4"),
        (lambda t: split(labelled(t, 5, 0), -0.1), r"share must be a number in \[0, 1\]; got -0.1"),
    ],
)
def test_errors(call: Callable[[GroundTruth], object], text: str) -> None:
    with pytest.raises(UnweaveError, match=text):
        call(grid((3, 1, 4)))
