"""Groups: several points that share some factors, as ML-VAE and GVAE learn from.

Bouchacourt et al., "Multi-level variational autoencoder" (AAAI 2018, arXiv 1705.08841); Hosoya,
"Group-based learning of disentangled representations" (IJCAI 2019, arXiv 1809.02383).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unweave.data.grid import Factors, GroundTruth
from unweave.data.supervision.choices import is_whole, random_subsets, whole_number
from unweave.errors import UnweaveError
from unweave.streams import Stream


@dataclass(frozen=True, eq=False)
class Groups:
    """factors (n, size, k); shared (n, k) marks the factors in which all members of a group agree.

    Factors that are not marked may agree too, by chance.
    """

    factors: Factors
    shared: NDArray[np.bool_]


def groups(
    ground_truth: GroundTruth,
    n: int,
    size: int,
    shared: int | Sequence[str] | ArrayLike,
    seed: int | Stream,
) -> Groups:
    """n groups of `size` points.

    `shared` is a list of factor names, a boolean mask (k,) or (n, k), or a whole number m: each group then
    shares m factors of its own, chosen at random among those of which more than one value is drawn.
    """
    stream = Stream.of(seed).child("groups")
    whole_number(n, "the number of groups", 0)
    whole_number(size, "the size of a group", 1)
    mask = _shared_mask(ground_truth, n, shared, stream.child("shared"))
    factors = ground_truth.sample_groups(n, size, stream, mask)
    return Groups(factors, np.broadcast_to(mask, (n, factors.shape[2])).copy())


def _shared_mask(
    ground_truth: GroundTruth, n: int, shared: int | Sequence[str] | ArrayLike, stream: Stream
) -> NDArray[np.bool_]:
    if is_whole(shared):
        possible = ground_truth.varied
        if not 0 <= shared <= possible.sum():
            raise UnweaveError(
                f"{ground_truth.name} has {possible.sum()} factors with more than one value, so a group can "
                f"share 0 to {possible.sum()} of them; got shared={shared}."
            )
        return random_subsets(stream, np.full(n, shared), possible)
    return ground_truth.mask(shared)
