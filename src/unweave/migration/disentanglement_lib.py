"""Results of disentanglement_lib [1] as a table of results.

dlib_evaluate writes a folder `results` for each metric of each representation of each model:

gin/STEP.gin             the operative configuration of a step: train, postprocess, evaluation
json/STEP_config.json    its bindings
json/STEP_results.json   its results
aggregate/evaluation.json  all of these as one flat record: "evaluation_results.discrete_mig": 0.31

dlib_aggregate_results puts such records into one JSON file, one column for each key.

[1] https://github.com/google-research/disentanglement_lib, version 1.5.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from unweave.errors import UnweaveError
from unweave.methods import settings_of
from unweave.metrics.lookup import metric_named
from unweave.migration.equivalents import data_named, method_of, model_of, read_gin, seed_of
from unweave.migration.gin import Bindings, bound, gin_value
from unweave.migration.json_files import read_json_object
from unweave.migration.scores import SOURCE, Score, scores_of
from unweave.results import COLUMNS, Results, check_table, setting_text

STEPS = ("train", "postprocess", "evaluation")
REPRESENTATIONS = {"mean_representation": "mean", "sampled_representation": "sampled"}
LIKELIHOOD_TERMS = {"reconstruction_loss": "reconstruction", "kl_loss": "kl", "elbo": "elbo"}


class Record(NamedTuple):
    """All about one evaluation by step, such as "train_config", and where it was read from."""

    place: str
    steps: Mapping[str, Mapping[str, Any]]

    def part(self, name: str) -> Mapping[str, Any]:
        """What a step has; empty if the step is not there."""
        return self.steps.get(name, {})


def record_of(place: str, flat: Mapping[str, Any]) -> Record:
    """The record with keys such as "train_config.vae.beta"; empty cells are left out."""
    steps: dict[str, dict[str, Any]] = {}
    for key, value in flat.items():
        if value is not None:
            step, _, name = key.partition(".")
            steps.setdefault(step, {})[name] = value
    return Record(place, steps)


class Model(NamedTuple):
    """The columns of a table of results that say which model it is."""

    source: str
    run: str
    data: str
    method: str
    setting: str
    strength: float
    seed: int


class Row(NamedTuple):
    """A row of a table of results, and the seed of its evaluation."""

    seed: int
    cells: tuple[Any, ...]


def read_disentanglement_lib(*places: str | Path) -> Results:
    """The results in folders that disentanglement_lib wrote, or in aggregated JSON files.

    Folders are searched for evaluations at any depth. The source of all rows is "disentanglement_lib".
    Methods and data sets get the names of unweave. A method that has no equivalent keeps its name, and a
    note says why. If a score was measured several times, the one of the lowest evaluation seed is kept.
    """
    if not places:
        raise UnweaveError("name what to read: folders of disentanglement_lib, or aggregated JSON files.")
    records = _each_once(record for place in places for record in _records(Path(place).expanduser()))
    models: dict[str, Model] = {}
    notes: dict[str, None] = {}
    rows: dict[tuple[str, ...], Row] = {}
    repeated = 0
    for record in records:
        key, seed = _model_key(record), _evaluation_seed(record)
        if key not in models:
            models[key] = _model(record, key, notes)
        for representation, score in _scores(record):
            place = (key, representation, score.name, score.protocol)
            repeated += place in rows and representation != ""
            if place not in rows or seed < rows[place].seed:
                rows[place] = Row(seed, (*models[key], representation, *score))
    table = check_table(pd.DataFrame([row.cells for row in rows.values()], columns=list(COLUMNS)))
    if repeated:
        notes[f"{repeated} scores were measured again; those of the lowest evaluation seed are kept."] = None
    return Results(table.table, (*notes, *table.notes))


def _evaluation_seed(record: Record) -> int:
    return int(gin_value(record.part("evaluation_config").get("evaluation.random_seed", 0)))


def _records(place: Path) -> Iterator[Record]:
    """The evaluations in a folder or an aggregated file."""
    if place.is_file():
        yield from _aggregated(place)
        return
    if not place.is_dir():
        raise UnweaveError(
            f"there is no {place}. Name a folder of disentanglement_lib or an aggregated file."
        )
    files = [*place.rglob("json/evaluation_results.json"), *place.rglob("aggregate/evaluation.json")]
    folders = sorted({file.parents[1] for file in files})
    if not folders:
        raise UnweaveError(
            f"{place} has no results of disentanglement_lib: no file json/evaluation_results.json or "
            "aggregate/evaluation.json at any depth. Evaluate the models with dlib_evaluate first."
        )
    yield from map(_results_folder, folders)


def _results_folder(folder: Path) -> Record:
    """The record of a folder `results`. Its gin files come first: the JSON files cut wrapped lines."""
    aggregate = folder / "aggregate" / "evaluation.json"
    values = dict(read_json_object(aggregate)) if aggregate.is_file() else {}
    for step in STEPS:
        for kind in ("config", "results"):
            path = folder / "json" / f"{step}_{kind}.json"
            if path.is_file():
                values |= {f"{step}_{kind}.{key}": value for key, value in read_json_object(path).items()}
        path = folder / "gin" / f"{step}.gin"
        if path.is_file():
            values |= {f"{step}_config.{key}": value for key, value in read_gin(path).items()}
    return record_of(str(folder), values)


def _aggregated(path: Path) -> Iterator[Record]:
    """The records of a file of dlib_aggregate_results: {column: {row: cell}}."""
    columns = read_json_object(path)
    if not columns or not all(isinstance(cells, dict) for cells in columns.values()):
        raise UnweaveError(
            f"{path} is not a file of dlib_aggregate_results, which has one object of cells for each column."
        )
    numbers = dict.fromkeys(number for cells in columns.values() for number in cells)
    for number in numbers:
        yield record_of(f"{path}, row {number}", {name: cells.get(number) for name, cells in columns.items()})


def _each_once(records: Iterable[Record]) -> Iterator[Record]:
    """Records without copies of the same evaluation, such as a folder and the file that aggregates it."""
    seen: set[Any] = set()
    for record in records:
        number = record.part("evaluation_results").get("uuid")
        if number is None or number not in seen:
            seen.add(number)
            yield record


def _model_key(record: Record) -> str:
    """What all evaluations of a model share: the number of its training, or its configuration."""
    number = record.part("train_results").get("uuid")
    if number is not None:
        return str(number)
    text = json.dumps(record.part("train_config"), sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()


def _model(record: Record, key: str, notes: dict[str, None]) -> Model:
    bindings = record.part("train_config")
    try:
        data, seed = str(bound(bindings, "dataset.name")), seed_of(bindings)
        method, setting, strength = _method(bindings, notes)
    except UnweaveError as error:
        raise UnweaveError(f"{record.place} has no complete train_config: {error}") from error
    run = f"dlib-{key.replace('-', '')[:12]}"
    return Model(SOURCE, run, data_named(data), method, setting, strength, seed)


def _method(bindings: Bindings, notes: dict[str, None]) -> tuple[str, str, float]:
    """The name, the settings and the strength of a model's method."""
    name = model_of(bindings)
    try:
        method = method_of(bindings)
    except UnweaveError as error:
        notes[f"{name} keeps its name: {error}"] = None
        own = {key: _plain(value) for key, value in bindings.items() if _describes(key, name)}
        numbers = [value for value in own.values() if isinstance(value, int | float)]
        return name, setting_text(own), float(numbers[0]) if len(numbers) == 1 else float("nan")
    settings = settings_of(method)
    strength = settings.get(method.strength or "")
    return method.name, setting_text(settings), float("nan") if strength is None else float(strength)


def _describes(key: str, model: str) -> bool:
    """Whether a binding is a setting of a model, or of the pairs that it learns from."""
    return model.startswith(key.partition(".")[0]) or key == "dynamics.k"


def _plain(written: Any) -> float | str:
    value = gin_value(written)
    return value if isinstance(value, int | float | str) else str(value)


def _scores(record: Record) -> Iterator[tuple[str, Score]]:
    """All scores of a record with their representations; those of the model itself have none."""
    function = gin_value(record.part("postprocess_config").get("postprocess.postprocess_fn", "unknown"))
    representation = REPRESENTATIONS.get(function, str(function))
    found = scores_of(record.part("evaluation_results"), record.part("evaluation_config"), representation)
    yield from ((representation, score) for score in found)
    losses = record.part("train_results")
    for key, term in LIKELIHOOD_TERMS.items():
        if key in losses:
            yield "", Score(f"elbo.{term}", metric_named("elbo").protocol(), float(losses[key]))
