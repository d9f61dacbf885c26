"""Shares of the variance of a score: by method, by hyper-parameter and by seed, with what chance explains.

[1] Locatello et al.: Challenging common assumptions in the unsupervised learning of disentangled
representations, ICML 2019.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from unweave.errors import UnweaveError
from unweave.report.seed_noise import Split, split, variance_factor
from unweave.report.statistics import Floats, Interval, check_columns, finite, holm

SHARES = ["method", "setting", "seed"]
CHANCE = [f"{name} by chance" for name in SHARES]
LEVEL = 0.05
FEWEST_SEEDS = 3  # of each setting, for intervals


def variance_explained(values: ArrayLike, *groups: ArrayLike) -> float:
    """The share of the variance of (n,) values that lies between groups: R^2 of a one-way analysis.

    Runs belong to one group if all their labels are the same. Values that do not vary give 0. Groups explain
    something by chance: (groups - 1) / (n - 1) of pure noise on average, much where groups are small.

    >>> variance_explained([0, 0, 1, 1], ["a", "a", "b", "b"])
    1.0
    """
    values = finite("values", values)
    if not groups:
        raise UnweaveError("variance_explained needs the groups of the values; got none.")
    labels = pd.DataFrame({i: np.asarray(group) for i, group in enumerate(groups)})
    if len(labels) != len(values):
        raise UnweaveError(
            f"groups must be one label for each of the {len(values)} values; got {len(labels)}."
        )
    if values.min() == values.max():
        return 0.0
    return _explained(values, _numbers(labels.groupby(list(labels), dropna=False, sort=False)))


def _numbers(groups: Any) -> NDArray[np.int64]:
    """The number of each row's group."""
    return np.asarray(groups.ngroup(), np.int64)


def _explained(values: Floats, code: NDArray[np.int64]) -> float:
    """The share of the variance of values that lies between groups, which are numbered from 0."""
    deviations = values - values.mean()
    total, counts = deviations @ deviations, np.bincount(code)
    between = np.bincount(code, deviations)[counts > 0] ** 2 / counts[counts > 0]
    return min(float(between.sum() / total), 1.0) if total > 0 else 0.0


def variance_shares(runs: pd.DataFrame, scores: Sequence[str]) -> pd.DataFrame:
    """Shares of variance by method, setting and seed: a row for each data set and score.

    Columns: runs, and three shares of the variance that add up to 1 where the score varies. `method` is what
    the method explains; `setting` what method and setting explain beyond that; `seed` is the rest. In [1]
    the method explains `method` and the method with its hyper-parameters `method + setting`.

    The columns "... by chance" are the mean shares if scores were noise: the degrees of freedom of each part
    over n - 1. `method p` and `setting p` are the p-values of F-tests of more than chance: of methods against
    settings (nested) and of settings against seeds; NaN where a part has no degree of freedom. "method above
    chance" and "setting above chance" are their verdicts after Holm over all rows and both tests: if scores
    are noise, any of them is true with probability 5% at most.
    """
    check_columns(runs, ("data", "method", "setting", *scores))
    rows = []
    for data, of_data in runs.groupby("data", observed=True):
        for score in scores:
            known = of_data[of_data[score].notna()]
            if len(known):
                rows.append((data, score, len(known), *_shares(known, score)))
    tests = [f"{name} p" for name in SHARES[:2]]
    table = pd.DataFrame(rows, columns=["data", "score", "runs", *SHARES, *CHANCE, *tests])
    adjusted = holm(table[tests].to_numpy(float).ravel()).reshape(-1, 2)
    for i, name in enumerate(SHARES[:2]):
        table[f"{name} above chance"] = adjusted[:, i] < LEVEL
    return table


def _shares(known: pd.DataFrame, score: str) -> tuple[float, ...]:
    """Three shares, three shares by chance, and two p-values."""
    by_method = variance_explained(known[score], known["method"])
    by_both = variance_explained(known[score], known["method"], known["setting"])
    varies = known[score].nunique() > 1
    shares = np.array([by_method, by_both - by_method, 1 - by_both if varies else 0.0])
    methods, settings = known["method"].nunique(), known.groupby(["method", "setting"]).ngroups
    freedom = np.array([methods - 1, settings - methods, len(known) - settings])
    # Methods are tested against their settings, or against seeds if each method has one setting.
    tests = [_p_value(shares, freedom, 0, 1 if freedom[1] else 2), _p_value(shares, freedom, 1, 2)]
    return (*shares, *(freedom / max(len(known) - 1, 1)), *(tests if varies else (np.nan, np.nan)))


