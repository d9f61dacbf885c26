"""R^2 and block-R^2: the authors' numbers, identities, and what noise scores."""

from typing import Any

import numpy as np
import pytest

from metrics.grids import noise
from metrics.test_mcc import MIXING, curved_codes
from unweave.errors import UnweaveError
from unweave.metrics import block_r2, r2
from unweave.metrics.estimators.kernel_ridge import WIDTHS, _folds, fit_kernel_ridge


def test_numbers_of_the_authors_program() -> None:
    """From the ssl_identifiability repository: 200 rows to fit on, 100 to test on, codes standardised."""
    codes, factors = curved_codes()
    assert r2(codes, factors).score == pytest.approx(0.6716852351097913, abs=1e-10)
    assert r2(codes, factors, model="kernel").score == pytest.approx(0.6795604696573178, abs=1e-8)


def test_block_numbers_of_the_authors_program() -> None:
    """The same kernel regression on one code at a time."""
    found = block_r2(*curved_codes())
    expected = [
        [0.620116, 9.6e-05, 0.027607],
        [0.124255, 0.685581, -0.002508],
        [0.001328, 0.228757, 0.621832],
    ]
    assert found.r2 == pytest.approx(np.array(expected), abs=1e-6)
    assert found.matches.tolist() == [0, 1, 2]
    assert found.score == pytest.approx(np.mean([0.620116, 0.685581, 0.621832]), abs=1e-6)


def test_linear_maps_and_curves() -> None:
    _, factors = curved_codes()
    assert r2(factors @ MIXING + 3, factors).factors == pytest.approx(np.ones(3))
    curved = factors[:, :1] * [1.0, 0.5] + np.cos(2 * factors[:, :1]) * [0.5, -1.0]
    assert r2(np.cos(factors[:, :1]), np.cos(factors[:, :1])).score == pytest.approx(1)
    assert r2(factors[:, :1], curved).score < 0.8
    assert r2(factors[:, :1], curved, model="kernel").score > 0.99
    assert r2(factors[:, :1], curved, model="mlp").score > 0.9


@pytest.mark.parametrize("model", ["linear", "kernel", "mlp"])
def test_noise_and_dead_codes_predict_nothing(model: Any) -> None:
    codes, factors = noise(600, 3), noise(600, 2, seed=1)
    assert -0.2 < r2(codes, factors, model=model).score < 0.02
    assert r2(0 * codes, factors, model=model).score == pytest.approx(0, abs=0.02)


def test_test_data_are_used_and_a_constant_test_factor_counts_as_zero() -> None:
    _, factors = curved_codes()
    test = factors[:50].copy()
    test[:, 1] = 2.0
    scores = r2(factors, factors, test=(test, test)).factors
    assert scores == pytest.approx(np.array([1.0, 0.0, 1.0]))


def test_blocks_are_matched() -> None:
    _, factors = curved_codes()
    codes = np.hstack([factors[:, 2:], factors[:, :2] @ [[1.0, 2.0], [-1.0, 1.0]]])
    found = block_r2(codes, factors, code_blocks=[[0], [1, 2]], factor_blocks=[[0, 1], [2]], model="linear")
    assert found.matches.tolist() == [1, 0]
    assert found.score == pytest.approx(1)
    lacking = block_r2(codes, factors, code_blocks=[[0]], model="linear")
    assert lacking.matches.tolist() == [-1, -1, 0]
    assert lacking.score == pytest.approx(1 / 3)


@pytest.mark.parametrize("blocks", [[], [[0], []], [[0, 1], [1]], [[3]], [[-1]]])
def test_bad_blocks(blocks: Any) -> None:
    with pytest.raises(UnweaveError, match="`code_blocks` must be lists of different column numbers"):
        block_r2(*curved_codes(), code_blocks=blocks)


def test_a_perceptron_learns_from_ten_rows() -> None:
    """A tenth of them is one row, which has no R^2 to stop by."""
    codes = noise(60, 2)
    line = codes @ [[1.0], [-1.0]]
    assert r2(codes[:10], line[:10], test=(codes[10:], line[10:]), model="mlp").score > 0.3


def test_messages() -> None:
    codes, factors = curved_codes()
    with pytest.raises(UnweaveError, match="`model` must be one of linear, kernel, mlp"):
        r2(codes, factors, model="forest")  # type: ignore[arg-type]
    with pytest.raises(UnweaveError, match="at least 3 rows; got 2"):
        r2(codes[:2, :2], factors[:2, :1])
    with pytest.raises(UnweaveError, match="Test data must have 3 codes and 3 factors"):
        r2(codes, factors, test=(codes, factors[:, :2]))
    with pytest.raises(UnweaveError, match=r"`test` must be a pair"):
        r2(codes, factors, test=codes)  # type: ignore[arg-type]


def test_repeated_rows_do_not_narrow_the_kernel() -> None:
    """Of a line, a wide kernel finds what lies behind its end, whether points are repeated or not."""
    line = np.linspace(-2, 2, 20)[:, None]
    behind = np.array([[2.2], [2.4]])
    once = fit_kernel_ridge(line, line)
    often = fit_kernel_ridge(np.tile(line, (10, 1)), np.tile(line, (10, 1)))
    assert often.width == once.width == WIDTHS[0]
    assert often.predict(behind) == pytest.approx(behind, abs=0.1)


def test_rows_of_a_fold() -> None:
    assert [fold.tolist() for fold in _folds(np.arange(7.0)[:, None])] == [[0, 1, 2], [3, 4], [5, 6]]
    repeated = np.array([[5.0], [1.0], [5.0], [3.0], [1.0], [2.0]])
    assert [fold.tolist() for fold in _folds(repeated)] == [[0, 1, 2, 4], [3], [5]]
    assert [fold.tolist() for fold in _folds(np.zeros((4, 2)))] == [[0, 1], [2], [3]]
    assert [fold.tolist() for fold in _folds(np.array([[0.0], [1.0], [0.0]]))] == [[0, 2], [1]]


def test_a_smooth_curve_has_the_least_penalty_and_noise_the_largest() -> None:
    codes = noise(90, 1)
    model = fit_kernel_ridge(codes, np.sin(2 * codes))
    assert model.penalty == 0.001
    assert np.abs(model.predict(codes) - np.sin(2 * codes)).mean() < 0.02
    assert fit_kernel_ridge(codes, noise(90, 1, seed=1)).penalty == 1.0
