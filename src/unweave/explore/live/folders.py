"""Which runs a folder has or will have: one run, the runs of a study, or a folder of runs.

Specs are read as plain records, without torch: a page that watches a training must cost the training little.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from unweave.layout import SPEC_FILE, STUDY_FILE

ID_IN_NAME = re.compile(r".*-([0-9a-f]{16})")

Record = Mapping[str, Any]


def read_record(path: Path) -> Record | None:
    """The JSON object in a file; None if there is none. A link is not followed: it may lead anywhere."""
    try:
        record = None if path.is_symlink() else json.loads(path.read_bytes())
    except (OSError, ValueError):
        return None
    return record if isinstance(record, dict) else None


def spec_in(folder: Path) -> Record | None:
    """The spec of the run in a folder; None if it has none."""
    spec = (read_record(folder / SPEC_FILE) or {}).get("spec")
    return spec if is_spec(spec) else None


def is_spec(spec: object) -> bool:
    """Whether a record has what is shown of a spec."""
    return (
        isinstance(spec, dict)
        and isinstance(spec.get("method"), dict)
        and isinstance(spec["method"].get("name"), str)
        and isinstance(spec.get("steps"), int)
    )


def spec_hash(spec: Record) -> str:
    """A name made of a spec: the id of its run, unless the run has plug-ins."""
    return hashlib.blake2b(json.dumps(spec, sort_keys=True).encode(), digest_size=8).hexdigest()


def id_in_name(folder: Path) -> str | None:
    """The id at the end of the name of a run's folder, if it has the usual form."""
    match = ID_IN_NAME.fullmatch(folder.name)
    return match[1] if match else None


class Plan(NamedTuple):
    """What a study says: its name, where its runs are, and their specs by their hashes."""

    name: str
    runs_in: Path
    specs: Mapping[str, Record]


def plan_in(folder: Path) -> Plan | None:
    """The plan of the study in a folder; None if it has none."""
    try:
        changed = (folder / STUDY_FILE).stat().st_mtime_ns
    except OSError:
        return None
    return _plan_in(folder, changed)


@lru_cache(maxsize=2)
def _plan_in(folder: Path, _changed: int) -> Plan | None:
    """The plan as it was at a time: a study to which runs were added is read again."""
    record = read_record(folder / STUDY_FILE)
    if record is None or not isinstance(record.get("runs"), list):
        return None
    runs_in = folder / str(record.get("runs_in", "."))
    if not runs_in.resolve().is_relative_to(folder.resolve()):
        return None
    specs = {spec_hash(spec): spec for spec in record["runs"] if is_spec(spec)}
    return Plan(str(record.get("name", folder.name)), runs_in, specs)


def run_folders(folder: Path, plan: Plan | None) -> list[Path]:
    """The folders that are or may become those of runs: the folder itself, or those in it."""
    if (folder / SPEC_FILE).exists():
        return [folder]
    try:
        with os.scandir(plan.runs_in if plan else folder) as entries:
            return [Path(entry.path) for entry in entries if entry.is_dir(follow_symlinks=False)]
    except OSError:  # the folder comes later
        return []


def runs_by_id(folder: Path) -> Mapping[str, Path]:
    """The folders of runs in a folder by the ids of the runs."""
    specs = {path: spec_in(path) for path in run_folders(folder, plan_in(folder))}
    return {id_in_name(path) or spec_hash(spec): path for path, spec in specs.items() if spec is not None}
