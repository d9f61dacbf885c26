"""How updates are recorded as CUDA graphs, with stand-ins for graphs and streams, and what is recorded."""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from types import SimpleNamespace
from typing import Any
from weakref import ref

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from training.tiny import TINY
from unweave.methods import BetaVAE
from unweave.runs.spec import RunSpec
from unweave.training.batches import HostBatches
from unweave.training.population import Population
from unweave.training.update import Update

CPU = torch.device("cpu")


class Graph:
    """In place of torch.cuda.CUDAGraph."""

    def pool(self) -> tuple[int, int]:
        return 0, 1


@pytest.fixture
def update(monkeypatch: pytest.MonkeyPatch) -> Update:
    @contextmanager
    def graph(*_: Any, **__: Any) -> Iterator[None]:
        yield

    def stream(*_: Any, **__: Any) -> SimpleNamespace:
        return SimpleNamespace(priority=0, wait_stream=lambda _: None)

    monkeypatch.setattr(torch.cuda, "CUDAGraph", Graph)
    monkeypatch.setattr(torch.cuda, "graph", graph)
    monkeypatch.setattr(torch.cuda, "Stream", stream)
    monkeypatch.setattr(torch.cuda, "current_stream", stream)
    monkeypatch.setattr(torch.cuda, "stream", lambda _: nullcontext())
    population = Population([RunSpec(BetaVAE(), data="tiny", batch=2, latents=3)], TINY.shape, CPU)
    return Update(population, HostBatches(TINY, CPU), len(TINY))


def test_graphs_are_given_back_before_new_ones_are_recorded(
    update: Update, monkeypatch: pytest.MonkeyPatch
) -> None:
    """When a player starts. Both sets of graphs at a time would need twice the memory of the activations."""
    update._capture()
    update._long_graph = update._recorded(2, update._graph)
    assert update._graph is not None
    earlier, alive = (ref(update._graph), ref(update._long_graph)), []
    advance = update._advance

    def noted(batches: Any) -> None:
        alive.append(sum(graph() is not None for graph in earlier))
        advance(batches)

    monkeypatch.setattr(update, "_advance", noted)
    update._capture()
    assert alive == [0, 0], "in the update without a graph, and in the one that is recorded"
    assert isinstance(update._graph, Graph)
    assert update._long_graph is None


class Numbers(TorchDispatchMode):
    """Counts operations with one number for each run as their result."""

    def __init__(self, runs: int) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.runs, self.made = runs, list[str]()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        if isinstance(result, torch.Tensor) and result.shape == (self.runs,):
            self.made.append(func.overloadpacket.__name__)
        return result


def test_one_group_with_a_constant_rate_launches_nothing_for_others() -> None:
    """Each small kernel is a part of the time of a step of a small population."""
    specs = [RunSpec(BetaVAE(), data="tiny", batch=2, latents=3, seed=seed) for seed in range(5)]
    population = Population(specs, TINY.shape, CPU)
    update = Update(population, HostBatches(TINY, CPU), len(TINY))
    with Numbers(len(specs)) as numbers:
        update.run(1)
    assert "cat" not in numbers.made, "there are no losses of other groups"
    assert numbers.made.count("ones_like") == 1, "for the gradient, none for the rate"
