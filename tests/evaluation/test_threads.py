"""Linear algebra of predictors uses one thread: last digits of products depend on the number of threads."""

from __future__ import annotations

import math
from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from threadpoolctl import threadpool_info, threadpool_limits

from unweave.data import GroundTruth, load
from unweave.evaluation import downstream, equivariance, generalisation
from unweave.streams import Stream


def encoder(truth: GroundTruth) -> Callable[[NDArray[np.uint8]], NDArray[np.float64]]:
    mixing = Stream.of(0).normal(math.prod(truth.shape), 4)

    def encode(images: NDArray[np.uint8]) -> NDArray[np.float64]:
        return np.asarray(images.reshape(len(images), -1) / 255 @ mixing)

    return encode


def threads() -> set[int]:
    return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}


@pytest.mark.parametrize(
    ("module", "inner", "call"),
    [
        (
            "generalisation",
            "predict_targets",
            lambda encode, data: generalisation(encode, data=data, points=(60, 30)),
        ),
        (
            "downstream",
            "predict_targets",
            lambda encode, data: downstream(encode, data=data, sizes=(30,), repeats=2, test=20),
        ),
        (
            "equivariance",
            "shift_fits",
            lambda encode, data: equivariance(encode, data=data, factor="x", orbits=6, on="all"),
        ),
    ],
)
def test_predictors_use_one_thread(
    module: str, inner: str, call: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    used: list[set[int]] = []
    owner = import_module(f"unweave.evaluation.{module}")
    original = getattr(owner, inner)

    def watched(*arguments: Any) -> Any:
        used.append(threads())
        return original(*arguments)

    monkeypatch.setattr(owner, inner, watched)
    data = load("dsprites:hold(x>=16)")
    with threadpool_limits(2, user_api="blas"):
        call(encoder(data), data)
        assert threads() == {2}
    assert used
    assert all(found == {1} for found in used)
