"""How often the report is wrong: `python benchmarks/report_statistics.py [--processes 16] [--out FILE.csv]`.

Studies of two shapes (methods x settings x seeds) are simulated. Coverage is the share of studies whose 95%
interval holds the true value; errors are the share of studies of pure noise in which the report claims
something. Settings have effects of 0 or 1 standard deviations of the seeds. Intervals over seeds are about
the same settings (the truth is that of very many seeds); intervals over settings are about all settings of
the kind. The exact coverage of the difference of two methods with two settings is 97.7%
(`tests/report/test_best.py`), close to the limit of 98%, so that it gets ten times as many studies.
"""

from __future__ import annotations

import os

os.environ.update(dict.fromkeys(["OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"], "1"))

import argparse
import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import product
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from unweave.report.best import best_methods, mean_difference
from unweave.report.chosen import SETTINGS, mean_choices
from unweave.report.findings import WEAK
from unweave.report.rank_correlation import correlations, mean_correlations
from unweave.report.statistics import interquartile_mean, mean_interval
from unweave.report.tables import regularisation_change
from unweave.report.transfer import transfer
from unweave.report.variance import mean_shares, variance_shares
from unweave.streams import Stream

SHAPES = ((2, 2, 2), (6, 6, 5))
EFFECTS = (0.0, 1.0)
DESIGNS = 10  # draws of the effects of settings; studies take turns
MANY = 400  # seeds that stand for very many
SCORES = ["a", "b", "c"]
RESAMPLES = 200
FEW_RESAMPLES = 2  # where only the estimate is of interest
MORE = {"difference of methods": 10}  # times as many studies

Truth = NDArray[np.float64]
# `map`, or that of a pool of processes.
Map: TypeAlias = Callable[[Callable[[int], Any], Iterable[int]], Iterable[Any]]


class Shape(NamedTuple):
    """The size of a study on one data set."""

    methods: int
    settings: int
    seeds: int

    def __str__(self) -> str:
        return f"{self.methods}x{self.settings}x{self.seeds}"


class Interval(NamedTuple):
    """Numbers that an interval of the report is about, with its bounds."""

    estimate: Truth
    low: Truth
    high: Truth


def study(shape: Shape, effect: float, design: int, noise: Stream, data: int = 1) -> pd.DataFrame:
    """Runs of a study: three scores that are correlated by effects of settings and by those of seeds."""
    places = product(range(data), range(shape.methods), range(shape.settings), range(shape.seeds))
    rows = np.array(list(places))
    settings = data * shape.methods * shape.settings
    effects = Stream.of(1).child("effects", design).normal(settings, len(SCORES) + 1)
    values = noise.normal(len(rows), len(SCORES) + 1)
    both = effect * np.repeat(effects, shape.seeds, axis=0) + values
    runs = pd.DataFrame(
        {
            "data": [f"d{row[0]}" for row in rows],
            "method": [f"m{row[1]}" for row in rows],
            "setting": [f"s={row[2]}" for row in rows],
            "strength": rows[:, 2].astype(float),
            "seed": rows[:, 3],
        }
    )
    shared = both[:, -1]
    return runs.assign(**{name: both[:, i] + (i < 2) * shared for i, name in enumerate(SCORES)})


def of_setting(runs: pd.DataFrame, _resamples: int) -> Interval:
    """The mean of a score over the seeds of one setting."""
    first = runs[(runs["method"] == "m0") & (runs["setting"] == "s=0")]
    return _one(*mean_interval(first["a"]))


def of_method(runs: pd.DataFrame, resamples: int) -> Interval:
    """The interquartile mean of the runs of a method."""
    part = runs[runs["method"] == "m0"]
    return _one(*mean_interval(part["a"], interquartile_mean, strata=part["setting"], resamples=resamples))


def of_correlation(runs: pd.DataFrame, resamples: int) -> Interval:
    """The rank correlations of scores."""
    table = correlations(runs, SCORES, resamples=resamples).table
    return _columns(table, "estimate")


def of_mean_correlation(runs: pd.DataFrame, resamples: int) -> Interval:
    """The mean of the correlations of one score with others."""
    result = correlations(runs, ["a"], ["b", "c"], resamples=resamples)
    return _columns(mean_correlations(result, ["first"]), "estimate")


def of_change(runs: pd.DataFrame, _resamples: int) -> Interval:
    """The change of a score from the weakest to the strongest setting."""
    change = regularisation_change(runs, "a")
    return _one(*change.difference) if change else _one(np.nan, np.nan, np.nan)


def of_shares(runs: pd.DataFrame, _resamples: int) -> Interval:
    """Shares of variance."""
    shares = mean_shares(runs, SCORES)
    return Interval(*np.array([shares[name] for name in ("method", "setting", "seed")]).T)


