"""What a logger is, and the built-in loggers.

A logger records one run in an experiment tracker. The runs of a population have a logger each.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from importlib.util import find_spec
from pathlib import Path
from typing import Protocol, TypeAlias

from unweave.errors import UnweaveError, did_you_mean
from unweave.methods import settings_of
from unweave.plugins.loading import is_reference, load_reference
from unweave.runs.spec import RunSpec

HyperParameter: TypeAlias = bool | int | float | str

# A built-in logger has the name of the package that it needs, which is also the name of the extra.
LOGGERS = {
    "tensorboard": "unweave.training.loggers.tensorboard:TensorBoardLogger",
    "wandb": "unweave.training.loggers.wandb:WandbLogger",
    "mlflow": "unweave.training.loggers.mlflow:MlflowLogger",
}


@dataclass(frozen=True)
class LoggedRun:
    """The run that a logger records."""

    spec: RunSpec
    name: str  # that of the run's folder
    folder: Path  # for the logger's files; it is inside the run's folder
    known_as: str = ""  # the `id` of the logger that recorded this run before; "" the first time


class Logger(Protocol):
    """Records one run. A class that is called with a LoggedRun makes one.

    If training is resumed, a new logger gets the id of the one before, and continues its record. Nothing is
    logged twice.
    """

    @property
    def id(self) -> str:
        """The name of the run in the tracker."""

    def log(self, step: int, terms: Mapping[str, float]) -> None:
        """Record loss terms; the steps increase, and all values are finite."""

    def finish(self, scores: Mapping[str, float], pictures: Sequence[Path]) -> None:
        """Record the scores of the trained run and its pictures, which are PNG files."""

    def close(self) -> None:
        """Write what is not written yet."""


LoggerClass: TypeAlias = Callable[[LoggedRun], Logger]


def logger_named(name: str) -> LoggerClass:
    """The logger of a name or of a reference `file.py:Name`."""
    if name not in LOGGERS and not is_reference(name):
        raise UnweaveError(f'there is no logger "{name}". {did_you_mean(name, LOGGERS)}')
    if name in LOGGERS and find_spec(name) is None:
        raise UnweaveError(f'the logger {name} needs a package. Run: pip install "unweave[{name}]"')
    kind: LoggerClass = load_reference(LOGGERS.get(name, name), "logger")
    missing = [method for method in ("log", "finish", "close") if not callable(getattr(kind, method, None))]
    if missing:
        raise UnweaveError(f"{name} is not a logger: it has no method {' and no method '.join(missing)}.")
    return kind


def hyper_parameters(spec: RunSpec) -> dict[str, HyperParameter]:
    """The settings of a run by name: those of its method, then those of the run.

    >>> from unweave.methods import BetaVAE
    >>> list(hyper_parameters(RunSpec(BetaVAE(beta=4.0))).items())[:3]
    [('method', 'beta_vae'), ('beta', 4.0), ('data', 'dsprites')]
    """
    own = settings_of(spec.method)
    shared = {f.name: getattr(spec, f.name) for f in fields(spec) if f.name not in ("method", "plugins")}
    return {"method": spec.method.name} | {
        name: value if isinstance(value, bool | int | float | str) else str(value)
        for name, value in (own | shared).items()
    }
