"""The tables of the report: pure functions of runs, one row a run as `unweave.results.wide` has them.

Every figure has its numbers in one of these. Intervals are of 95%: t-intervals of means, those of
`unweave.report.rank_correlation` for rank correlations.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations, product
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from unweave.report.names import data_sets, methods, regularisation_steps, strength_names
from unweave.report.rank_correlation import correlations, spearman
from unweave.report.statistics import Floats, Interval, interquartile_mean, mean_interval
from unweave.streams import Stream

RESAMPLES = 1000
SETTING = ["method", "setting"]


def by_data(runs: pd.DataFrame) -> Iterator[tuple[str, pd.DataFrame]]:
    """The runs of each data set, in the order of the figures."""
    for data in data_sets(runs):
        yield data, runs[runs["data"] == data]


def quartiles(groups: Any) -> pd.DataFrame:
    """For each group of values: min, lower quartile, median, upper quartile, max."""
    summary: pd.DataFrame = groups.quantile([0, 0.25, 0.5, 0.75, 1]).unstack()
    summary.columns = pd.Index(["min", "lower quartile", "median", "upper quartile", "max"])
    return summary.dropna()


def method_table(runs: pd.DataFrame, scores: Sequence[str], seed: int | Stream = 0) -> pd.DataFrame:
    """For each data set, method and score: the interquartile mean over all its runs, and its interval."""
    rows = []
    for data, of_data in by_data(runs):
        for method, score in product(methods(of_data), scores):
            of_method = of_data[of_data["method"] == method]
            known = of_method[of_method[score].notna()]
            if len(known):
                stream = Stream.of(seed).child("method", data, method, score)
                interval = mean_interval(
                    known[score],
                    interquartile_mean,
                    strata=known["setting"],
                    resamples=RESAMPLES,
                    seed=stream,
                )
                spread = known[score].agg(["min", "median", "max"])
                rows.append((data, method, score, len(known), *interval, *spread))
    columns = ["data", "method", "score", "runs", "interquartile mean", "low", "high", "min", "median", "max"]
    return pd.DataFrame(rows, columns=columns)


def setting_table(runs: pd.DataFrame, scores: Sequence[str]) -> pd.DataFrame:
    """For each data set, setting and score: the mean over seeds, its interval, and the spread of seeds."""
    rows = []
    keys = ["data", *SETTING, "strength"]
    for key, group in runs.groupby(keys, observed=True, sort=False, dropna=False):
        for score in scores:
            values = group[score].dropna().to_numpy()
            if len(values):
                interval = mean_interval(values)
                spread = (values.std(), values.min(), np.median(values), values.max())
                rows.append((*key, score, len(values), *interval, *spread))
    columns = [*keys, "score", "runs", "mean", "low", "high", "std", "min", "median", "max"]
    return pd.DataFrame(rows, columns=columns)


def correlation_table(
    runs: pd.DataFrame, first: Sequence[str], second: Sequence[str] | None = None, seed: int | Stream = 0
) -> pd.DataFrame:
    """Spearman's correlation, with its interval, of each two scores, or of each first with each second.

    One row for each data set and pair: data, first, second, runs, estimate, low, high.
    """
    return correlations(runs, first, second, resamples=RESAMPLES, seed=seed).table


def correlation_matrix(
    table: pd.DataFrame, rows: Sequence[str], columns: Sequence[str], value: str = "estimate"
) -> pd.DataFrame:
    """A (rows, columns) matrix of the pairs of one data set in a table of correlations; 1 on a diagonal."""
    matrix = pd.DataFrame(np.nan, index=list(rows), columns=list(columns))
    for row in table.itertuples():
        for a, b in ((row.first, row.second), (row.second, row.first)):
            if a in matrix.index and b in matrix.columns:
                matrix.loc[a, b] = getattr(row, value)
    for name in set(rows) & set(columns) & {*table["first"], *table["second"]}:
        matrix.loc[name, name] = 1.0
    return matrix


def setting_curves(parts: Mapping[str, pd.DataFrame], scores: Mapping[str, str]) -> pd.DataFrame:
    """Quartiles of a score for each data set, method and strength of regularisation.

    `parts` are runs by the name of a row of the figure, and `scores` the score of each row. Columns: row,
    data, method, strength name (the setting that the strength is the value of), step (the place of the
    strength, 0 for the weakest regularisation), strength, runs, lower quartile, median, upper quartile.
    """
    columns = ["row", "data", "method", "strength name", "step", "strength", "runs"]
    columns += ["lower quartile", "median", "upper quartile"]
    tables = []
    for row, runs in parts.items():
        known = runs[runs[scores[row]].notna()].assign(step=regularisation_steps(runs))
        if known.empty:
            continue
        keys = ["data", "method", "step", "strength"]
        groups = known.groupby(keys, observed=True, sort=False, dropna=False)[scores[row]]
        spread = quartiles(groups).assign(runs=groups.size()).reset_index()
        spread["row"], spread["strength name"] = row, spread["method"].map(strength_names(runs))
        tables.append(spread)
    return pd.concat(tables, ignore_index=True)[columns] if tables else pd.DataFrame(columns=columns)


class Change(NamedTuple):
    """The mean of a score at the weakest and at the strongest regularisation, and their difference."""

    weakest: float
    strongest: float
    difference: Interval


def regularisation_change(runs: pd.DataFrame, score: str) -> Change | None:
    """How a score changes from the weakest to the strongest regularisation; None if no method has two.

    Means over data sets and methods of the means over seeds, with a t-interval of 95% over seeds. Its degrees
    of freedom are the runs less the settings; it is NaN if a setting has one run.
    """
    from scipy.stats import t

    known = runs[runs[score].notna()].assign(step=regularisation_steps(runs))
    parts = []
    for _, cell in known.groupby(["data", "method"], observed=True, sort=False):
        ends = [cell.loc[cell["step"] == end(cell["step"]), score].to_numpy(float) for end in (min, max)]
        if cell["step"].nunique() > 1:
            parts.append([(side.mean(), _variance(side), len(side)) for side in ends])
    if not parts:
        return None
    means, variances, counts = np.moveaxis(np.array(parts), -1, 0)
    weakest, strongest = means.mean(0)
    errors = variances / counts
    error = np.sqrt(errors.sum()) / len(parts)
    reach = float(t.ppf(0.975, (counts - 1).sum()) * error)
    change = float(strongest - weakest)
    return Change(float(weakest), float(strongest), Interval(change, change - reach, change + reach))


def _variance(values: Floats) -> float:
    return float(values.var(ddof=1)) if len(values) > 1 else float("nan")


def both_codes(mean: pd.DataFrame, sampled: pd.DataFrame, score: str) -> pd.DataFrame:
    """The score of mean and of sampled codes of the runs that have both: columns "mean" and "sampled"."""
    columns = ["run", "data", "method", "setting", "strength", "seed"]
    left = mean[[*columns, score]].rename(columns={score: "mean"})
    right = sampled[["run", score]].rename(columns={score: "sampled"})
    return left.merge(right, on="run").dropna(subset=["mean", "sampled"]).reset_index(drop=True)


def setting_means(runs: pd.DataFrame, score: str) -> pd.DataFrame:
    """(settings, data sets): the mean of a score over seeds; settings in the order of the runs."""
    groups = runs.groupby([*SETTING, "strength", "data"], observed=True, sort=False, dropna=False)
    return groups[score].mean().unstack("data").reindex(columns=data_sets(runs))


def transfer_correlations(runs: pd.DataFrame, scores: Sequence[str]) -> pd.DataFrame:
    """For each score and two data sets: Spearman's correlation of the means of settings that both have."""
    rows = []
    for score in scores:
        means = setting_means(runs, score)
        for first, second in combinations(means.columns, 2):
            shared = means[[first, second]].dropna()
            if len(shared) > 2:
                rows.append((score, first, second, len(shared), spearman(shared[first], shared[second])))
    return pd.DataFrame(rows, columns=["score", "first", "second", "settings", "estimate"])


