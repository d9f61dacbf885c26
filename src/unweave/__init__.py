"""unweave: learn, measure and compare disentangled representations.

Importing it is cheap: the parts are imported when they are first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from unweave.lazy import lazy_names

if TYPE_CHECKING:
    from unweave import data, gallery, impossibility, methods, metrics, report, selection, study
    from unweave.errors import UnweaveError
    from unweave.evaluation.evaluate import evaluate
    from unweave.evaluation.scores import Scores
    from unweave.gallery import draw
    from unweave.run import Run, load
    from unweave.selection.select import select
    from unweave.spec import RunSpec
    from unweave.streams import Stream
    from unweave.train_run import train
    from unweave.training.trainer import Stopped

__version__ = "0.1.0"

__all__ = [
    "Run",
    "RunSpec",
    "Scores",
    "Stopped",
    "Stream",
    "UnweaveError",
    "__version__",
    "data",
    "draw",
    "evaluate",
    "gallery",
    "impossibility",
    "load",
    "methods",
    "metrics",
    "report",
    "select",
    "selection",
    "study",
    "train",
]

# Public name -> the module that defines it. Any other name is looked up as a submodule.
_DEFINED_IN = {
    "Run": "unweave.run",
    "RunSpec": "unweave.spec",
    "Scores": "unweave.evaluation",
    "Stopped": "unweave.training.trainer",
    "Stream": "unweave.streams",
    "UnweaveError": "unweave.errors",
    "draw": "unweave.gallery",
    "evaluate": "unweave.evaluation",
    "load": "unweave.run",
    "select": "unweave.selection",
    "train": "unweave.train_run",
}

if not TYPE_CHECKING:  # type checkers report names that are not in the list above
    __getattr__ = lazy_names(__name__, _DEFINED_IN)


def __dir__() -> list[str]:
    return __all__
