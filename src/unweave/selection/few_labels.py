"""Scores of runs by a few labels: training needs none of them, only the choice of a run does.

[1] Locatello, Tschannen, Bauer, Rätsch, Schölkopf, Bachem: Disentangling factors of variation using few
labels, ICLR 2020.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from unweave.data.grid import GroundTruth
from unweave.data.supervision import Labelled, labelled, split
from unweave.errors import UnweaveError, did_you_mean
from unweave.methods.semi_supervised import LABELLERS
from unweave.metrics import dci, mig
from unweave.metrics.information import numbered
from unweave.progress import Progress
from unweave.runs.run import Run
from unweave.selection.candidates import Candidate, Candidates
from unweave.selection.codes import encoded
from unweave.selection.held_out_labels import held_out_scores
from unweave.streams import Stream

LABELS = 100
LEAST_LABELS = 20
TRAINING_SHARE = 0.9  # of the labels; DCI is fitted to these, as in [1]
FEW_LABEL_SCORES = ("few_labels.dci", "few_labels.mig")
PERFECT = "perfect"  # the labeller that is always right
_ESTIMATORS = {"few_labels.dci": f"dci[trees,train{TRAINING_SHARE:g}", "few_labels.mig": "mig[bins20"}


@dataclass(frozen=True)
class LabelChoice:
    """How many labelled images runs are chosen by, and who labelled them."""

    labels: int = LABELS
    labeller: str = PERFECT

    def __post_init__(self) -> None:
        if self.labeller not in LABELLERS:
            known = did_you_mean(str(self.labeller), LABELLERS)
            raise UnweaveError(f'there is no labeller "{self.labeller}". {known}')

    def score_name(self, score: str) -> str:
        """The name of a score: it states labels other than 100 and labellers other than the perfect one.

        >>> [choice.score_name("few_labels.mig") for choice in (LabelChoice(), LabelChoice(1000, "noisy"))]
        ['few_labels.mig', 'few_labels.mig_1000_noisy']
        """
        words = [str(self.labels)] if self.labels != LABELS else []
        words += [self.labeller] if self.labeller != PERFECT else []
        return "_".join([score, *words])

    def protocol(self, score: str) -> str:
        """The name that states how a score is estimated.

        >>> LabelChoice(100).protocol("few_labels.mig"), LabelChoice(100).protocol("few_labels.xent")
        ('mig[bins20,labels100]', 'supervised_loss[xent,held-out-labels]')
        """
        if score not in _ESTIMATORS:
            return f"supervised_loss[{score.removeprefix('few_labels.')},held-out-labels]"
        labeller = f",{self.labeller}" if self.labeller != PERFECT else ""
        return f"{_ESTIMATORS[score]},labels{self.labels}{labeller}]"


DEFAULT = LabelChoice()


def few_label_scores(
    candidates: Candidates,
    choice: LabelChoice = DEFAULT,
    device: str = "auto",
    data_root: Path | None = None,
    tell: Progress | None = None,
    place: str | Path | None = None,
) -> tuple[Candidates, dict[str, dict[str, float]]]:
    """The runs that can be encoded, and their scores by name, by the ids of the runs.

    All runs are measured on the same labelled images. `few_labels.mig` uses all of them, `few_labels.dci`
    fits its trees to 90 of 100, as the validation of the published code does. A semi-supervised run that held
    labels out of its training also has minus its supervised loss on these, such as `few_labels.xent`.
    """
    measured: _LabelledImages | None = None
    scores: dict[str, dict[str, float]] = {}
    notes: list[str] = []
    for number, candidate in enumerate(candidates.runs, 1):
        opened = candidate.attempt(partial(_opened, candidate, device, place, data_root), notes)
        if opened is not None:
            run, truth = opened
            if measured is None:
                measured = _LabelledImages.of(truth, choice)
                notes += measured.notes
            of_run = candidate.attempt(partial(measured.scores, run, truth), notes)
            if of_run is not None:
                scores[candidate.id] = of_run
        if tell:
            tell(number, len(candidates.runs), "measuring")
    if not scores:
        raise UnweaveError(f"no run in {candidates.path} can be measured. {' '.join(notes)}")
    runs = tuple(run for run in candidates.runs if run.id in scores)
    return replace(candidates, runs=runs, notes=(*candidates.notes, *notes)), scores


@dataclass(frozen=True, eq=False)
class _LabelledImages:
    """The labelled points that all runs are measured on, and their images."""

    points: Labelled
    images: NDArray[np.uint8]
    notes: tuple[str, ...]

    @classmethod
    def of(cls, truth: GroundTruth, choice: LabelChoice) -> _LabelledImages:
        """So many of them, drawn at random."""
        stream, labels = Stream.of(0).child("selection by labels"), choice.labels
        points = labelled(truth, labels, stream, LABELLERS[choice.labeller])
        values = [len(np.unique(column)) for column in points.labels.T]
        if labels < LEAST_LABELS or max(values) > len(split(points, TRAINING_SHARE)[0]):
            least = max(LEAST_LABELS, math.ceil(max(points.sizes) / TRAINING_SHARE))
            raise UnweaveError(
                f"{labels:,} labels are too few to choose runs on {truth.name}, whose largest factor has "
                f"{max(points.sizes):,} values. Take {least:,} labels or more."
            )
        varied, notes = _varied(points, truth.name)
        return cls(varied, truth.observe(points.factors, stream.child("images")), notes)

    def scores(self, run: Run, truth: GroundTruth) -> dict[str, float]:
        """The scores of a run."""
        return scores_of(encoded(run, self.images).mean, self.points) | held_out_scores(run, truth)


def scores_of(codes: NDArray[np.floating], points: Labelled) -> dict[str, float]:
    """The scores of codes (n, d) of n labelled points."""
    cut = len(split(points, TRAINING_SHARE)[0])
    labels = numbered(points.labels)  # a few labels miss values of large factors
    fitted = dci(codes[:cut], labels[:cut], test=(codes[cut:], labels[cut:]))
    return {"few_labels.dci": fitted.disentanglement, "few_labels.mig": mig(codes, labels)}


def _varied(points: Labelled, name: str) -> tuple[Labelled, tuple[str, ...]]:
    """The points with labels of the factors that vary, and notes on the others."""
    trained = split(points, TRAINING_SHARE)[0]
    factors = trained.factors[:, points.observed]  # noise alone also makes labels vary
    varies = (trained.labels != trained.labels[:1]).any(axis=0) & (factors != factors[:1]).any(axis=0)
    kept = np.flatnonzero(varies).tolist()
    if not kept:
        raise UnweaveError(
            f"the labels of {name} have one value each, so runs cannot be chosen by them. Choose by more "
            "labels or another labeller."
        )
    notes = tuple(
        f'factor "{factor}" was left out of the labels: it has one value only.'
        for j, factor in enumerate(points.names)
        if j not in kept
    )
    labels = Labelled(
        points.factors,
        points.labels[:, kept],
        names=tuple(points.names[j] for j in kept),
        sizes=tuple(points.sizes[j] for j in kept),
        observed=tuple(points.observed[j] for j in kept),
    )
    return labels, notes


def _opened(
    candidate: Candidate, device: str, place: str | Path | None, data_root: Path | None
) -> tuple[Run, GroundTruth]:
    """A run, and the data set that it was trained on."""
    run = Run(candidate.folder, device, place, data_root)
    data = run.data
    if not isinstance(data, GroundTruth):
        raise UnweaveError(f"a choice by labels needs data with known factors; {data.name} has none.")
    return run, data
