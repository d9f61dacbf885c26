"""Studies: train and measure many runs, resume them after a kill, and collect one table of results.

`unweave.study(...)` and `unweave.study.run_study(...)` are the same function.
"""

from typing import TYPE_CHECKING

from unweave.lazy import lazy_names, make_callable
from unweave.study.folder import StudyFolder
from unweave.study.presets import PRESETS, preset_named
from unweave.study.spec import StudySpec, grid, read_study

if TYPE_CHECKING:
    from unweave.study.result import StudyResult
    from unweave.study.session import run_study

__all__ = [
    "PRESETS",
    "StudyFolder",
    "StudyResult",
    "StudySpec",
    "grid",
    "preset_named",
    "read_study",
    "run_study",
]

if not TYPE_CHECKING:
    __getattr__ = lazy_names(
        __name__, {"StudyResult": "unweave.study.result", "run_study": "unweave.study.session"}
    )
make_callable(__name__, "run_study")
