"""unweave: learn, measure and compare disentangled representations.

Importing it is cheap: the parts are imported when they are first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from unweave import data, impossibility, methods, metrics
    from unweave.evaluation import Scores, evaluate
    from unweave.run import Run, load, train
    from unweave.spec import RunSpec
    from unweave.streams import Stream

__version__ = "0.1.0"

__all__ = [
    "Run",
    "RunSpec",
    "Scores",
    "Stream",
    "__version__",
    "data",
    "evaluate",
    "impossibility",
    "load",
    "methods",
    "metrics",
    "train",
]

# Public name -> the module that has it; a module's own name stands for the module.
_WHERE = {
    "Run": "unweave.run",
    "RunSpec": "unweave.spec",
    "Scores": "unweave.evaluation",
    "Stream": "unweave.streams",
    "data": "unweave.data",
    "evaluate": "unweave.evaluation",
    "impossibility": "unweave.impossibility",
    "load": "unweave.run",
    "methods": "unweave.methods",
    "metrics": "unweave.metrics",
    "train": "unweave.run",
}


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module 'unweave' has no attribute {name!r}")
    module = import_module(_WHERE[name])
    return module if _WHERE[name] == f"unweave.{name}" else getattr(module, name)


def __dir__() -> list[str]:
    return __all__
