"""Choosing runs without labels: those that agree best with other runs of the same data."""

from unweave.selection.candidates import Candidate, Candidates, candidates_in
from unweave.selection.select import Selection, select

__all__ = ["Candidate", "Candidates", "Selection", "candidates_in", "select"]
