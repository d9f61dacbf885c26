"""Building blocks for many models at once: every tensor and parameter may carry an axis of runs in front."""

from typing import TYPE_CHECKING

from unweave.lazy import lazy_names

if not TYPE_CHECKING:
    __getattr__ = lazy_names(__name__)
