"""Functions of one's own among the metrics of an evaluation."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

import unweave
from unweave.errors import UnweaveError
from unweave.metrics import mig, sap
from unweave.metrics.lookup import metric_words
from unweave.metrics.metric import Metric
from unweave.streams import Stream

Arrays = NDArray[Any]
FACTORS = Stream.of(0).integers(300, [3, 4])
CODES = FACTORS + 0.3 * Stream.of(1).normal(300, 2)


def correlation(codes: Arrays, factors: Arrays) -> float:
    """Correlation of the first code with the first factor."""
    return float(np.corrcoef(codes[:, 0], factors[:, 0])[0, 1])


def moments(codes: Arrays, factors: Arrays) -> dict[str, Any]:
    """Numbers of several types."""
    return {"mean": codes.mean(), "rows": len(factors), "tensor": torch.tensor(2.0)}


class Spread:
    """An object that can be called."""

    def __call__(self, codes: Arrays, _factors: Arrays) -> float:
        return float(codes.std())


class Pair(NamedTuple):
    first: float
    second: float


def test_functions_stand_next_to_names() -> None:
    scores = unweave.evaluate(CODES, FACTORS, metrics=["mig", correlation, moments])
    assert list(scores) == ["mig", "correlation", "moments.mean", "moments.rows", "moments.tensor"]
    assert scores["correlation"] == pytest.approx(correlation(CODES, FACTORS))
    assert (scores["moments.rows"], scores["moments.tensor"]) == (300.0, 2.0)
    assert scores["mig"] == unweave.evaluate(CODES, FACTORS, metrics="mig")["mig"]
    assert scores.score("correlation").protocol.startswith("correlation[source-")
    assert scores.score("correlation").protocol.endswith(",n300,mean]")


def test_one_function_or_functions_by_name() -> None:
    expected = pytest.approx(correlation(CODES, FACTORS))
    assert dict(unweave.evaluate(CODES, FACTORS, metrics=correlation)) == {"correlation": expected}
    named: dict[str, Any] = {"mine": correlation, "count": lambda codes, _: len(codes), "spread": Spread()}
    scores = unweave.evaluate(CODES, FACTORS, metrics=named)
    assert dict(scores) == {"mine": expected, "count": 300.0, "spread": pytest.approx(CODES.std())}
    listed = unweave.evaluate(CODES, FACTORS, metrics=[Spread(), functools.partial(correlation), named])
    assert list(listed) == ["Spread", "correlation", "mine", "count", "spread"]


def test_a_built_in_function_is_the_metric_of_its_name() -> None:
    passed = unweave.evaluate(CODES, FACTORS, metrics=[mig, sap])
    named = unweave.evaluate(CODES, FACTORS, metrics="mig, sap")
    assert passed.to_dict() | {"seconds": 0} == named.to_dict() | {"seconds": 0}


def test_functions_have_intervals_and_seeds_like_built_in_metrics() -> None:
    def share(codes: Arrays, factors: Arrays, seed: Stream) -> float:
        return float(seed.uniform(1, 1)[0, 0])

    own = {"copy": lambda codes, factors: mig(codes, factors)}
    scores = unweave.evaluate(CODES, FACTORS, metrics=["mig", own, share], repeats=5)
    built_in, copied = scores.score("mig"), scores.score("copy")
    assert (built_in.value, built_in.low, built_in.high) == (copied.value, copied.low, copied.high)
    assert built_in.low is not None
    assert scores["share"] == unweave.evaluate(CODES, FACTORS, metrics=share)["share"]


def test_functions_of_one_name_have_different_protocols() -> None:
    def one(codes: Arrays, _factors: Arrays) -> float:
        return float(codes.mean())

    def two(codes: Arrays, _factors: Arrays) -> float:
        return float(codes.max())

    protocols = [
        unweave.evaluate(CODES, FACTORS, metrics={"same": f}).score("same").protocol for f in (one, two, one)
    ]
    assert protocols[0] == protocols[2] != protocols[1]


@pytest.mark.parametrize(
    ("metrics", "sentence"),
    [
        (
            [lambda *arrays: len(arrays)],
            r'a metric needs a name of letters.*got "<lambda>".*Name the function',
        ),
        ({"my metric": correlation}, 'got "my metric"'),
        ({"mig": correlation}, 'your function has the name of a built-in metric, "mig"'),
        (["mig", {"one": correlation}, {"one": moments}], 'two metrics are called "one"'),
        ({"mine": 3}, r"the metric mine must be a function of \(codes, factors\); got int"),
        ({"mine": lambda *_: np.nan}, "a metric must return finite numbers; mine is nan"),
        ({"mine": lambda *_: {"a": 1.0, "b": np.inf}}, r"finite numbers; mine\.b is inf"),
        ({"mine": lambda *_: "high"}, "a number or a dictionary of numbers; mine is str"),
        ({"mine": lambda *_: None}, "a number or a dictionary of numbers; mine is NoneType"),
        ({"mine": lambda *_: [[1], [1, 2]]}, "a number or a dictionary of numbers; mine is list"),
        ({"mine": lambda codes, _: codes[0]}, r"mine is ndarray of shape \(2,\)"),
        ({"mine": lambda *_: {"a": [1.0]}}, r"a dictionary of numbers; mine\.a is list"),
        ({"mine": lambda *_: 1 / 0}, "the metric mine failed: ZeroDivisionError: division by zero"),
    ],
)
def test_mistakes_are_one_sentence(metrics: Any, sentence: str) -> None:
    with pytest.raises(UnweaveError, match=sentence):
        unweave.evaluate(CODES, FACTORS, metrics=metrics)


def test_several_numbers_may_be_a_named_tuple() -> None:
    scores = unweave.evaluate(CODES, FACTORS, metrics={"pair": lambda *_: Pair(1.0, 2.0)})
    assert dict(scores) == {"pair.first": 1.0, "pair.second": 2.0}


def test_a_study_refuses_metrics_that_no_other_process_can_find() -> None:
    record = Metric("rows", correlation, "rows[all]", "codes", "", "")
    for asked in ([correlation], ["mig", record]):
        with pytest.raises(UnweaveError, match=r"Name it by its file: path/to/file\.py:Name"):
            metric_words(asked)  # type: ignore[arg-type]
