"""Scores to choose runs by: how well each agrees with the others of its pool, or metrics on a few labels.

[1] Duan et al.: Unsupervised model selection for variational disentangled representation learning, ICLR 2020.
[2] Lin et al.: InfoGAN-CR and ModelCentrality: self-supervised model training and selection for disentangling
GANs, ICML 2020.
[3] Locatello et al.: Disentangling factors of variation using few labels, ICLR 2020.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from unweave.data.opening import is_place
from unweave.display.notebook import heading, paragraph, table
from unweave.errors import UnweaveError, did_you_mean
from unweave.layout import AGREEMENTS_FILE, SELECTION_FILE
from unweave.metrics.selection import LASSO_ALPHA, LEAST_KL
from unweave.places import as_path
from unweave.progress import Progress
from unweave.results import check_table, combine, read_table
from unweave.selection.agreements import agreements
from unweave.selection.candidates import Candidate, Candidates, candidates_in
from unweave.selection.codes import IMAGES, Codes, codes_of
from unweave.selection.few_labels import FEW_LABEL_SCORES, LABELS, PERFECT, LabelChoice, few_label_scores
from unweave.study.table import Row, write_table

# What can be chosen by, and the scores that belong to it; the first one is ranked by.
CHOOSERS: Mapping[str, tuple[str, ...]] = {
    "udr": ("udr.lasso", "udr.spearman"),
    "centrality": ("model_centrality",),
    "few_labels": FEW_LABEL_SCORES,
}
WITHOUT_LABELS = ("udr", "centrality")  # what "both" stands for
POOLS = ("setting", "study")
SHOWN = 10  # runs of each ranking that a notebook shows
ENOUGH = 5  # runs in a pool: with fewer, the median of [1] is unsteady
_AVERAGE: Mapping[str, Callable[..., Any]] = {
    "udr.lasso": np.nanmedian,
    "udr.spearman": np.nanmedian,
    "model_centrality": np.nanmean,
}
_ESTIMATORS = {
    "udr.lasso": f"udr[lasso{LASSO_ALPHA:g}",
    "udr.spearman": "udr[spearman",
    "model_centrality": "model_centrality[factor_vae,above_chance,bins20",
}


@dataclass(frozen=True)
class Selection:
    """Runs and their scores: a table of results with a row for each run and score, and what to know of it."""

    candidates: Candidates
    table: pd.DataFrame
    notes: tuple[str, ...] = ()

    def ranking(self, score: str) -> list[tuple[Candidate, float]]:
        """The runs that have a score, the best one first."""
        rows = self.table[self.table["score"] == score]
        values = dict(zip(rows["run"], rows["value"], strict=True))
        scored = [(run, float(values[run.id])) for run in self.candidates.runs if run.id in values]
        return sorted(scored, key=lambda pair: -pair[1])

    def scores_by(self, chooser: str) -> list[str]:
        """The scores that belong to a chooser; the first one is ranked by."""
        known = [str(name) for name in self.table["score"].unique()]
        return [
            name
            for base in CHOOSERS[chooser]
            for name in known
            if name == base or name.startswith(f"{base}_")
        ]

    def save(self, path: str | Path | None = None) -> Path:
        """Write the table, by default to selection.parquet in the study's folder, where reports find it.

        Scores of other data sets and by other choosers that the file has stay in it.
        """
        target = self.candidates.path / SELECTION_FILE if path is None else Path(path).expanduser()
        results = check_table(self.table)
        if target.exists():
            try:
                before = read_table(target).table
            except UnweaveError as error:
                raise UnweaveError(
                    f"{target} holds no scores of a selection: {error} Choose another file."
                ) from error
            fresh = set(zip(results.table["data"], results.table["score"], strict=True))
            pairs = zip(before["data"], before["score"], strict=True)
            rest = before[[pair not in fresh for pair in pairs]]
            if len(rest):
                results = combine(check_table(rest), results)
        write_table(results.table, target)
        return target

    def _repr_html_(self) -> str:
        parts = []
        for name in [scores[0] for scores in map(self.scores_by, CHOOSERS) if scores]:
            ranking = self.ranking(name)
            shown = min(SHOWN, len(ranking))
            parts.append(heading(f"{name}: the best {shown:,} of {len(ranking):,} runs"))
            rows = [
                (f"{value:.4f}", run.spec.method, run.spec.seed, run.folder.path)
                for run, value in ranking[:shown]
            ]
            parts.append(table([name, "method", "seed", "folder"], rows))
        return "".join(parts + [paragraph(note) for note in self.notes])


def select(
    path: str | os.PathLike[str],
    *,
    by: str | Sequence[str] = "both",
    within: str = "setting",
    images: int = IMAGES,
    labels: int = LABELS,
    labeller: str = PERFECT,
    data: str | None = None,
    device: str = "auto",
    data_root: str | Path | None = None,
    tell: Progress | None = None,
) -> Selection:
    """Score the finished runs of a study, or of a folder of runs, to choose the best of them.

    `by` is "udr", "centrality" or "both", which need no labels, or "few_labels", or several of them.
    "few_labels" measures DCI and MIG on this number of labelled images, as [3] does: `few_labels.dci` for 100
    labels, `few_labels.dci_1000` for 1,000. The labels are perfect, or those of another `labeller`: binned,
    noisy, permuted or partial. The others compare runs.
    A run is compared with the other runs of its pool: those `within` its "setting", which differ from it in
    their seed only, as in [1], or all of the "study". `udr.lasso` and `udr.spearman` are medians of its
    agreements, `model_centrality` is their mean; see `unweave.metrics.udr` and `model_centrality`.

    `data` is the name of a data set, where there are several, or the new path of your own data.
    Codes of the images are kept in the runs' folders, agreements in the study's; a stopped call goes on.
    """
    name, place = (None, data) if is_place(data) else (data, None)
    names = [score for chooser in choosers_named(by) for score in _scores_of(chooser)]
    agreeing = [name for name in names if name not in FEW_LABEL_SCORES]
    choice, root = LabelChoice(labels, labeller), None if data_root is None else Path(data_root).expanduser()
    if within not in POOLS:
        raise UnweaveError(f'runs are compared within setting or study; got "{within}".')
    candidates = candidates_in(as_path(path, "the folder of a study or of runs"), name)
    rows: dict[str, list[Row]] = {}
    notes: list[str] = []
    if agreeing:
        pools_of(candidates, within)  # too few runs are an error before anything takes time
        candidates, codes = codes_of(candidates, images, device, root, tell, place)
        pools = pools_of(candidates, within)
        rows = _agreement_rows(candidates, codes, pools, agreeing, within, tell)
        notes = _notes(candidates, pools, codes)
    if len(names) > len(agreeing):
        candidates, scores = few_label_scores(candidates, choice, device, root, tell, place)
        for run, values in scores.items():
            rows.setdefault(run, []).extend(_label_rows(values, choice))
    return Selection(candidates, candidates.table(rows), (*candidates.notes, *notes))


def _label_rows(scores: Mapping[str, float], choice: LabelChoice) -> list[Row]:
    """Scores by labels; the loss on held-out labels depends on the run only, and not on the choice."""
    return [
        ("", choice.score_name(name) if name in FEW_LABEL_SCORES else name, choice.protocol(name), value)
        for name, value in scores.items()
    ]


def _agreement_rows(
    candidates: Candidates,
    codes: Sequence[Codes],
    pools: Sequence[Sequence[int]],
    names: Sequence[str],
    within: str,
    tell: Progress | None,
) -> dict[str, list[Row]]:
    """The scores of each run by its agreement with its pool."""
    runs = {part.digest(run.id): part for run, part in zip(candidates.runs, codes, strict=True)}
    tables = agreements(runs, pools, names, candidates.path / AGREEMENTS_FILE, tell)
    images = len(codes[0].mean)
    rows: dict[str, list[Row]] = {}
    for pool in pools:
        for name in names:
            values = _AVERAGE[name](tables[name][np.ix_(pool, pool)], axis=0)
            for run, value in zip((candidates.runs[i] for i in pool), values, strict=True):
                row = ("", name, protocol(name, images, within), float(value))
                rows.setdefault(run.id, []).append(row)
    return rows


def protocol(score: str, images: int, within: str) -> str:
    """The name that states how a score is estimated.

    >>> protocol("udr.lasso", 4000, "setting")
    'udr[lasso0.1,kl0.01,images4000,setting]'
    """
    return f"{_ESTIMATORS[score]},kl{LEAST_KL:g},images{images},{within}]"


def pools_of(candidates: Candidates, within: str) -> list[list[int]]:
    """Places of runs that are compared with each other; a run that has no other is in none."""
    pools: dict[Any, list[int]] = {}
    for place, run in enumerate(candidates.runs):
        pools.setdefault(run.setting if within == "setting" else None, []).append(place)
    compared = [pool for pool in pools.values() if len(pool) > 1]
    if compared:
        return compared
    if within == "study" or len(pools) == 1:
        raise UnweaveError(
            f"runs are compared with each other, and {candidates.path} has one finished run only on "
            f"{candidates.runs[0].spec.data}. Train more seeds."
        )
    raise UnweaveError(
        f"runs are compared with others of the same setting, and each of the {len(pools):,} settings in "
        f"{candidates.path} has one finished seed only. Train more seeds, or compare all runs with "
        "--within study."
    )


def choosers_named(by: str | Sequence[str]) -> tuple[str, ...]:
    """What `by` stands for: a chooser, several of them, or both of those that need no labels.

    >>> choosers_named("both")
    ('udr', 'centrality')
    """
    if by == "both":
        return WITHOUT_LABELS
    return (by,) if isinstance(by, str) else tuple(by)


def _scores_of(chooser: str) -> tuple[str, ...]:
    if chooser not in CHOOSERS:
        raise UnweaveError(f'runs cannot be chosen by "{chooser}". {did_you_mean(chooser, CHOOSERS)}')
    return CHOOSERS[chooser]


def _notes(candidates: Candidates, pools: Sequence[Sequence[int]], codes: Sequence[Codes]) -> list[str]:
    notes = []
    alone = len(candidates.runs) - sum(map(len, pools))
    if alone:
        notes.append(
            f"Without a score, the only seed of their setting: {alone:,} of {len(candidates.runs):,} runs."
        )
    fewest = min(map(len, pools))
    if fewest < ENOUGH:
        same = "; two runs have the same model_centrality and udr.spearman" if fewest == 2 else ""
        notes.append(
            f"Some runs are compared with {fewest - 1} other{'s' if fewest > 2 else ''} only, where "
            f"{ENOUGH - 1} or more are advised{same}."
        )
    collapsed = sum(not (run_codes.kl > LEAST_KL).any() for run_codes in codes)
    if collapsed:
        notes.append(
            f"Of score 0, without a code of KL > {LEAST_KL:g}: {collapsed:,} of {len(codes):,} runs."
        )
    return notes
