"""What can be done with a data set, said before hours are spent on it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from unweave.data.collection import Collection, Continuous, obstacle_to_grid
from unweave.data.grid import Factor, GroundTruth

TRAINING = "training"
GRID = "full grid of factors"
CODES = "metrics from codes and factors (MIG, DCI, SAP, ...)"
INTERVENTIONS = "metrics that hold a factor fixed (BetaVAE, FactorVAE, IRS)"
PAIRS = "weak supervision (pairs, groups)"

# Below this many rows, scores such as MIG depend much on which rows they were.
ROUGH = 1000


class Ability(NamedTuple):
    """Whether something can be done with a data set, and why."""

    what: str
    possible: bool
    why: str


def abilities(data: GroundTruth | Collection) -> list[Ability]:
    """What can be done with a data set, each with its reason, a plain sentence with numbers."""
    return _of_ground_truth(data) if isinstance(data, GroundTruth) else _of_collection(data)


def _of_ground_truth(data: GroundTruth) -> list[Ability]:
    constant = [factor.name for factor in data.factors if factor.size == 1]
    varying = len(data.factors) - len(constant)
    looks = "each look at one draws its image" if data.stochastic else "each has one image"
    note = f" {_join(constant)} never varies and is not measured." if constant else ""
    held = f"{varying} of {len(data.factors)} factors can be held fixed while the others change"
    sizes = " x ".join(str(size) for size in data.sizes)
    return [
        Ability(TRAINING, True, f"{len(data):,} combinations of factors are drawn alike; {looks}."),
        Ability(GRID, True, f"Each of {sizes} combinations has an image."),
        Ability(CODES, varying > 0, f"{varying} of {len(data.factors)} factors vary, all known.{note}"),
        Ability(INTERVENTIONS, varying > 1, f"{held}; two or more are needed."),
        Ability(PAIRS, varying > 0, f"{held}."),
    ]


def _of_collection(data: Collection) -> list[Ability]:
    obstacle = obstacle_to_grid(data)
    whole = obstacle or "every combination has an image; as_ground_truth makes a ground truth of it"
    held = [factor.name for factor in data.factors if _varies(factor) and data.can_share(factor.name)]
    pairs = f"Images can be drawn that share {_join(held)}."
    if not held:
        pairs = "There is no factor of which enough rows share a value."
    return [
        Ability(TRAINING, True, f"{len(data):,} images."),
        Ability(GRID, not obstacle, f"{whole[0].upper()}{whole[1:]}."),
        _codes(data),
        _interventions(data, held),
        *(_holding(data, factor, factor.name in held) for factor in data.factors),
        Ability(PAIRS, bool(held), pairs),
    ]


def _codes(data: Collection) -> Ability:
    if not data.factors:
        return Ability(CODES, False, "There are no factors.")
    rows = len(data.complete)
    why = f"{rows:,} of {len(data):,} rows know every factor."
    if rows < len(data):
        why += " The others are left out."
    if rows < ROUGH:
        why += f" Scores from fewer than {ROUGH:,} rows are rough."
    constant = [factor.name for factor in data.factors if not _varies(factor)]
    continuous = [factor.name for factor in data.factors if isinstance(factor, Continuous)]
    if constant:
        why += f" {_join(constant)} never varies and is not measured."
    if continuous:
        why += f" Bin {_join(continuous)} for scores that count values (see binned)."
    return Ability(CODES, rows > 1 and len(constant) < len(data.factors), why)


def _interventions(data: Collection, held: list[str]) -> Ability:
    why = f"{len(held)} of {len(data.factors)} factors can be held fixed; two or more are needed."
    return Ability(INTERVENTIONS, len(held) > 1, why)


def _holding(data: Collection, factor: Factor | Continuous, possible: bool) -> Ability:
    what = f"holding {factor.name} fixed"
    if not _varies(factor):
        return Ability(what, False, "It has one value only, so it tells nothing.")
    known = np.count_nonzero(~np.isnan(data.values[:, data.position(factor.name)]))
    why = f"{len(data.matching(factor.name)):,} of {known:,} known rows share their value with another row."
    if possible:
        return Ability(what, True, why)
    cure = "bin it first (see binned)" if isinstance(factor, Continuous) else "merge rare values"
    return Ability(what, False, f"{why} At least half must: {cure}.")


def _varies(factor: Factor | Continuous) -> bool:
    return factor.low < factor.high if isinstance(factor, Continuous) else factor.size > 1


def _join(names: list[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
