"""Reports on tables of results: statistics, figures and a page. Reads tables only; needs no torch.

`unweave.report(...)` and `unweave.report.make_report(...)` are the same function.
"""

from typing import TYPE_CHECKING

from unweave.lazy import lazy_names, make_callable

if TYPE_CHECKING:
    from unweave.report.writing import Report, make_report

__all__ = ["Report", "make_report"]

if not TYPE_CHECKING:
    __getattr__ = lazy_names(
        __name__, {"Report": "unweave.report.writing", "make_report": "unweave.report.writing"}
    )
make_callable(__name__, "make_report")
