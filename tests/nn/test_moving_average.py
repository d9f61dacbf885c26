"""Parameters that follow other tensors: averages of all targets at first, then moving averages, or copies."""

import torch
from torch import nn

from unweave.nn.moving_average import MovingAverage, half_squared_distance
from unweave.nn.optimiser import PopulationOptimiser


def follow(targets: list[torch.Tensor], share: float) -> list[torch.Tensor]:
    """A parameter of two runs after each of the updates towards these targets."""
    parameter = nn.Parameter(torch.full((2, 3), 7.0))
    optimiser = PopulationOptimiser([parameter], MovingAverage(share))
    values = []
    for step, target in enumerate(targets):
        loss = half_squared_distance([parameter], [target])
        assert loss.shape == (2,)
        gradients = torch.autograd.grad(loss.sum(), [parameter])
        optimiser.update(gradients, torch.tensor(step), torch.tensor([1e-4, 1.0]))
        values.append(parameter.detach().clone())
    return values


def test_averages_and_copies() -> None:
    targets = list(torch.arange(24.0).view(4, 2, 3).square())
    copies, averages, moving = (follow(targets, share) for share in (1.0, 0.01, 0.5))
    for step, target in enumerate(targets):
        torch.testing.assert_close(copies[step], target)
        torch.testing.assert_close(averages[step], torch.stack(targets[: step + 1]).mean(0))
    torch.testing.assert_close(moving[3], targets[0] / 8 + targets[1] / 8 + targets[2] / 4 + targets[3] / 2)


def test_targets_get_no_gradient() -> None:
    parameter, target = nn.Parameter(torch.zeros(1, 2)), nn.Parameter(torch.ones(1, 2))
    half_squared_distance([parameter], [target]).sum().backward()
    assert target.grad is None
    torch.testing.assert_close(parameter.grad, -torch.ones(1, 2))
