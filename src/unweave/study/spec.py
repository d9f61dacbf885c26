"""What a study is: runs, and what is measured of each. Plain data, checked before anything starts."""

from __future__ import annotations

import dataclasses
import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

from unweave.data.opening import is_place, open_seen_from
from unweave.data.own.reference import Reference
from unweave.errors import UnweaveError, did_you_mean
from unweave.evaluation.evaluate import POINTS, REPRESENTATIONS
from unweave.evaluation.parts import TRAINING, Part, checked_parts
from unweave.methods.method import Method
from unweave.methods.sampling import images_per_step
from unweave.metrics.lookup import metric_words, metrics_named
from unweave.plugins.loading import absolute, is_reference
from unweave.runs.spec import RunSpec, method_with, spec_of

SCHEMA = 1
IMAGES = "images"  # how many images a run sees, as an alternative to its number of steps
MOST_SEEDS = 1_000_000  # in one range; more is a slip of the keyboard
RUN_FIELDS = tuple(
    field.name for field in dataclasses.fields(RunSpec) if field.name not in ("method", "plugins")
)


@dataclass(frozen=True)
class StudySpec:
    """Runs to train, and the metrics and representations to measure on each.

    `references` say how to open the data sets of runs that are not in the catalogue. `on` names the parts of
    data with conditions that runs are measured on: "training", and perhaps "all" and "held_out".

    >>> runs = grid([{"name": "beta_vae", "beta": [1, 4]}], data="dsprites", seed="0-4")
    >>> len(StudySpec("two betas", runs, metrics="quick").runs)
    10
    """

    name: str
    runs: tuple[RunSpec, ...]
    metrics: tuple[str, ...] | str = "study"
    representations: tuple[str, ...] = REPRESENTATIONS
    points: tuple[int, int] = POINTS
    seed: int = 0  # of the evaluation
    pictures: bool = False
    references: tuple[Reference, ...] = ()
    on: tuple[Part, ...] = TRAINING

    def __post_init__(self) -> None:
        if not self.name or not isinstance(self.name, str):
            raise UnweaveError(f"a study must have a name; got {self.name!r}.")
        unique = tuple(dict.fromkeys(self.runs))
        if not unique:
            raise UnweaveError(f'the study "{self.name}" has no runs.')
        object.__setattr__(self, "runs", unique)
        metrics_named(self.metrics)  # those of plug-ins can be loaded
        object.__setattr__(self, "metrics", metric_words(self.metrics))
        object.__setattr__(self, "representations", tuple(self.representations))
        for representation in self.representations:
            if representation not in REPRESENTATIONS:
                known = did_you_mean(str(representation), REPRESENTATIONS)
                raise UnweaveError(f'there is no representation "{representation}". {known}')
        if not self.representations:
            raise UnweaveError("a study measures at least one representation: mean, sampled or both.")
        points = tuple(self.points)
        if len(points) != 2 or not all(isinstance(n, int) and n > 0 for n in points):
            raise UnweaveError(
                f"points are how many to train and to test on, such as {POINTS}; got {points}."
            )
        object.__setattr__(self, "points", points)
        object.__setattr__(self, "on", checked_parts(self.on))
        used = {run.data for run in unique}
        references = tuple(
            reference for reference in _one_of_each_name(self.references) if reference.name in used
        )
        object.__setattr__(self, "references", references)

    def reference(self, data: str) -> Reference | None:
        """How to open the data set of that name; None if it is one of the catalogue."""
        return next((reference for reference in self.references if reference.name == data), None)

    @property
    def measures(self) -> str:
        """What is measured of each run, as a text: where it changes, runs are measured again."""
        parts = () if self.on == TRAINING else (self.on,)  # finished studies are not measured again
        return repr((self.metrics, self.representations, self.points, self.seed, self.pictures, *parts))

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        apart = ("runs", "references", *(["on"] if self.on == TRAINING else []))
        plain = {f.name: getattr(self, f.name) for f in dataclasses.fields(self) if f.name not in apart}
        if self.references:
            plain["references"] = [reference.to_dict() for reference in self.references]
        return {"schema": SCHEMA, **plain, "runs": [run.to_dict() for run in self.runs]}

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> StudySpec:
        """The spec that `to_dict` wrote."""
        fields = dict(plain)
        if (schema := fields.pop("schema", None)) != SCHEMA:
            raise UnweaveError(
                f"this study is of version {schema}; this unweave reads version {SCHEMA}. Use the unweave "
                "that wrote it."
            )
        known = [field.name for field in dataclasses.fields(cls)]
        for name in fields:
            if name not in known:
                raise UnweaveError(f'a study has no field "{name}". {did_you_mean(name, known)}')
        runs = tuple(RunSpec.from_dict(run) for run in fields.pop("runs", ()))
        for name in ("metrics", "representations", "points", "on"):
            if name in fields:
                fields[name] = tuple(fields[name])
        references = tuple(Reference.from_dict(record) for record in fields.pop("references", ()))
        return cls(runs=runs, references=references, **fields)

    def merged(self, other: StudySpec) -> StudySpec:
        """The study with the runs, metrics, representations and parts of data of another added."""
        if (self.points, self.seed) != (other.points, other.seed):
            raise UnweaveError(
                f"the study measures {self.points} points from seed {self.seed}; {other.points} from seed "
                f"{other.seed} would be another study. Choose another folder."
            )
        return dataclasses.replace(
            self,
            runs=(*self.runs, *other.runs),
            metrics=tuple(dict.fromkeys((*self.metrics, *other.metrics))),
            representations=tuple(dict.fromkeys((*self.representations, *other.representations))),
            pictures=self.pictures or other.pictures,
            on=(*self.on, *other.on),
            references=(*self.references, *other.references),
        )


