"""What labels see of entangled codes, and what can be seen without them: scores before and after."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unweave.errors import UnweaveError
from unweave.evaluation import Scores, evaluate
from unweave.evaluation.evaluate import POINTS
from unweave.evaluation.scores import save_figure
from unweave.impossibility.transform import Distribution, entangle
from unweave.metrics.checks import check_codes, check_codes_factors
from unweave.metrics.metric import COUNTS
from unweave.metrics.table import METRICS
from unweave.progress import Progress
from unweave.streams import Stream

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

# Scores that need no labels, and stay.
BLIND = ("total_correlation", "wasserstein_correlation_normalised", "mean_pairwise_information")


@dataclass(frozen=True, eq=False)
class Comparison:
    """Codes before and after they were entangled, and their scores.

    `before` and `after` are (n, d), `factors` (n, k). `distances` are those of `marginal_distances`.
    """

    before: NDArray[Any]
    after: NDArray[Any]
    factors: NDArray[np.int64]
    scores_before: Scores
    scores_after: Scores
    distances: NDArray[np.float64]
    code_names: tuple[str, ...]
    factor_names: tuple[str, ...]

    @property
    def chance(self) -> float:
        """The Kolmogorov-Smirnov distance that two samples of one law exceed in 5 of 100 cases."""
        return math.sqrt(-math.log(0.025) / len(self.before))

    def table(self) -> pd.DataFrame:
        """One row a quantity: quantity, labels (whether it needs them), before, after."""
        import pandas as pd

        rows: list[tuple[str, bool, float, float]] = [
            ("largest distance of marginals", False, 0.0, float(self.distances.max())),
            (
                "largest correlation",
                False,
                largest_correlation(self.before),
                largest_correlation(self.after),
            ),
        ]
        unsupervised = {metric.name for metric in METRICS if not metric.inputs.needs_factors}
        for score in self.scores_before.scores:
            last = score.name.rpartition(".")[2]
            if last not in COUNTS and "train" not in last:
                labels = score.metric not in unsupervised
                rows.append((score.name, labels, score.value, self.scores_after[score.name]))
        table = pd.DataFrame(rows, columns=["quantity", "labels", "before", "after"])
        return table.sort_values("labels", kind="stable", ignore_index=True)

    def plot(self, path: str | Path | None = None) -> Figure:
        """Draw marginals, codes, information and scores before and after; with a path, write it there too."""
        from unweave.impossibility.figure import draw

        figure = draw(self)
        if path is not None:
            save_figure(figure, path)
        return figure


def compare(
    codes: ArrayLike,
    factors: ArrayLike,
    *,
    prior: str | Distribution = "empirical",
    mixing: str | ArrayLike = "reflection",
    metrics: str | Sequence[str] = "headline",
    points: tuple[int, int] = POINTS,
    code_names: Sequence[str] = (),
    factor_names: Sequence[str] = (),
    seed: int | Stream = 0,
    tell: Progress | None = None,
) -> Comparison:
    """Entangle codes (n, d) of factors (n, k), and measure both.

    `prior`, `mixing` and `seed` are those of `entangle`; `metrics` and `points` those of
    `unweave.evaluate`. Total correlation and its like are always measured too.

    >>> factors = Stream.of(0).integers(3000, (4, 5, 6))
    >>> found = compare(factors, factors, metrics="mig")
    >>> found.scores_before["mig"] > 0.98, found.scores_after["mig"] < 0.1
    (True, True)
    """
    _, whole = check_codes_factors(codes, factors)
    before = np.asarray(codes)
    after = entangle(before, prior=prior, mixing=mixing, seed=seed)
    d, k = before.shape[1], whole.shape[1]
    asked = [*BLIND, *(metrics.split(",") if isinstance(metrics, str) else metrics)]
    scores_before, scores_after = (
        evaluate(table, whole, metrics=asked, points=points, seed=seed, tell=tell)
        for table in (before, after)
    )
    return Comparison(
        before,
        after,
        whole,
        scores_before,
        scores_after,
        marginal_distances(before, after),
        _names(code_names, d, "z", "code_names"),
        _names(factor_names, k, "v", "factor_names"),
    )


def marginal_distances(before: ArrayLike, after: ArrayLike) -> NDArray[np.float64]:
    """Return the Kolmogorov-Smirnov distance of each code's distributions, (d,): max |F(z) - F'(z)|.

    From 0 to 1. With n points each, two samples of one law exceed 1.92 / sqrt(n) in 5 of 100 cases.

    >>> marginal_distances([[0, 0], [1, 1]], [[1, 1], [0, 2]]).tolist()
    [0.0, 0.5]
    """
    first, second = np.sort(check_codes(before), axis=0), np.sort(check_codes(after, "after"), axis=0)
    if first.shape[1] != second.shape[1]:
        raise UnweaveError(f"before and after must have the same codes; got {first.shape}, {second.shape}.")
    distances = []
    for a, b in zip(first.T, second.T, strict=True):
        places = np.concatenate([a, b])
        shares = [np.searchsorted(part, places, "right") / len(part) for part in (a, b)]
        distances.append(np.abs(shares[0] - shares[1]).max())
    return np.array(distances)


def largest_correlation(codes: ArrayLike) -> float:
    """Return the largest |correlation| of two different codes; codes that never change have none.

    >>> largest_correlation([[0, 0, 1], [1, 2, 1], [2, 4, 1]])
    1.0
    """
    table = check_codes(codes)
    table = table[:, np.ptp(table, axis=0) > 0]
    if table.shape[1] < 2:
        return 0.0
    correlations = np.abs(np.corrcoef(table, rowvar=False))
    return float(correlations[~np.eye(len(correlations), dtype=bool)].max())


def _names(names: Sequence[str], count: int, letter: str, what: str) -> tuple[str, ...]:
    if names and len(names) != count:
        raise UnweaveError(f"{what} must be {count} names, one for each column; got {len(names)}.")
    return tuple(names) or tuple(f"{letter}{i}" for i in range(count))
