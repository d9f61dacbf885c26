"""Does a good setting transfer? Exact probabilities that a chosen setting beats another one elsewhere.

A setting (a method with its hyper-parameters) is chosen by its score with one seed on one data set. The
target is the same or another data set and the same or another score, always with another seed. All sources
and all targets are enumerated, each with the same weight, so no number depends on random trials.

`transfer` is the protocol of the report. `transfer_of_the_study` is that of Table 1 of [1], which counts ties
as successes and compares the chosen setting with itself too.

[1] Locatello et al.: Challenging common assumptions in the unsupervised learning of disentangled
representations, ICML 2019.
[2] Shao and Wu: A general theory for jackknife variance estimation, Annals of Statistics 1989.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from unweave.errors import UnweaveError
from unweave.report.statistics import check_columns
from unweave.streams import Stream

SUBSETS = 300
FEWEST_SETTINGS = 10  # fewer say too little about the spread over settings
_AT_ONCE = 20  # subsets, to bound the memory
_WORDS = ("same", "other")

Floats = NDArray[np.float64]


class _Kind(NamedTuple):
    """Whether the target is another data set (0 or 1) and another score (0 or 1)."""

    other_data: int
    other_score: int


def transfer(
    runs: pd.DataFrame, scores: Sequence[str], *, subsets: int = SUBSETS, seed: int | Stream = 0
) -> pd.DataFrame:
    """The probability that a chosen setting beats a random other setting at the target, with its interval.

    Of settings with the same highest score, each is equally likely to be chosen. Equal scores at the target
    count half, and a setting is never compared with itself. A random choice therefore reaches 0.5.

    A row for each kind of target that the runs allow: data and score ("same" or "other"), comparisons (pairs
    of source and target), probability, low, high, random. Intervals are of 95% by a delete-d jackknife [2]:
    the spread over random subsets without a quarter of the settings, the same on all data sets. A bootstrap
    is too narrow here, since the best setting of a resample varies too little. Intervals are NaN for fewer
    than ten settings.
    """
    from scipy.stats import t

    table = _score_array(runs, scores)
    wins = _wins(table)
    once = np.ones((1, table.shape[2]))
    enough = table.shape[2] >= FEWEST_SETTINGS
    kinds = _kinds(table)
    estimates, counts = (part[0] for part in _probabilities(table, wins, once, kinds))
    errors = _jackknife_errors(table, wins, kinds, subsets, seed) if enough else np.full(len(kinds), np.nan)
    reach = float(t.ppf(0.975, max(table.shape[2] - 1, 1))) * errors
    lows, highs = np.clip(estimates - reach, 0, 1), np.clip(estimates + reach, 0, 1)
    rows = [
        (*_words(kind), round(counts[i]), estimates[i], lows[i], highs[i], 0.5)
        for i, kind in enumerate(kinds)
        if counts[i]
    ]
    columns = ["data", "score", "comparisons", "probability", "low", "high", "random"]
    return pd.DataFrame(rows, columns=columns)


def _words(kind: _Kind) -> tuple[str, str]:
    return _WORDS[kind.other_data], _WORDS[kind.other_score]


def transfer_of_the_study(runs: pd.DataFrame, scores: Sequence[str]) -> pd.DataFrame:
    """Table 1 of [1]: the probability that a chosen setting scores at least as high as a random setting.

    Of settings with the same highest score, the first in the order of the runs is chosen. Equal scores at the
    target are successes, and the random setting may be the chosen one. A random choice therefore reaches more
    than 0.5.

    Differs from [1]: all trials are enumerated; [1] draws 10,000.

    A row for each kind of target that the runs allow: data and score ("same" or "other"), comparisons,
    probability, random.
    """
    table = _score_array(runs, scores)
    known = ~np.isnan(table)
    first = np.where(known, table, -np.inf).argmax(2)
    chosen = (np.arange(table.shape[2])[:, None] == first[:, :, None]) & known
    shares = _no_worse(table)
    count = np.maximum(known.sum(2, keepdims=True), 1)
    random = np.where(known, np.nansum(shares, axis=2, keepdims=True) / count, np.nan)
    rows = []
    for kind in _kinds(table):
        probability, count = _mean_over_targets(chosen[None].astype(float), shares[None], kind)
        by_chance, _ = _mean_over_targets(chosen[None].astype(float), random[None], kind)
        if count[0]:
            rows.append((*_words(kind), round(count[0]), probability[0], by_chance[0]))
    return pd.DataFrame(rows, columns=["data", "score", "comparisons", "probability", "random"])


def _kinds(table: Floats) -> list[_Kind]:
    n_data, n_scores = table.shape[:2]
    return [_Kind(*kind) for kind in product(range(min(n_data, 2)), range(min(n_scores, 2)))]


def _wins(table: Floats) -> NDArray[np.float32]:
    """(data sets, scores, seeds, settings, rivals): 1 for a higher score, 1/2 for an equal one, else 0.

    Comparisons with itself or with a missing score are 0.
    """
    by_seed = table.transpose(0, 1, 3, 2)
    first, second = by_seed[..., :, None], by_seed[..., None, :]
    wins = (first > second).astype(np.float32)  # halves are exact
    wins[first == second] = 0.5
    diagonal = np.arange(table.shape[2])
    wins[..., diagonal, diagonal] = 0
    return wins


def _no_worse(table: Floats) -> Floats:
    """For each run the share of the settings, same seed and itself among them, that score no higher."""
    no_worse = np.zeros_like(table)
    for rival in range(table.shape[2]):
        no_worse += table >= table[:, :, [rival]]
    known = ~np.isnan(table)
    shares: Floats = no_worse / np.where(known, known.sum(2, keepdims=True), np.nan)
    return shares


def _jackknife_errors(
    table: Floats, wins: NDArray[np.float32], kinds: Sequence[_Kind], subsets: int, seed: int | Stream
) -> Floats:
    """(kinds,) standard errors: sqrt((k - d) / d) times the spread over subsets without d of k settings."""
    settings = table.shape[2]
    left_out = settings // 4
    order = Stream.of(seed).child("transfer").permutations(subsets, settings)
    kept = (order >= left_out).astype(float)
    parts = [
        _probabilities(table, wins, kept[start : start + _AT_ONCE], kinds)[0]
        for start in range(0, subsets, _AT_ONCE)
    ]
    errors: Floats = np.nanstd(np.concatenate(parts), axis=0, ddof=1)
    errors *= np.sqrt((settings - left_out) / left_out)
    return errors


def _probabilities(
    table: Floats, wins: NDArray[np.float32], kept: Floats, kinds: Sequence[_Kind]
) -> tuple[Floats, Floats]:
    """(subsets, kinds) probabilities and comparisons; `kept` (subsets, settings) is 1 or 0."""
    known = ~np.isnan(table)
    counts = kept[:, None, None, :, None] * known
    rivals = counts.sum(3, keepdims=True) - counts
    won = np.moveaxis(wins @ kept.T.astype(np.float32), -1, 0).swapaxes(3, 4)
    with np.errstate(invalid="ignore", divide="ignore"):
        shares = np.where(known & (rivals > 0), won / rivals, np.nan)
        present = np.where(counts > 0, table, -np.inf)
        best = (present == present.max(3, keepdims=True)) * counts
        chosen = np.nan_to_num(best / best.sum(3, keepdims=True))
    found = [_mean_over_targets(chosen, shares, kind) for kind in kinds]
    return np.stack([mean for mean, _ in found], 1), np.stack([count for _, count in found], 1)


def _mean_over_targets(chosen: Floats, shares: Floats, kind: _Kind) -> tuple[Floats, Floats]:
    """(subsets,) means of the shares of chosen settings over all sources and targets, and their number.

    Both arrays are (subsets, data sets, scores, settings, seeds); a share that is NaN is no target.
    """
    usable = ~np.isnan(shares)
    total = _to_targets(chosen, np.where(usable, shares, 0.0), kind)
    count = _to_targets(chosen, usable.astype(float), kind)
    with np.errstate(invalid="ignore"):
        return total / count, count


def _to_targets(chosen: Floats, values: Floats, kind: _Kind) -> Floats:
    """(subsets,) sums of chosen x values over all pairs of a source and a target of the kind."""
    elsewhere = values.sum(4, keepdims=True) - values  # all seeds but that of the source
    if kind.other_data:
        elsewhere = elsewhere.sum(1, keepdims=True) - elsewhere
    if kind.other_score:
        elsewhere = elsewhere.sum(2, keepdims=True) - elsewhere
    sums: Floats = np.einsum("rdskt,rdskt->r", chosen, elsewhere)
    return sums


def _score_array(runs: pd.DataFrame, scores: Sequence[str]) -> Floats:
    """(data sets, scores, settings, seeds) in the order of the runs; NaN where there is no score."""
    if runs.empty or not scores:
        raise UnweaveError(f"transfer needs runs and scores; got {len(runs)} runs and {len(scores)} scores.")
    check_columns(runs, ("data", "method", "setting", "seed", *scores))
    keys = [["data"], ["method", "setting"], ["seed"]]
    data, setting, seed = (runs.groupby(key, observed=True, sort=False).ngroup().to_numpy() for key in keys)
    place = pd.DataFrame({"data": data, "setting": setting, "seed": seed})
    if place.duplicated().any():
        twice = runs[place.duplicated().to_numpy()].iloc[0]
        raise UnweaveError(
            "transfer needs one run of each data set, setting and seed; there are several of "
            f"{twice['method']} with {twice['setting']} and seed {twice['seed']} on {twice['data']}. "
            "Take the runs of one source."
        )
    if seed.max() < 1:
        raise UnweaveError("transfer compares runs of two seeds; there is one seed only.")
    table = np.full((data.max() + 1, len(scores), setting.max() + 1, seed.max() + 1), np.nan)
    for i, score in enumerate(scores):
        table[data, i, setting, seed] = runs[score]
    return table
