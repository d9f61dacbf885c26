"""Groups, pairs and sequences: exact distributions, and what must hold for any grid."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.stats import chisquare

from unweave.data.grid import Card, Factor, GroundTruth, Kind, Weight
from unweave.data.supervision import groups, labelled, pairs, sequences
from unweave.errors import UnweaveError
from unweave.streams import Stream

DSPRITES = (3, 6, 40, 32, 32)


def grid(
    sizes: Sequence[int], kinds: Sequence[Kind] | None = None, weight: Weight | None = None
) -> GroundTruth:
    kinds = kinds or ["ordinal"] * len(sizes)
    return GroundTruth(
        name="toy",
        factors=tuple(Factor("abcdefgh"[j], s, k) for j, (s, k) in enumerate(zip(sizes, kinds, strict=True))),
        shape=(1, 2, 2),
        render=lambda factors, _stream: np.zeros((len(factors), 1, 2, 2), np.uint8),
        card=Card("Toy", "none", "none"),
        source="made by hand",
        weight=weight,
    )


def diagonal(factors: NDArray[np.int64]) -> NDArray[np.float64]:
    """Neighbours in the first two factors are likely, all else is impossible."""
    distance = np.abs(factors[:, 0] - factors[:, 1])
    return np.select([distance == 0, distance == 1], [1.0, 0.4], 0.0)


def assert_follows(drawn: Iterable[Any], expected: dict[Any, float]) -> None:
    """Chi-square test of drawn things against exact probabilities; nothing else may turn up."""
    counts = Counter(drawn)
    assert set(counts) <= set(expected)
    n, total = sum(counts.values()), sum(expected.values())
    frequencies = [n * p / total for p in expected.values()]
    assert min(frequencies) > 5
    if len(expected) > 1:
        assert chisquare([counts[key] for key in expected], frequencies).pvalue > 1e-3


def rows(array: NDArray[Any]) -> list[tuple[int, ...]]:
    return [tuple(row) for row in array.reshape(len(array), -1).tolist()]


# Groups


def test_groups_share_the_chosen_factors_only() -> None:
    drawn = groups(grid((2, 3)), 20_000, 2, ["b"], seed=0)
    assert drawn.factors.shape == (20_000, 2, 2)
    assert np.array_equal(drawn.shared, np.tile([False, True], (20_000, 1)))
    agreeing = {(a, b, c, b): 1.0 for a, b, c in itertools.product(range(2), range(3), range(2))}
    assert_follows(rows(drawn.factors), agreeing)


def test_groups_choose_a_number_of_shared_factors_at_random() -> None:
    drawn = groups(grid((9, 9, 1, 9)), 3000, 3, 2, seed=0)
    choices = {(True, True, False, False), (True, False, False, True), (False, True, False, True)}
    assert_follows(rows(drawn.shared), dict.fromkeys(choices, 1.0))
    agree = (drawn.factors == drawn.factors[:, :1]).all(axis=1)
    assert agree[drawn.shared].all()
    free = ~drawn.shared & [True, True, False, True]
    assert 0.005 < agree[free].mean() < 0.022  # 1/81: three of nine values agree by chance


def test_groups_take_a_mask_for_each_group() -> None:
    mask = np.array([[True, False], [False, True], [True, True]])
    drawn = groups(grid((50, 50)), 3, 4, mask, seed=0)
    assert np.array_equal((drawn.factors == drawn.factors[:, :1]).all(axis=1), mask)
    assert np.array_equal(drawn.shared, mask)


# Pairs


def test_pairs_of_one_change_are_uniform_over_all_such_pairs() -> None:
    drawn = pairs(grid((3, 1, 2)), 20_000, seed=0)
    expected = {}
    for first in np.ndindex(3, 1, 2):
        for a in {0, 1, 2} - {first[0]}:
            expected[*first, a, *first[1:]] = 1 / 6 / 2 / 2  # first, factor, one of two other values
        expected[*first, first[0], 0, 1 - first[2]] = 1 / 6 / 2
    assert_follows(rows(np.concatenate([drawn.first, drawn.second], axis=1)), expected)
    assert np.array_equal(drawn.changed, drawn.first != drawn.second)


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        (1, {1: 1.0}),
        (3, {3: 1.0}),
        ("random", {1: 0.25, 2: 0.25, 3: 0.25, 4: 0.25}),
        ("published", {1: 0.625, 2: 0.125, 3: 0.125, 4: 0.125}),  # half of 1 and half of the row above
        (["b", "e"], {2: 1.0}),
    ],
)
def test_number_of_changed_factors(changed: Any, expected: dict[int, float]) -> None:
    numbers = pairs(grid(DSPRITES), 4000, seed=0, changed=changed).changed.sum(axis=1)
    assert_follows(numbers.tolist(), expected)


def test_all_subsets_change_alike() -> None:
    drawn = pairs(grid((2, 9, 4, 3)), 6000, seed=0, changed=2).changed
    subsets = [tuple(j in two for j in range(4)) for two in itertools.combinations(range(4), 2)]
    assert_follows(rows(drawn), dict.fromkeys(subsets, 1.0))


def test_pairs_change_named_factors() -> None:
    drawn = pairs(grid((3, 3, 3)), 100, seed=0, changed=["c", "a"])
    assert (drawn.changed == [True, False, True]).all()


def test_a_single_factor_changes_when_the_number_is_random() -> None:
    assert pairs(grid((1, 3)), 50, seed=0, changed="random").changed.tolist() == [[False, True]] * 50


def test_pairs_follow_the_weight() -> None:
    drawn = pairs(grid((4, 4, 2), weight=diagonal), 30_000, seed=0)
    points = list(np.ndindex(4, 4, 2))
    weight = dict(zip(points, diagonal(np.array(points)), strict=True))
    expected: dict[tuple[int, ...], float] = {}
    for first, j in itertools.product(points, range(3)):
        others = [p for p in points if [i for i in range(3) if p[i] != first[i]] == [j]]
        total = sum(weight[p] for p in others)
        for p in others:
            if weight[first] * weight[p] > 0:
                expected[first + p] = weight[first] * weight[p] / total
    assert_follows(rows(np.concatenate([drawn.first, drawn.second], axis=1)), expected)


def test_pairs_avoid_points_that_have_no_partner() -> None:
    # b can change only where a = 0: all rows with a > 0 must be given up, not end in an error.
    held = grid((3, 3), weight=lambda f: ((f[:, 0] == 0) | (f[:, 1] == 0)).astype(float))
    drawn = pairs(held, 300, seed=0, changed=["b"])
    assert (drawn.first[:, 0] == 0).all()
    assert drawn.changed.tolist() == [[False, True]] * 300


def test_pairs_that_cannot_be_drawn() -> None:
    one_a = grid((3, 3), weight=lambda f: (f[:, 0] == 0).astype(float))
    with pytest.raises(UnweaveError, match=r"toy: 2 of 2 pairs found no allowed second point.*\['a'\]"):
        pairs(one_a, 2, seed=0, changed=["a"])


@settings(deadline=None, max_examples=40)
@given(st.data())
def test_pairs_always_differ(data: st.DataObject) -> None:
    sizes = data.draw(st.lists(st.integers(1, 5), min_size=1, max_size=5).filter(lambda s: max(s) > 1))
    count = sum(size > 1 for size in sizes)
    changed = data.draw(st.sampled_from(["random", "published", *range(1, count + 1)]))
    truth = grid(sizes)
    drawn = pairs(truth, 60, data.draw(st.integers(0, 99)), changed)
    truth.check(np.concatenate([drawn.first, drawn.second]))
    numbers = (drawn.first != drawn.second).sum(axis=1)
    assert np.array_equal(numbers, drawn.changed.sum(axis=1))
    if isinstance(changed, str):
        assert numbers.min() >= 1
        assert numbers.max() <= max(1, count - 1)
    else:
        assert (numbers == changed).all()


# Sequences


def walk(value: int, velocity: int, size: int, kind: Kind, length: int) -> list[int]:
    """The trajectory by single steps, turning round at each end."""
    out, direction = [value], 1 if velocity >= 0 else -1
    for _ in range(length - 1):
        for _ in range(abs(velocity)):
            if kind == "circular":
                value = (value + direction) % size
            else:
                if not 0 <= value + direction < size:
                    direction = -direction
                value += direction
        out.append(value)
    return out


KINDS = st.sampled_from(["categorical", "ordinal", "circular"])


@settings(deadline=None, max_examples=40)
@given(
    factors=st.lists(st.tuples(st.integers(1, 7), KINDS, st.booleans()), min_size=1, max_size=4),
    length=st.integers(1, 12),
    step=st.integers(1, 8),
    seed=st.integers(0, 99),
)
def test_sequences_hold_content_and_move_pose(
    factors: list[tuple[int, Kind, bool]], length: int, step: int, seed: int
) -> None:
    truth = grid([size for size, _, _ in factors], [kind for _, kind, _ in factors])
    content = [f.name for f, (_, _, held) in zip(truth.factors, factors, strict=True) if held]
    if all(held or size == 1 or kind == "categorical" for size, kind, held in factors):
        with pytest.raises(UnweaveError, match="nothing of toy can move"):
            sequences(truth, 5, length, content, seed, step)
        return
    drawn = sequences(truth, 12, length, content, seed, step)
    assert drawn.shape == (12, length, len(factors))
    for row, (j, (size, kind, held)) in itertools.product(drawn, enumerate(factors)):
        velocities = [0] if held or kind == "categorical" or size == 1 else range(-step, step + 1)
        assert any(row[:, j].tolist() == walk(int(row[0, j]), v, size, kind, length) for v in velocities)
    if length > 1:
        assert (drawn[:, 0] != drawn[:, 1]).any(axis=1).all()


def test_velocities_are_uniform_except_that_something_moves() -> None:
    drawn = sequences(grid((7, 7), ["circular", "circular"]), 9000, 2, [], seed=0)
    velocity = (drawn[:, 1] - drawn[:, 0] + 1) % 7 - 1
    moving = {(v, w): 1 / 9 for v, w in itertools.product((-1, 0, 1), repeat=2) if v or w}
    for one in ((1, 0), (-1, 0), (0, 1), (0, -1)):
        moving[one] += 1 / 9 / 4  # (0, 0) is replaced by one of these
    assert_follows(rows(velocity), moving)
    assert_follows(rows(drawn[:, 0]), dict.fromkeys(np.ndindex(7, 7), 1.0))


def test_longer_sequences_only_add_frames() -> None:
    truth = grid((6, 9), ["ordinal", "circular"])
    assert np.array_equal(sequences(truth, 20, 12, [], 3)[:, :5], sequences(truth, 20, 5, [], 3))


def test_independent_frames_hold_content_and_draw_the_rest() -> None:
    truth = grid((5, 3, 4, 1), ["ordinal", "categorical", "circular", "ordinal"])
    drawn = sequences(truth, 6000, 3, [], seed=0, step=None)
    assert (drawn[:, :, 1] == drawn[:, :1, 1]).all(), "categorical factors are held"
    for column, size in ((0, 5), (2, 4)):
        for first, second in ((0, 1), (1, 2)):
            pair = drawn[:, first, column] * size + drawn[:, second, column]
            assert chisquare(np.bincount(pair, minlength=size**2)).pvalue > 0.001
    held = sequences(truth, 50, 3, ["a"], seed=0, step=None)
    assert (held[:, :, :2] == held[:, :1, :2]).all()
    with pytest.raises(UnweaveError, match="nothing of toy can move"):
        sequences(truth, 5, 3, ["a", "c"], 0, step=None)


def test_sequences_stay_where_the_weight_allows() -> None:
    drawn = sequences(grid((5, 5, 3), weight=diagonal), 400, 4, ["c"], seed=0)
    assert (diagonal(drawn.reshape(-1, 3)) > 0).all()
    assert (drawn[:, :, 2] == drawn[:, :1, 2]).all()


def test_sequences_without_a_way_through() -> None:
    one_a = grid((3, 3), weight=lambda f: (f[:, 0] == 0).astype(float))
    with pytest.raises(UnweaveError, match="2 of 2 sequences of length 3 found no way through"):
        sequences(one_a, 2, 3, ["b"], seed=0)


# Rows depend on the seed and on their number alone.

Draw = Callable[[int, int | Stream], NDArray[Any]]
TRUTHS = {"free": grid((4, 3, 5)), "weighted": grid((4, 3, 5), weight=diagonal)}


def draws(truth: GroundTruth) -> dict[str, Draw]:
    return {
        "labelled": lambda n, seed: labelled(truth, n, seed).factors,
        "groups": lambda n, seed: groups(truth, n, 3, 1, seed).factors,
        "pairs": lambda n, seed: pairs(truth, n, seed, "random").second,
        "published": lambda n, seed: pairs(truth, n, seed, "published").first,
        "sequences": lambda n, seed: sequences(truth, n, 4, ["a"], seed),
    }


@pytest.mark.parametrize("kind", TRUTHS)
@pytest.mark.parametrize("what", draws(TRUTHS["free"]))
def test_rows_are_addressed(kind: str, what: str) -> None:
    draw = draws(TRUTHS[kind])[what]
    many = draw(100, 7)
    assert np.array_equal(draw(10, 7), many[:10])
    assert np.array_equal(draw(60, Stream.of(7).skip(40)), many[40:])
    assert draw(0, 7).shape == (0, *many.shape[1:])
    assert not np.array_equal(draw(100, 8), many)


# What cannot be done is said in a sentence.


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda t: groups(t, -1, 2, 1, 0), "number of groups must be a whole number >= 0"),
        (lambda t: groups(t, 5, 0, 1, 0), "size of a group must be a whole number >= 1; got 0"),
        (lambda t: groups(t, 5, 2, 3, 0), "can share 0 to 2 of them; got shared=3"),
        (lambda t: groups(t, 5, 2, ["aa"], 0), 'toy has no factor "aa"'),
        (lambda t: groups(t, 5, 2, np.ones((4, 3), bool), 0), r"\(3,\) or, one row a group, \(5, 3\)"),
        (lambda t: groups(t, 5, 2, True, 0), "list of names or a boolean mask"),
        (lambda t: pairs(t, 2.5, 0), "number of pairs must be a whole number >= 0; got 2.5"),  # type: ignore[arg-type]
        (lambda t: pairs(t, 5, 0, 0), "1 to 2 factors can change; got changed=0"),
        (lambda t: pairs(t, 5, 0, 3), "1 to 2 factors can change; got changed=3"),
        (lambda t: pairs(t, 5, 0, 1.0), "list of names or a boolean mask"),  # type: ignore[arg-type]
        (lambda t: pairs(t, 5, 0, "often"), '"random", "published" or a list of factor names; got "often"'),
        (lambda t: pairs(t, 5, 0, []), "must name at least one factor"),
        (lambda t: pairs(t, 5, 0, ["b"]), 'factor "b" has only one value, so it cannot change'),
        (lambda _: pairs(grid((1, 1)), 5, 0), "no factor of toy has more than one value"),
        (lambda t: pairs(t, 5, -1), "seed must be a whole number >= 0"),
        (lambda t: sequences(t, -1, 5, [], 0), "number of sequences must be a whole number >= 0"),
        (lambda t: sequences(t, 5, 0, [], 0), "length of a sequence must be a whole number >= 1; got 0"),
        (lambda t: sequences(t, 5, 5, [], 0, step=0), "step must be a whole number >= 1"),
        (lambda t: sequences(t, 5, 5, ["z"], 0), 'toy has no factor "z"'),
        (lambda t: sequences(t, 5, 5, ["a", "c"], 0), r"nothing of toy can move.*got \['a', 'c'\]"),
        (lambda t: sequences(t, 5, 5, np.ones((5, 3), bool), 0), "content must be a list of factor names"),  # type: ignore[arg-type]
    ],
)
def test_errors(call: Callable[[GroundTruth], object], text: str) -> None:
    with pytest.raises(UnweaveError, match=text):
        call(grid((3, 1, 4)))