def seed_spread(runs: pd.DataFrame, scores: Sequence[str]) -> pd.DataFrame:
    """For each data set and score: the spread over seeds and that over settings.

    `seed std` is the median, over settings, of the standard deviation over seeds; `setting std` the standard
    deviation of the means of settings; `overlap` the share of pairs of settings whose ranges over seeds
    have values in common: there a lucky run of the worse one beats an unlucky run of the better one.
    """
    rows = []
    for data, of_data in by_data(runs):
        for score in scores:
            groups = of_data[of_data[score].notna()].groupby(SETTING, observed=True, sort=False)[score]
            spread = groups.agg(["mean", "min", "max", "size"])
            spread["std"] = groups.std(ddof=0)
            spread = spread[spread["size"] > 1]
            if len(spread) < 2:
                continue
            low, high = spread["min"].to_numpy(), spread["max"].to_numpy()
            upper = np.triu_indices(len(spread), 1)
            overlap = ((low[:, None] <= high) & (low <= high[:, None]))[upper].mean()
            numbers = (spread["std"].median(), spread["mean"].std(ddof=0), overlap)
            rows.append((data, score, len(spread), int(spread["size"].sum()), *numbers))
    return pd.DataFrame(
        rows, columns=["data", "score", "settings", "runs", "seed std", "setting std", "overlap"]
    )
