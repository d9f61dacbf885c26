"""InfoMEC against scikit-learn's estimators, which the authors use, and by hand."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from metrics.grids import awkward_codes, drawn, grid, noise
from unweave.errors import UnweaveError
from unweave.metrics import infomec
from unweave.streams import Stream

FACTORS = drawn([3, 5], 400)
CODES = FACTORS @ np.array([[1.0, 0.0, 0.4], [0.0, 1.0, 0.3]]) + 0.4 * noise(400, 3)


def concentration(share: NDArray[np.float64]) -> float:
    """Mean over rows of largest / sum, from 1 / columns .. 1 to 0 .. 1."""
    columns = share.shape[1]
    return float((np.mean(share.max(axis=1) / share.sum(axis=1)) - 1 / columns) / (1 - 1 / columns))


def entropy(column: NDArray[np.int64]) -> float:
    share = np.bincount(column) / len(column)
    return float(-(share * np.log(share)).sum())


@pytest.mark.parametrize("neighbours", [10, 3, 150])
def test_information_is_that_of_nearest_neighbours(neighbours: int) -> None:
    feature_selection = pytest.importorskip("sklearn.feature_selection")
    expected = [
        feature_selection.mutual_info_classif(
            (CODES - CODES.mean(axis=0)) / CODES.std(axis=0),
            column,
            discrete_features=False,
            n_neighbors=neighbours,
            random_state=0,
        )
        / entropy(column)
        for column in FACTORS.T
    ]
    # One neighbour more or less, where a distance is rounded, moves a mean of 400 by this much.
    assert infomec(CODES, FACTORS, neighbours=neighbours).information == pytest.approx(
        np.stack(expected, axis=1), abs=1e-3
    )


def test_explicitness_is_that_of_a_logistic_regression() -> None:
    linear_model = pytest.importorskip("sklearn.linear_model")
    expected = []
    for column in FACTORS.T:
        model = linear_model.LogisticRegression(C=np.inf, class_weight="balanced", tol=1e-8, max_iter=2000)
        standard = (CODES - CODES.mean(axis=0)) / CODES.std(axis=0)
        chances = model.fit(standard, column).predict_proba(standard)
        loss = -np.log(chances[np.arange(400), column]).mean()
        expected.append(1 - loss / np.log(chances.shape[1]))
    assert infomec(CODES, FACTORS).explicitness == pytest.approx(np.mean(expected), abs=1e-4)


def test_modularity_and_compactness_come_from_the_active_codes() -> None:
    codes = np.hstack([CODES, 0.01 * noise(400, 2, seed=1), np.full((400, 1), 5.0)])
    score = infomec(codes, FACTORS)
    assert score.active.tolist() == [True] * 3 + [False] * 3
    assert score.information.shape == (6, 2)
    assert score.modularity == pytest.approx(concentration(score.information[:3]), abs=1e-12)
    assert score.compactness == pytest.approx(concentration(score.information[:3].T), abs=1e-12)


def test_counted_information_of_discrete_codes() -> None:
    factors = grid(4, 2, repeats=3)
    codes = np.stack([factors[:, 0], factors[:, 0] // 2, 5 * factors[:, 1]], axis=1)
    score = infomec(codes, factors, discrete=True)
    assert score.information == pytest.approx(np.array([[1, 0], [0.5, 0], [0, 1]]), abs=1e-12)
    assert score.modularity == pytest.approx(1, abs=1e-12)
    # Factor 0: 1 / 1.5 of it in one code; factor 1: all. (mean - 1/3) / (2/3).
    assert score.compactness == pytest.approx(((2 / 3 + 1) / 2 - 1 / 3) / (2 / 3), abs=1e-12)
    assert score.explicitness == pytest.approx(1, abs=1e-3)


def test_discrete_codes_score_as_in_the_authors_program() -> None:
    """Numbers are those of compute_infomec(factors, codes, True) of github.com/kylehkhsu/latent_quantization.

    Codes are quantised to 10 values, as those of QLAE; the last one is always the same.
    """
    factors = drawn([3, 5, 4], 600)
    mixing = np.array([[1.0, 0.0, 0.4, 0.0], [0.0, 1.0, 0.3, 0.0], [0.0, 0.5, 0.0, 0.0]])
    mixed = factors @ mixing + 0.4 * noise(600, 4)
    values = np.linspace(-0.5, 0.5, 10)
    centred = 0.15 * (mixed - mixed.mean(axis=0))
    codes = values[np.abs(centred[..., None] - values).argmin(axis=-1)]
    score = infomec(np.hstack([codes, np.full((600, 1), values[3])]), factors, discrete=True)
    assert score.modularity == pytest.approx(0.5460746738, abs=1e-9)
    assert score.compactness == pytest.approx(0.7049116707, abs=1e-9)
    assert score.explicitness == pytest.approx(0.4527349604, abs=1e-5)
    assert score.active.tolist() == [True] * 4 + [False]
    assert score.information[:2] == pytest.approx(
        np.array([[0.60660, 0.01141, 0.00992], [0.00839, 0.44830, 0.10270]]), abs=1e-5
    )


def test_a_perfect_code_and_noise() -> None:
    factors = drawn([4, 6, 10], 3000)
    perfect = infomec(factors.astype(float), factors)
    assert min(perfect[:3]) > 0.95
    nothing = infomec(noise(3000, 3), factors)
    assert nothing.explicitness < 0.02
    assert nothing.information.max() < 0.02


def test_noise_has_little_information_but_it_is_uneven() -> None:
    score = infomec(noise(3000, 10), drawn([3, 6, 40, 32, 32], 3000))
    assert score.information.max() < 0.02
    assert 0.35 < score.modularity < 0.7
    assert 0.15 < score.compactness < 0.45


def test_explicitness_of_classes_that_can_be_separated() -> None:
    # There is no optimum, and the loss goes to 0: no value of a factor is doubted.
    factors = drawn([32], 1000)
    assert infomec(factors + 0.01 * noise(1000, 1), factors).explicitness == pytest.approx(1, abs=1e-3)


def test_one_factor_and_one_code() -> None:
    score = infomec(CODES[:, :1], FACTORS[:, :1])
    assert score.modularity == score.compactness == 1
    assert score.information[0, 0] > 0.2


def test_ties_are_broken_by_the_seed() -> None:
    factors = drawn([4, 4], 300)
    codes = (factors[:, :1] + factors[:, 1:]).astype(float)
    scores = [infomec(codes, factors, seed=seed).information for seed in (0, 0, 1)]
    assert (scores[0] == scores[1]).all()
    assert (scores[0] != scores[2]).any()


@pytest.mark.parametrize("discrete", [False, True])
def test_awkward_codes_get_scores(discrete: bool) -> None:
    for name, codes in awkward_codes().items():
        score = infomec(codes, grid(3, 4, repeats=10), discrete=discrete)
        assert all(-1e-9 <= value <= 1 + 1e-9 for value in score[:3]), name
        assert np.isfinite(score.information).all(), name
        if name.startswith("all dead"):
            assert score.modularity == score.compactness == 0
            assert score.explicitness == pytest.approx(0, abs=1e-9)
            assert not score.active.any()


def test_points_that_are_alone_with_their_value_are_left_out() -> None:
    factors = np.concatenate([np.repeat([0, 1], 30), [2]])[:, None]
    codes = np.concatenate([np.repeat([0.0, 1.0], 30), [9.0]])[:, None]
    expected = (
        infomec(codes[:60], factors[:60]).information * entropy(factors[:60, 0]) / entropy(factors[:, 0])
    )
    assert infomec(codes, factors).information == pytest.approx(expected, abs=0.02)


@pytest.mark.parametrize("neighbours", [0, 2.5, True])
def test_neighbours_are_counted(neighbours: Any) -> None:
    with pytest.raises(UnweaveError, match="neighbours must be a whole number >= 1"):
        infomec(CODES, FACTORS, neighbours=neighbours)


def test_ties_do_not_depend_on_the_order_of_rows_and_copies_are_alike() -> None:
    factors = drawn((3, 4, 5), 400)
    codes = np.hstack([factors, factors, -factors]).astype(np.float64)
    codes[:, 0] += noise(400, 1)[:, 0] > 1  # ties that a factor does not explain
    before = infomec(codes, factors)
    order = Stream.of(3).permutations(1, 400)[0]
    for after in (infomec(codes[order], factors[order]), infomec(-codes, factors)):
        np.testing.assert_allclose(after.information, before.information, atol=1e-9)
        assert after[:3] == pytest.approx(before[:3], abs=1e-6)
    np.testing.assert_allclose(before.information[4:6], before.information[7:9], atol=1e-12)
    plain = codes[:, 3:]
    spread = np.std([infomec(plain, factors, seed=seed).compactness for seed in range(5)])
    assert spread < 0.02  # 0.11 where each copy had noise of its own
