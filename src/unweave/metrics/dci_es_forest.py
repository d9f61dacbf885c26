"""DCI-ES with the random forests of its authors: how deep trees must be to read the factors off the codes.

Eastwood, Nicolicioiu, von Kügelgen, Kekić, Träuble, Dittadi, Schölkopf, "DCI-ES: An extended disentanglement
framework with connections to identifiability", ICLR 2023 [1], with the settings of the authors' program [2].
`dci_es` has probes with a formula for the optimum; these are those of [1] that take no training by gradients.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from unweave.metrics.dci_es import DCIES, explicitness_of_curves
from unweave.metrics.real_factors import Floats, split_real, standardised
from unweave.metrics.representation import check_count
from unweave.streams import Stream

# Depths of the trees, which are the capacities of the probes [2].
DEPTHS = (1, 2, 3, 4, 8, 10, 12, 14, 16, 18, 20, 32)


def dci_es_forest(
    codes: ArrayLike,
    factors: ArrayLike,
    *,
    test: tuple[ArrayLike, ArrayLike] | None = None,
    trees: int = 100,
    seed: int | Stream = 0,
) -> DCIES:
    """Return explicitness E in [-1, 1] and size S > 0 with random forests as probes; higher is better.

    See `dci_es` for the formulas. Probe t is a forest of `trees` regression trees (bootstrap samples, all
    codes at every split) of depth at most 1, 2, 3, 4, 8, 10, 12, 14, 16, 18, 20 or 32; kappa_t is this depth,
    and the loss l_tj is 1 - R^2 on the test data, at most 1. E is 1 if a single split is enough, which no
    factor of more than two values allows, so perfect codes stay below 1. A shallower tree is the top of a
    deeper one, so one forest is grown for each factor and read at all depths.

    Without `test`, the last third of the rows is held out. The seed draws the bootstrap samples.

    Differs from [2]: all factors are numbers (there, categories have classifiers and loss 1 - accuracy); a
    loss above 1 counts as 1.

    >>> factors = Stream.of(0).integers(300, [2, 2])
    >>> score = dci_es_forest(factors * 0.1, factors)
    >>> round(score.explicitness, 3), score.size, score.losses.shape
    (1.0, 1.0, (12, 2))
    """
    check_count("trees", trees)
    data = split_real(codes, factors, test)
    train, held_out = standardised(data.codes, data.test_codes)
    # Trees work in float32, which has no place for the codes of test rows that are far away.
    held_out = np.clip(held_out, -1e30, 1e30)
    targets, truth = standardised(data.factors, data.test_factors)
    stream = Stream.of(seed).child("dci_es_forest")
    losses = np.stack(
        [
            _losses(train, target, held_out, truth[:, j], _forest(trees, stream.child("factor", j)))
            for j, target in enumerate(targets.T)
        ],
        axis=1,
    )
    own = explicitness_of_curves(losses, np.array(DEPTHS, np.float64))
    return DCIES(float(own.mean()), targets.shape[1] / train.shape[1], own, losses)


def _forest(trees: int, stream: Stream) -> Any:
    """A forest of the largest depth, not yet fitted."""
    from sklearn.ensemble import RandomForestRegressor  # type: ignore[import-untyped]

    return RandomForestRegressor(
        n_estimators=trees, criterion="squared_error", max_depth=DEPTHS[-1], min_samples_split=2,
        min_samples_leaf=1, max_features=1.0, bootstrap=True, n_jobs=1,
        random_state=int(stream.bits(1, 1)[0, 0]),
    )  # fmt: skip


def _losses(train: Floats, target: Floats, held_out: Floats, truth: Floats, forest: Any) -> Floats:
    """Loss (depths,) of a forest, cut at each depth, on the test data; at most 1."""
    forest.fit(train, target)
    predictions = np.mean([_at_depths(tree.tree_, held_out) for tree in forest.estimators_], axis=0)
    error, spread = ((predictions - truth) ** 2).mean(axis=1), float(truth.var())
    return np.minimum(error / spread, 1.0) if spread > 0 else np.ones(len(DEPTHS))


def _at_depths(tree: Any, codes: Floats) -> Floats:
    """Predictions (depths, n) of a tree that is cut at each depth."""
    depth, inner = tree.compute_node_depths() - 1, tree.children_left >= 0
    parent = np.zeros(len(depth), np.intp)
    parent[tree.children_left[inner]] = parent[tree.children_right[inner]] = np.flatnonzero(inner)
    node = tree.apply(codes.astype(np.float32))
    values = tree.value[:, 0, 0]
    predictions = np.empty((len(DEPTHS), len(codes)))
    for t in range(len(DEPTHS) - 1, -1, -1):
        while (deeper := depth[node] > DEPTHS[t]).any():
            node = np.where(deeper, parent[node], node)
        predictions[t] = values[node]
    return predictions
