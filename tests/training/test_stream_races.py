"""No stream of an update reads what another one may still write, or uses its memory: see stream_races.py."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor

from nn.triton_device import CUDA
from training.stream_races import Races, Stream, streams_watched
from training.tiny import TINY

from unweave.nn.kernels import activation, branches  # isort: skip
from unweave.methods import DIPVAE1, AnnealedVAE, BetaTCVAE, BetaVAE, FactorVAE, Method
from unweave.methods.step import Forward
from unweave.nn.kernels.branches import Branch
from unweave.nn.layers import convolution
from unweave.runs.spec import RunSpec
from unweave.training import forward
from unweave.training import update as updates
from unweave.training.batches import HostBatches
from unweave.training.population import Population
from unweave.training.update import Update

MIXED = (BetaVAE(4.0), AnnealedVAE(5.0), FactorVAE(10.0), BetaTCVAE(4.0), DIPVAE1(5.0), FactorVAE(20.0))
CPU = torch.device("cpu")
pytestmark = pytest.mark.skipif(CUDA, reason="streams are watched on a CPU")


@pytest.fixture
def races(monkeypatch: pytest.MonkeyPatch) -> Iterator[Races]:
    with streams_watched(monkeypatch) as watched:
        yield watched


def side_work(join_first: bool, join_after: bool, keep: bool) -> list[Tensor]:
    """Read a tensor of the current stream on another one; then write, and allocate, on the current one."""
    side, x = torch.cuda.Stream(), torch.ones(4)
    if join_first:
        side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        y = x + 1
    kept = [x] if keep else []
    del x
    if join_after:
        torch.cuda.current_stream().wait_stream(side)
    return [torch.zeros(4), y * 2, *kept]


def test_work_that_waits_has_no_races(races: Races) -> None:
    side_work(True, True, False)
    races.end()
    assert races.found == []


def test_reads_without_waiting_are_races(races: Races) -> None:
    side_work(False, True, True)
    assert races.found == ["aten.add.Tensor on stream 1 reads what aten.ones.default writes on stream 0"]
    races.found.clear()
    side_work(True, False, True)
    assert races.found == ["aten.mul.Tensor on stream 0 reads what aten.add.Tensor writes on stream 2"]
    races.end()
    assert races.found[1:] == ["stream 2 is not joined"]


def test_memory_that_another_stream_uses_must_not_be_used_again(races: Races) -> None:
    side_work(True, False, False)
    of_ones = "may use the memory of a result of aten.ones.default while stream 1 uses it"
    assert races.found[0] == f"aten.zeros.default on stream 0 {of_ones}"


def test_what_another_stream_reads_must_not_be_overwritten(races: Races) -> None:
    x, side = torch.ones(4), torch.cuda.Stream()
    races.begin()  # x is older than the step, as weights are
    with torch.cuda.stream(side):
        y = x + 1
    x.mul_(2)
    assert races.found == ["aten.mul_.Tensor on stream 0 overwrites what stream 1 uses"]
    del y


def test_triton_kernels_are_watched(races: Races) -> None:
    x, bias, side = torch.ones(1, 2, 3), torch.ones(1, 3), torch.cuda.Stream()
    activation.activate(x, bias, 0.0)
    with torch.cuda.stream(side):
        y = x + 1
    assert races.found == ["aten.add.Tensor on stream 1 reads what _activate_kernel writes on stream 0"]
    del y


class Doubled(torch.autograd.Function):
    """2 x w, with the gradient of w on a branch, and some work next to it."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, w: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return 2 * x * w

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor]:
        (x,), g = ctx.saved_tensors, 2 * gradients[0]
        with Branch(g) as branch:
            to_w = branch.run(partial(torch.mul, g, x), g)
            g = g + 1
            g = g + 1
        return g, to_w


def doubled(x: Tensor, w: Tensor) -> Tensor:
    result: Tensor = Doubled.apply(x, w)  # type: ignore[no-untyped-call]
    return result


def doubled_gradients() -> None:
    """Of two of these functions, on two streams; the engine waits where their gradients meet."""
    x, w = torch.ones(4, requires_grad=True), torch.ones(4, requires_grad=True)
    side, main = torch.cuda.Stream(), torch.cuda.current_stream()
    side.wait_stream(main)
    with torch.cuda.stream(side):
        y = doubled(x, w)
    main.wait_stream(side)
    gradients = torch.autograd.grad((doubled(x, w) * y).sum(), (x, w))
    assert [g.tolist() for g in gradients] == [[12.0] * 4, [8.0] * 4]