def _p_value(shares: NDArray[np.float64], freedom: NDArray[np.int64], part: int, rest: int) -> float:
    """The p-value of the F-test of one part of the variance against another."""
    from scipy.stats import f

    if not freedom[part] or not freedom[rest]:
        return float("nan")
    if shares[rest] < 1e-12:  # rounding
        return 0.0 if shares[part] > 1e-12 else 1.0
    ratio = shares[part] / freedom[part] / (shares[rest] / freedom[rest])
    return float(f.sf(ratio, freedom[part], freedom[rest]))


class _Cell(NamedTuple):
    """One score on one data set: values, method and setting as numbers, and each run's place in a setting."""

    data: Any
    rows: NDArray[np.int64]  # numbers of the runs in the data set
    values: Floats
    method: NDArray[np.int64]
    setting: NDArray[np.int64]
    place: NDArray[np.int64]

    def shares(self, without: int = -1) -> Floats:
        """Shares of method, setting and seed, without the runs at one place."""
        rows = self.place != without
        values = self.values[rows]
        by_method, by_both = (_explained(values, code[rows]) for code in (self.method, self.setting))
        rest = 1 - by_both if np.ptp(values) > 0 else 0.0
        return np.array([by_method, by_both - by_method, rest])


def mean_shares(runs: pd.DataFrame, scores: Sequence[str]) -> dict[str, Interval]:
    """The shares of method, setting and seed, on the mean over data sets and scores, with their intervals.

    The intervals of 95% are of a jackknife over seeds, which are left out one after the other in all
    settings, data sets and scores; `seed_noise` corrects its variance. They say what another study of the
    same size with other seeds would have. They are NaN if some setting has fewer than three seeds.
    """
    from scipy.stats import t

    cells = list(_cells(runs, scores))
    if not cells:
        return dict.fromkeys(SHARES, Interval(np.nan, np.nan, np.nan))
    estimates, reach = np.mean([cell.shares() for cell in cells], axis=0), np.full(3, np.nan)
    if min(int(np.bincount(cell.setting).min()) for cell in cells) >= FEWEST_SEEDS:
        seeds = max(int(cell.place.max()) + 1 for cell in cells)
        left = [np.mean([cell.shares(seed) for cell in cells], axis=0) for seed in range(seeds)]
        variances = np.var(left, axis=0) * (seeds - 1) * variance_factor(_splits(cells), seeds)
        reach = np.sqrt(variances) * float(t.ppf(0.975, seeds - 1))
    low, high = (np.clip(estimates + sign * reach, 0, 1) for sign in (-1, 1))
    return {
        name: Interval(float(estimates[i]), float(low[i]), float(high[i])) for i, name in enumerate(SHARES)
    }


def _cells(runs: pd.DataFrame, scores: Sequence[str]) -> Iterator[_Cell]:
    for data, of_data in runs.groupby("data", observed=True):
        for score in scores:
            rows = np.flatnonzero(of_data[score].notna())
            if len(rows):
                known = of_data.iloc[rows]
                groups = [
                    known.groupby(keys, observed=True, sort=False)
                    for keys in (["method"], ["method", "setting"])
                ]
                values, place = known[score].to_numpy(float), np.asarray(groups[1].cumcount(), np.int64)
                yield _Cell(data, rows, values, _numbers(groups[0]), _numbers(groups[1]), place)


def _splits(cells: Sequence[_Cell]) -> list[list[Split]]:
    """The scores of each data set, split into their parts."""
    by_data: dict[Any, list[_Cell]] = {}
    for cell in cells:
        by_data.setdefault(cell.data, []).append(cell)
    sizes = {data: max(int(cell.rows.max()) + 1 for cell in part) for data, part in by_data.items()}
    return [
        [split(cell.values, cell.method, cell.setting, cell.rows, sizes[data]) for cell in part]
        for data, part in by_data.items()
    ]
