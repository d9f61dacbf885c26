"""`unweave evaluate`: scores of runs, or of codes in a file, printed and kept."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from unweave.console import console
from unweave.errors import UnweaveError
from unweave.evaluation import Scores, evaluate

if TYPE_CHECKING:
    from unweave.evaluation.evaluate import Effort

Tell = Callable[[int, int, str], None]


def runs_and_files(given: Sequence[Path]) -> list[Path]:
    """Folders of runs and files of codes; a folder of runs stands for all runs in it."""
    found: list[Path] = []
    for path in given:
        if path.is_dir() and not (path / "spec.json").exists():
            inside = sorted(spec.parent for spec in path.glob("*/spec.json"))
            if not inside:
                raise UnweaveError(f"{path} is not the folder of a run, and there is none in it.")
            found += inside
        elif path.exists():
            found.append(path)
        else:
            raise UnweaveError(f"there is no {path}. Give the folder of a run, or a file codes.npz.")
    return found


def evaluate_file(
    path: Path, metrics: str, representations: Sequence[str], effort: Effort, tell: Tell | None = None
) -> list[Scores]:
    """Scores of the arrays in an .npz file: codes, factors, and perhaps log_var, test_codes, test_factors."""
    try:
        with np.load(path, allow_pickle=False) as arrays:
            given: dict[str, Any] = dict(arrays)
    except (OSError, ValueError, zipfile.BadZipFile, AttributeError, TypeError) as error:
        raise UnweaveError(f"cannot read {path} as arrays saved by numpy.savez: {error}") from error
    known = ("codes", "factors", "log_var", "test_codes", "test_factors")
    if not {"codes", "factors"} <= given.keys() or not given.keys() <= set(known):
        raise UnweaveError(
            f"{path} must hold codes (n, d) and factors (n, k), and may hold log_var, test_codes and "
            f"test_factors; it holds {', '.join(given) or 'nothing'}. Write it by "
            "numpy.savez(path, codes=..., factors=...)."
        )
    test = (given["test_codes"], given["test_factors"]) if "test_codes" in given else None
    if ("test_codes" in given) != ("test_factors" in given):
        raise UnweaveError(f"{path} must hold both test_codes and test_factors, or none of them.")
    return [
        evaluate(
            given["codes"],
            given["factors"],
            log_var=given.get("log_var"),
            test=test,
            metrics=metrics,
            representation=representation,
            points=effort.points,
            repeats=effort.repeats,
            seed=effort.seed,
            tell=tell,
        )
        for representation in representations
    ]


def evaluate_folder(
    path: Path,
    metrics: str,
    representations: Sequence[str],
    effort: Effort,
    device: str,
    data_root: Path | None,
    keep_codes: bool,
    tell: Tell | None,
) -> list[Scores]:
    """Scores of a run, which are kept in its folder."""
    # Here, because torch takes seconds to import and files of codes need none of it.
    from unweave.evaluation.kept import evaluate_run
    from unweave.run import load

    run = load(path, device, data_root)
    return evaluate_run(run, metrics, representations, effort, keep=keep_codes, tell=tell)


def show(path: Path, records: Sequence[Scores]) -> None:
    """Print scores, what they cost and what they mean."""
    from rich.markup import escape
    from rich.table import Table

    screen = console()
    for record in records:
        train, test = record.points
        screen.print(f"[bold]{path}[/bold], {record.representation} codes, {train:,} + {test:,} points")
        columns = ["score", "value", "95% of the repeats", "protocol"]
        repeated = any(score.low is not None for score in record.scores)
        table = Table(*(columns if repeated else [*columns[:2], columns[3]]), box=None)
        for score in record.scores:
            interval = "" if score.low is None else f"{score.low:.4f} to {score.high:.4f}"
            cells = [score.name, f"{score.value:.4f}", interval, escape(score.protocol)]
            table.add_row(*(cells if repeated else [*cells[:2], cells[3]]))
        screen.print(table)
        for note in record.notes:
            screen.print(escape(note), style="dim")
        measuring = sum(seconds for name, seconds in record.seconds.items() if name != "encoding")
        encoding = record.seconds.get("encoding", 0.0)
        cost = f"{record.images:,} images encoded in {encoding:.1f} s; " if record.images else ""
        screen.print(f"{cost}metrics took {measuring:.1f} s, all together", style="dim")


def write(records: Sequence[Scores], path: Path) -> None:
    """Write scores as JSON, whole or not at all."""
    from unweave.store import write_text

    write_text(path, json.dumps([record.to_dict() for record in records], indent=1) + "\n")
