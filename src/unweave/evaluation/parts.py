"""Which part of restricted data is measured: what was trained on, all combinations, or what was held out."""

from __future__ import annotations

from typing import Literal, TypeAlias, get_args

from unweave.data.grid import GroundTruth
from unweave.data.supervision.restrict import full_grid, held_out_part
from unweave.errors import UnweaveError, did_you_mean

Part: TypeAlias = Literal["training", "all", "held_out"]
PARTS: tuple[str, ...] = get_args(Part)


def check_part(part: str) -> None:
    """Refuse what is not the name of a part."""
    if part not in PARTS:
        raise UnweaveError(f'on must be training, all or held_out; got "{part}". {did_you_mean(part, PARTS)}')


def part_of(ground_truth: GroundTruth, part: Part) -> GroundTruth:
    """The ground truth itself, the one without restrictions, or what was held out."""
    if part == "training":
        return ground_truth
    return full_grid(ground_truth) if part == "all" else held_out_part(ground_truth)
