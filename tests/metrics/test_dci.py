"""DCI: importance matrices by hand, the predecessor's values, and codes at the edges."""

import json
from pathlib import Path
from typing import get_args

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray
from scipy.stats import entropy

from unweave.errors import UnweaveError
from unweave.metrics.dci import DCI, Model, dci, disentanglement
from unweave.streams import Stream

MODELS: tuple[Model, ...] = get_args(Model)


def some_data(n: int = 300, d: int = 3) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    factors = Stream.of(5).integers(n, [3, 4])
    codes = Stream.of(6).normal(n, d)
    codes[:, : min(d, 2)] = factors[:, : min(d, 2)] + 0.2 * codes[:, : min(d, 2)]
    return codes, factors


def table_score(importance: NDArray[np.float64]) -> float:
    """The predecessor's way: 1 - entropy of each row to base k, weighted by the row sums."""
    scores = 1 - entropy(importance.T + 1e-11, base=importance.shape[1])
    return float((scores * importance.sum(axis=1) / importance.sum()).sum())


# Importance (d, k), D, C; the entropy of (3/4, 1/4) to base 2 is 0.811278.
BY_HAND = [
    ([[1, 0], [0, 1]], 1.0, 1.0),
    ([[1, 1], [0, 0]], 0.0, 1.0),
    ([[0.5, 0], [0.5, 0], [0, 1]], 1.0, 0.5 * (1 - np.log(2) / np.log(3)) + 0.5),
    ([[0.75, 0.25], [0.25, 0.75]], 1 - 0.811278, 1 - 0.811278),
    ([[0.5, 0.5], [0.5, 0.5]], 0.0, 0.0),
    ([[0, 0], [0, 0]], 0.0, 0.0),  # nothing serves anything
    ([[1, 1, 1]], 0.0, 1.0),  # one code holds every factor completely
    ([[1], [0]], 1.0, 1.0),  # one factor: a code can only serve this one
    ([[1], [1]], 1.0, 0.0),
]


@pytest.mark.parametrize(("importance", "d", "c"), BY_HAND)
def test_scores_of_a_matrix_by_hand(importance: list[list[float]], d: float, c: float) -> None:
    matrix = np.array(importance, np.float64)
    assert disentanglement(matrix) == pytest.approx(d, abs=1e-6)
    assert disentanglement(matrix.T) == pytest.approx(c, abs=1e-6)


@settings(deadline=None, max_examples=50)
@given(arrays(np.float64, st.tuples(st.integers(1, 6), st.integers(2, 6)), elements=st.floats(0.001, 1)))
def test_scores_of_a_matrix_are_the_weighted_entropies(matrix: NDArray[np.float64]) -> None:
    assert disentanglement(matrix) == pytest.approx(table_score(matrix), abs=1e-9)
    assert 0 <= disentanglement(matrix) <= 1


@pytest.mark.parametrize(
    "name", ["s3d_missing_factors_D4", "norb_noisy_0.3", "dsp_duplicated", "dsp_dead_dims"]
)
def test_values_of_the_predecessor(reference: Path, name: str) -> None:
    folder = reference / "reference"
    expected = json.loads((folder / "metric_cases.json").read_text())[name]["expected"]["sklearn_1.9"]
    with np.load(folder / "metric_cases.npz") as cases:
        part = {key: cases[f"{name}/{key}"] for key in
                ("codes_train", "factors_train", "codes_test", "factors_test")}  # fmt: skip
    score = dci(part["codes_train"], part["factors_train"], test=(part["codes_test"], part["factors_test"]))
    for field in DCI._fields[:4]:
        assert getattr(score, field) == pytest.approx(expected["dci_seed0"][field], abs=0.01), field
    if name != "dsp_duplicated":  # copies share their importance by chance, there and here
        matrix = np.array(expected["dci_seed0"]["importance_matrix"])
        assert np.abs(score.importance - matrix).max() < 0.01


@pytest.mark.parametrize("model", MODELS)
def test_every_model_sees_which_code_holds_which_factor(model: Model) -> None:
    codes, factors = some_data()
    score = dci(codes, factors, model=model)
    assert score.importance.shape == (3, 2)
    assert (score.importance.argmax(axis=0) == [0, 1]).all()
    assert score.disentanglement > 0.3
    assert score.completeness > 0.3
    assert 0.5 < score.informativeness_test <= 1
    assert 0.5 < score.informativeness_train <= 1


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("kind", ["dead", "copied", "huge", "tiny", "integer", "float16", "one"])
def test_any_code_gives_a_number(model: Model, kind: str) -> None:
    codes, factors = some_data(120)
    kinds: dict[str, NDArray[np.generic]] = {
        "dead": codes * [1.0, 1.0, 0.0] + [0.0, 0.0, 3.7],
        "copied": np.hstack([codes, codes]),
        "huge": codes * 1e200,
        "tiny": codes * 1e-200,
        "integer": np.round(codes * 10).astype(np.int32),
        "float16": codes.astype(np.float16),
        "one": codes[:, :1],
    }
    changed = kinds[kind]
    before = changed.copy()
    score = dci(changed, factors, model=model)
    assert (changed == before).all()
    assert all(0 <= value <= 1 for value in score[:4])
    assert np.isfinite(score.importance).all()
    assert (score.importance >= 0).all()


def test_trees_score_the_last_third_unless_test_data_are_given() -> None:
    codes, factors = some_data(300)
    held_out = dci(codes, factors)
    given = dci(codes[:200], factors[:200], test=(codes[200:], factors[200:]))
    assert held_out[:4] == given[:4]


def test_one_factor_and_one_code() -> None:
    codes, factors = some_data(200)
    assert dci(codes, factors[:, :1]).disentanglement == 1
    assert dci(codes[:, :1], factors).completeness == pytest.approx(1, abs=1e-9)


@pytest.mark.parametrize("model", MODELS)
def test_same_seed_same_scores(model: Model) -> None:
    codes, factors = some_data(90)
    first, again = (dci(codes, factors, model=model, seed=3) for _ in range(2))
    assert first[:4] == again[:4]
    assert (first.importance == again.importance).all()


def test_unknown_model() -> None:
    codes, factors = some_data(30)
    with pytest.raises(UnweaveError, match=r"model must be .*got 'tree'. Did you mean \"trees\"\?"):
        dci(codes, factors, model="tree")  # type: ignore[arg-type]
