"""FactorVAE score: the published values, an independent recomputation, and what counts as active."""

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from metrics.reference_cases import NAMES, load_case
from unweave.errors import UnweaveError
from unweave.metrics import representation as representation_module
from unweave.metrics.factor_vae_score import _active, _votes, factor_vae_score
from unweave.metrics.representation import Representation
from unweave.streams import Stream

SIZES = (4, 5, 3)


def perfect(factors: NDArray[np.int64], stream: Stream) -> NDArray[np.float64]:
    return np.asarray(factors / np.array([3.0, 4.0, 2.0]))


def noisy(factors: NDArray[np.int64], stream: Stream) -> NDArray[np.float64]:
    return factors + 2 * stream.normal(len(factors), 3)


@pytest.mark.parametrize("name", NAMES)
def test_published_values(reference: Path, name: str) -> None:
    case = load_case(reference, name)
    if "factor_vae" not in case.expected:
        pytest.skip("no published value for this case")
    thresholds = {"factor_vae": 0.05, "factor_vae_threshold0": 0.0}
    for key in thresholds.keys() & case.expected.keys():
        score = factor_vae_score(case.representation, threshold=thresholds[key])
        for name_of_number in ("train_accuracy", "eval_accuracy"):
            expected = case.expected[key][name_of_number]
            assert abs(getattr(score, name_of_number) - expected["mean"]) <= 4 * expected["std"] + 0.005


def test_votes_are_what_a_slow_count_gives() -> None:
    asked: list[NDArray[np.int64]] = []

    def encode(factors: NDArray[np.int64], stream: Stream) -> NDArray[np.float64]:
        asked.append(factors.copy())
        return np.asarray(factors @ np.array([[1.0, 0.2, 0.0], [0.0, 1.0, 0.3], [0.4, 0.0, 1.0]]))

    representation = Representation(encode, SIZES)
    sample = representation.draw(500, 9)[0]
    asked.clear()
    table = _votes(representation, _active(sample, 0.05), 60, 7, Stream.of(2))
    groups = asked[0].reshape(60, 7, 3)
    expected = np.zeros((3, 3), int)
    fixed = Stream.of(2).child("fixed").integers(60, [3])[:, 0]
    for k, group in zip(fixed, groups, strict=True):
        assert np.ptp(group[:, k]) == 0
        ratio = encode(group, Stream.of(0)).var(axis=0, ddof=1) / sample.var(axis=0, ddof=1)
        expected[k, ratio.argmin()] += 1
    np.testing.assert_array_equal(table, expected)
    assert (np.ptp(groups, axis=1) == 0).mean() < 0.5


def test_accuracy_is_that_of_the_majority_rule() -> None:
    # Code 0 holds factors 0 and 1, code 1 factor 2: the rule gives up one of the first two.
    def encode(factors: NDArray[np.int64], stream: Stream) -> NDArray[np.float64]:
        return np.column_stack([10.0 * factors[:, 0] + factors[:, 1], factors[:, 2]])

    score = factor_vae_score(Representation(encode, (3, 3, 3)), batch=32, train=3000, test=3000)
    assert abs(score.eval_accuracy - 2 / 3) < 0.03
    assert score.active == 2


def test_threshold_is_a_standard_deviation() -> None:
    # Deviations of a fair coin: half the distance of its sides. 0.06 is active though its variance is 0.0036.
    coins = Representation(lambda factors, _: factors * np.array([0.12, 0.08, 2.0]), (2, 2, 2))
    assert factor_vae_score(coins, train=50, test=50).active == 2
    assert factor_vae_score(coins, train=50, test=50, threshold=0.03).active == 3


def test_no_active_code_scores_zero() -> None:
    dead = Representation(lambda factors, _: np.full((len(factors), 3), 3.7), SIZES)
    assert factor_vae_score(dead, train=50, test=50) == (0.0, 0.0, 0)
    assert factor_vae_score(dead, train=50, test=50, threshold=0) == (0.0, 0.0, 0)


@pytest.mark.parametrize("scale", [1e-200, 1.0, 1e30, 1e300])
def test_extreme_dead_and_copied_codes(scale: float) -> None:
    def encode(factors: NDArray[np.int64], stream: Stream) -> NDArray[np.float64]:
        codes = perfect(factors, stream)
        return np.hstack([np.full((len(codes), 1), 3.7), codes, codes]) * scale

    assert factor_vae_score(Representation(encode, SIZES), train=300, test=100, threshold=0) == (1.0, 1.0, 6)


def test_order_sign_and_scale_do_not_matter() -> None:
    def other(factors: NDArray[np.int64], stream: Stream) -> NDArray[np.float64]:
        return np.asarray(noisy(factors, stream)[:, [2, 0, 1]] * [-2.0, 0.5, 4.0])

    options = {"batch": 5, "train": 200, "test": 100}
    score = factor_vae_score(Representation(noisy, SIZES), **options)
    assert factor_vae_score(Representation(other, SIZES), **options) == score
    assert score.eval_accuracy < 1


def test_size_of_parts_does_not_matter_and_seed_does(monkeypatch: pytest.MonkeyPatch) -> None:
    options = {"batch": 5, "train": 200, "test": 100}
    whole = factor_vae_score(Representation(noisy, SIZES), **options)
    assert factor_vae_score(Representation(noisy, SIZES), **options, seed=1) != whole
    monkeypatch.setattr(representation_module, "ROWS_AT_ONCE", 64)
    assert factor_vae_score(Representation(noisy, SIZES), **options) == whole


def test_one_factor_and_one_code() -> None:
    one = Representation(lambda factors, _: factors * 1.0, (4,))
    assert factor_vae_score(one, train=20, test=10) == (1.0, 1.0, 1)


def test_bad_options_are_refused() -> None:
    representation = Representation(perfect, SIZES)
    with pytest.raises(UnweaveError, match="batch must be a whole number, 2 or more; got 1"):
        factor_vae_score(representation, batch=1)
    with pytest.raises(UnweaveError, match=r"standard deviation, 0 or more; got -0\.1"):
        factor_vae_score(representation, threshold=-0.1)
    with pytest.raises(UnweaveError, match="variance_points must be"):
        factor_vae_score(representation, variance_points=1)
