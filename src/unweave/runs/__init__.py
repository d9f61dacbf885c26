"""Runs: what a run is, its folder, the trained model and its pictures."""

from typing import TYPE_CHECKING

from unweave.lazy import lazy_names

if not TYPE_CHECKING:
    __getattr__ = lazy_names(__name__)
