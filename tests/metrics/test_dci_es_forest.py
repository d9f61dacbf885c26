"""DCI-ES by forests: cut trees are shallow trees, the authors' curve, and known cases."""

import numpy as np
import pytest
from sklearn.ensemble import RandomForestRegressor  # type: ignore[import-untyped]

from metrics.grids import drawn, noise
from unweave.metrics import dci_es_forest
from unweave.metrics.dci_es import explicitness_of_curves
from unweave.metrics.dci_es_forest import DEPTHS, _at_depths


def test_a_cut_forest_is_a_shallow_forest() -> None:
    """Against forests that scikit-learn grows to each depth, as the authors' program does."""
    codes = noise(150, 3)
    target = np.sin(2 * codes[:, 0]) + codes[:, 1]
    deep = RandomForestRegressor(n_estimators=5, max_depth=DEPTHS[-1], random_state=3).fit(codes, target)
    cut = np.mean([_at_depths(tree.tree_, codes) for tree in deep.estimators_], axis=0)
    for depth, prediction in zip(DEPTHS, cut, strict=True):
        shallow = RandomForestRegressor(n_estimators=5, max_depth=depth, random_state=3).fit(codes, target)
        apart = np.abs(prediction - shallow.predict(codes))
        assert apart.max() < 1e-9 if depth < 4 else apart.mean() < 0.03  # in small nodes, ties go either way


def test_explicitness_of_the_authors_program() -> None:
    """From Explitcitness.get_explitcitness of the DCI-ES repository, baseline loss 1, on the same curve."""
    losses = np.array([0.9, 0.7, 0.72, 0.5, 0.3, 0.31, 0.25, 0.25, 0.24, 0.26, 0.24, 0.24])
    assert explicitness_of_curves(losses[:, None], np.array(DEPTHS, float))[0] == pytest.approx(
        0.8554838709677419, abs=1e-12
    )


def test_two_values_need_one_split_and_noise_is_flat() -> None:
    factors = drawn([2, 2], 200)
    assert dci_es_forest(factors, factors).explicitness == pytest.approx(1)
    finer = drawn([12, 2], 200)
    first, second = dci_es_forest(finer, finer).factor_explicitness
    assert first < second - 0.005
    lost = dci_es_forest(noise(200, 4), factors)
    assert lost.size == 0.5
    assert lost.losses.min() > 0.9


def test_the_seed_draws_the_forest() -> None:
    factors = drawn([5, 4], 120)
    codes = factors + noise(120, 2)
    first = dci_es_forest(codes, factors)
    assert dci_es_forest(codes, factors).losses.tolist() == first.losses.tolist()
    assert dci_es_forest(codes, factors, seed=1).losses.tolist() != first.losses.tolist()
