"""Groups and players that work next to each other on a GPU: the same bits as one after another."""

import pytest
import torch

from training.tiny import TINY
from unweave.methods import DIPVAE1, AnnealedVAE, BetaTCVAE, BetaVAE, FactorVAE, Method
from unweave.nn.layers.precision import Precision
from unweave.runs.spec import RunSpec
from unweave.training import update as updates
from unweave.training.batches import batches_of
from unweave.training.population import Population
from unweave.training.update import GRAPH_STEPS, Update

STEPS = 6 * GRAPH_STEPS + 3
MIXED = (BetaVAE(4.0), AnnealedVAE(5.0), FactorVAE(10.0), BetaTCVAE(4.0), DIPVAE1(5.0), FactorVAE(20.0))


def trained(methods: tuple[Method, ...], precision: Precision) -> list[dict[str, torch.Tensor]]:
    """Logged terms and states of some runs after some updates."""
    device = torch.device("cuda")
    specs = [
        RunSpec(method, data="tiny", batch=8, latents=4, seed=seed, precision=precision)
        for seed, method in enumerate(methods)
    ]
    population = Population(specs, TINY.shape, device)
    update = Update(population, batches_of(TINY, device), len(TINY))
    update.run(STEPS)
    return [*update.take_terms(), *(population.run_state(run) for run in range(len(specs)))]


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("precision", ["bf16", "float32"])
@pytest.mark.parametrize("methods", [MIXED, (FactorVAE(10.0),)], ids=["mixed", "one method"])
def test_streams_change_no_bit(
    methods: tuple[Method, ...], precision: Precision, monkeypatch: pytest.MonkeyPatch
) -> None:
    side_by_side = trained(methods, precision)
    monkeypatch.setattr(updates, "_branching_groups", lambda _: [])
    in_turn = trained(methods, precision)
    for ours, expected in zip(side_by_side, in_turn, strict=True):
        assert ours.keys() == expected.keys()
        for name, tensor in expected.items():
            assert torch.equal(ours[name], tensor), name


def test_groups_branch_on_a_gpu_only() -> None:
    population = Population([RunSpec(BetaVAE(), data="tiny")], TINY.shape, torch.device("cpu"))
    assert updates._branching_groups(population) == []
