"""Names of data with conditions: split them, and apply conditions to a ground truth or to an entry."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from unweave.data import variants
from unweave.data.conditions.condition import Box, Condition
from unweave.data.conditions.parser import parse
from unweave.data.conditions.presets import PRESETS
from unweave.data.entry import Entry
from unweave.data.grid import Factor, GroundTruth
from unweave.data.supervision.restrict import (
    correlate,
    full_grid,
    hold_out,
    hold_out_random,
    only,
    reweight,
)
from unweave.errors import UnweaveError
from unweave.progress import Progress

PAINTS = {"colour": variants.colour, "noise": variants.noise}
HOLD_OUT = ("hold(", "only(", "random(")  # how clauses begin that hold combinations out


def split_name(name: str) -> tuple[str, str]:
    """The name of a data set and its condition, which is empty if there is none.

    >>> split_name("dsprites:hold(x>=16):x~y=0.2"), split_name("dsprites")
    (('dsprites', 'hold(x>=16):x~y=0.2'), ('dsprites', ''))
    """
    base, _, text = name.partition(":")
    return base, text


def held_out_by_name(name: str) -> bool:
    """Whether the canonical name of a data set says that combinations are held out.

    >>> held_out_by_name("dsprites:hold(x=16..31)"), held_out_by_name("dsprites:x~y=0.2")
    (True, False)
    """
    return any(clause.startswith(HOLD_OUT) for clause in split_name(name)[1].split(":"))


def restricted_by_name(name: str) -> bool:
    """Whether the canonical name of a data set says that not all combinations are equally likely.

    >>> restricted_by_name("dsprites:x~y=0.2"), restricted_by_name("dsprites:noise")
    (True, False)
    """
    changes = (clause.startswith("weigh(") or "~" in clause for clause in split_name(name)[1].split(":"))
    return held_out_by_name(name) or any(changes)


def preset_of(text: str, factors: Sequence[Factor]) -> str:
    """The preset that stands for a canonical condition of data with these factors; empty if there is none."""
    for preset in PRESETS:
        try:
            canonical = parse(preset, factors).text(factors)
        except UnweaveError:  # it is defined for other factors
            continue
        if canonical == text:
            return preset
    return ""


def conditioned(ground_truth: GroundTruth, text: str) -> GroundTruth:
    """The ground truth under a condition, such as "hold(shape=2,x>=16)".

    Its name is that of the ground truth, a colon and the canonical form of the condition. A ground truth that
    has a condition already gets both, as if they had been written together.
    """
    earlier = _earlier_condition(ground_truth)
    if earlier:
        return conditioned(full_grid(ground_truth), f"{earlier}:{text}")
    condition = parse(text, ground_truth.factors)
    canonical = condition.text(ground_truth.factors)
    if not canonical:
        return ground_truth
    name = f"{ground_truth.name}:{canonical}"
    recorded = ground_truth.reference
    if recorded is not None:
        clauses = f"{recorded.condition}:{canonical}" if recorded.condition else canonical  # colour or noise
        recorded = replace(recorded, name=name, condition=clauses)
    return replace(_restricted(ground_truth, condition), name=name, reference=recorded)


def _earlier_condition(truth: GroundTruth) -> str:
    """The condition that was applied to the full grid; empty if none was, or if it is not all of the name."""
    base, whole = full_grid(truth).name, truth.name
    if not whole.startswith(f"{base}:"):
        return ""
    text = whole.removeprefix(f"{base}:")
    try:
        return text if parse(text, truth.factors).text(truth.factors) == text else ""
    except UnweaveError:  # such as "hold(x=0) (held out)"
        return ""


def conditioned_entry(entry: Entry, text: str) -> Entry:
    """The entry of a data set under a condition; its name has the canonical form of the condition."""
    condition = parse(text, entry.grid_factors)
    canonical = condition.text(entry.grid_factors)
    if not canonical:
        return entry
    channels = 3 if condition.paint else entry.channels
    name = f"{entry.name}:{canonical}"
    return replace(entry, name=name, channels=channels, load=_Loader(entry, canonical))


def _restricted(truth: GroundTruth, condition: Condition) -> GroundTruth:
    factors = truth.factors
    if condition.paint:
        truth = PAINTS[condition.paint](truth, f"{truth.name}:{condition.paint}")
    if condition.only:
        truth = only(truth, [_combination(condition.only, factors)])
    if condition.held:
        truth = hold_out(truth, [_combination(box, factors) for box in condition.held])
    for part in condition.random:
        truth = hold_out_random(truth, part.share, part.seed)
    for pair in condition.correlations:
        first, second = factors[pair.first].name, factors[pair.second].name
        truth = correlate(truth, first, second, pair.sigma, pair.inverse)
    for box, share in condition.weights:
        truth = reweight(truth, _combination(box, factors), share)
    return truth


def _combination(box: Box, factors: Sequence[Factor]) -> dict[str, tuple[int, ...]]:
    return {factors[column].name: values for column, values in box}


@dataclass(frozen=True)
class _Loader:
    """Opens a data set and applies a condition."""

    entry: Entry
    text: str

    def __call__(self, root: Path, *, check: bool = True, progress: Progress | None = None) -> GroundTruth:
        """Open it."""
        return conditioned(self.entry.load_grid(root, check=check, progress=progress), self.text)