@pytest.fixture
def branching(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(branches, "_is_used", lambda _: True)


def test_the_engine_waits_for_gradients_of_other_streams(races: Races, branching: None) -> None:
    doubled_gradients()
    assert races.found == []


def test_a_branch_that_is_not_joined_has_races(
    races: Races, branching: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Branch, "__exit__", lambda *_: None)
    doubled_gradients()
    assert any("reads what aten.mul.Tensor writes on stream 2" in race for race in races.found)


def test_a_branch_that_does_not_keep_its_inputs_has_races(
    races: Races, branching: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = Branch.run
    monkeypatch.setattr(Branch, "run", lambda branch, work, *_: run(branch, work, torch.ones(1)))
    doubled_gradients()
    assert races.found
    assert all("may use the memory of a result of aten.mul.Tensor" in race for race in races.found)


def update_of(methods: tuple[Method, ...], monkeypatch: pytest.MonkeyPatch) -> Update:
    """Updates with the streams of a GPU."""
    monkeypatch.setattr(updates, "_branching_groups", lambda population: population.groups)
    monkeypatch.setattr(forward, "_event", lambda device: torch.cuda.current_stream(device).record_event())
    specs = [RunSpec(m, data="tiny", batch=2, latents=3, seed=seed) for seed, m in enumerate(methods)]
    return Update(Population(specs, TINY.shape, CPU), HostBatches(TINY, CPU), len(TINY))


def update_groups(
    methods: tuple[Method, ...], races: Races, monkeypatch: pytest.MonkeyPatch, steps: int = 2
) -> None:
    update = update_of(methods, monkeypatch)
    races.begin()
    for _ in range(steps):
        update.run(1)
        races.end()


@pytest.mark.parametrize("methods", [MIXED, (FactorVAE(10.0),)], ids=["mixed", "one method"])
def test_updates_of_groups_have_no_races(
    methods: tuple[Method, ...], races: Races, monkeypatch: pytest.MonkeyPatch
) -> None:
    update_groups(methods, races, monkeypatch)
    assert races.found == []


@pytest.mark.parametrize("place", [BetaTCVAE, FactorVAE], ids=["a loss", "the last loss"])
def test_streams_are_joined_if_memory_runs_out(
    place: type[Method], races: Races, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the middle of an update: a graph could not be ended otherwise, with an error that hides this one."""

    def run_out(*_: Any) -> None:
        raise torch.cuda.OutOfMemoryError("CUDA out of memory")

    @contextmanager
    def graph(*_: Any, **__: Any) -> Iterator[None]:
        try:
            yield
        finally:
            races.end()

    monkeypatch.setattr(torch.cuda, "CUDAGraph", lambda: None)
    monkeypatch.setattr(torch.cuda, "graph", graph)
    monkeypatch.setattr(place, "losses", run_out)
    update = update_of(MIXED, monkeypatch)
    update._inputs = update._draw()
    races.begin()
    with pytest.raises(torch.cuda.OutOfMemoryError):
        update._recorded(1, None)
    assert races.found == []


def test_branches_end_with_an_error(races: Races, branching: None) -> None:
    x = torch.ones(4)

    def run_out() -> None:
        with Branch(x) as branch:
            branch.run(partial(torch.add, x, x), x)
            raise torch.cuda.OutOfMemoryError("CUDA out of memory")

    with pytest.raises(torch.cuda.OutOfMemoryError):
        run_out()
    races.end()
    assert races.found == []


def ignore(*_: Any) -> None:
    pass


@pytest.mark.parametrize(
    ("owner", "name", "instead", "race"),
    [
        (Update, "_join", ignore, "aten.cat.default on stream 0 reads what"),
        (Stream, "wait_event", ignore, "may use the memory of"),
        (
            Forward,
            "reconstruction",
            property(lambda one: one.reconstruction_loss),
            "reads what aten.mean.dim",
        ),
    ],
    ids=["streams are not joined", "events are not waited for", "the decoder is not waited for"],
)
def test_mistakes_in_updates_are_found(
    owner: type, name: str, instead: Any, race: str, races: Races, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(owner, name, instead)
    update_groups(MIXED[:3], races, monkeypatch)
    assert any(race in found for found in races.found)


def test_updates_with_branches_have_no_races(
    races: Races, branching: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Through Triton's kernels of convolutions, whose gradients of weights are on a branch."""
    monkeypatch.setattr(convolution, "have_kernels", lambda *_: True)
    update_groups((FactorVAE(10.0, second_batch=False),), races, monkeypatch, steps=1)
    assert len(races.busy) > 1
    assert races.found == []
