"""From folders of runs to the table of results: one row for each score of each run."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import pandas as pd

from unweave.errors import UnweaveError
from unweave.evaluation.generalisation_store import generalisation_scores, kept_generalisation
from unweave.evaluation.parts import Part, parts_to_measure
from unweave.evaluation.score_store import kept_scores
from unweave.evaluation.scores import Score, Scores
from unweave.files import explained, replacing
from unweave.layout import RESULT_FILE
from unweave.methods import settings_of
from unweave.reasoning.records import reasoning_rows
from unweave.results import TABLE_COLUMNS, TEXT_COLUMNS, setting_text
from unweave.runs.spec import RunSpec
from unweave.runs.store import RunFolder
from unweave.study.folder import StudyFolder
from unweave.study.spec import StudySpec

# One score of a run: representation, name, protocol and value.
Row: TypeAlias = tuple[str, str, str, float]


def collect(study: StudyFolder, others: Sequence[StudyFolder] = ()) -> tuple[pd.DataFrame, list[str]]:
    """All scores of a study's runs, also of such as are in other folders, and sentences on what is missing.

    Each run is in the table once: from the first folder that has its scores.
    """
    runs = {run_id: run for folder in (study, *others) for run_id, run in folder.runs.items()}
    notes: list[str] = []
    tables = []
    for part in study.spec.on:
        measured = {run_id: run for run_id, run in runs.items() if parts_to_measure(run.data, [part])}
        rows = {run_id: _stored_rows(run_id, part, study, others, notes) for run_id in measured}
        missing = sum(not scores for scores in rows.values())
        if missing:
            where = "" if part == "training" else f" on {part}"
            notes.insert(0, f"{missing:,} of {len(measured):,} runs have no scores{where}.")
        tables.append(results_table(measured, rows, part))
    joined = pd.concat(tables, ignore_index=True) if len(tables) > 1 else tables[0]
    return joined.astype(dict.fromkeys(TEXT_COLUMNS, "category")), notes


def _stored_rows(
    run_id: str, part: Part, study: StudyFolder, others: Sequence[StudyFolder], notes: list[str]
) -> list[Row]:
    """The scores of a run on a part of the data, from the first folder that has some."""
    for folder in (study, *others):
        if run_id in folder.runs:
            try:
                rows = _rows_in(folder.run_folder(run_id), part, study.spec)
            except UnweaveError as error:
                notes.append(str(error))
                continue
            if rows:
                return rows
    return []


def _rows_in(folder: RunFolder, part: Part, spec: StudySpec) -> list[Row]:
    rows = score_rows(kept_scores(folder, part), (spec.points, spec.seed))
    if "held_out" in spec.on and part != "all":
        result = kept_generalisation(folder, (spec.points, spec.seed))
        rows += [] if result is None else [_row(score) for score in generalisation_scores(result, part)]
    if part == "training":
        rows += reasoning_rows(folder.path)
    return sorted(rows)


def _row(score: Score) -> Row:
    return score.representation, score.name, score.protocol, score.value


def score_rows(records: Iterable[Scores], effort: tuple[tuple[int, int], int | None] | None) -> list[Row]:
    """All scores that were measured with those points and that seed, each once."""
    chosen = sorted((r for r in records if (r.asked, r.seed) == effort), key=lambda r: r.representation)
    scores = {(score.representation, score.name): score for record in chosen for score in record.scores}
    return [_row(score) for score in scores.values()]


def results_table(
    runs: Mapping[str, RunSpec], rows: Mapping[str, Sequence[Row]], part: Part = "training"
) -> pd.DataFrame:
    """The table of results of runs, from their scores on a part of the data by the ids of the runs."""
    cells: dict[str, list[Any]] = {name: [] for name in TABLE_COLUMNS}
    for run_id, run in runs.items():
        described = _described(run_id, run)
        for row in rows.get(run_id, ()):
            for column, cell in zip(TABLE_COLUMNS, (*described, *row, part), strict=True):
                cells[column].append(cell)
    return pd.DataFrame(cells).astype(dict.fromkeys(TEXT_COLUMNS, "category"))


def _described(run_id: str, run: RunSpec) -> tuple[str, str, str, str, str, float, int]:
    """The columns of the table of results that say which run it is."""
    settings = settings_of(run.method)
    strength = settings.get(run.method.strength or "")
    number = float("nan") if strength is None else float(strength)
    return "own", run_id, run.data, run.method.name, setting_text(settings), number, run.seed


def write_table(frame: pd.DataFrame, path: Path) -> None:
    """Write a table as Parquet or CSV, by its suffix, atomically."""
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
        path = study.run_path(run_id) / RESULT_FILE
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
