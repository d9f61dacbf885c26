"""Which part of restricted data is measured: what was trained on, all combinations, or what was held out."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, TypeAlias, get_args

from unweave.data.conditions.naming import held_out_by_name, restricted_by_name
from unweave.data.grid import GroundTruth
from unweave.data.supervision.restrict import full_grid, held_out_part
from unweave.errors import UnweaveError, did_you_mean

Part: TypeAlias = Literal["training", "all", "held_out"]
PARTS: tuple[Part, ...] = get_args(Part)
TRAINING: tuple[Part, ...] = ("training",)


def check_part(part: str) -> None:
    """Refuse what is not the name of a part."""
    if part not in PARTS:
        raise UnweaveError(f'on must be training, all or held_out; got "{part}". {did_you_mean(part, PARTS)}')


def part_of(ground_truth: GroundTruth, part: Part) -> GroundTruth:
    """The ground truth itself, the one without restrictions, or what was held out."""
    if part == "training":
        return ground_truth
    return full_grid(ground_truth) if part == "all" else held_out_part(ground_truth)


def part_names(parts: str | Iterable[str]) -> list[str]:
    """The names in a text that separates them by commas, or in a list."""
    return [name.strip() for name in parts.split(",")] if isinstance(parts, str) else list(parts)


def checked_parts(parts: str | Iterable[str]) -> tuple[Part, ...]:
    """The parts that a study measures, each once and in their order; a text separates them by commas.

    >>> checked_parts("held_out, training")
    ('training', 'held_out')
    """
    names = part_names(parts)
    for name in names:
        check_part(name)
    if "training" not in names:
        raise UnweaveError(
            "on must include training, whose scores reports, selection and the explorer show; got "
            f"{', '.join(names) or 'nothing'}. Write for example training,held_out."
        )
    return tuple(part for part in PARTS if part in names)


def parts_to_measure(data: str, parts: Iterable[Part]) -> tuple[Part, ...]:
    """Those of the parts that a data set of that name has.

    Only data with a condition in its name has further parts: all combinations, if some are drawn more often
    than others, and held-out ones.
    """
    exists = {"training": True, "all": restricted_by_name(data), "held_out": held_out_by_name(data)}
    return tuple(part for part in parts if exists[part])
