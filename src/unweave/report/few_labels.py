"""What a few labels are worth: to choose among unsupervised runs, or to train and choose.

The questions are those of Locatello et al.: Disentangling factors of variation using few labels, ICLR 2020.
All choices are made among the runs of one seed on one data set. An unsupervised run is chosen by a metric on
n labels (`few_labels.dci` by default), a semi-supervised run with n labels by its supervised loss on the
labels that it held out of training (`few_labels.xent`). Both choices of a seed are a pair.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, TypeAlias

import numpy as np
import pandas as pd

from unweave.errors import UnweaveError
from unweave.places import as_path
from unweave.report.inputs import read_results
from unweave.report.names import choosers_of, data_sets, measured, metric_scores
from unweave.report.rank_correlation import Correlations, correlations
from unweave.report.statistics import check_columns, mean_interval, probability_of_improvement
from unweave.results import HELD_OUT_LOSSES, wide

SEMI_SUPERVISED = "s2_"  # the names of methods with labels begin like this
PERFECT = "perfect"
UNSUPERVISED = "unsupervised"
COLUMNS = ["labels", "labeller", "against", "score", "pairs", "data sets", "mean", "mean against"]
COLUMNS += ["difference", "low", "high", "improvement"]
NO_CHOICE = (
    "it needs scores of runs on a few labels, which unweave select STUDY --by few_labels computes, and a "
    "metric"
)

# The score of the chosen run, by data set and seed.
Chosen: TypeAlias = Mapping[tuple[str, int], float]


class FewLabels(NamedTuple):
    """The answers: a table for each question.

    `choice`: rank correlations of scores on few labels with metrics, over the unsupervised runs. `training`:
    semi-supervised training and choice against unsupervised training and choice. `labellers`: the same with
    imprecise labels, against perfect labels and against unsupervised training.
    """

    choice: Correlations
    training: pd.DataFrame
    labellers: pd.DataFrame


def compare_few_labels(
    study: str | Path | pd.DataFrame, scores: Sequence[str] | None = None, by: str = "dci"
) -> FewLabels:
    """Compare unsupervised runs that few labels choose with semi-supervised runs.

    `study` is the folder of a study in which `unweave select --by few_labels` has run, or a frame with a row
    a run (`unweave.results.wide`). `scores` are the metrics that choices are judged by; by default those of
    the report. `by` is the metric on few labels that chooses unsupervised runs, dci or mig.

    In the tables `training` and `labellers`, `difference` is the mean over pairs of the score of the chosen
    semi-supervised run minus that of the run that it is compared with, with a 95% t-interval over pairs.
    `improvement` is the probability that a chosen run of the first kind scores higher than one of the second
    on the same data set, ties counted half.
    """
    if by not in ("dci", "mig"):
        raise UnweaveError(f'unsupervised runs are chosen by "dci" or "mig" on few labels; got {by!r}.')
    if isinstance(study, pd.DataFrame):
        runs = study
    else:
        runs = wide(read_results([as_path(study, "the folder of a study")]).table)
    check_columns(runs, ["data", "method", "setting", "seed", *(scores or ())])
    judges = metric_scores(runs) if scores is None else measured(runs, scores)
    validation = [name for name in choosers_of(runs) if name.startswith("few_labels.")]
    if not validation or not judges:
        raise UnweaveError(f"few labels cannot be compared: {NO_CHOICE}.")
    alone, taught = _arms(runs)
    perfect = taught[taught["labeller"] == PERFECT]
    training = [
        row
        for labels in sorted(perfect["labels"].unique())
        for score in judges
        for row in _against_unsupervised(perfect[perfect["labels"] == labels], alone, score, by)
    ]
    labellers = [
        row
        for (labels, _), part in taught[taught["labeller"] != PERFECT].groupby(["labels", "labeller"])
        for score in judges
        for row in (
            *_against_perfect(part, perfect[perfect["labels"] == labels], score),
            *_against_unsupervised(part, alone, score, by),
        )
    ]
    return FewLabels(
        correlations(alone, validation, judges),
        pd.DataFrame(training, columns=COLUMNS),
        pd.DataFrame(labellers, columns=COLUMNS),
    )


def _arms(runs: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Unsupervised runs, of the same base methods where there are some, and semi-supervised runs."""
    semi = runs["method"].str.startswith(SEMI_SUPERVISED)
    taught = runs[semi].assign(
        labels=[_setting(text, "labels", "0") for text in runs.loc[semi, "setting"]],
        labeller=[_setting(text, "labeller", PERFECT) for text in runs.loc[semi, "setting"]],
    )
    taught = taught.astype({"labels": float}).astype({"labels": int})
    alone = runs[~semi]
    same_base = alone[alone["method"].isin(taught["method"].str.removeprefix(SEMI_SUPERVISED))]
    return (alone if same_base.empty else same_base), taught


def _setting(text: str, name: str, default: str) -> str:
    """The value of a setting in the text of all settings."""
    match = re.search(rf"(?:^|,){name}=([^,]+)", text)
    return match[1] if match else default


def _against_unsupervised(
    taught: pd.DataFrame, alone: pd.DataFrame, score: str, by: str
) -> list[tuple[object, ...]]:
    """A row of the comparison with unsupervised runs that as many perfect labels choose."""
    labels = int(taught["labels"].iloc[0])
    chooser = f"few_labels.{by}" if labels == 100 else f"few_labels.{by}_{labels}"
    if chooser not in alone:
        return []
    return _row(
        taught, _chosen(taught, _loss_of(taught), score), UNSUPERVISED, _chosen(alone, chooser, score), score
    )


def _against_perfect(taught: pd.DataFrame, perfect: pd.DataFrame, score: str) -> list[tuple[object, ...]]:
    """A row of the comparison with runs of perfect labels."""
    first, second = (_chosen(part, _loss_of(part), score) for part in (taught, perfect))
    return _row(taught, first, PERFECT, second, score)


def _loss_of(taught: pd.DataFrame) -> str:
    """The loss on held-out labels that some of the runs have."""
    return next(iter(measured(taught, HELD_OUT_LOSSES)), HELD_OUT_LOSSES[0])


def _chosen(pool: pd.DataFrame, chooser: str, score: str) -> Chosen:
    """The score of the run that the chooser chooses, for each data set and seed; ties are averaged."""
    if chooser not in pool:
        return {}
    known = pool.dropna(subset=[chooser, score])
    groups = known.groupby(["data", "seed"], observed=True)
    best = known[known[chooser] == groups[chooser].transform("max")]
    means = best.groupby(["data", "seed"], observed=True, as_index=False)[score].mean()
    return {
        (str(data), int(seed)): float(value)
        for data, seed, value in zip(means["data"], means["seed"], means[score], strict=True)
    }


def _row(
    taught: pd.DataFrame, first: Chosen, against: str, second: Chosen, score: str
) -> list[tuple[object, ...]]:
    """A row of the table of a comparison, or none if no seed has both choices."""
    keys = [key for key in first if key in second]
    if not keys:
        return []
    x, y = (np.array([side[key] for key in keys]) for side in (first, second))
    data = np.array([name for name, _ in keys])
    names = data_sets(pd.DataFrame({"data": data}))
    better = np.mean([probability_of_improvement(x[data == name], y[data == name]) for name in names])
    described = (int(taught["labels"].iloc[0]), str(taught["labeller"].iloc[0]), against, score)
    numbers = (len(keys), len(names), x.mean(), y.mean(), *mean_interval(x - y, strata=data), better)
    return [(*described, *numbers)]
