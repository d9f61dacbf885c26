"""What can be done with a data set: which training, which metrics, and why not."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from unweave.data.collection import Collection, Continuous, obstacle_to_grid
from unweave.data.grid import Factor, GroundTruth
from unweave.data.own.sizing import MULTIPLE, SMALLEST, suits_networks
from unweave.data.supervision.restrict import drawn_combinations

TRAINING = "training"
GRID = "full grid of factors"
CODES = "metrics from codes and factors (MIG, DCI, SAP, ...)"
INTERVENTIONS = "metrics that hold a factor fixed (BetaVAE, FactorVAE, IRS)"
GROUPS = "groups of images that share a factor (GVAE, ML-VAE)"
LABELS = "labels (S2-VAE, M2, ...)"
SUPERVISION = "pairs and sequences (Ada-GVAE, ...)"

# Below this many rows, scores such as MIG depend much on which rows they were.
ROUGH = 1000
LEAST = 3  # rows of an evaluation
NAMED = 4  # names of factors in a sentence


class Ability(NamedTuple):
    """Whether something can be done with a data set, and why."""

    what: str
    possible: bool
    why: str


def counted_images(data: GroundTruth | Collection) -> str:
    """How many images there are; a combination of factors that has several images counts once."""
    if isinstance(data, GroundTruth) and data.stochastic:
        return f"{len(data):,} combinations of factors with images"
    return f"{len(data):,} images"


def abilities(data: GroundTruth | Collection) -> list[Ability]:
    """What can be done with a data set, each with its reason, a plain sentence with numbers."""
    return _of_ground_truth(data) if isinstance(data, GroundTruth) else _of_collection(data)


def _of_ground_truth(data: GroundTruth) -> list[Ability]:
    constant = [factor.name for factor, varies in zip(data.factors, data.varied, strict=True) if not varies]
    varying, images = len(data.factors) - len(constant), drawn_combinations(data)
    count = f"{images:,}" if images == len(data) else f"{images:,} of {len(data):,}"
    looks = "the image of each is drawn at random" if data.stochastic else "each has one image"
    note = f" {_join(constant)} never varies and is not measured." if constant else ""
    held = f"{varying} of {len(data.factors)} factors can be held fixed while the others change"
    sizes = " x ".join(str(size) for size in data.sizes)
    drawn = "are drawn alike" if data.weight is None else f"are drawn {data.drawn}"
    free = data.allowed is None
    held_out = "" if free else " Some combinations are held out, so measure a run with --on all."
    return [
        _training(data, f"{count} combinations of factors {drawn}; {looks}."),
        Ability(GRID, True, f"Each of {sizes} combinations has an image."),
        Ability(CODES, varying > 0, f"{varying} of {len(data.factors)} factors vary, all known.{note}"),
        Ability(INTERVENTIONS, varying > 1 and free, f"{held}; two or more are needed.{held_out}"),
        Ability(GROUPS, varying > 0, f"{held}."),
        Ability(LABELS, varying > 0, f"{varying} of {len(data.factors)} factors vary, all known."),
        Ability(SUPERVISION, varying > 0, f"{varying} of {len(data.factors)} factors vary, all known."),
    ]


def _of_collection(data: Collection) -> list[Ability]:
    obstacle = obstacle_to_grid(data)
    whole = obstacle or "every combination has an image; as_ground_truth makes a ground truth of it"
    held = [factor.name for factor in data.factors if _varies(factor) and data.can_share(factor.name)]
    groups = f"Images can be drawn that share {_join(held)}."
    if not held:
        groups = "There is no factor of which enough rows share a value."
    return [
        _training(data, f"{len(data):,} images."),
        Ability(GRID, not obstacle, f"{whole[0].upper()}{whole[1:]}."),
        _codes(data, held),
        _interventions(data, held),
        *(_holding(data, factor, factor.name in held) for factor in data.factors),
        Ability(GROUPS, bool(held), groups),
        _labels(data),
        Ability(SUPERVISION, False, "They are drawn from a full grid of factors only."),
    ]


def _labels(data: Collection) -> Ability:
    discrete = [j for j, factor in enumerate(data.factors) if isinstance(factor, Factor) and _varies(factor)]
    if not discrete:
        return Ability(LABELS, False, "There is no factor with separate values.")
    rows = int(np.count_nonzero(~np.isnan(data.values[:, discrete]).any(axis=1)))
    names = [data.factors[j].name for j in discrete]
    named = _join(names) if len(names) <= NAMED else f"all {len(names)} factors with separate values"
    return Ability(LABELS, rows > 0, f"{rows:,} of {len(data):,} rows know {named}.")


def _training(data: GroundTruth | Collection, why: str) -> Ability:
    """Whether the published convolutional networks take the images; the mlp takes any."""
    height, width = data.shape[1:]
    if suits_networks((height, width)):
        return Ability(TRAINING, True, why)
    return Ability(
        TRAINING,
        False,
        f"{why} The convolutional networks take heights and widths of {SMALLEST} or more in multiples of "
        f'{MULTIPLE}, not {height} x {width}. Open the data with size="auto", or use architecture mlp or '
        "resnet.",
    )


def _codes(data: Collection, held: list[str]) -> Ability:
    if not data.factors:
        return Ability(CODES, False, "There are no factors.")
    counted = [j for j, factor in enumerate(data.factors) if isinstance(factor, Factor) and _varies(factor)]
    measured = [j for j, factor in enumerate(data.factors) if _varies(factor)]
    rows = int(np.count_nonzero(~np.isnan(data.values[:, measured]).any(axis=1)))
    why = f"{rows:,} of {len(data):,} rows know every factor that is measured."
    if rows < len(data):
        why += " The others are left out."
    if rows < ROUGH:
        why += f" Scores from fewer than {ROUGH:,} rows are rough."
    if constant := [factor.name for factor in data.factors if not _varies(factor)]:
        why += f" {_join(constant)} never varies and is not measured."
    if continuous := [factor.name for factor in data.factors if isinstance(factor, Continuous)]:
        verb = "is" if len(continuous) == 1 else "are"
        why += (
            f" {_join(continuous)} {verb} continuous: scores that count values use bins of equal frequency."
        )
    if rare := [data.factors[j].name for j in counted if data.factors[j].name not in held]:
        why += f" {_join(rare)} is not measured, because most of its values occur once."
    return Ability(CODES, rows >= LEAST and len(rare) < len(measured), why)


def _interventions(data: Collection, held: list[str]) -> Ability:
    counted = [factor.name for factor in data.factors if isinstance(factor, Factor) and factor.name in held]
    why = f"{len(counted)} of {len(data.factors)} factors can be held fixed; two or more are needed."
    return Ability(INTERVENTIONS, len(counted) > 1, why)


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
