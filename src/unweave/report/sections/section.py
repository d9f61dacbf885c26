"""What a section of the report is made of, and the runs that all sections start from."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from unweave.errors import UnweaveError, did_you_mean
from unweave.report.figures.codes import POINTS
from unweave.report.figures.settings import method_groups, scores_against_settings
from unweave.report.gaps import gap_sentence
from unweave.report.names import measured, metric_scores
from unweave.report.saturation import saturated_scores, saturation_sentence, without_saturated
from unweave.report.statistics import FEW
from unweave.report.tables import RESAMPLES
from unweave.results import PART, TRAINING, Results, wide

if TYPE_CHECKING:
    from matplotlib.figure import Figure


# What captions say.
DRAWN = f"At most {POINTS:,} runs of each data set are drawn, chosen at random."
INTERVALS = "Intervals: 95%, t-intervals over seeds of the same settings; none for a single run."
RANK_INTERVALS = (
    f"Intervals: 95%, over seeds of the same settings (Fisher's z with its error from {RESAMPLES:,} "
    f"resamples); without resamples for fewer than {FEW} runs, and none for fewer than 5."
)
MEANS = (
    "Means of rank correlations over data sets, with 95% intervals; p of no correlation after Holm for all "
    f"rows. None if a data set has fewer than {FEW} runs."
)
ALL_SATURATED = "all scores are saturated: they put half of the runs or more at the same end"
STEPS = (
    "Each method has an axis with its own setting, the weakest regularisation on the left (for AnnealedVAE "
    "the largest capacity); lines are medians, bands quartiles over runs."
)


@dataclass(frozen=True)
class Material:
    """The runs of one source, one row a run.

    `runs` has the scores of the representation that the report is about, `codes` those of mean and of sampled
    codes where there are some, `scores` the metrics that are compared. `sheets` and `swaps` are pictures with
    their titles: of reconstructions, and of content and style swapped. `parts` has the scores on other parts
    of the data: on "all" combinations of factors, and on "held_out" ones.
    """

    source: str
    representation: str
    runs: pd.DataFrame
    codes: dict[str, pd.DataFrame]
    scores: list[str]
    sheets: Sequence[tuple[str, Path]] = ()
    swaps: Sequence[tuple[str, Path]] = ()
    parts: Mapping[str, pd.DataFrame] = field(default_factory=dict)

    @cached_property
    def informative(self) -> pd.DataFrame:
        """The runs without saturated scores: NaN where a score says nothing about a data set."""
        return without_saturated(self.runs, self.scores)

    @cached_property
    def saturation(self) -> str:
        """A sentence that names the saturated scores; empty if there are none."""
        return saturation_sentence(saturated_scores(self.runs, self.scores))

    def flagged(self, caption: str, *others: str) -> str:
        """A caption that also names saturated scores, and metrics or other scores that some runs lack."""
        return " ".join(filter(None, [caption, self.saturation, self.gaps(*self.scores, *others)]))

    def gaps(self, *scores: str) -> str:
        """A sentence on the scores that some runs lack; empty if there is none."""
        return gap_sentence(self.runs, scores)

    @property
    def seeds(self) -> int:
        """The most runs that a setting has on a data set."""
        return int(self.runs.groupby(["data", "method", "setting"], observed=True).size().max())


@dataclass(frozen=True)
class Drawing:
    """A figure that is drawn when it is written, so that not all of them are in memory."""

    name: str
    caption: str
    draw: Callable[[], Figure]


@dataclass(frozen=True)
class Sheet:
    """A table."""

    name: str
    caption: str
    table: pd.DataFrame


@dataclass(frozen=True)
class Section:
    """A question, a sentence that answers it from the runs, and what it is read from."""

    name: str
    question: str
    finding: str
    drawings: tuple[Drawing, ...] = ()
    sheets: tuple[Sheet, ...] = ()
    missing: tuple[str, ...] = field(default=())


def setting_drawings(
    name: str, caption: str, curves: pd.DataFrame, *, logarithmic: bool = False
) -> list[Drawing]:
    """Figures of `setting_curves`, a few methods in each; all but the first have a number in their names."""
    rows = list(dict.fromkeys(curves["row"]))
    return [
        Drawing(
            f"{name}_{i + 1}" if i else name,
            caption,
            partial(scores_against_settings, curves, names, rows, logarithmic=logarithmic),
        )
        for i, names in enumerate(method_groups(curves))
    ]


def material(
    results: Results,
    source: str,
    representation: str = "mean",
    scores: Sequence[str] | None = None,
    sheets: Sequence[tuple[str, Path]] = (),
) -> Material | str:
    """The runs of one source of a table of results; a sentence if it has no such codes."""
    table = results.table[results.table["source"] == source]
    known = [str(name) for name in table["representation"].unique() if name]
    if known and representation not in known:
        return f'there are no scores of "{representation}" codes, only of {" and ".join(known)} codes'
    # A table of losses only has no representation.
    runs = wide(table, representation if known else "")
    codes = {name: wide(table, name) for name in sorted(known, reverse=True) if name in ("sampled", "mean")}
    parts = _parts(table, representation)
    return Material(source, representation, runs, codes, chosen_scores(runs, scores), sheets, parts=parts)


def _parts(table: pd.DataFrame, representation: str) -> dict[str, pd.DataFrame]:
    """The scores of a representation on all parts of the data but the training data."""
    known = table.loc[table["representation"] == representation, PART].unique()
    return {str(part): wide(table, representation, part) for part in known if part != TRAINING}


def chosen_scores(runs: pd.DataFrame, scores: Sequence[str] | None) -> list[str]:
    """The scores that were asked for, or those that are compared by default."""
    if scores is None:
        return metric_scores(runs)
    for name in scores:
        if name not in runs:
            raise UnweaveError(f'the results have no score "{name}". {did_you_mean(name, map(str, runs))}')
    return measured(runs, scores)
