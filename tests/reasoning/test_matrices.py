"""Matrices obey their rules, checked one by one, and are drawn as disentanglement_lib draws them."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from reasoning.small_grid import small_truth
from unweave.data import Factor, load
from unweave.data.sets import shapes3d
from unweave.errors import UnweaveError
from unweave.reasoning.matrices import (
    ANSWERS,
    Matrices,
    _draw_hard,
    _draw_unrelated,
    draw_matrices,
    panel_grid,
    panel_rows,
)
from unweave.reasoning.spec import Alternatives, Relations
from unweave.streams import Stream

Whole = NDArray[np.int64]


def fits(panels: Whole, related: NDArray[np.bool_]) -> bool:
    """Whether each related factor is constant in all rows of (3, 3, f) panels."""
    return all(len(set(row[:, j])) == 1 for row in panels for j in np.flatnonzero(related))


def check_matrix(matrices: Matrices, i: int, alternatives: Alternatives) -> None:
    """One matrix by brute force."""
    context, answers, related = matrices.context[i], matrices.answers[i], matrices.related[i]
    fitting = [fits(np.concatenate([context, answer[None]]).reshape(3, 3, -1), related) for answer in answers]
    assert fitting == [place == matrices.position[i] for place in range(ANSWERS)]
    assert len({tuple(answer) for answer in answers}) == ANSWERS
    for j in np.flatnonzero(~related):
        rows = context[:6].reshape(2, 3, -1)[:, :, j]
        kinds = [len(set(row)) for row in rows]
        assert kinds not in ([1, 1], [3, 3])  # a relation would be seen where there is none
    right = answers[matrices.position[i]]
    if alternatives == "hard":
        others = np.delete(answers, matrices.position[i], axis=0)
        assert ((others != right)[:, related].sum(axis=1) == 1).all()


@pytest.mark.parametrize("alternatives", ["hard", "easy"])
@pytest.mark.parametrize("sizes", [(3, 3, 3), (3, 3, 4, 4), (10, 4, 3, 5, 4)])
def test_the_rules_hold_in_every_matrix(sizes: tuple[int, ...], alternatives: Alternatives) -> None:
    matrices = draw_matrices(sizes, 300, Stream.of(1), alternatives=alternatives)
    for i in range(300):
        check_matrix(matrices, i, alternatives)
    for values in (matrices.context, matrices.answers):
        assert (values.min((0, 1)) == 0).all()
        assert (values.max((0, 1)) == np.array(sizes) - 1).all()


def test_places_relations_and_factors_are_uniform() -> None:
    n = 12_000
    matrices = draw_matrices((3, 4, 3, 4), n, Stream.of(0))
    shares = [
        np.bincount(matrices.position, minlength=6) / n - 1 / 6,
        np.bincount(matrices.related.sum(axis=1), minlength=4)[1:] / n - 1 / 3,
        matrices.related.mean(axis=0) - 1 / 2,  # the mean of 1, 2 and 3 of 4
    ]
    assert max(np.abs(part).max() for part in shares) < 5 * 0.5 / np.sqrt(n)
    counts: dict[Relations, int] = {"1": 1, "2": 2, "3": 3}
    for relations, count in counts.items():
        some = draw_matrices((3, 4, 3, 4), 50, Stream.of(0), relations=relations)
        assert (some.related.sum(axis=1) == count).all()


class Numbers:
    """A stream whose whole numbers are 0, 1, 2, ..., so that a rule can be enumerated."""

    def child(self, *_purpose: object) -> "Numbers":
        return self

    def integers(self, n: int, sizes: list[int]) -> Whole:
        return np.asarray(np.arange(n)[:, None] % np.array(sizes), np.int64)


@pytest.mark.parametrize(("size", "pairs"), [(3, 27**2 - 3**2 - 6**2), (4, 64**2 - 4**2 - 24**2)])
def test_unrelated_rows_are_all_pairs_that_are_neither_constant_nor_distinct(size: int, pairs: int) -> None:
    rows = _draw_unrelated(size, pairs, Numbers())[:, :2]  # type: ignore[arg-type]
    assert len(np.unique(rows.reshape(pairs, 6), axis=0)) == pairs
    kinds = np.array([[len(set(row)) for row in pair] for pair in rows])
    assert not ((kinds == 1).all(axis=1) | (kinds == 3).all(axis=1)).any()


def redrawn(right: Whole, sizes: tuple[int, ...], generator: np.random.Generator) -> Whole:
    """A hard alternative as disentanglement_lib describes it: redraw related factors until one differs."""
    answer = right.copy()
    while (answer == right).all():
        j = generator.integers(len(sizes))
        answer[j] = generator.integers(sizes[j])
    return answer


def test_hard_alternatives_are_distributed_as_by_redrawing() -> None:
    sizes, n = (3, 10), 4_000
    right = np.ones((n, 2), np.int64)
    drawn = _draw_hard(sizes, right, np.ones((n, 2), np.bool_), Stream.of(0), np.arange(n)).reshape(-1, 2)
    generator = np.random.default_rng(0)
    slow = np.stack([redrawn(right[0], sizes, generator) for _ in range(5 * n)])
    for j in range(2):
        counts = [np.bincount(panels[:, j], minlength=sizes[j]) / len(panels) for panels in (drawn, slow)]
        assert np.abs(counts[0] - counts[1]).max() < 0.02
    assert (drawn[:, 0] != 1).mean() == pytest.approx((2 / 3) / (2 / 3 + 9 / 10), abs=0.02)


def test_a_matrix_does_not_depend_on_those_drawn_with_it() -> None:
    together = draw_matrices((3, 3, 3), 60, Stream.of(3))
    alone = draw_matrices((3, 3, 3), 20, Stream.of(3).skip(40))
    assert all((a[40:] == b).all() for a, b in zip(together, alone, strict=True))


def test_published_numbers_of_values() -> None:
    sprites = panel_grid(load("dsprites"))
    assert sprites.levels == {"shape": 3, "scale": 3, "x": 4, "y": 4}
    assert (sprites.variants, len(sprites)) == (40, 5_760)  # every orientation of each of 144 panels
    shown = sprites.factors(np.arange(len(sprites)))
    assert [sorted(set(column)) for column in shown.T] == [
        [0, 1, 2], [0, 2, 4], list(range(40)), [0, 8, 16, 24], [0, 8, 16, 24]
    ]  # fmt: skip
    assert len(np.unique(shown, axis=0)) == len(sprites)
    rooms = panel_grid(load("rooms"))
    assert (rooms.sizes, len(rooms)) == ((10, 10, 10, 4, 4, 4), 64_000)
    assert {factor.name for factor in rooms.truth.factors} == {factor.name for factor in shapes3d.FACTORS}
    assert len(panel_grid(load("rooms"), 4)) == 4**6
    # floor(value * 15 / 4), as the quantiser of disentanglement_lib.
    assert sorted(set(rooms.factors(np.arange(4))[:, 5])) == [0, 3, 7, 11]


def test_no_two_panels_show_the_same_angle() -> None:
    """The last orientation of dSprites is the first again."""
    data = load("dsprites")
    turned = panel_grid(data, {"orientation": 39, "shape": 3, "scale": 3, "x": 3, "y": 3})
    assert turned.factors(np.arange(len(turned)))[:, 2].max() == 38
    with pytest.raises(UnweaveError, match="must be a whole number from 3 to 39; got 40"):
        panel_grid(data, {"orientation": 40})
    truth = small_truth((3, 3, 4))
    angle = Factor("f2", 4, "circular", period=2)  # two different angles are too few for a relation
    assert panel_grid(replace(truth, factors=(*truth.factors[:2], angle))).levels == {"f0": 3, "f1": 3}


def test_rows_of_the_table_show_the_panels_of_the_matrices() -> None:
    grid = panel_grid(small_truth((6, 5, 2), stochastic=True), {"f0": 3, "f1": 4})
    matrices = draw_matrices(grid.sizes, 200, Stream.of(0))
    rows = panel_rows(grid, matrices, Stream.of(0))
    assert grid.variants == 2 * 16
    factors = grid.factors(rows.ravel()).reshape(200, 14, 3)
    panels = np.concatenate([matrices.context, matrices.answers], axis=1)
    assert (factors[..., 0] == 2 * panels[..., 0]).all()
    assert (factors[..., 1] == 5 * panels[..., 1] // 4).all()
    assert 0.4 < factors[..., 2].mean() < 0.6
    whole = grid.images(0, len(grid))
    assert (grid.images(70, 90) == whole[70:90]).all()
    assert len(np.unique(whole[:32, 0, -1, -1])) > 16  # each variant has a draw of its own


def test_bad_input_is_one_sentence() -> None:
    truth = small_truth((3, 3, 2))
    for levels, message in (
        ({"nosuch": 3}, 'small has no factor "nosuch"'),
        ({"f2": 2}, 'a factor of matrices needs 3 values; "f2" has 2 different values'),
        (2, 'levels of "f0" must be a whole number from 3 to 3; got 2'),
        ({}, "matrices need a factor with 3 values or more"),
    ):
        with pytest.raises(UnweaveError, match=message):
            panel_grid(truth, levels)
    with pytest.raises(UnweaveError, match=r"262,144 different images.* such as levels=3\."):
        panel_grid(small_truth((4,) * 9))
    assert len(panel_grid(small_truth((4,) * 9), 3)) == 3**9
    with pytest.raises(UnweaveError, match=r'show all of their values: "scale", "orientation", "x", "y"\.'):
        panel_grid(load("dsprites"), {"shape": 3})
    with pytest.raises(UnweaveError, match="3 relations need as many factors; the matrices have 2"):
        draw_matrices((3, 3), 5, Stream.of(0), relations="3")
    with pytest.raises(UnweaveError, match="factors with 3 values have fewer than 5 wrong answers"):
        draw_matrices((3,), 5, Stream.of(0))