def of_transfer(runs: pd.DataFrame, _resamples: int) -> Interval:
    """The probability that a chosen setting beats another one."""
    return _columns(transfer(runs, SCORES[:2], subsets=max(_resamples // 2, 3)), "probability")


def of_choices(runs: pd.DataFrame, _resamples: int) -> Interval:
    """The share of other settings that the one chosen by c beats."""
    table = mean_choices(runs, ["c"], ["a", "b"])
    return _columns(table[table["among"] == SETTINGS], "beats")


def of_difference(runs: pd.DataFrame, _resamples: int) -> Interval:
    """The difference of two methods, over settings."""
    means = runs.groupby(["method", "setting"])["a"].mean()
    return _one(*mean_difference(means["m0"], means["m1"]).interval)


def _one(estimate: float, low: float, high: float) -> Interval:
    return Interval(np.array([estimate]), np.array([low]), np.array([high]))


def _columns(table: pd.DataFrame, name: str) -> Interval:
    return Interval(*table[[name, "low", "high"]].to_numpy(float).T)


# For each interval the function, the number of data sets, and whether the truth is about other settings too.
INTERVALS: dict[str, tuple[Callable[[pd.DataFrame, int], Interval], int, bool]] = {
    "mean of a setting": (of_setting, 1, False),
    "interquartile mean of a method": (of_method, 1, False),
    "rank correlation": (of_correlation, 1, False),
    "mean rank correlation": (of_mean_correlation, 2, False),
    "change with regularisation": (of_change, 2, False),
    "share of variance": (of_shares, 2, False),
    "choice of a setting": (of_choices, 2, False),
    "difference of methods": (of_difference, 1, True),
    "transfer of settings": (of_transfer, 2, True),
}


def interval_of_study(name: str, shape: Shape, effect: float, number: int) -> Interval:
    """The interval of one simulated study."""
    interval_of, data, of_all_settings = INTERVALS[name]
    design = 1000 + number if of_all_settings else number % DESIGNS
    return interval_of(study(shape, effect, design, Stream.of(2).child("noise", number), data), RESAMPLES)


def truth_of_design(name: str, shape: Shape, effect: float, design: int) -> Truth:
    """What very many seeds of the settings of a design would show."""
    interval_of, data, _ = INTERVALS[name]
    many = Shape(shape.methods, shape.settings, MANY)
    runs = study(many, effect, design, Stream.of(3).child(design), data)
    return interval_of(runs, FEW_RESAMPLES).estimate


def coverage(name: str, shape: Shape, effect: float, studies: int, each: Map = map) -> float:
    """The share of studies whose interval holds the truth; NaN if the report states none for this shape."""
    interval_of, _, of_all_settings = INTERVALS[name]
    results = list(each(partial(interval_of_study, name, shape, effect), range(studies)))
    if np.isnan(results[0].low).any():
        return float("nan")
    if of_all_settings or interval_of in (of_shares, of_choices):
        # The mean over studies of the same design; for differences of equal methods it is 0.
        groups = np.arange(studies) % (1 if of_all_settings else DESIGNS)
        estimates = np.array([result.estimate for result in results])
        means = np.array([estimates[groups == group].mean(0) for group in range(groups.max() + 1)])
        truths = means[groups]
    else:
        designs = range(min(DESIGNS, studies))
        by_design = list(each(partial(truth_of_design, name, shape, effect), designs))
        truths = np.array([by_design[i % DESIGNS] for i in range(studies)])
    covered = [
        (result.low <= truth) & (truth <= result.high) for result, truth in zip(results, truths, strict=True)
    ]
    return float(np.mean(covered))


def claims_about_noise(runs: pd.DataFrame) -> dict[str, bool]:
    """What the report claims about a study whose methods, settings and scores are noise."""
    shares = variance_shares(runs, SCORES)
    means = mean_correlations(correlations(runs, SCORES, resamples=RESAMPLES), ["first", "second"])
    moved = transfer(runs, SCORES[:2], subsets=100)
    return {
        "best method": bool(best_methods(runs, SCORES)["best"].any()),
        "share above chance": bool(shares[["method above chance", "setting above chance"]].any(axis=None)),
        "scores correlate": bool(((means["p"] < 0.05) & (means["estimate"].abs() >= WEAK)).any()),
        "settings transfer": bool((moved["low"] > 0.5).any()),
    }


def claims_of_study(shape: Shape, number: int) -> dict[str, bool]:
    """What the report claims about one simulated study of noise."""
    runs = study(shape, 0.0, 0, Stream.of(4).child("null", number))
    noise = Stream.of(4).child("scores", number).normal(len(runs), len(SCORES))
    return claims_about_noise(runs.assign(**dict(zip(SCORES, noise.T, strict=True))))


def noise_errors(shape: Shape, studies: int, each: Map = map) -> dict[str, float]:
    """The share of studies of noise in which the report claims something, for each claim."""
    claims = list(each(partial(claims_of_study, shape), range(studies)))
    return {name: float(np.mean([claim[name] for claim in claims])) for name in claims[0]}


def rows(studies: int, each: Map) -> Iterator[tuple[str, str, str, float, int, float]]:
    """Lines of the table: what, name, shape, effect of settings, studies, share."""
    for values in SHAPES:
        shape = Shape(*values)
        for name, share in noise_errors(shape, studies, each).items():
            yield "error", name, str(shape), 0.0, studies, share
        for name, effect in product(INTERVALS, EFFECTS):
            count = studies * MORE.get(name, 1)
            yield "coverage", name, str(shape), effect, count, coverage(name, shape, effect, count, each)


def main() -> None:
    """Print the table, and write it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--studies", type=int, default=500)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    start, lines = time.perf_counter(), []
    with get_context("spawn").Pool(options.processes) as pool:
        for line in rows(options.studies, partial(pool.map, chunksize=5)):
            lines.append(line)
            print("{:9s} {:32s} {:6s} effect {:g}, {} studies: {:.3f}".format(*line), flush=True)
    if options.out:
        columns = ["what", "name", "shape", "effect", "studies", "share"]
        table = pd.DataFrame(lines, columns=columns)
        table.to_csv(options.out, index=False, float_format="%.4g", lineterminator="\n")
    print(f"{time.perf_counter() - start:.0f} s")


if __name__ == "__main__":
    main()
