"""`abilities` tells the truth: what it calls possible works, and what it calls impossible is refused."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any, TypeAlias

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from unweave.data import Collection, GroundTruth, from_arrays
from unweave.data.own.abilities import CODES, GRID, GROUPS, INTERVENTIONS, LABELS, SUPERVISION, TRAINING
from unweave.data.own.construct import abilities, as_ground_truth
from unweave.errors import UnweaveError
from unweave.evaluation import evaluate
from unweave.methods import MLVAE, VAE, AdaGVAE, Method, S2BetaVAE
from unweave.runs.spec import RunSpec
from unweave.streams import Stream
from unweave.training.batches import HostBatches
from unweave.training.population import Population
from unweave.training.update import Update

Data: TypeAlias = GroundTruth | Collection
CPU = torch.device("cpu")


def grid(*sizes: int) -> NDArray[np.int64]:
    return np.array(list(product(*map(range, sizes))), np.int64)


def images_of(n: int, size: int = 32) -> NDArray[np.uint8]:
    return Stream.of(n).bytes(n, size * size).reshape(n, size, size)


def data_of(factors: Any, size: int = 32, **options: Any) -> Data:
    n = 24 if factors is None else len(factors)
    return from_arrays(images_of(n, size), factors, **options)


GAPS = np.delete(grid(3, 4, 2), 7, axis=0)
MISSING = np.where(np.arange(72).reshape(24, 3) == 5, np.nan, grid(3, 4, 2))
DATA: dict[str, Callable[[], Data]] = {
    "full grid": lambda: data_of(grid(3, 4, 2)),
    "grid with a constant factor": lambda: data_of(grid(3, 1, 4)),
    "grid with one varying factor": lambda: data_of(grid(6, 1)),
    "one constant factor": lambda: data_of(grid(1)),
    "several images of a combination": lambda: data_of(np.repeat(grid(3, 4), 2, axis=0)),
    "collection with a gap": lambda: data_of(GAPS),
    "collection with a missing value": lambda: data_of(MISSING),
    "full grid kept as a collection": lambda: data_of(grid(3, 4, 2), grid=False),
    "collection with a constant factor": lambda: data_of(grid(6, 1, 2), grid=False),
    "continuous factor": lambda: data_of(
        np.column_stack([np.linspace(0, 1, 24), np.arange(24) % 2]), kinds=["continuous", "ordinal"]
    ),
    "unique values": lambda: data_of(np.arange(24)[:, None], grid=False),
    "two rows": lambda: data_of(np.array([[0, 1], [1, 1]]), grid=False),
    "no factors": lambda: data_of(None),
    "images of 28 x 28": lambda: data_of(grid(3, 4, 2), size=28),
    "images of 28 x 28, padded": lambda: from_arrays(images_of(24, 28), grid(3, 4, 2), size="auto"),
}
every_kind = pytest.mark.parametrize("kind", DATA)


def promised(data: Data) -> dict[str, bool]:
    return {what: possible for what, possible, _ in abilities(data)}


def works(action: Callable[[], object]) -> bool:
    """Whether something can be done; what cannot must be refused with a sentence."""
    try:
        action()
    except UnweaveError:
        return False
    return True


def train(data: Data, method: Method) -> None:
    spec = RunSpec(method, data=data.name, batch=4, latents=4)
    batches = HostBatches(data, CPU)
    population = Population([spec], data.shape, CPU, batches.label_sizes(method.sampling))
    Update(population, batches, len(data)).run(1)


def encode(images: NDArray[Any]) -> NDArray[np.float64]:
    return np.asarray(images, np.float64).reshape(len(images), -1)[:, :5] / 255


def measure(data: Data, metrics: str) -> None:
    scores = evaluate(encode, data=data, metrics=metrics, points=(200, 100))
    if not scores.scores:
        raise UnweaveError("nothing can be measured.")


@every_kind
def test_training(kind: str) -> None:
    data = DATA[kind]()
    assert works(lambda: train(data, VAE())) == promised(data)[TRAINING]


@every_kind
def test_full_grids(kind: str) -> None:
    data = DATA[kind]()
    assert promised(data)[GRID] == (isinstance(data, GroundTruth) or works(lambda: as_ground_truth(data)))


@every_kind
def test_supervised_methods(kind: str) -> None:
    data = DATA[kind]()
    if not promised(data)[TRAINING]:
        pytest.skip("the networks do not take the images")
    names = [factor.name for factor in data.factors]
    sharing = [works(lambda name=name: train(data, MLVAE(shared=name))) for name in names]  # type: ignore[misc]
    assert any(sharing) >= promised(data)[GROUPS]
    assert works(lambda: train(data, AdaGVAE())) == promised(data)[SUPERVISION]
    assert works(lambda: train(data, S2BetaVAE(labels=2))) >= promised(data)[LABELS]


@every_kind
def test_groups_of_rows(kind: str) -> None:
    data = DATA[kind]()
    if isinstance(data, GroundTruth):
        pytest.skip("a ground truth can hold every factor fixed")
    answers = promised(data)
    for factor in data.factors:
        drawn = works(lambda name=factor.name: data.sample_groups(3, 2, 0, name))  # type: ignore[misc]
        assert drawn >= answers[f"holding {factor.name} fixed"]


@every_kind
def test_metrics(kind: str) -> None:
    data = DATA[kind]()
    assert works(lambda: measure(data, "quick")) == promised(data)[CODES]


@every_kind
def test_metrics_that_hold_a_factor_fixed(kind: str) -> None:
    data = DATA[kind]()
    if promised(data)[INTERVENTIONS]:
        measure(data, "factor_vae_score")
        measure(data, "beta_vae_score")


def test_a_method_with_groups_gets_those_that_a_collection_draws() -> None:
    data = data_of(GAPS)
    assert isinstance(data, Collection)
    sampling = MLVAE(shared="factor_1", group_size=3).sampling
    batch = HostBatches(data, CPU)._draw(Stream.of(0), Stream.of(7), 5, sampling)
    rows = data.sample_groups(5, 3, Stream.of(7), "factor_1")
    np.testing.assert_array_equal(batch["images"], data.images_at(rows.ravel()))
