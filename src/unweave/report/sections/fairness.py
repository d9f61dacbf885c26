"""The section on the question: are predictions from disentangled codes fairer."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import pandas as pd

from unweave.report.adjustment import ENOUGH, NEIGHBOURS, adjusted_for
from unweave.report.best import LEVEL
from unweave.report.figures import correlations as heat_maps
from unweave.report.figures import metrics
from unweave.report.findings import CANNOT_TELL, WEAK, bounds, seed_words
from unweave.report.names import DATA, counted, data_sets, downstream_scores, label, measured, score_label
from unweave.report.rank_correlation import Correlations, correlations, mean_correlations
from unweave.report.sections.section import (
    ALL_SATURATED,
    DRAWN,
    MEANS,
    RANK_INTERVALS,
    Drawing,
    Material,
    Section,
    Sheet,
)

QUESTION = "Are predictions from disentangled codes fairer?"


class Predictor(NamedTuple):
    """Who predicts: its unfairness, the task that has its accuracy, and its name in sentences."""

    unfairness: str
    task: str
    name: str

    @property
    def adjusted(self) -> str:
        """The name of its unfairness at equal accuracy."""
        return f"{self.unfairness} (adjusted)"


PREDICTORS = (
    Predictor("fairness_trees.mean_unfairness", "downstream_trees", "boosted trees"),
    Predictor("fairness_logistic.mean_unfairness", "downstream_logistic", "logistic regression"),
)
ADJUSTED = (
    f"Adjusted: of unfairness and metric, the mean of the {NEIGHBOURS} other runs nearest in accuracy is "
    "subtracted first (Locatello et al., 2019)."
)
FEW_NEIGHBOURS = (
    f"for a claim about equal accuracy, {ENOUGH} runs of each data set: the {NEIGHBOURS} runs nearest in "
    "accuracy are not near among fewer"
)


def fairness(material: Material) -> Section | str:
    """Unfairness of predictions against metrics, as it is and at equal accuracy."""
    runs, scores = material.runs, [name for name in material.scores if not name.startswith("fairness_")]
    predictors = [predictor for predictor in PREDICTORS if measured(runs, [predictor.unfairness])]
    if not predictors or not scores or len(runs) < 3:
        return "it needs fairness_trees or fairness_logistic, a metric, and three runs"
    if not measured(material.informative, scores):
        return ALL_SATURATED
    answers = [_answer(material.informative, predictor, scores, material.seeds) for predictor in predictors]
    accuracies = list(dict.fromkeys(answer.accuracy for answer in answers if answer.accuracy))
    unfairness = [predictor.unfairness for predictor in predictors]
    table = pd.concat([answer.table for answer in answers], ignore_index=True)
    means = pd.concat([answer.means for answer in answers], ignore_index=True)
    one = data_sets(runs)[0]
    caption = (
        "Spearman's correlation of unfairness with metrics and accuracy, in hundredths. Lower is fairer, so "
        f"a negative number means that runs with a higher score are fairer. {ADJUSTED}"
    )
    pairs = f"Unfairness against metrics and accuracy on {label(one, DATA)}. {DRAWN}"
    return Section(
        "fairness",
        QUESTION,
        " ".join(answer.finding for answer in answers),
        (
            Drawing(
                "unfairness",
                material.flagged(caption, *unfairness),
                partial(heat_maps.correlations, table, _rows(table), [*scores, *accuracies]),
            ),
            Drawing(
                "unfairness_pairs",
                f"{pairs} {material.gaps(*unfairness)}".rstrip(),
                partial(
                    metrics.scores_against, runs[runs["data"] == one], unfairness, [*scores, *accuracies]
                ),
            ),
        ),
        (
            Sheet("unfairness", f"Spearman's correlation. {ADJUSTED} {RANK_INTERVALS}", table),
            Sheet("mean_unfairness", f"{MEANS} {ADJUSTED}", means),
        ),
        tuple(dict.fromkeys(answer.missing for answer in answers if answer.missing)),
    )


class _Answer(NamedTuple):
    """What the runs say about one predictor."""

    finding: str
    accuracy: str  # the score that is the same in the adjusted correlations; empty if there is none
    table: pd.DataFrame
    means: pd.DataFrame
    missing: str


def _answer(runs: pd.DataFrame, predictor: Predictor, scores: list[str], seeds: int) -> _Answer:
    accuracy = _accuracy(runs, predictor)
    raw = correlations(runs, [predictor.unfairness], scores)
    means = mean_correlations(raw, ["first", "second"])
    if not accuracy:
        finding = _finding(means, pd.DataFrame(columns=means.columns), predictor, seeds, count_adjusted=False)
        missing = f"unfairness at equal accuracy needs {predictor.task}"
        return _Answer(finding, "", raw.table, means, missing)
    of_accuracy = correlations(runs, [predictor.unfairness], [accuracy])
    adjusted = _adjusted(runs, predictor, scores, accuracy)
    adjusted_means = mean_correlations(adjusted, ["first", "second"])
    enough = len(adjusted.table) > 0 and adjusted.table["runs"].min() >= ENOUGH
    finding = _finding(means, adjusted_means, predictor, seeds, count_adjusted=enough)
    table = pd.concat([raw.table, of_accuracy.table, adjusted.table], ignore_index=True)
    means = pd.concat([means, adjusted_means], ignore_index=True)
    return _Answer(finding, accuracy, table, means, "" if enough else FEW_NEIGHBOURS)


def _accuracy(runs: pd.DataFrame, predictor: Predictor) -> str:
    """The accuracy of a predictor after the most training points; empty if no run has one."""
    own = [name for name in downstream_scores(runs)[0] if name.startswith(f"{predictor.task}.")]
    return max(own, key=lambda name: int(name.rpartition("_")[2]), default="")


def _adjusted(runs: pd.DataFrame, predictor: Predictor, scores: list[str], accuracy: str) -> Correlations:
    """Correlations of adjusted unfairness with adjusted scores."""
    adjusted = adjusted_for(runs, [predictor.unfairness, *scores], accuracy)
    renamed = adjusted.rename(columns={predictor.unfairness: predictor.adjusted})
    return correlations(renamed, [predictor.adjusted], scores)


def _finding(
    means: pd.DataFrame, adjusted: pd.DataFrame, predictor: Predictor, seeds: int, *, count_adjusted: bool
) -> str:
    """Which metrics go with fairer predictions, and whether they do at equal accuracy."""
    clearest = means.sort_values("estimate", kind="stable").to_dict("records")[0]
    score = clearest["second"]
    effect = (
        f"mean Spearman with unfairness {clearest['estimate']:.2f}{bounds(clearest['low'], clearest['high'])}"
    )
    for row in adjusted[adjusted["second"] == score].to_dict("records"):
        effect += f", at equal accuracy {row['estimate']:.2f}{bounds(row['low'], row['high'])}"
    described = f"{score_label(score)}: {effect}; {seed_words(seeds)}"
    of_all, whom = counted(len(means), "metric"), f"fairer predictions by {predictor.name}"
    if means["p"].isna().all():
        return (
            f"{CANNOT_TELL} whether {of_all} go with {whom}: ten runs of a data set are needed. The "
            f"lowest correlation is that of {described}."
        )
    fairer, equal = _fairer(means), f" ({_fairer(adjusted)} at equal accuracy)" if count_adjusted else ""
    verb = "goes" if fairer == 1 else "go"
    return (
        f"{fairer} of {of_all}{equal} {verb} with {whom} (Spearman {-WEAK} or less). The lowest "
        f"correlation is that of {described}."
    )


def _fairer(means: pd.DataFrame) -> int:
    return int(((means["p"] < LEVEL) & (means["estimate"] <= -WEAK)).sum())


def _rows(table: pd.DataFrame) -> list[str]:
    """Unfairness of all predictors as it is, then adjusted."""
    return sorted(dict.fromkeys(table["first"]), key=lambda name: name.endswith("(adjusted)"))
