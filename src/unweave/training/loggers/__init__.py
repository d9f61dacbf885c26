"""Loggers: experiment trackers that get the losses and scores of runs, such as TensorBoard."""

from typing import TYPE_CHECKING

from unweave.lazy import lazy_names

if not TYPE_CHECKING:
    __getattr__ = lazy_names(__name__)
