"""Flatness: whether codes move straight along one axis when one factor changes.

Michlo, "Data Overlap and Disentanglement", MSc research, University of the Witwatersrand; defined by the
program disent [1], https://github.com/nmichlo/disent.
"""

from __future__ import annotations

import numpy as np

from unweave.metrics.real_factors import Floats
from unweave.metrics.representation import Representation, check_count, check_representation
from unweave.metrics.traversals import traversals
from unweave.streams import Stream


def flatness(representation: Representation, *, repeats: int = 1024, seed: int | Stream = 0) -> float:
    """Return the mean over factors of width / length of the path of the codes along the factor.

    A path is the codes of all values of a factor in their order, the other factors fixed; `repeats` paths are
    drawn for each factor. Width is the largest Euclidean distance between two points of a path. Length is the
    sum of the city-block (L1) distances between neighbours, the path being closed and its longest step left
    out. Both are averaged over paths before they are divided. From 0 to 1, higher is better: 1 if each path
    is straight, monotone and parallel to an axis. A factor that moves no code counts as 0.

    >>> perfect = Representation(lambda factors, stream: factors / 3.0, sizes=(4, 4))
    >>> round(flatness(perfect, repeats=8), 6)
    1.0
    """
    check_representation(representation)
    check_count("repeats", repeats)
    stream = Stream.of(seed).child("flatness")
    ratios = [_ratio(paths) for _, paths in traversals(representation, repeats, stream)]
    return float(np.mean(ratios)) if ratios else 0.0


def _ratio(paths: Floats) -> float:
    """Mean width over mean length of paths (repeats, values, d)."""
    steps = np.abs(np.roll(paths, -1, axis=1) - paths).sum(axis=2)
    length = steps.sum(axis=1) - steps.max(axis=1)
    width = [_width(path) for path in paths]
    return float(np.mean(width) / length.mean()) if length.mean() > 0 else 0.0


def _width(path: Floats) -> float:
    from scipy.spatial.distance import pdist

    return float(pdist(path).max())
