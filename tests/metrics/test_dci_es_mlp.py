"""DCI-ES by perceptrons: the authors' networks on the same arrays, and known cases."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from metrics.grids import drawn, noise
from unweave.errors import UnweaveError
from unweave.metrics import dci_es_mlp
from unweave.metrics.dci_es import explicitness_of_curves
from unweave.metrics.dci_es_mlp import WIDTHS
from unweave.metrics.estimators.perceptrons import Points, Training, fit_perceptrons, parameters_of
from unweave.streams import Stream


@pytest.mark.parametrize(
    ("widths", "parameters", "predictions"),
    [
        (
            (3, 1),
            4,
            [
                [0.3022781014442444, 0.0004034191370010376],
                [0.1441110521554947, -0.35749581456184387],
                [-0.135545551776886, -0.38266101479530334],
                [-0.2636333703994751, 0.35536548495292664],
            ],
        ),
        (
            (3, 14, 14, 1),
            281,
            [
                [0.3902842402458191, -0.1353498101234436],
                [0.4194219708442688, -0.1786864995956421],
                [-0.1213328167796135, 0.3702237606048584],
                [-1.0551974773406982, -0.6162194013595581],
            ],
        ),
    ],
)
def test_networks_of_the_authors_program(
    widths: tuple[int, ...], parameters: int, predictions: list[list[float]]
) -> None:
    """From IndependentMLPs of the DCI-ES repository with the same initial weights and batches.

    It was trained by torch's AdamW without weight decay and MultiStepLR at 40 and 80 of 100 updates, as in
    train_test_probe; `parameters` is its count_parameters for one factor.
    """
    codes = noise(150, 3)
    targets = np.stack([np.sin(2 * codes[:, 0]) + codes[:, 1], codes[:, 2] * codes[:, 1]], axis=1)
    points = Points(codes.astype(np.float32), targets.astype(np.float32))
    networks = fit_perceptrons(points, points, widths, Training(100, 0.01), Stream.of(5))
    assert_allclose(networks.predict(points.codes)[:4], predictions, atol=2e-5)
    assert parameters_of(widths) == parameters


def test_explicitness_of_the_authors_program() -> None:
    """From Explitcitness.get_explitcitness of the DCI-ES repository, baseline loss 1, on the same curve."""
    losses = np.array([0.8, 0.6, 0.61, 0.5, 0.3, 0.35, 0.2, 0.2, 0.22, 0.1])
    capacities = np.log([parameters_of((10, width, width, 1) if width else (10, 1)) for width in WIDTHS])
    assert explicitness_of_curves(losses[:, None], capacities)[0] == pytest.approx(
        0.26985319454990586, abs=1e-12
    )


def test_the_state_with_the_least_validation_error_counts() -> None:
    """Where validation targets are the opposite of what is learned, the first state is the best."""
    codes = noise(100, 2).astype(np.float32)
    train, opposite = Points(codes, codes[:, :1]), Points(codes, -codes[:, :1])
    early = fit_perceptrons(train, opposite, (2, 1), Training(200, 0.01), Stream.of(0))
    late = fit_perceptrons(train, train, (2, 1), Training(200, 0.01), Stream.of(0))
    first, last = (np.mean((networks.predict(codes) - codes[:, :1]) ** 2) for networks in (early, late))
    assert last < 0.3 * first


def test_linear_codes_are_explicit_and_curved_ones_less() -> None:
    factors = drawn([6, 6], 900)
    linear = dci_es_mlp(factors @ [[1.0, 2.0], [-1.0, 1.0]], factors, updates=1000)
    assert linear.explicitness > 0.97
    assert linear.losses[0].max() < 0.05
    angles = factors * np.pi / 3
    curved = dci_es_mlp(np.hstack([np.cos(angles), np.sin(angles)]), factors, updates=1000)
    assert curved.explicitness < linear.explicitness - 0.1
    assert (curved.losses[-1] < 0.2 * curved.losses[0]).all()
    assert curved.size == 0.5


def test_noise_is_flat() -> None:
    score = dci_es_mlp(noise(300, 4), drawn([3, 4], 300), updates=100)
    assert score.losses.min() > 0.9
    assert score.explicitness > 0.9


def test_the_seed_draws_weights_and_batches() -> None:
    factors = drawn([5, 4], 120)
    codes = factors + noise(120, 2)
    first = dci_es_mlp(codes, factors, updates=20)
    assert dci_es_mlp(codes, factors, updates=20).losses.tolist() == first.losses.tolist()
    assert dci_es_mlp(codes, factors, updates=20, seed=1).losses.tolist() != first.losses.tolist()


def test_updates_must_be_a_positive_number() -> None:
    with pytest.raises(UnweaveError, match="updates"):
        dci_es_mlp(noise(30, 2), drawn([2], 30), updates=0)
