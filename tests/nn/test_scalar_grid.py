"""Codes on a fixed grid: its values, and gradients that pass through the rounding."""

import numpy as np
import pytest
import torch

from unweave.nn.networks.scalar_grid import GridAutoencoder, straight_through
from unweave.streams import Stream

SHAPE = (1, 8, 8)


def network(size: int) -> GridAutoencoder:
    return GridAutoencoder([Stream.of(0), Stream.of(1)], SHAPE, 3, "mlp", size)


@pytest.mark.parametrize("size", [2, 3, 12])
def test_numbers_are_rounded_to_the_nearest_of_evenly_spaced_values(size: int) -> None:
    values = np.linspace(-1, 1, size)
    z = np.linspace(-1, 1, 100)
    expected = values[np.abs(z[:, None] - values).argmin(1)]
    actual = network(size).quantise(torch.from_numpy(z))
    np.testing.assert_allclose(actual.numpy(), expected, atol=1e-12)
    assert len(actual.unique()) == size


def test_gradients_pass_through_the_rounding_to_the_hyperbolic_tangent() -> None:
    output = torch.tensor([-2.0, -0.1, 0.3, 1.5], requires_grad=True)
    bounded = output.tanh()
    z = straight_through(network(4).quantise(bounded), bounded)
    torch.testing.assert_close(z, torch.tensor([-1.0, -1 / 3, 1 / 3, 1.0]))
    slope = torch.tensor([1.0, 2.0, 3.0, 4.0])
    [gradient] = torch.autograd.grad((slope * z).sum(), output)
    torch.testing.assert_close(gradient, slope * (1 - output.detach().tanh() ** 2))


@torch.no_grad()
def test_codes_are_values_from_minus_2_to_2_and_are_decoded_as_they_were_trained() -> None:
    parts = network(5)
    parts.encoder.heads.weight.mul_(8)
    images = torch.from_numpy(np.stack([Stream.of(run).uniform(9, 64) for run in (2, 3)])).float()
    images = images.unflatten(-1, SHAPE)
    z = parts.quantise(torch.tanh(parts.encoder(images).mean))
    codes = parts.encode(images).mean
    assert set(codes.unique().tolist()) == {-2.0, -1.0, 0.0, 1.0, 2.0}
    torch.testing.assert_close(codes, 2 * z)
    expected = parts.decoder(z)
    torch.testing.assert_close(parts.decode(codes), expected)
    torch.testing.assert_close(parts.decode(codes + 0.2), expected)
    beyond = torch.full_like(codes, 5.0)
    torch.testing.assert_close(parts.decode(beyond), parts.decoder(torch.ones_like(codes)))
