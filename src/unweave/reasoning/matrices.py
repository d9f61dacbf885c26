"""Raven-like matrices from a ground truth: 8 context panels, 6 answers, one of which is right.

A matrix has 3 rows of 3 panels, and the last panel is missing. One to three factors are constant in each row;
these are the relations. In the first two rows every other factor is neither constant in both rows nor
different everywhere in both, so the relations follow from these rows. The right answer continues the third
row; a wrong one breaks a relation.

- "hard" alternatives: the right answer with one related factor changed and random values of unrelated ones.
- "easy" alternatives: any panel that breaks a relation.

Factors have few values, evenly spaced, so the codes of all panels are a small table. Row i of a stream makes
matrix i.

van Steenkiste, Locatello, Schmidhuber, Bachem: Are disentangled representations helpful for abstract visual
reasoning? NeurIPS 2019 [1]. The rules are those of disentanglement_lib, in closed form where it draws until a
draw fits. Differs from its code: alternatives of one matrix differ from each other, as its documentation
says (there, a loop that should redraw repeated ones does not); and "hard" is available (there, all matrices
have easy alternatives, whatever the configuration says).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from unweave.data.grid import Factor, GroundTruth
from unweave.errors import UnweaveError, did_you_mean
from unweave.reasoning.spec import Alternatives, Relations
from unweave.streams import Stream

Whole: TypeAlias = NDArray[np.int64]

SIDE = 3  # rows and columns of a matrix
CONTEXT = SIDE * SIDE - 1
ANSWERS = 6
WRONG = ANSWERS - 1
MOST_RELATIONS = 3
FEWEST_VALUES = SIDE  # of a factor that a relation can hold for, as in [1]
MOST_VALUES = 4  # of a factor of data that [1] has no numbers for
LARGEST_TABLE = 200_000  # panels; more take too long to encode
DRAWS = 16  # images of each panel if the data draw something at random for each image
MOST_ATTEMPTS = 1_000

# The numbers of values in [1], by the factors of the data. Factors without a number are no part of the
# matrices and are drawn at random for each panel, as the orientation of dSprites is in [1].
PUBLISHED_LEVELS: Mapping[frozenset[str], Mapping[str, int]] = {
    frozenset(("shape", "scale", "orientation", "x", "y")): {"shape": 3, "scale": 3, "x": 4, "y": 4},
    frozenset(("floor_hue", "wall_hue", "object_hue", "scale", "shape", "azimuth")): {
        "floor_hue": 10,
        "wall_hue": 10,
        "object_hue": 10,
        "scale": 4,
        "shape": 4,
        "azimuth": 4,
    },
}


class Matrices(NamedTuple):
    """n matrices in the values of the factors (f of them) that relations may hold for."""

    context: Whole  # (n, 8, f): row by row
    answers: Whole  # (n, 6, f)
    position: Whole  # (n,): which answer is right
    related: NDArray[np.bool_]  # (n, f): which factors are constant in each row


@dataclass(frozen=True, eq=False)
class PanelGrid:
    """All panels that matrices of a ground truth are made of.

    `columns` are the factors that relations may hold for and `sizes` their numbers of values. A panel has
    `variants` images: the other factors, and what the data draw at random, do not matter.
    """

    truth: GroundTruth
    columns: tuple[int, ...]
    sizes: tuple[int, ...]

    @cached_property
    def others(self) -> tuple[int, ...]:
        """The factors that are drawn at random for each panel."""
        return tuple(j for j in range(len(self.truth.factors)) if j not in self.columns)

    @property
    def levels(self) -> dict[str, int]:
        """The number of values of each factor in the matrices, by name."""
        names = [self.truth.factors[j].name for j in self.columns]
        return dict(zip(names, self.sizes, strict=True))

    @cached_property
    def variants(self) -> int:
        """How many images show the same panel."""
        images = math.prod(self.truth.sizes[j] for j in self.others)
        return images * (DRAWS if self.truth.stochastic else 1)

    def __len__(self) -> int:
        return math.prod(self.sizes) * self.variants

    def factors(self, rows: Whole) -> Whole:
        """(n, k): the factors of the images in rows of the table, numbered panel by panel."""
        panels, variants = np.divmod(rows, self.variants)
        values = np.stack(np.unravel_index(panels, self.sizes), axis=1)
        factors = np.zeros((len(rows), len(self.truth.factors)), np.int64)
        factors[:, self.columns] = self.full_values(values)
        if self.others:
            sizes = [self.truth.sizes[j] for j in self.others]
            chosen = np.unravel_index(variants % math.prod(sizes), sizes)
            factors[:, self.others] = np.stack(chosen, axis=1)
        return factors

    def full_values(self, values: Whole) -> Whole:
        """(n, f) values of the matrices -> (n, f) values of the data, floor(value size / levels) [1]."""
        full = np.array([self.truth.sizes[j] for j in self.columns])
        return np.asarray(values * full // np.array(self.sizes), np.int64)

    def images(self, first: int, last: int) -> NDArray[np.uint8]:
        """(n, c, h, w): the images in the rows first .. last - 1 of the table."""
        factors = self.factors(np.arange(first, last))
        return self.truth.observe(factors, Stream.of(0).child("panels").skip(first))

    def rows(self, values: Whole, variants: Whole) -> Whole:
        """(...): rows of the table, from (..., f) values of the matrices and (...) variants."""
        panels = np.ravel_multi_index(tuple(np.moveaxis(values, -1, 0)), self.sizes)
        return np.asarray(panels * self.variants + variants, np.int64)


def panel_grid(truth: GroundTruth, levels: Mapping[str, int] | int | None = None) -> PanelGrid:
    """The panels of a ground truth; `levels` are numbers of values by factor, by default those of [1].

    Data that [1] does not have get up to four values of each factor with three or more. A single number is
    the most values that a factor gets. Relations may hold for the factors in `levels`; all others are drawn
    at random for each panel.
    """
    whole = truth.full or truth
    chosen = dict(levels) if isinstance(levels, Mapping) else _default_levels(whole, levels)
    names = [factor.name for factor in whole.factors]
    for name, size in chosen.items():
        if name not in names:
            raise UnweaveError(f'{whole.name} has no factor "{name}". {did_you_mean(name, names)}')
        most = _different(whole.factors[names.index(name)])
        if isinstance(size, bool) or not isinstance(size, int) or not FEWEST_VALUES <= size <= most:
            few = f'a factor of matrices needs {FEWEST_VALUES} values; "{name}" has {most} different values.'
            many = f'levels of "{name}" must be a whole number from {FEWEST_VALUES} to {most}; got {size!r}.'
            raise UnweaveError(few if most < FEWEST_VALUES else many)
    if not chosen:
        raise UnweaveError(
            f"matrices need a factor with {FEWEST_VALUES} values or more; {whole.name} has none."
        )
    columns = tuple(j for j, name in enumerate(names) if name in chosen)
    grid = PanelGrid(whole, columns, tuple(chosen[names[j]] for j in columns))
    if len(grid) > LARGEST_TABLE:
        raise UnweaveError(
            f"matrices of {whole.name} would have {len(grid):,} different images; at most {LARGEST_TABLE:,} "
            f"are encoded. {_fewer_images(grid)}"
        )
    return grid


def _fewer_images(grid: PanelGrid) -> str:
    """What to change if there are too many images."""
    unnamed = [factor for j in grid.others if _different(factor := grid.truth.factors[j]) >= FEWEST_VALUES]
    if unnamed and math.prod(grid.sizes) <= LARGEST_TABLE:
        names = ", ".join(f'"{factor.name}"' for factor in unnamed)
        return f"Factors without a number in levels show all of their values: {names}. Give numbers of these."
    return f"Choose fewer values, such as levels={FEWEST_VALUES}."


def _default_levels(truth: GroundTruth, most: int | None) -> dict[str, int]:
    published = PUBLISHED_LEVELS.get(frozenset(factor.name for factor in truth.factors))
    if published is not None:
        return {name: size if most is None else min(size, most) for name, size in published.items()}
    return {
        factor.name: min(_different(factor), MOST_VALUES if most is None else most)
        for factor in truth.factors
        if _different(factor) >= FEWEST_VALUES
    }


def _different(factor: Factor) -> int:
    """The number of values that look different: the last ones of a circular factor may repeat the first."""
    return factor.period or factor.size


def draw_matrices(
    sizes: tuple[int, ...],
    n: int,
    stream: Stream,
    *,
    alternatives: Alternatives = "hard",
    relations: Relations = "mixed",
) -> Matrices:
    """n matrices of factors with these numbers of values; matrix i comes from row i of the stream."""
    related = _draw_related(len(sizes), n, stream.child("relations"), relations)
    panels = np.empty((n, SIDE, SIDE, len(sizes)), np.int64)
    for j, size in enumerate(sizes):
        of_factor = stream.child("factor", j)
        constant = of_factor.child("constant").integers(n, [size] * SIDE)[:, :, None]
        panels[..., j] = np.where(related[:, None, None, j], constant, _draw_unrelated(size, n, of_factor))
    in_order = panels.reshape(n, CONTEXT + 1, len(sizes))
    right = in_order[:, -1]
    wrong = _draw_alternatives(sizes, right, related, stream.child("alternatives"), alternatives)
    position = stream.child("position").integers(n, [ANSWERS])[:, 0]
    # The wrong answers keep their order around the right one.
    answers = wrong[np.arange(n)[:, None], np.clip(_before(position), 0, WRONG - 1)]
    answers[np.arange(n), position] = right
    return Matrices(in_order[:, :-1], answers, position, related)


def _before(position: Whole) -> Whole:
    """(n, 6): the number of the wrong answer at each place, where the right one takes `position`."""
    places = np.arange(ANSWERS)
    return places - (places > position[:, None])


def _draw_related(factors: int, n: int, stream: Stream, relations: Relations) -> NDArray[np.bool_]:
    """(n, f): which factors are constant in the rows of each matrix."""
    if relations == "mixed":
        count = 1 + stream.integers(n, [min(MOST_RELATIONS, factors)])[:, 0]
    elif int(relations) > factors:
        raise UnweaveError(f"{relations} relations need as many factors; the matrices have {factors}.")
    else:
        count = np.full(n, int(relations))
    rank = np.argsort(stream.child("order").permutations(n, factors), axis=1)
    return np.asarray(rank < count[:, None])


def _draw_unrelated(size: int, n: int, stream: Stream) -> Whole:
    """(n, 3, 3): values of a factor without a relation.

    The first two rows are uniform over all pairs of rows that are neither both constant nor both distinct.
    The third row is uniform.
    """
    rows = _rows_by_kind(size)
    constant, distinct, total = size, size * (size - 1) * (size - 2), len(rows)
    mixed = total - constant - distinct
    # Pairs are numbered by their first row; as many second rows go with it as its kind allows.
    ends = np.cumsum([constant * (total - constant), mixed * total, distinct * (total - distinct)])
    number = stream.integers(n, [int(ends[-1])])[:, 0]
    kind = np.searchsorted(ends, number, side="right")
    partners = np.array([total - constant, total, total - distinct])[kind]
    first, second = np.divmod(number - np.concatenate([[0], ends])[kind], partners)
    first = first + np.array([0, constant, constant + mixed])[kind]
    second = second + np.where(kind == 0, constant, 0)
    third = stream.child("third row").integers(n, [size] * SIDE)
    return np.stack([rows[first], rows[second], third], axis=1)


def _rows_by_kind(size: int) -> Whole:
    """(size^3, 3): all rows of three values: the constant ones first, those of distinct values last."""
    rows = np.stack(np.unravel_index(np.arange(size**SIDE), (size,) * SIDE), axis=1).astype(np.int64)
    ordered = np.sort(rows, axis=1)
    values = 1 + (np.diff(ordered, axis=1) > 0).sum(axis=1)
    return rows[np.argsort(values, kind="stable")]


def _draw_alternatives(
    sizes: tuple[int, ...], right: Whole, related: NDArray[np.bool_], stream: Stream, kind: Alternatives
) -> Whole:
    """(n, 5, f): wrong answers that differ from each other."""
    draw = _draw_hard if kind == "hard" else _draw_easy
    wrong = np.full((len(right), WRONG, len(sizes)), -1, np.int64)
    rows = np.arange(len(right))
    repeated = np.ones((len(right), WRONG), np.bool_)
    for attempt in range(MOST_ATTEMPTS):
        drawn = draw(sizes, right[rows], related[rows], stream.child("attempt", attempt), rows)
        wrong[rows] = np.where(repeated[..., None], drawn, wrong[rows])
        repeated = _is_unusable(wrong[rows], right[rows], related[rows])
        still = repeated.any(axis=1)
        rows, repeated = rows[still], repeated[still]
        if not len(rows):
            return wrong
    raise UnweaveError(
        f"matrices of factors with {' x '.join(map(str, sizes))} values have fewer than {WRONG} wrong "
        "answers. Use more factors or values."
    )


def _is_unusable(wrong: Whole, right: Whole, related: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """(n, 5): which alternatives break no relation, or repeat an earlier one."""
    fits = ((wrong == right[:, None]) | ~related[:, None]).all(axis=-1)
    same = (wrong[:, :, None] == wrong[:, None]).all(axis=-1)
    return np.asarray(fits | np.tril(same, -1).any(axis=-1))


def _draw_easy(
    sizes: tuple[int, ...], right: Whole, related: NDArray[np.bool_], stream: Stream, rows: Whole
) -> Whole:
    """(n, 5, f): panels drawn uniformly; those that break no relation are drawn again."""
    del right, related  # which easy alternatives do not depend on
    return stream.integers(rows, list(sizes) * WRONG).reshape(len(rows), WRONG, len(sizes))


def _draw_hard(
    sizes: tuple[int, ...], right: Whole, related: NDArray[np.bool_], stream: Stream, rows: Whole
) -> Whole:
    """(n, 5, f): the right answer with one related factor changed and unrelated factors drawn at random.

    disentanglement_lib redraws random related factors until one has changed. So factor j is the changed one
    with a probability proportional to (sizes[j] - 1) / sizes[j], and its new value is uniform.
    """
    n, factors = len(rows), len(sizes)
    values = np.array(sizes)
    shares = np.where(related, (values - 1) / values, 0.0)
    ends = np.cumsum(shares, axis=1)
    at = stream.child("changed").uniform(rows, WRONG) * ends[:, -1:]
    changed = (at[..., None] >= ends[:, None]).sum(axis=-1)
    drawn = stream.integers(rows, list(sizes) * WRONG).reshape(n, WRONG, factors)
    shift = 1 + stream.child("shift").integers(rows, list(values - 1) * WRONG).reshape(n, WRONG, factors)
    base = np.broadcast_to(right[:, None], drawn.shape)
    is_changed = changed[..., None] == np.arange(factors)
    return np.where(is_changed, (base + shift) % values, np.where(related[:, None], base, drawn))


def panel_rows(grid: PanelGrid, matrices: Matrices, stream: Stream) -> Whole:
    """(n, 14): rows of the table of panels, context first; each panel shows one of its variants."""
    panels = np.concatenate([matrices.context, matrices.answers], axis=1)
    shown = stream.child("variants").integers(len(panels), [grid.variants] * panels.shape[1])
    return grid.rows(panels, shown)
