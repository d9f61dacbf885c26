"""What the study page needs of the server: all runs of a table at once, and the traversal of one of them.

A table of 12,600 runs is a few megabytes as columns, so that the page filters and draws without asking again.
Words are sent as numbers and a list of names. Scores have eight digits, so that the page can subtract them.
"""

from __future__ import annotations

import io
import json
import math
import re
from collections.abc import Collection, Iterable
from functools import lru_cache
from pathlib import Path
from typing import Any

import pandas as pd

from unweave.errors import UnweaveError
from unweave.explore.api.answer import Answer
from unweave.explore.api.request import Request, Routes
from unweave.explore.labels import labels_of
from unweave.explore.subject import Subject, TableInMemory
from unweave.layout import PICTURES_FOLDER, RESULTS_FILE, TRAVERSALS_FILE, WEIGHTS_FILE
from unweave.report.names import strength_names
from unweave.results import METHOD_ORDER, RUN_COLUMNS, Results, read_table, wide

WORDS = ("source", "data", "method", "setting")
MAIN = "mean"  # scores of these codes have their plain names, those of others say of which codes they are
NUMBER_SETTING = re.compile(r"(\w+)=(-?[0-9.]+(?:e[-+]?[0-9]+)?)")
NUMBER = re.compile(r"((?:(?<=[=,])-)?[0-9]+(?:\.[0-9]+)?(?:e[-+]?[0-9]+)?)")
PICTURE_IMAGES = 64  # enough to tell which dimensions of a code are used


def study_records(path: Path) -> bytes:
    """The runs of a study, given its folder or its table, as JSON.

    runs: how many; id: their ids; here: 1 for a run whose folder is in the study's, else 0 (and 0 for all
    runs of a table alone); words: for source, data, method and setting the names and each run's place among
    them; settings: strength, seed and all settings that are numbers and differ; strengths: for each method
    the setting that its strength is the value of; scores; labels: display names of methods, data sets and
    scores; notes: sentences on what is missing.
    """
    table = path / RESULTS_FILE if path.is_dir() else path
    try:
        state = table.stat()
    except OSError:
        raise UnweaveError(
            f"{path} has no table of results yet; `unweave study collect {path}` writes it."
        ) from None
    return _records(table.resolve(), path.is_dir(), state.st_mtime_ns, state.st_size)


@lru_cache(maxsize=2)
def _records(table: Path, with_folders: bool, _changed: int, _size: int) -> bytes:
    """The JSON of a table as it was at a time: when the file changes, it is read again."""
    return records_of(read_table(table), _ids_of_folders(table.parent) if with_folders else set())


def records_of(results: Results, folders: Collection[str] = ()) -> bytes:
    """The JSON of a table, as `study_records` describes it; `folders` are ids of runs that can be opened."""
    runs = wide(*_one_representation(results.table))
    ids = runs["run"].tolist()
    scores = [str(name) for name in runs if name not in RUN_COLUMNS]
    record = {
        "runs": len(runs),
        "id": ids,
        "here": [int(run_id in folders) for run_id in ids],
        "words": {name: _coded(runs[name], METHOD_ORDER if name == "method" else ()) for name in WORDS},
        "settings": _settings(runs),
        "strengths": strength_names(runs),
        "scores": {name: _rounded(runs[name]) for name in scores},
        "labels": labels_of(runs["method"].unique(), runs["data"].unique(), scores),
        "notes": list(results.notes),
    }
    return json.dumps(record, separators=(",", ":"), allow_nan=False).encode()


def _one_representation(table: pd.DataFrame) -> tuple[pd.DataFrame, str]:
    """The table with all scores under one representation, and its name; those of others are renamed."""
    known = sorted(str(name) for name in table["representation"].unique() if name)
    main = MAIN if MAIN in known else next(iter(known), "")
    other = ~table["representation"].isin(["", main])
    if not other.any():
        return table, main
    scores, codes = table["score"].astype(str), table["representation"].astype(str)
    names = scores.where(~other, scores + " (" + codes + ")")
    renamed = table.assign(score=names, representation=codes.where(~other, main))
    return renamed.astype({"score": "category", "representation": "category"}), main


