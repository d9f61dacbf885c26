"""From folders of runs to the table of results: one row for each score of each run."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from unweave.errors import UnweaveError
from unweave.evaluation.score_store import kept_scores
from unweave.files import explained, replacing
from unweave.methods import settings_of
from unweave.results import COLUMNS, RUN_COLUMNS, TEXT_COLUMNS, setting_text
from unweave.runs.spec import RunSpec
from unweave.study.folder import StudyFolder


def collect(study: StudyFolder, others: Sequence[StudyFolder] = ()) -> tuple[pd.DataFrame, list[str]]:
    """All scores of a study's runs, also of such as are in other folders, and sentences on what is missing.

    Each run is in the table once: from the first folder that has its scores.
    """
    spec = study.spec
    rows: dict[str, list[Any]] = {name: [] for name in COLUMNS}
    runs = {run_id: run for folder in (study, *others) for run_id, run in folder.runs.items()}
    missing, notes = 0, []
    for run_id, run in runs.items():
        scores: list[tuple[str, str, str, float]] = []
        for folder in (study, *others):
            if run_id not in folder.runs:
                continue
            try:
                scores = _scores(folder, run_id, spec.points, spec.seed)
            except UnweaveError as error:
                notes.append(str(error))
            if scores:
                break
        missing += not scores
        _append(rows, run_id, run, scores)
    if missing:
        notes.insert(0, f"{missing:,} of {len(runs):,} runs have no scores.")
    frame = pd.DataFrame({name: rows[name] for name in COLUMNS})
    return frame.astype(dict.fromkeys(TEXT_COLUMNS, "category")), notes


def _scores(
    folder: StudyFolder, run_id: str, points: tuple[int, int], seed: int
) -> list[tuple[str, str, str, float]]:
    """(representation, name, protocol, value) of all scores of a run."""
    records = [r for r in kept_scores(folder.run_folder(run_id)) if (r.asked, r.seed) == (points, seed)]
    scores = [score for record in sorted(records, key=lambda r: r.representation) for score in record.scores]
    unique = {(s.representation, s.name): (s.representation, s.name, s.protocol, s.value) for s in scores}
    return sorted(unique.values())


def _append(
    rows: dict[str, list[Any]], run_id: str, run: RunSpec, scores: Iterable[tuple[str, str, str, float]]
) -> None:
    settings = settings_of(run.method)
    strength = settings.get(run.method.strength or "")
    described = {
        "source": "own",
        "run": run_id,
        "data": run.data,
        "method": run.method.name,
        "setting": setting_text(settings),
        "strength": float("nan") if strength is None else float(strength),
        "seed": run.seed,
    }
    for representation, name, protocol, value in scores:
        for column in RUN_COLUMNS:
            rows[column].append(described[column])
        for column, cell in zip(COLUMNS[7:], (representation, name, protocol, value), strict=True):
            rows[column].append(cell)


def write_table(frame: pd.DataFrame, path: Path) -> None:
    """Write a table as Parquet or CSV, by its ending, whole or not at all."""
    if path.suffix not in (".parquet", ".csv"):
        raise UnweaveError(f"a table is written as .parquet or .csv; got {path}.")
    with explained(path), replacing(path, keep_suffix=True) as part:
        if path.suffix == ".parquet":
            frame.to_parquet(part, index=False)
        else:
            frame.to_csv(part, index=False)


def run_table(study: StudyFolder) -> pd.DataFrame:
    """One row a run: its settings, how it ended, and what it took."""
    rows = []
    for run_id, run in study.runs.items():
        path = study.run_path(run_id) / "result.json"
        ended: dict[str, Any] = {}
        if path.exists():
            try:
                ended = json.loads(path.read_text())
            except (OSError, ValueError):
                ended = {"outcome": "unreadable"}
        rows.append(
            {
                "run": run_id,
                "data": run.data,
                "method": run.method.name,
                "setting": setting_text(settings_of(run.method)),
                "seed": run.seed,
                "outcome": ended.get("outcome", "open"),
                "steps": ended.get("steps", 0),
                "seconds": ended.get("seconds"),
                "folder": study.run_path(run_id).name,
            }
        )
    return pd.DataFrame(rows)
