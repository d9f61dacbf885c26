"""What a report is made of: the results of studies, published results, tables of other tools, pictures."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from unweave.errors import UnweaveError
from unweave.layout import PICTURES_FOLDER, RECONSTRUCTIONS_FILE, RESULTS_FILE, SELECTION_FILE, SWAPS_FILE
from unweave.report.names import DATA, label, setting_label
from unweave.report.published import published
from unweave.results import COLUMNS, METHOD_ORDER, Results, combine, from_columns, read_frame, read_table

RECONSTRUCTIONS = f"{PICTURES_FOLDER}/{RECONSTRUCTIONS_FILE}"
SWAPS = f"{PICTURES_FOLDER}/{SWAPS_FILE}"
MOST_SHEETS = 12


def read_results(
    subjects: Sequence[Path], published_folder: Path | None = None, mapping: Path | None = None
) -> Results:
    """Studies, with what was chosen in them, tables of results and tables of other tools as one table."""
    if not subjects and published_folder is None:
        raise UnweaveError(
            "name what to report on: the folder of a study, a table of results (.parquet, .csv), or the "
            "folder of the published results (--published FOLDER)."
        )
    chosen = [path / SELECTION_FILE for path in subjects if (path / SELECTION_FILE).is_file()]
    tables = [_read(path, mapping) for path in (*subjects, *chosen)]
    if published_folder is not None:
        tables.append(published(published_folder))
    return combine(*tables) if len(tables) > 1 else tables[0]


def _read(path: Path, mapping: Path | None) -> Results:
    if not path.exists():
        raise UnweaveError(f"there is no file or folder {path}. Give a study, or a table (.parquet, .csv).")
    if path.is_dir():
        if not (path / RESULTS_FILE).is_file():
            raise UnweaveError(
                f"{path} has no {RESULTS_FILE}: it is not the folder of a study, or its results are not "
                f"collected. Run unweave study collect {path} first."
            )
        path = path / RESULTS_FILE
    if mapping is None or set(COLUMNS) <= set(read_frame(path).columns):
        return read_table(path)
    return from_columns(path, mapping)


def pictures_of_runs(folders: Sequence[Path], results: Results, picture: str) -> list[tuple[str, Path]]:
    """Pictures of that name in the run folders of studies, at most 12.

    One a data set and method, of the first of its runs. A run folder ends in the id of its run.
    """
    pictures = {
        path.parents[1].name.rpartition("-")[2]: path
        for folder in folders
        if folder.is_dir()
        for path in sorted(folder.rglob(picture))
    }
    if not pictures:
        return []
    runs = results.table.drop_duplicates(["source", "run"]).astype(dict.fromkeys(COLUMNS[:5], str))
    runs = runs[runs["run"].isin(pictures)].sort_values(["strength", "seed", "run"])
    firsts = runs.drop_duplicates(["data", "method"])
    order = [*METHOD_ORDER, *sorted(set(firsts["method"]) - set(METHOD_ORDER))]
    records = sorted(firsts.to_dict("records"), key=lambda run: (order.index(run["method"]), run["data"]))
    return [
        (
            f"{label(run['data'], DATA)}: {setting_label(run['method'], run['strength'], run['setting'])}",
            pictures[run["run"]],
        )
        for run in records[:MOST_SHEETS]
    ]
