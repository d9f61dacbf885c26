"""Several runs side by side: which latents correspond, which settings differ, which scores are comparable."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from unweave.metrics.mcc import best_matching
from unweave.metrics.real_factors import standardised

if TYPE_CHECKING:
    from unweave.evaluation.scores import Score

LEAST_CORRELATION = 0.1  # below, a pair is unmatched; unrelated codes of 1,000 images exceed it once in 600
DIGITS = 4  # of a correlation


@dataclass(frozen=True)
class Match:
    """A latent of a run, and its correlation with the latent of the first run in the same row."""

    latent: int
    correlation: float  # 1 for the run that the row starts from


@dataclass(frozen=True)
class ScoreRow:
    """One score of all runs; None for a run that lacks it.

    `comparable` is False if the runs were measured with different protocols.
    """

    name: str
    representation: str
    values: tuple[Score | None, ...]
    comparable: bool

    @property
    def protocols(self) -> list[str]:
        """The protocols of the values, each once."""
        return list(dict.fromkeys(score.protocol for score in self.values if score is not None))


def correlations(codes: NDArray[Any], others: NDArray[Any]) -> NDArray[np.float64]:
    """Return corr(z_i, w_j), (d, e), of codes (n, d) and (n, e) of the same images; 0 if one is constant."""
    z, w = (standardised(table, table)[0] for table in (_doubles(codes), _doubles(others)))
    return np.clip(z.T @ w / len(z), -1.0, 1.0)


def matches(strength: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the latent of the other run for each latent of the first, (d,); -1 without a match.

    `strength` has the absolute correlations, (d, e). The assignment maximises their sum (Hungarian
    algorithm). Pairs below `LEAST_CORRELATION` count as 0 and are never matched.
    """
    counted = np.where(strength >= LEAST_CORRELATION, strength, 0.0)
    chosen = best_matching(counted.T)
    matched = (chosen >= 0) & (counted[np.arange(len(chosen)), chosen] > 0)
    return np.where(matched, chosen, -1)


def aligned_latents(
    codes: Sequence[NDArray[Any]], order: Sequence[Sequence[int]]
) -> list[tuple[Match | None, ...]]:
    """Rows of corresponding latents, one entry a run.

    `codes` are the mean codes of the same images, one table (n, d) a run. `order` has the latents of each run
    that take part, the most used first; dead ones are left out. Rows with a match come first, in the order
    of the first run. Each unmatched latent has a row of its own after them.
    """
    first, *others = range(len(codes))
    columns = [_matches_of(codes[first], codes[run], order[first], order[run]) for run in others]
    rows: list[tuple[Match | None, ...]] = [
        (Match(latent, 1.0), *(column.get(latent) for column in columns)) for latent in order[first]
    ]
    rows.sort(key=lambda row: all(match is None for match in row[1:]))  # a stable sort keeps the order
    for run, column in zip(others, columns, strict=True):
        taken = {match.latent for match in column.values()}
        rows += [_alone(latent, run, len(codes)) for latent in order[run] if latent not in taken]
    return rows


def _matches_of(
    codes: NDArray[Any], others: NDArray[Any], order: Sequence[int], other_order: Sequence[int]
) -> dict[int, Match]:
    """The match of each latent of the first run that has one."""
    if not order or not other_order:
        return {}
    signed = correlations(codes[:, list(order)], others[:, list(other_order)])
    return {
        order[i]: Match(other_order[j], round(float(signed[i, j]), DIGITS))
        for i, j in enumerate(matches(np.abs(signed)).tolist())
        if j >= 0
    }


def _alone(latent: int, run: int, runs: int) -> tuple[Match | None, ...]:
    return tuple(Match(latent, 1.0) if k == run else None for k in range(runs))


def differing_settings(settings: Sequence[Mapping[str, object]]) -> dict[str, list[str | None]]:
    """The settings that are not the same in all runs, as text; None for a run without the setting."""
    names = dict.fromkeys(name for run in settings for name in run)
    table = {name: [_text(run[name]) if name in run else None for run in settings] for name in names}
    return {name: values for name, values in table.items() if len(set(values)) > 1}


def _text(value: object) -> str:
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    return "none" if value is None else str(value)


def score_rows(scores: Sequence[Sequence[Score]]) -> list[ScoreRow]:
    """The scores of all runs by name and representation.

    A run may have a score by several protocols. The protocol that most runs share is chosen; a run without it
    shows the first one that it has, and the row is then not comparable.
    """
    keys = dict.fromkeys((score.name, score.representation) for run in scores for score in run)
    rows = []
    for name, representation in keys:
        of_runs = [
            [score for score in run if (score.name, score.representation) == (name, representation)]
            for run in scores
        ]
        shared = Counter(protocol for run in of_runs for protocol in {score.protocol for score in run})
        protocol = max(shared, key=lambda one: (shared[one], one))
        values = tuple(_by_protocol(run, protocol) for run in of_runs)
        comparable = all(score.protocol == protocol for score in values if score is not None)
        rows.append(ScoreRow(name, representation, values, comparable))
    return rows


def _by_protocol(scores: Sequence[Score], protocol: str) -> Score | None:
    same = [score for score in scores if score.protocol == protocol]
    return next(iter([*same, *scores]), None)


def _doubles(codes: NDArray[Any]) -> NDArray[np.float64]:
    return np.asarray(codes, np.float64)
