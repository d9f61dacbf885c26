"""Choosing runs without labels: those that agree best with other runs of the same data."""

from typing import TYPE_CHECKING

from unweave.lazy import lazy_names
from unweave.selection.candidates import Candidate, Candidates, candidates_in
from unweave.selection.select import Selection, select

__all__ = ["Candidate", "Candidates", "Selection", "candidates_in", "select"]

if not TYPE_CHECKING:
    __getattr__ = lazy_names(__name__)
