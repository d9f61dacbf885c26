"""Engines that do the tasks of a study: processes of this machine, a Ray cluster, or Slurm jobs."""

from typing import TYPE_CHECKING

from unweave.lazy import lazy_names

if not TYPE_CHECKING:
    __getattr__ = lazy_names(__name__)
