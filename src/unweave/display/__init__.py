"""What people see: progress bars, notebook views, figures and contact sheets. Needs no torch."""

from typing import TYPE_CHECKING

from unweave.lazy import lazy_names

if not TYPE_CHECKING:
    __getattr__ = lazy_names(__name__)