def _one_of_each_name(references: Iterable[Reference]) -> tuple[Reference, ...]:
    """The references by name; the last place of data that has moved, an error for different data."""
    by_name: dict[str, Reference] = {}
    for reference in references:
        before = by_name.setdefault(reference.name, reference)
        if before.source != reference.source:
            raise UnweaveError(
                f'a study cannot have two different data sets of one name, "{reference.name}": {before.path} '
                f"and {reference.path}. Rename one of them, or choose another folder for the study."
            )
        by_name[reference.name] = reference
    return tuple(by_name.values())


def grid(methods: Iterable[Mapping[str, Any]], **shared: Any) -> tuple[RunSpec, ...]:
    """All combinations of values: each list in a method or in what is shared is a dimension.

    A method is a table with its name, its settings and, where they differ, fields of its runs. `images`, in
    place of `steps`, is how many images each run sees: a method of pairs makes half as many steps.

    >>> runs = grid([{"name": "vae"}, {"name": "ada_gvae"}], data="dsprites", seed=0, images=64_000)
    >>> [run.steps for run in runs]
    [1000, 500]
    """
    runs: list[RunSpec] = []
    known = (*RUN_FIELDS, IMAGES)
    for method in methods:
        own = {name: value for name, value in method.items() if name in known}
        length = ("steps", IMAGES)
        inherited = {k: v for k, v in shared.items() if k not in length or not any(n in own for n in length)}
        for name in shared:
            if name not in known:
                raise UnweaveError(f'a run has no field "{name}". {did_you_mean(name, known)}')
        if "name" not in method:
            raise UnweaveError('each method of a study needs its name: name = "beta_vae".')
        settings = {k: v for k, v in method.items() if k != "name" and k not in known}
        for chosen in _combinations(settings):
            made = method_with(str(method["name"]), chosen)
            runs += [_run_of(made, one) for one in _combinations(inherited | own)]
    return tuple(runs)


