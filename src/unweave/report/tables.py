"""The tables of the report: pure functions of runs, one row a run as `unweave.results.wide` has them.

Every figure has its numbers in one of these. Intervals are of 95%. They are bootstrapped over runs, within
settings that have ten seeds or more; fewer than ten values have t-intervals or those of Fisher's z.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations, product
from typing import Any

import numpy as np
import pandas as pd

from unweave.report.names import data_sets, measured, methods, regularisation_steps
from unweave.report.statistics import (
    FEW,
    interquartile_mean,
    large_strata,
    small_sample_interval,
    small_spearman_interval,
    spearman,
    spearman_intervals,
)
from unweave.streams import Stream

RESAMPLES = 1000
SETTING = ["method", "setting"]


def by_data(runs: pd.DataFrame) -> Iterator[tuple[str, pd.DataFrame]]:
    """The runs of each data set, in the order of the figures."""
    for data in data_sets(runs):
        yield data, runs[runs["data"] == data]


def setting_labels(runs: pd.DataFrame) -> pd.Series[str]:
    """One label for each method with its setting."""
    return runs["method"] + " " + runs["setting"]


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
                interval = small_sample_interval(
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


def setting_table(runs: pd.DataFrame, scores: Sequence[str], seed: int | Stream = 0) -> pd.DataFrame:
    """For each data set, setting and score: the mean over seeds, its interval, and the spread of seeds."""
    rows = []
    keys = ["data", *SETTING, "strength"]
    for key, group in runs.groupby(keys, observed=True, sort=False, dropna=False):
        for score in scores:
            values = group[score].dropna().to_numpy()
            if len(values):
                stream = Stream.of(seed).child("setting", *map(str, key[:3]), score)
                interval = small_sample_interval(values, resamples=RESAMPLES, seed=stream)
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
    wanted = list(combinations(first, 2)) if second is None else list(product(first, second))
    parts = []
    for data, of_data in by_data(runs):
        names = measured(of_data, dict.fromkeys([*first, *(second or ())]))
        if len(names) < 2:
            continue
        settings = setting_labels(of_data)
        correlations = spearman_intervals(
            of_data[names],
            strata=settings if large_strata(settings) else None,
            resamples=RESAMPLES,
            seed=Stream.of(seed).child("correlation", data),
        )
        known = of_data[names].notna().astype(int)
        together = known.T @ known
        correlations.insert(0, "data", data)
        correlations.insert(
            3,
            "runs",
            [together.loc[a, b] for a, b in zip(correlations["first"], correlations["second"], strict=True)],
        )
        correlations = _with_small_intervals(correlations)
        pairs = list(zip(correlations["first"], correlations["second"], strict=True))
        parts.append(correlations[[pair in wanted or pair[::-1] in wanted for pair in pairs]])
    columns = ["data", "first", "second", "runs", "estimate", "low", "high"]
    return pd.concat(parts, ignore_index=True)[columns] if parts else pd.DataFrame(columns=columns)


def _with_small_intervals(correlations: pd.DataFrame) -> pd.DataFrame:
    """The table with intervals by Fisher's z where a bootstrap has too few runs."""
    bounds = [
        small_spearman_interval(estimate, runs)[1:] if runs < FEW else (low, high)
        for estimate, runs, low, high in zip(
            *(correlations[name].tolist() for name in ("estimate", "runs", "low", "high")), strict=True
        )
    ]
    lows, highs = zip(*bounds, strict=True)
    return correlations.assign(low=lows, high=highs)


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


def regularisation_table(codes: dict[str, pd.DataFrame], score: str) -> pd.DataFrame:
    """For each representation, data set, method and strength of regularisation: quartiles of a score."""
    parts = []
    for representation, runs in codes.items():
        if score not in measured(runs, [score]):
            continue
        known = runs[runs[score].notna()].assign(step=regularisation_steps(runs))
        groups = known.groupby(
            ["data", "method", "step", "strength"], observed=True, sort=False, dropna=False
        )
        spread = quartiles(groups[score])
        spread["runs"] = groups.size()
        parts.append(spread.assign(representation=representation).reset_index())
    columns = ["representation", "data", "method", "step", "strength", "runs"]
    columns += ["lower quartile", "median", "upper quartile"]
    return pd.concat(parts, ignore_index=True)[columns] if parts else pd.DataFrame(columns=columns)


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
