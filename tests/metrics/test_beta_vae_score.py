"""BetaVAE score: the published values, an independent recomputation, and what must not change it."""

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from metrics.reference_cases import NAMES, load_case
from unweave.errors import UnweaveError
from unweave.metrics import representation as representation_module
from unweave.metrics.beta_vae_score import _points, beta_vae_score
from unweave.metrics.representation import Representation
from unweave.streams import Stream

SIZES = (4, 5, 3)


def perfect(factors: NDArray[np.int64], stream: Stream) -> NDArray[np.float64]:
    return np.asarray(factors / np.array([3.0, 4.0, 2.0]))


def noisy(factors: NDArray[np.int64], stream: Stream) -> NDArray[np.float64]:
    return factors + stream.normal(len(factors), 3)


@pytest.mark.parametrize("name", NAMES)
def test_published_values(reference: Path, name: str) -> None:
    case = load_case(reference, name)
    if "beta_vae_sklearn" not in case.expected:
        pytest.skip("no published value for this case")
    score = beta_vae_score(case.representation)
    for key, expected in case.expected["beta_vae_sklearn"].items():
        assert abs(getattr(score, key) - expected["mean"]) <= 4 * expected["std"] + 0.005


def test_a_point_is_the_mean_distance_of_pairs_that_share_one_factor() -> None:
    asked: list[NDArray[np.int64]] = []

    def encode(factors: NDArray[np.int64], stream: Stream) -> NDArray[np.float64]:
        asked.append(factors.copy())
        return perfect(factors, stream)

    features, shared = _points(Representation(encode, SIZES), 30, 8, Stream.of(1))
    one, other = (array.reshape(30, 8, 3) for array in asked)
    for point in range(30):
        k = shared[point]
        assert (one[point, :, k] == other[point, :, k]).all()
        expected = [
            abs(perfect(a, Stream.of(0)) - perfect(b, Stream.of(0)))
            for a, b in zip(one[point], other[point], strict=True)
        ]
        np.testing.assert_allclose(features[point], np.mean(expected, axis=0), rtol=1e-12)
    # The value is shared pair by pair, not by the whole batch; the other factors are free.
    assert (np.ptp(one[np.arange(30), :, shared], axis=1) > 0).any()
    assert 0.2 < (one == other).mean() < 0.7
    assert set(shared) == {0, 1, 2}


def test_noise_scores_chance() -> None:
    noise = Representation(lambda factors, stream: stream.normal(len(factors), 4), (5, 5, 5, 5))
    assert abs(beta_vae_score(noise, batch=8, train=2000, test=2000).eval_accuracy - 0.25) < 0.05


def test_size_of_parts_does_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = beta_vae_score(Representation(noisy, SIZES), batch=3, train=150, test=90)
    monkeypatch.setattr(representation_module, "ROWS_AT_ONCE", 40)
    assert beta_vae_score(Representation(noisy, SIZES), batch=3, train=150, test=90) == whole
    assert whole.eval_accuracy < 1


def test_seed_decides() -> None:
    scores = [
        beta_vae_score(Representation(noisy, SIZES), batch=3, train=150, test=90, seed=s) for s in (0, 0, 1)
    ]
    assert scores[0] == scores[1] != scores[2]


@pytest.mark.parametrize("scale", [1e-30, 1e30, 1e300])
def test_extreme_dead_and_copied_codes_give_a_number(scale: float) -> None:
    def encode(factors: NDArray[np.int64], stream: Stream) -> NDArray[np.float64]:
        codes = perfect(factors, stream)
        return np.hstack([codes, codes, np.full((len(codes), 1), 3.7)]) * scale

    score = beta_vae_score(Representation(encode, SIZES), train=200, test=100)
    assert all(0 <= value <= 1 for value in score)
    if scale > 1:
        assert score.eval_accuracy == 1


def test_one_factor_and_one_code() -> None:
    one = Representation(lambda factors, _: factors * 1.0, (4,))
    assert beta_vae_score(one, train=20, test=10) == (1.0, 1.0)


def test_bad_counts_are_refused() -> None:
    with pytest.raises(UnweaveError, match="batch must be a whole number, 1 or more; got 0"):
        beta_vae_score(Representation(perfect, SIZES), batch=0)
    with pytest.raises(UnweaveError, match="test must be"):
        beta_vae_score(Representation(perfect, SIZES), test=0)
