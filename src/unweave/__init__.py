"""unweave: learn, measure and compare disentangled representations.

Importing it is cheap: the parts are imported when they are first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from unweave.lazy import lazy_names

if TYPE_CHECKING:
    from unweave import (
        data,
        directions,
        explore,
        impossibility,
        integrations,
        methods,
        metrics,
        migration,
        plugins,
        reasoning,
        report,
        selection,
        sparse,
        study,
    )
    from unweave.errors import UnweaveError
    from unweave.evaluation.compare import compare
    from unweave.evaluation.evaluate import evaluate
    from unweave.evaluation.scores import Scores
    from unweave.runs import gallery
    from unweave.runs.gallery import draw
    from unweave.runs.run import Run, load
    from unweave.runs.spec import RunSpec
    from unweave.runs.train import train
    from unweave.selection.select import select
    from unweave.streams import Stream
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
    "compare",
    "data",
    "directions",
    "draw",
    "evaluate",
    "explore",
    "gallery",
    "impossibility",
    "integrations",
    "load",
    "methods",
    "metrics",
    "migration",
    "plugins",
    "reasoning",
    "report",
    "select",
    "selection",
    "sparse",
    "study",
    "train",
]

# Public name -> the module that defines it. Any other name is looked up as a submodule.
_DEFINED_IN = {
    "Run": "unweave.runs.run",
    "RunSpec": "unweave.runs.spec",
    "Scores": "unweave.evaluation",
    "Stopped": "unweave.training.trainer",
    "Stream": "unweave.streams",
    "UnweaveError": "unweave.errors",
    "compare": "unweave.evaluation",
    "draw": "unweave.runs.gallery",
    "evaluate": "unweave.evaluation",
    "gallery": "unweave.runs",
    "load": "unweave.runs.run",
    "select": "unweave.selection",
    "train": "unweave.runs.train",
}

if not TYPE_CHECKING:  # type checkers report names that are not in the list above
    __getattr__ = lazy_names(__name__, _DEFINED_IN)


def __dir__() -> list[str]:
    return __all__
