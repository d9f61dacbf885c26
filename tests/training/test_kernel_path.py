"""Whole updates through the Triton kernels' path and through torch's own layers: the same runs."""

import pytest
import torch

from nn.triton_device import DEVICE
from training.tiny import TINY
from unweave.methods import BetaVAE, FactorVAE
from unweave.nn.layers import Layer, dense
from unweave.nn.layers import convolution as layers
from unweave.runs.spec import RunSpec
from unweave.training.batches import HostBatches
from unweave.training.population import Population
from unweave.training.update import Update

STEPS = 1  # moments of the optimiser are compared, and so the gradients of all layers


def trained() -> tuple[list[dict[str, torch.Tensor]], list[dict[str, torch.Tensor]]]:
    """Logged terms and states of two runs of different methods after some updates."""
    methods = BetaVAE(4.0), FactorVAE(10.0)
    device = torch.device(DEVICE)
    specs = [
        RunSpec(method, data="tiny", batch=3, latents=4, seed=seed) for seed, method in enumerate(methods)
    ]
    population = Population(specs, TINY.shape, device)
    update = Update(population, HostBatches(TINY, device), len(TINY))
    update.run(STEPS)
    return update.take_terms(), [population.run_state(run) for run in range(len(specs))]


def test_both_paths_train_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layers, "have_kernels", lambda *_: False)
    monkeypatch.setattr(dense, "is_on_kernels", lambda *_: False)
    plain = trained()
    asked = []

    def kernels(stack: list[Layer], _x: torch.Tensor) -> bool:
        asked.append(type(stack[0]))
        return True

    monkeypatch.setattr(layers, "have_kernels", kernels)
    monkeypatch.setattr(dense, "is_on_kernels", lambda *_: True)
    ours = trained()
    # On a GPU the update is recorded once more, as a graph.
    assert asked == [layers.Conv2d, layers.ConvTranspose2d] * (len(asked) // 2)
    assert len(asked) >= 2 * STEPS
    for mine, true in zip((*ours[0], *ours[1]), (*plain[0], *plain[1]), strict=True):
        for name, tensor in true.items():
            torch.testing.assert_close(mine[name].cpu(), tensor.cpu(), rtol=1e-3, atol=2e-5, msg=name)
