"""Scores that need no label: how well each run agrees with the others of its pool.

[1] Duan et al.: Unsupervised model selection for variational disentangled representation learning, ICLR 2020.
[2] Lin et al.: InfoGAN-CR and ModelCentrality: self-supervised model training and selection for disentangling
GANs, ICML 2020.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from unweave.errors import UnweaveError, did_you_mean
from unweave.evaluation.sources import Tell
from unweave.metrics.selection import LASSO_ALPHA, LEAST_KL
from unweave.selection.agreements import agreements
from unweave.selection.candidates import Candidate, Candidates, Row, candidates_in
from unweave.selection.codes import IMAGES, Codes, codes_of

# What can be chosen by, and the scores that belong to it; the first one is ranked by.
CHOOSERS: Mapping[str, tuple[str, ...]] = {
    "udr": ("udr.lasso", "udr.spearman"),
    "centrality": ("model_centrality",),
}
POOLS = ("setting", "study")
ENOUGH = 5  # runs in a pool: with fewer, the median of [1] is unsteady
_AVERAGE: Mapping[str, Callable[..., Any]] = {
    "udr.lasso": np.nanmedian,
    "udr.spearman": np.nanmedian,
    "model_centrality": np.nanmean,
}
_ESTIMATORS = {
    "udr.lasso": f"udr[lasso{LASSO_ALPHA:g}",
    "udr.spearman": "udr[spearman",
    "model_centrality": "model_centrality[factor_vae,bins20",
}
AGREEMENTS_FILE, TABLE_FILE = "agreements.parquet", "selection.parquet"


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
        found = [(run, float(values[run.id])) for run in self.candidates.runs if run.id in values]
        return sorted(found, key=lambda pair: -pair[1])


def select(
    path: str | Path,
    *,
    by: Sequence[str] = ("udr", "centrality"),
    within: str = "setting",
    images: int = IMAGES,
    data: str | None = None,
    device: str = "auto",
    data_root: Path | None = None,
    tell: Tell | None = None,
) -> Selection:
    """Score the finished runs of a study, or of a folder of runs, by their agreement with each other.

    A run is compared with the other runs of its pool: those `within` its "setting", which differ from it in
    their seed only, as in [1], or all of the "study". `udr.lasso` and `udr.spearman` are medians of its
    agreements, `model_centrality` is their mean; see `unweave.metrics.udr` and `model_centrality`.

    Codes of the images are kept in the runs' folders, agreements in the study's; a stopped call goes on.
    """
    names = [score for chooser in by for score in _scores_of(chooser)]
    if within not in POOLS:
        raise UnweaveError(f'runs are compared within setting or study; got "{within}".')
    found = candidates_in(path, data)
    pools = pools_of(found, within)
    codes = codes_of(found, images, device, data_root, tell)
    runs = {each.digest(run.id): each for run, each in zip(found.runs, codes, strict=True)}
    tables = agreements(runs, pools, names, found.path / AGREEMENTS_FILE, tell)
    rows: dict[str, list[Row]] = {}
    for pool in pools:
        for name in names:
            values = _AVERAGE[name](tables[name][np.ix_(pool, pool)], axis=0)
            for place, value in zip(pool, values, strict=True):
                row = ("", name, protocol(name, images, within), float(value))
                rows.setdefault(found.runs[place].id, []).append(row)
    notes = (*found.notes, *_notes(found, pools, codes))
    return Selection(found, found.table(rows), notes)


def protocol(score: str, images: int, within: str) -> str:
    """The name that states how a score is estimated.

    >>> protocol("udr.lasso", 4000, "setting")
    'udr[lasso0.1,kl0.01,images4000,setting]'
    """
    return f"{_ESTIMATORS[score]},kl{LEAST_KL:g},images{images},{within}]"


def pools_of(found: Candidates, within: str) -> list[list[int]]:
    """Places of runs that are compared with each other; a run that has no other is in none."""
    pools: dict[Any, list[int]] = {}
    for place, run in enumerate(found.runs):
        pools.setdefault(run.setting if within == "setting" else None, []).append(place)
    compared = [pool for pool in pools.values() if len(pool) > 1]
    if compared:
        return compared
    if within == "study" or len(pools) == 1:
        raise UnweaveError(
            f"runs are compared with each other, and {found.path} has one finished run only on "
            f"{found.runs[0].spec.data}. Train more seeds."
        )
    raise UnweaveError(
        f"runs are compared with others of the same setting, and each of the {len(pools):,} settings in "
        f"{found.path} has one finished seed only. Train more seeds, or compare all runs with --within study."
    )


def _scores_of(chooser: str) -> tuple[str, ...]:
    if chooser not in CHOOSERS:
        raise UnweaveError(f'runs cannot be chosen by "{chooser}". {did_you_mean(chooser, CHOOSERS)}')
    return CHOOSERS[chooser]


def _notes(found: Candidates, pools: Sequence[Sequence[int]], codes: Sequence[Codes]) -> list[str]:
    notes = []
    alone = len(found.runs) - sum(map(len, pools))
    if alone:
        notes.append(
            f"Without a score, the only seed of their setting: {alone:,} of {len(found.runs):,} runs."
        )
    fewest = min(map(len, pools))
    if fewest < ENOUGH:
        same = "; two runs have the same model_centrality and udr.spearman" if fewest == 2 else ""
        notes.append(
            f"Some runs are compared with {fewest - 1} other{'s' if fewest > 2 else ''} only, where "
            f"{ENOUGH - 1} or more are advised{same}."
        )
    collapsed = sum(not (each.kl > LEAST_KL).any() for each in codes)
    if collapsed:
        notes.append(
            f"Of score 0, without a code of KL > {LEAST_KL:g}: {collapsed:,} of {len(codes):,} runs."
        )
    return notes
