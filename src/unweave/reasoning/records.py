"""Learning curves in the folders of runs: reasoning.json has one record for each choice of settings.

A record is written at each check, so a stopped training leaves the checks that it has made. A record that
reached the end is not computed again.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from unweave.errors import UnweaveError
from unweave.files import write_json
from unweave.layout import REASONING_FILE
from unweave.locks import hold
from unweave.reasoning.curves import Check, Curve
from unweave.reasoning.spec import ReasoningSpec

SCHEMA = 1
SCORE = "reasoning.accuracy_{matrices}"


def stored_curves(folder: Path) -> list[Curve]:
    """All learning curves in the folder of a run, the newest last."""
    path = folder / REASONING_FILE
    try:
        record = json.loads(path.read_text())
    except FileNotFoundError:
        return []
    except (OSError, ValueError) as error:
        raise UnweaveError(f"cannot read {path}: {error}. Delete it to train again.") from error
    try:
        if record["schema"] != SCHEMA:
            raise UnweaveError(f"it is of version {record['schema']}; this unweave reads {SCHEMA}.")
        return [_curve_of(str(folder), part) for part in record["curves"]]
    except (KeyError, TypeError, UnweaveError) as error:
        raise UnweaveError(f"cannot use {path}: {error} Delete it to train again.") from error


def complete_curve(folder: Path, spec: ReasoningSpec) -> Curve | None:
    """The learning curve with these settings, if its training reached the end."""
    curves = [curve for curve in stored_curves(folder) if curve.spec == spec and curve.complete]
    return curves[-1] if curves else None


def store_curve(folder: Path, curve: Curve) -> None:
    """Write a learning curve into the folder of a run, atomically; it replaces one of the same settings."""
    with hold(folder / "reasoning"):
        others = [other for other in stored_curves(folder) if other.spec != curve.spec]
        write_json(
            folder / REASONING_FILE, {"schema": SCHEMA, "curves": [_plain(c) for c in (*others, curve)]}
        )


def reasoning_rows(folder: Path) -> list[tuple[str, str, str, float]]:
    """The accuracies in the folder of a run as rows of a table of results.

    A row is representation, score, protocol and value. Curves that differ in their seed only are averaged; of
    several protocols, the newest one counts.
    """
    curves = stored_curves(folder)
    if not curves:
        return []
    protocol = curves[-1].spec.protocol
    values: dict[int, list[float]] = defaultdict(list)
    for curve in _one_of_each_seed(curves, protocol):
        for check in curve.checks:
            values[check.matrices].append(check.accuracy)
    return [
        ("mean", SCORE.format(matrices=matrices), protocol, sum(found) / len(found))
        for matrices, found in sorted(values.items())
    ]


def _one_of_each_seed(curves: Sequence[Curve], protocol: str) -> list[Curve]:
    """The longest curve of each seed: a longer training repeats the checks of a shorter one."""
    longest: dict[int, Curve] = {}
    for curve in curves:
        if curve.spec.protocol != protocol:
            continue
        before = longest.get(curve.spec.seed)
        if before is None or len(curve.checks) > len(before.checks):
            longest[curve.spec.seed] = curve
    return list(longest.values())


def _plain(curve: Curve) -> dict[str, Any]:
    return {
        "data": curve.data,
        "spec": curve.spec.to_dict(),
        "checks": [check._asdict() for check in curve.checks],
    }


def _curve_of(subject: str, plain: dict[str, Any]) -> Curve:
    checks = tuple(Check(**check) for check in plain["checks"])
    return Curve(subject, str(plain["data"]), ReasoningSpec.from_dict(plain["spec"]), checks)
