"""A protocol states the number of points, and codes are measured in the precision that they have."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

import unweave
from metrics.grids import drawn
from unweave.data import from_arrays
from unweave.metrics import METRICS, downstream, mean_pairwise_information, metric_named, mig, sap
from unweave.metrics.requests import PUBLISHED, Conditions
from unweave.streams import Stream

SIZES = (3, 4, 5)
FACTORS = drawn(SIZES, 900)
CODES = FACTORS + 0.3 * Stream.of(1).normal(900, 3)


def protocols(scores: unweave.Scores) -> dict[str, str]:
    return {score.name: score.protocol for score in scores.scores}


def test_the_published_numbers_of_points_are_not_named() -> None:
    for metric in METRICS:
        assert metric.protocol("mean") == metric.protocol("mean", PUBLISHED)
        assert ",n" not in metric.protocol("mean").replace("normalised", "")
    assert metric_named("downstream_logistic").protocol().endswith(",10,100,1000,10000,mean]")


def test_downstream_states_the_sizes_that_ran() -> None:
    scores = unweave.evaluate(CODES, FACTORS, metrics="downstream_logistic")
    task = downstream(CODES[:600], FACTORS[:600], test=(CODES[600:], FACTORS[600:]))
    assert task.sizes == (10, 100)
    for name, protocol in protocols(scores).items():
        assert protocol.endswith(",10,100,n600+300,mean]"), name
    few = unweave.evaluate(CODES[:9], FACTORS[:9] % 2, metrics="downstream_logistic")
    assert protocols(few)["downstream_logistic.test_accuracy_6"].endswith(",6,n6+3,mean]")


@pytest.mark.parametrize(
    ("metric", "words"),
    [
        ("med", ",n900,mean]"),
        ("total_correlation", ",n900,mean]"),
        ("sap", ",n600+300,mean]"),
        ("factor_vae_score", ",rows900,halves,mean]"),
        ("mig_posterior", ",rows900]"),
    ],
)
def test_arrays_state_how_many_rows_were_used(metric: str, words: str) -> None:
    options = {"log_var": np.zeros_like(CODES), "metrics": metric}
    scores = unweave.evaluate(CODES, FACTORS, **options)  # type: ignore[arg-type]
    assert all(protocol.endswith(words) for protocol in protocols(scores).values())
    fewer = unweave.evaluate(CODES[:500], FACTORS[:500], **options | {"log_var": CODES[:500]})  # type: ignore[arg-type]
    assert set(protocols(fewer).values()).isdisjoint(protocols(scores).values())


def test_data_sets_state_points_that_are_not_the_published_ones() -> None:
    factors = np.stack(np.meshgrid(*map(np.arange, SIZES), indexing="ij"), axis=-1).reshape(-1, 3)
    images = Stream.of(2).integers(60, [256] * 16).astype(np.uint8).reshape(60, 1, 4, 4)
    own = from_arrays(images, factors)

    def encode(x: np.ndarray) -> np.ndarray:
        return x.reshape(len(x), -1)[:, :3]

    small = unweave.evaluate(encode, data=own, metrics="mig, sap", points=(100, 50))
    assert protocols(small) == {
        "mig": "mig[bins20,n100,mean]",
        "sap": "sap[svm-ovr,C0.01,n100+50,disjoint,mean]",
    }
    assert protocols(unweave.evaluate(encode, data=own, metrics="mig")) == {"mig": "mig[bins20,mean]"}


def test_points_also_limit_given_test_data() -> None:
    test = (CODES[:200], FACTORS[:200])
    train = (CODES[200:], FACTORS[200:])
    scores = unweave.evaluate(*train, test=test, metrics="mig, sap", points=(300, 60))
    assert scores.points == (300, 60)
    assert protocols(scores) == {"mig": "mig[bins20,n300,mean]", "sap": "sap[svm-ovr,C0.01,n300+60,mean]"}
    assert scores["sap"] != sap(*train, test=test)
    whole = unweave.evaluate(*train, test=test, metrics="mig, sap", points=(700, 200))
    assert dict(whole) == {"mig": mig(*train), "sap": sap(*train, test=test)}


def test_efforts_of_other_points_are_other_conditions() -> None:
    assert metric_named("mig").protocol("mean", Conditions(counted=200)) == "mig[bins20,n200,mean]"
    assert metric_named("elbo").protocol("mean", Conditions(drawn=200)) == "elbo[sample1,n200]"


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("held_out", [False, True])
def test_codes_are_binned_in_their_own_precision(kind: type, held_out: bool) -> None:
    """Values on the edges of bins: rounded to float32 they fall into other bins than in float64."""
    factors = drawn((21, 41, 11), 3000)
    codes: NDArray[Any] = (factors * 0.1 - 1.3).astype(kind)
    if kind == np.float32:
        assert mig(codes, factors) != mig(codes.astype(np.float64), factors)
    test = (codes, factors) if held_out else None
    for given in (codes, torch.from_numpy(codes)):
        scores = unweave.evaluate(given, factors, test=test, metrics="mig, mean_pairwise_information")
        assert scores["mig"] == mig(codes, factors)
        assert scores["mean_pairwise_information"] == pytest.approx(
            mean_pairwise_information(codes), rel=1e-9
        )


def test_a_collection_has_the_scores_of_its_codes() -> None:
    factors = drawn((21, 11), 1200)
    images = np.zeros((1200, 1, 4, 4), np.uint8)
    images[:, 0, 0, :2] = factors

    def encode(x: np.ndarray) -> np.ndarray:
        return (np.round(255 * x[:, 0, 0, :2]).astype(np.float64) * 0.1 - 1.3).astype(np.float32)

    rows = from_arrays(images, factors, grid=False)
    assert unweave.evaluate(encode, data=rows, metrics="mig")["mig"] == pytest.approx(
        mig((factors * 0.1 - 1.3).astype(np.float32), factors), rel=1e-9
    )
