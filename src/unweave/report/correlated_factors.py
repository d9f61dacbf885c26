"""Scores of runs that were trained on correlated factors, measured on all combinations of factors.

Conditions of a data set are ordered from no correlation to the strongest one: by the number of correlated
pairs, then by sigma, of which a small one is strong.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

import pandas as pd

from unweave.data.conditions.parser import PAINTS
from unweave.report.names import measured, setting_labels
from unweave.report.statistics import Interval, mean_interval
from unweave.results import RUN_COLUMNS

PAIR = re.compile(r"[^~=]+~[^~=]+=(\d+(?:\.\d+)?(?:[eE][-+]?\d+)?)")
NONE = "none"  # the condition of data without correlations
NO_MEAN = Interval(float("nan"), float("nan"), float("nan"))
KEY = ["source", "method", "setting", "seed"]
COLUMNS = ["data", "condition", "pairs", "sigma", "method", "score", "runs", "mean", "low", "high"]
COLUMNS += ["difference", "difference low", "difference high"]


class Correlated(NamedTuple):
    """What the name of a data set says: the data set, its correlations, pairs of factors, the smallest sigma.

    Colour and noise are a part of the data set.
    """

    base: str
    condition: str
    pairs: int
    sigma: float


def correlation_of(name: str) -> Correlated | None:
    """The correlations in the name of a data set; None if it has other conditions.

    >>> correlation_of("dsprites:x~y=0.2"), correlation_of("dsprites:hold(x=0)")
    (Correlated(base='dsprites', condition='x~y=0.2', pairs=1, sigma=0.2), None)
    """
    base, *clauses = name.split(":")
    if clauses and clauses[0] in PAINTS:
        base = f"{base}:{clauses.pop(0)}"
    if not clauses:
        return Correlated(base, NONE, 0, float("inf"))
    matches = [PAIR.fullmatch(clause) for clause in clauses]
    sigmas = [float(match[1]) for match in matches if match is not None]
    return Correlated(base, ":".join(clauses), len(sigmas), min(sigmas)) if all(matches) else None


def runs_on_all(training: pd.DataFrame, on_all: pd.DataFrame, scores: Sequence[str]) -> pd.DataFrame:
    """One row for each run, score and value on all combinations, with `base`, `condition`, `pairs`, `sigma`.

    Scores of data without correlations are those on their training data, which are all combinations. Data
    sets without correlated runs, and those without uncorrelated ones, are left out.
    """
    names = pd.concat([training["data"], on_all["data"]]).unique()
    known = {str(name): correlation_of(str(name)) for name in names}
    uncorrelated = [name for name, found in known.items() if found is not None and not found.pairs]
    plain = training[training["data"].isin(uncorrelated)]
    runs = pd.concat([plain, on_all], ignore_index=True)
    runs = runs[runs["data"].map(lambda name: known[name] is not None)]
    described = pd.DataFrame([known[name] for name in runs["data"]], index=runs.index, columns=_FIELDS)
    counts = described.groupby("base")["pairs"].agg(["min", "max"])
    bases = counts[(counts["min"] == 0) & (counts["max"] > 0)].index
    runs = runs.join(described)[described["base"].isin(bases)]
    present = measured(runs, scores)
    return runs.melt([*RUN_COLUMNS, *_FIELDS], present, "score", "value").dropna(subset=["value"])


_FIELDS = list(Correlated._fields)


def differences(values: pd.DataFrame) -> pd.DataFrame:
    """The values of correlated runs with `difference`: less that of the same setting and seed without."""
    key = [*KEY, "base", "score"]
    plain = values[values["pairs"] == 0].set_index(key)["value"].rename("without")
    paired = values[values["pairs"] > 0].join(plain, on=key).dropna(subset=["without"])
    return paired.assign(difference=paired["value"] - paired["without"])


def conditions_of(values: pd.DataFrame, base: str) -> list[str]:
    """The conditions of a data set, from no correlation to the strongest one."""
    kinds = values.loc[values["base"] == base, ["condition", "pairs", "sigma"]].drop_duplicates()
    return list(kinds.sort_values(["pairs", "sigma"], ascending=[True, False])["condition"])


def condition_table(values: pd.DataFrame) -> pd.DataFrame:
    """For each data set, condition, method and score: mean with interval, and the difference to none.

    Data without a correlation have no sigma (NaN).
    """
    paired = differences(values).set_index(["base", "condition", "method", "score"]).sort_index()
    rows = []
    for base in dict.fromkeys(values["base"]):
        for condition in conditions_of(values, base):
            part = values[(values["base"] == base) & (values["condition"] == condition)]
            for (method, score), group in part.groupby(["method", "score"], sort=False):
                pairs, sigma = int(group["pairs"].iloc[0]), float(group["sigma"].iloc[0])
                mean = mean_interval(group["value"], strata=group["setting"])
                key = (base, condition, method, score)
                change = _mean_difference(paired.loc[[key]].reset_index()) if key in paired.index else NO_MEAN
                rows.append((base, condition, pairs, sigma, method, score, len(group), *mean, *change))
    table = pd.DataFrame(rows, columns=COLUMNS)
    return table.assign(sigma=table["sigma"].where(table["pairs"] > 0))


def strongest_differences(values: pd.DataFrame) -> pd.DataFrame:
    """For each score: the mean difference of the strongest correlation to none, over all data and methods."""
    paired = differences(values)
    last = {base: conditions_of(values, base)[-1] for base in dict.fromkeys(values["base"])}
    strongest = paired[paired["condition"] == paired["base"].map(last)]
    rows = [
        (score, len(part), part["without"].mean(), part["value"].mean(), *_mean_difference(part))
        for score, part in strongest.groupby("score", sort=False)
    ]
    return pd.DataFrame(rows, columns=["score", "runs", "without", "with", "difference", "low", "high"])


def _mean_difference(paired: pd.DataFrame) -> Interval:
    strata = (paired["data"] + " " + setting_labels(paired)).to_numpy()
    return mean_interval(paired["difference"], strata=strata)