def _run_of(method: Method, fields: Mapping[str, Any]) -> RunSpec:
    """A run of a method; its number of steps may follow from the number of images that it is to see."""
    if IMAGES not in fields:
        return spec_of(method, **fields)
    images, rest = fields[IMAGES], {name: value for name, value in fields.items() if name != IMAGES}
    if "steps" in rest:
        raise UnweaveError("a run of a study has either steps or images; got both. Remove one of them.")
    if not isinstance(images, int) or isinstance(images, bool):
        raise UnweaveError(f"images must be a whole number; got {images!r}.")
    per_step = images_per_step(method.sampling, spec_of(method, **rest).batch)
    if images < per_step:
        raise UnweaveError(f"images must be at least {per_step:,}, those of one step; got {images:,}.")
    return spec_of(method, **rest, steps=images // per_step)


def _combinations(table: Mapping[str, Any]) -> list[dict[str, Any]]:
    values = [_values(name, value) for name, value in table.items()]
    return [dict(zip(table, chosen, strict=True)) for chosen in product(*values)]


def _values(name: str, value: Any) -> Sequence[Any]:
    if name == "seed" and isinstance(value, str):
        return whole_numbers(value)
    if isinstance(value, list | tuple):
        if not value:
            raise UnweaveError(f"{name} has no values.")
        return value
    return [value]


def whole_numbers(text: str) -> list[int]:
    """0-3,7 -> 0, 1, 2, 3, 7."""
    numbers: list[int] = []
    for part in text.split(","):
        match = re.fullmatch(r"\s*(\d+)(?:-(\d+))?\s*", part)
        if not match:
            raise UnweaveError(f'seeds are whole numbers and ranges, as in 0-7 or 1,3,5; got "{text}".')
        first, last = int(match[1]), int(match[2] or match[1])
        if last < first:
            raise UnweaveError(f'the range of seeds "{part}" is empty; write the smaller number first.')
        if last - first >= MOST_SEEDS:
            raise UnweaveError(f'the range of seeds "{part}" has more than {MOST_SEEDS:,} numbers.')
        numbers += range(first, last + 1)
    return numbers


def read_study(path: str | Path) -> StudySpec:
    """A study from a TOML file: its fields, a table [shared] of fields of all runs, and [[methods]].

    `data` may be the path of your own data, and any part a plug-in `file.py:Name`, relative to the file.
    """
    path = Path(path)
    try:
        plain = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UnweaveError(f"there is no file {path}.") from None
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UnweaveError(f"cannot read {path} as TOML: {error}") from error
    known = ["name", "metrics", "representations", "points", "seed", "pictures", "on", "shared", "methods"]
    for name in plain:
        if name not in known:
            raise UnweaveError(f'{path}: a study has no field "{name}". {did_you_mean(name, known)}')
    try:
        references: list[Reference] = []
        shared = _with_own_data(plain.pop("shared", {}), path.parent, references)
        methods = [_with_own_data(table, path.parent, references) for table in plain.pop("methods", [])]
        runs = grid(methods, **shared)
        if isinstance(plain.get("metrics"), str):
            plain["metrics"] = plain["metrics"].split(",")
        plain = {name: _seen_from(path.parent, value) for name, value in plain.items()}
        for name in ("metrics", "representations", "points", "on"):
            if isinstance(plain.get(name), list):
                plain[name] = tuple(plain[name])
        return StudySpec(plain.pop("name", path.stem), runs, references=tuple(references), **plain)
    except UnweaveError as error:
        raise UnweaveError(f"{path}: {error}") from error
    except TypeError as error:
        raise UnweaveError(f"{path} is not a study: {error}") from error


def _with_own_data(table: Any, folder: Path, references: list[Reference]) -> Any:
    """A table of a study file with names for the paths of a user's data; adds how to open them."""
    if not isinstance(table, Mapping):
        return table
    table = {name: _seen_from(folder, value) for name, value in table.items()}
    if "data" not in table:
        return table
    data = table["data"]
    names = [_own_name(entry, folder, references) for entry in (data if isinstance(data, list) else [data])]
    return {**table, "data": names if isinstance(data, list) else names[0]}


def _seen_from(folder: Path, value: Any) -> Any:
    """A value of a study file, with the whole path where it names a plug-in's file, or a list of such."""
    if isinstance(value, list):
        return [_seen_from(folder, part) for part in value]
    return (
        absolute(value.strip(), folder) if isinstance(value, str) and is_reference(value.strip()) else value
    )


def _own_name(named: Any, folder: Path, references: list[Reference]) -> Any:
    if not is_place(named, folder):
        return named
    data = open_seen_from(folder, named)
    references += [data.reference] if data.reference else []
    return data.name
