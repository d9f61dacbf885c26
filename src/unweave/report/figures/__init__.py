"""The figures of the report: pure functions, tables in, a figure out; one file for each research question."""

from typing import TYPE_CHECKING

from unweave.lazy import lazy_names

if not TYPE_CHECKING:
    __getattr__ = lazy_names(__name__)
