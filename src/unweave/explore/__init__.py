"""The explorer: a web page to move through the latents of a model and through the runs of a study.

`unweave.explore(...)` and `unweave.explore.explore(...)` are the same function.
"""

from typing import TYPE_CHECKING

from unweave.lazy import lazy_names, make_callable

if TYPE_CHECKING:
    from unweave.explore.session import Explorer, explore

__all__ = ["Explorer", "explore"]

if not TYPE_CHECKING:
    __getattr__ = lazy_names(
        __name__, {"Explorer": "unweave.explore.session", "explore": "unweave.explore.session"}
    )
make_callable(__name__, "explore")
