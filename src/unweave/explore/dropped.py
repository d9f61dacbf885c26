"""Files that were dropped onto the page: a run's folder, or tables of results.

What comes in is bytes with names, never paths. Names are compared with a list and decide what a file is; they
are not used to write files. Nothing is unpickled, and a run that names a plug-in is refused, because opening
it would execute code. Where a run's own data lay is forgotten: only data sets of the catalogue are opened.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from unweave.errors import UnweaveError
from unweave.explore.in_memory import subject_of_results
from unweave.explore.subject import Subject, subject_at
from unweave.files import write_bytes
from unweave.layout import RESULT_FILE, SCORES_FILE, SPEC_FILE, WEIGHTS_FILE
from unweave.plugins.loading import is_reference
from unweave.report.published import is_published, published
from unweave.results import Results, combine, read_frame, read_table

MOST_RECORD = 4 << 20  # of a JSON file
MOST_FILES = 64
RECORDS = (SPEC_FILE, RESULT_FILE, SCORES_FILE)
TABLE = ".csv"
WHAT = (
    "Drop the folder of a finished run (spec.json, result.json, weights.safetensors) or tables of results "
    "(.csv)."
)


class Dropped(NamedTuple):
    """The name of what was dropped, for people, and the content of its files by name."""

    name: str
    files: Mapping[str, bytes]


def read_dropped(body: bytes) -> Dropped:
    """Files from one body: a line of JSON, {name, files: [[name, bytes], ...]}, then their contents."""
    line, _, content = body.partition(b"\n")
    try:
        header = json.loads(line)
        sizes = {str(name): int(size) for name, size in header["files"]}
        name = str(header["name"])[:80]
    except (ValueError, TypeError, KeyError, RecursionError):
        raise UnweaveError(f"what was dropped does not begin with a list of files. {WHAT}") from None
    if len(sizes) > MOST_FILES or min(sizes.values(), default=0) < 0 or sum(sizes.values()) != len(content):
        raise UnweaveError(f"the files that were dropped have not arrived whole. {WHAT}")
    files, start = {}, 0
    for file, size in sizes.items():
        files[file] = content[start : start + size]
        start += size
    return Dropped(name, files)


def open_dropped(dropped: Dropped, folder: Path, device: str, data_root: Path | None) -> Subject:
    """The run or the tables that were dropped; the files that are needed are written into an empty folder."""
    if dropped.files and all(name.lower().endswith(TABLE) for name in dropped.files):
        return subject_of_results(_tables(dropped, folder), Path(dropped.name).name or "tables")
    if {SPEC_FILE, RESULT_FILE, WEIGHTS_FILE} <= dropped.files.keys():
        path = _run_folder(dropped, folder)
        _check_run(path)
        return subject_at(path, device, data_root)
    raise UnweaveError(f"{Path(dropped.name).name or 'this'} cannot be opened. {WHAT}")


def _tables(dropped: Dropped, folder: Path) -> Results:
    tables = []
    for i, (name, content) in enumerate(dropped.files.items()):
        path = folder / str(i) / f"results_{i}{TABLE}"  # a name that `published` reads
        write_bytes(path, content)
        try:
            known = is_published(read_frame(path))
            tables.append(published(path.parent) if known else read_table(path))
        except UnweaveError as error:
            sentence = str(error).replace(str(path), Path(name).name)
            raise UnweaveError(f"{Path(name).name} cannot be shown: {sentence}") from error
    return combine(*tables) if len(tables) > 1 else tables[0]


def _run_folder(dropped: Dropped, folder: Path) -> Path:
    """Write the run's files; its folder has the name of the run, made of plain letters."""
    records = {name: _record(name, dropped.files[name]) for name in RECORDS if name in dropped.files}
    spec = records[SPEC_FILE]
    if not isinstance(spec, dict):
        raise UnweaveError(f"{SPEC_FILE} is not that of a run. {WHAT}")
    if any(is_reference(word) for word in _words(spec)):
        raise UnweaveError(
            "this run uses a plug-in, whose code would be executed. Open it from the command line: unweave "
            "explore FOLDER."
        )
    spec.pop("data_reference", None)
    target = folder / (re.sub(r"[^A-Za-z0-9_-]", "", dropped.name) or "run")
    for name, record in records.items():
        write_bytes(target / name, json.dumps(record).encode())
    write_bytes(target / WEIGHTS_FILE, dropped.files[WEIGHTS_FILE])
    return target


def _check_run(path: Path) -> None:
    """Refuse a folder whose records are not those of a run; a page cannot say which file it means."""
    from unweave.runs.store import RunFolder  # here, because it needs torch

    try:
        ended = (RunFolder(path).spec, RunFolder(path).result)
    except UnweaveError as error:
        raise UnweaveError(str(error).replace(str(path), path.name)) from error
    except (TypeError, ValueError, AttributeError, KeyError) as error:  # plain data of another form
        raise UnweaveError(f"{SPEC_FILE} is not that of a run: {error}. {WHAT}") from error
    if ended[1] is None:
        raise UnweaveError(f"the run {path.name} has not finished. {WHAT}")


def _record(name: str, content: bytes) -> Any:
    if len(content) > MOST_RECORD:
        raise UnweaveError(f"{name} has {len(content):,} bytes; at most {MOST_RECORD:,} are read.")
    try:
        return json.loads(content)
    except (ValueError, RecursionError):
        raise UnweaveError(f"{name} is not JSON. {WHAT}") from None


def _words(record: Any) -> Iterator[str]:
    """All texts in plain data, keys included."""
    pending = [record]
    while pending:
        value = pending.pop()
        if isinstance(value, str):
            yield value
        elif isinstance(value, dict):
            pending += [*value, *value.values()]
        elif isinstance(value, list):
            pending += value