def _coded(column: pd.Series[Any], order: Iterable[str]) -> dict[str, list[Any]]:
    """The words of a column, those of the order first, and for each row its place among them."""
    place = {name: i for i, name in enumerate(order)}
    names = sorted(set(column), key=lambda name: (place.get(name, len(place)), _by_number(name)))
    return {"names": names, "codes": column.map({name: i for i, name in enumerate(names)}).tolist()}


def _by_number(name: str) -> list[str | float]:
    """A key that sorts by the numbers in a name: beta=2 is before beta=16."""
    parts = NUMBER.split(name)  # text and numbers in turn
    return [float(part) if i % 2 else part for i, part in enumerate(parts)]


def _settings(runs: pd.DataFrame) -> dict[str, list[Any]]:
    """The strength, the seed, and each setting that is a number and not the same in all runs."""
    parsed = {text: dict(NUMBER_SETTING.findall(text)) for text in runs["setting"].unique()}
    rows = [parsed[text] for text in runs["setting"]]
    columns = {"strength": _rounded(runs["strength"]), "seed": runs["seed"].tolist()}
    for name in sorted({name for row in parsed.values() for name in row} - set(columns)):
        if len({row.get(name) for row in parsed.values()} - {None}) > 1:
            columns[name] = [float(row[name]) if name in row else None for row in rows]
    return columns


def _rounded(column: pd.Series[Any]) -> list[float | None]:
    """Numbers with eight digits; None for what is missing."""
    return [float(f"{value:.8g}") if math.isfinite(value) else None for value in column.tolist()]


def _ids_of_folders(study: Path) -> set[str]:
    """Ids of the runs whose folders are in a study's folder; a folder's name ends with the id."""
    places = [study / "runs", study]
    folders = [folder for place in places if place.is_dir() for folder in place.iterdir() if folder.is_dir()]
    return {folder.name.rpartition("-")[2] for folder in folders}


def traversal_png(
    run_folder: Path | str, data_root: Path | None = None, place: str | None = None
) -> bytes | None:
    """The picture of a run's traversals: the one in its folder, else one drawn now; None if there is neither.

    A run that still trains, that diverged or whose data set is not on this machine has none; `data_root` is
    the folder of the official files of data sets, `place` where the run's own data lies now.
    """
    folder = Path(run_folder).resolve()
    drawn = (folder / PICTURES_FOLDER / TRAVERSALS_FILE).resolve()
    if drawn.is_file() and drawn.is_relative_to(folder):
        return drawn.read_bytes()
    weights = folder / WEIGHTS_FILE
    if not weights.is_file():
        return None
    try:
        return _traversals_drawn_now(folder, data_root, place, weights.stat().st_mtime_ns)
    except UnweaveError:  # is not kept in the cache: the run may end, or the data come
        return None


@lru_cache(maxsize=64)
def _traversals_drawn_now(folder: Path, data_root: Path | None, place: str | None, _changed: int) -> bytes:
    from unweave.display.pictures import labelled_sheet
    from unweave.runs.run import load
    from unweave.runs.views import traversals
    from unweave.streams import Stream

    run = load(folder, data_root=data_root, data=place)
    if run.result["outcome"] != "finished":  # the codes of a diverged run are no numbers
        raise UnweaveError(f"the run in {folder} is {run.result['outcome']} and has no traversals.")
    data, stream = run.data, Stream.of(run.spec.seed).child("pictures")
    images = data.sample_images(PICTURE_IMAGES, stream)
    file = io.BytesIO()
    labelled_sheet(f"{run.spec.method.name} on {run.spec.data}", traversals(run, images)).save(file, "PNG")
    return file.getvalue()


def _records_of(subject: Subject, _request: Request) -> Answer | None:
    if subject.kind != "study" and not (subject.path / RESULTS_FILE).is_file():
        return None
    if isinstance(subject.in_memory, TableInMemory):
        return Answer(subject.in_memory.records, "application/json")
    subject.opening(0, 0, "Reading the table of results")
    return Answer(study_records(subject.path), "application/json")


ROUTES: Routes = {("GET", "/api/study"): _records_of}
