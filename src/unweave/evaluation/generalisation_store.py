"""generalisation.json in the folder of a run: what `generalisation` measured is not measured again."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, TypeAlias

from unweave.errors import UnweaveError
from unweave.evaluation.generalisation import Compared, Generalisation, generalisation
from unweave.evaluation.parts import Part
from unweave.evaluation.scores import Score
from unweave.files import write_json
from unweave.layout import GENERALISATION_FILE
from unweave.locks import hold
from unweave.runs.run import Run
from unweave.runs.store import RunFolder

SCHEMA = 1
# Points to fit on and to test on, and the seed.
Draw: TypeAlias = tuple[tuple[int, int], int]
# How each measure is estimated, and of which codes.
ESTIMATORS = {
    "accuracy": ("trees", "mean"),
    "r2": ("mlp", "mean"),
    "reconstruction": ("images", ""),
    "squared_error": ("images", ""),
}


def measure_generalisation(run: Run, draw: Draw) -> Generalisation:
    """What a run loses on held-out combinations, from its folder or measured and stored there."""
    kept = kept_generalisation(run.folder, draw)
    if kept is not None:
        return kept
    points, seed = draw
    result = generalisation(run, points=points, seed=seed)
    record = {"data": result.data, "points": points, "seed": seed, "rows": result.rows}
    with hold(run.path / "scores"):
        others = [other for other in _records(run.folder) if _draw_of(other) != draw]
        write_json(run.path / GENERALISATION_FILE, {"schema": SCHEMA, "evaluations": [*others, record]})
    return result


def kept_generalisation(folder: RunFolder, draw: Draw) -> Generalisation | None:
    """What is stored for these points and this seed, or None."""
    for record in _records(folder):
        if _draw_of(record) == draw:
            rows = tuple(Compared(*row) for row in record["rows"])
            return Generalisation(str(folder.path), record["data"], rows, draw[0])
    return None


def generalisation_scores(result: Generalisation, part: Part) -> Iterator[Score]:
    """The measures on training or held-out combinations, each as its mean over factors."""
    points = f"n{result.points[0]}+{result.points[1]}"
    for measure, (estimator, codes) in ESTIMATORS.items():
        values = [float(getattr(row, part)) for row in result.rows if row.measure == measure]
        if values:
            words = [estimator, points, "" if part == "training" else f"on:{part}", codes]
            protocol = f"generalisation[{','.join(filter(None, words))}]"
            yield Score(f"generalisation.{measure}", protocol, codes, sum(values) / len(values))


def _records(folder: RunFolder) -> list[dict[str, Any]]:
    path = folder.path / GENERALISATION_FILE
    try:
        content = json.loads(path.read_text())
        records: list[dict[str, Any]] = content["evaluations"]
        for record in records:
            _draw_of(record)
    except FileNotFoundError:
        return []
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UnweaveError(f"cannot read {path}: {error!r}. Delete it to measure the run again.") from error
    return records


def _draw_of(record: dict[str, Any]) -> Draw:
    fitted, tested = record["points"]
    return (fitted, tested), record["seed"]
