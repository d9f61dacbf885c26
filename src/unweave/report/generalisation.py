"""What runs lose on held-out combinations of factors, and on which metrics that depends.

Each run has its scores on training data and on what was held out, so differences are paired by run.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import pandas as pd

from unweave.report.names import data_sets, measured, methods, setting_labels
from unweave.report.statistics import mean_interval
from unweave.results import RUN_COLUMNS

# Measured by `unweave.evaluation.generalisation` in studies on held-out combinations.
ACCURACY, R2 = "generalisation.accuracy", "generalisation.r2"
RECONSTRUCTION, SQUARED_ERROR = "generalisation.reconstruction", "generalisation.squared_error"
MEASURES = (ACCURACY, R2, RECONSTRUCTION, SQUARED_ERROR)
# Scores of a predictor itself. It is fitted on training combinations, so it is the same on both parts.
OF_THE_FIT = re.compile(r"(dci\w*\.(disentanglement|completeness)|unified_importance\.\w+)")
NUMBERS = ["runs", "training", "held out", "difference", "low", "high"]


def comparable_scores(scores: Iterable[str]) -> list[str]:
    """The scores that are measured on held-out combinations, and not on what is fitted.

    >>> comparable_scores(["mig", "dci.disentanglement", "dci.informativeness_test"])
    ['mig', 'dci.informativeness_test']
    """
    return [name for name in scores if not OF_THE_FIT.fullmatch(name)]


def held_out_pairs(training: pd.DataFrame, held_out: pd.DataFrame, scores: Sequence[str]) -> pd.DataFrame:
    """One row for each run and score that is known on both parts: what describes the run, score, both values.

    The columns are those of runs, `score`, `training`, `held out`, and `difference`: held out less training.
    """
    names = measured(held_out, measured(training, scores))
    parts = []
    for name in names:
        values = held_out.set_index(["source", "run"])[name].rename("held out")
        both = training[[*RUN_COLUMNS, name]].rename(columns={name: "training"})
        parts.append(both.join(values, on=["source", "run"]).assign(score=name))
    if not parts:
        return pd.DataFrame(columns=[*RUN_COLUMNS, "score", *NUMBERS[1:4]])
    pairs = pd.concat(parts, ignore_index=True).dropna(subset=["training", "held out"])
    return pairs.assign(difference=pairs["held out"] - pairs["training"])


def held_out_table(pairs: pd.DataFrame) -> pd.DataFrame:
    """For each data set, method and score: means on both parts, and their difference with its interval."""
    rows = []
    for data in data_sets(pairs):
        of_data = pairs[pairs["data"] == data]
        for method in methods(of_data):
            of_method = of_data[of_data["method"] == method]
            for score, part in of_method.groupby("score", sort=False):
                rows.append((data, method, score, *_numbers(part)))
    return pd.DataFrame(rows, columns=["data", "method", "score", *NUMBERS])


def held_out_means(pairs: pd.DataFrame) -> pd.DataFrame:
    """For each score the same over all data sets and methods."""
    rows = [(score, *_numbers(part)) for score, part in pairs.groupby("score", sort=False)]
    return pd.DataFrame(rows, columns=["score", *NUMBERS])


def _numbers(pairs: pd.DataFrame) -> tuple[float, ...]:
    """Number of runs, both means, and the mean difference with its t-interval over seeds of a setting."""
    strata = (pairs["data"] + " " + setting_labels(pairs)).to_numpy()
    means = pairs["training"].mean(), pairs["held out"].mean()
    return len(pairs), *means, *mean_interval(pairs["difference"], strata=strata)


def with_losses(runs: pd.DataFrame, pairs: pd.DataFrame, score: str, name: str) -> pd.DataFrame:
    """The runs that have a difference of that score, with a column of that name for it."""
    differences = pairs[pairs["score"] == score].set_index(["source", "run"])["difference"].rename(name)
    return runs.join(differences, on=["source", "run"]).dropna(subset=[name])
