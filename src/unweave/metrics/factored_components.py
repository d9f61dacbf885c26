"""Factored components: linearity, axis alignment and order of the codes along each factor.

Michlo, Klein, James, "Overlooked Implications of the Reconstruction Loss for VAE Disentanglement", IJCAI 2023
[1]; defined by the program disent [2], https://github.com/nmichlo/disent.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from unweave.metrics.real_factors import Floats
from unweave.metrics.representation import Representation, check_count, check_representation
from unweave.metrics.traversals import traversals
from unweave.streams import Stream

# Added to the linear ratio before it divides [2].
SMALL = 1e-20


class FactoredComponents(NamedTuple):
    """Geometric means over factors; see `factored_components`."""

    linear_ratio: float
    axis_ratio: float
    axis_alignment: float
    rank_correlation: float


def factored_components(
    representation: Representation, *, repeats: int = 1024, triplets: int = 64, seed: int | Stream = 0
) -> FactoredComponents:
    """Return linearity, axis alignment and rank correlation of the codes along factors.

    A path is the codes (values, d) of all values of a factor, the other factors fixed; `repeats` paths are
    drawn for each factor. With s_1 >= s_2 >= ... the variances of a path along its principal axes, and with
    t_i those along the codes,

        linear_ratio = (s_1 / sum s - 1/d) / (1 - 1/d),   axis_ratio = (max t / sum t - 1/d) / (1 - 1/d)
        axis_alignment = axis_ratio / linear_ratio

    each averaged over paths. 1 means that a path is straight, or parallel to one code. rank_correlation is
    Spearman's correlation between distances of values, |a - b|, and Euclidean distances of their codes, over
    2 `triplets` random pairs of each path ("rcorr_ground_latent.l2.factor" in [2]); at least 0. All four are
    geometric means over factors, from 0 to 1; higher is better.

    Differs from [2]: a path that does not move has ratios of 0 and a negative correlation counts as 0 (there,
    not a number); with a single code the ratios are 1; distances are rounded to a millionth of the
    largest before they are ranked; the components that compare images are left out.

    >>> perfect = Representation(lambda factors, stream: factors / 3.0, sizes=(4, 4))
    >>> [round(value, 6) for value in factored_components(perfect, repeats=8)]
    [1.0, 1.0, 1.0, 1.0]
    """
    check_representation(representation)
    check_count("repeats", repeats)
    check_count("triplets", triplets)
    stream = Stream.of(seed).child("factored_components")
    values = []
    for j, paths in traversals(representation, repeats, stream):
        centred = paths - paths.mean(axis=1, keepdims=True)
        linear = _ratios(np.linalg.svd(centred, compute_uv=False) ** 2, paths.shape[2])
        axis = _ratios((centred**2).sum(axis=1), paths.shape[2])
        order = _rank_correlation(paths, triplets, stream.child("triplets", j))
        values.append([linear.mean(), axis.mean(), (axis / (linear + SMALL)).mean(), order])
    if not values:
        return FactoredComponents(0.0, 0.0, 0.0, 0.0)
    with np.errstate(divide="ignore"):  # the logarithm of 0
        means = np.exp(np.log(np.array(values).clip(0.0, 1.0)).mean(axis=0))
    return FactoredComponents(*(float(value) for value in means))


def _ratios(variances: Floats, codes: int) -> Floats:
    """Normalised share of the largest variance of each row; 0 for a row of zeros."""
    total = variances.sum(axis=1)
    share = np.divide(variances.max(axis=1), total, out=np.full(len(total), 1 / codes), where=total > 0)
    if codes == 1:
        return np.asarray(total > 0, np.float64)
    return np.asarray((share - 1 / codes) / (1 - 1 / codes))


def _rank_correlation(paths: Floats, triplets: int, stream: Stream) -> float:
    """Spearman's correlation of distances of values and codes, all paths of a factor together."""
    from scipy.stats import rankdata

    from unweave.metrics.mcc import absolute_correlations

    repeats, size, _ = paths.shape
    drawn = stream.integers(repeats * triplets, [size] * 3)
    path = np.repeat(np.arange(repeats), triplets)
    anchor = paths[path, drawn[:, 0]]
    steps, distances = [], []
    for other in (1, 2):
        steps.append(np.abs(drawn[:, 0] - drawn[:, other]))
        distances.append(np.linalg.norm(anchor - paths[path, drawn[:, other]], axis=1))
    largest = max(float(np.max(distances)), np.finfo(np.float64).tiny)
    # Equal distances must stay equal after rounding errors, which are about 1e-7 for float32 codes.
    first, second = (
        rankdata(np.concatenate(steps)),
        rankdata(np.round(np.concatenate(distances) / largest, 6)),
    )
    centred = (first - first.mean()) @ (second - second.mean())
    return float(np.sign(centred) * absolute_correlations(first[:, None], second[:, None])[0, 0])
