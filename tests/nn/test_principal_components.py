"""Principal components that are followed batch by batch."""

from __future__ import annotations

import numpy as np
import torch

from unweave.nn.moving_average import MovingAverage
from unweave.nn.networks.principal_components import PrincipalComponents, orthonormalised
from unweave.nn.optimiser import PopulationOptimiser
from unweave.streams import Stream

RUNS = [Stream.of(0), Stream.of(1)]


def follow(components: PrincipalComponents, batches: torch.Tensor) -> torch.Tensor:
    """Follow batches (steps, P, B, D); return the shares of variance that are kept in the last one."""
    parameters = list(components.parameters())
    optimiser = PopulationOptimiser(parameters, MovingAverage(0.02))
    for number, batch in enumerate(batches):
        loss, share = components.following(batch)
        gradients = torch.autograd.grad(loss.sum(), parameters)
        optimiser.update(list(gradients), torch.tensor(number), torch.ones(len(batch)))
    return share


def test_they_become_those_of_all_data() -> None:
    """The expected ones are by a singular value decomposition of all rows."""
    rows = Stream.of(3).normal(20 * 32, 6) * [4, 3, 2, 1, 0.5, 0.2] + 2
    rows = rows @ np.linalg.qr(Stream.of(4).normal(6, 6))[0]
    _, deviations, directions = np.linalg.svd(rows - rows.mean(0), full_matrices=False)
    batches = torch.from_numpy(rows).float().view(20, 1, 32, 6).repeat(15, 2, 1, 1)
    components = PrincipalComponents(RUNS, "read_out", 6, 3)
    share = follow(components, batches)
    mean, found, sizes = components()
    for run in range(2):
        assert np.abs(mean[run].detach().numpy() - rows.mean(0)).max() < 0.3
        alike = np.abs((found[run].detach().numpy() * directions[:3].T).sum(0))
        assert alike.min() > 0.97
        expected = deviations[:3] / np.sqrt(len(rows))
        np.testing.assert_allclose(sizes[run].detach().numpy(), expected, rtol=0.15)
        assert 0.9 < float(share[run]) < 1


def test_directions_in_which_nothing_varies_stay_as_they_are() -> None:
    components = PrincipalComponents(RUNS[:1], "read_out", 5, 3)
    batches = torch.zeros(4, 1, 8, 5)
    batches[..., 0] = torch.tensor([1.0, -1.0]).repeat(4)
    follow(components, batches)
    _, found, sizes = components()
    torch.testing.assert_close(found.transpose(1, 2) @ found, torch.eye(3)[None], rtol=0, atol=1e-5)
    assert sizes[0, 0] > 1
    assert sizes[0, 1:].max() < 0.05


def test_columns_are_made_orthonormal_in_their_order() -> None:
    columns = torch.from_numpy(Stream.of(0).normal(7, 3)).float()[None]
    directions, sizes = orthonormalised(columns)
    q, r = torch.linalg.qr(columns)
    torch.testing.assert_close(directions.abs(), q.abs(), rtol=0, atol=1e-5)
    torch.testing.assert_close(sizes, r.diagonal(dim1=1, dim2=2).abs(), rtol=0, atol=1e-5)
