"""Supervision drawn from any ground truth: labels, groups, pairs, sequences, and restricted factors.

Every draw returns factors, never images: `ground_truth.observe` turns them into images. Row i of a result
depends on the seed and on i alone, so a larger n only adds rows.
"""

from typing import TYPE_CHECKING

from unweave.data.supervision.grouping import Groups, groups
from unweave.data.supervision.labels import (
    Binned,
    Chosen,
    Labelled,
    Labeller,
    Noisy,
    Partial,
    Perfect,
    Permuted,
    labelled,
    split,
)
from unweave.data.supervision.pairing import Pairs, pairs
from unweave.data.supervision.restrict import correlate, hold_out, only
from unweave.data.supervision.trajectories import sequences
from unweave.lazy import lazy_names

__all__ = [
    "Binned",
    "Chosen",
    "Groups",
    "Labelled",
    "Labeller",
    "Noisy",
    "Pairs",
    "Partial",
    "Perfect",
    "Permuted",
    "correlate",
    "groups",
    "hold_out",
    "labelled",
    "only",
    "pairs",
    "sequences",
    "split",
]

if not TYPE_CHECKING:
    __getattr__ = lazy_names(__name__)
