"""The modulated decoder: adaptive instance normalisation, shapes, and where the first part enters."""

import pytest
import torch
import torch.nn.functional as F

from unweave.nn.layers import Linear
from unweave.nn.networks.modulated import ModulatedDecoder, modulated
from unweave.streams import Stream

RUNS = [Stream.of(0), Stream.of(1)]


def numbers(name: str, *shape: int) -> torch.Tensor:
    rows = torch.from_numpy(Stream.of(4).child(name).normal(1, torch.Size(shape).numel()))
    return rows.reshape(shape)


def test_normalisation_equals_the_one_of_lords_authors() -> None:
    """Their layer is torch's batch_norm of one image with B C channels, weights and biases."""
    x, scale, shift = numbers("x", 2, 3, 4, 5, 6), numbers("scale", 2, 3, 4), numbers("shift", 2, 3, 4)
    flat = x.reshape(1, -1, 5, 6)
    expected = F.batch_norm(flat, None, None, scale.flatten(), shift.flatten(), training=True)
    torch.testing.assert_close(modulated(x, scale, shift), expected.reshape(x.shape))


@pytest.mark.parametrize("shape", [(1, 32, 32), (3, 64, 48), (1, 6, 10), (2, 5, 7)])
def test_shapes(shape: tuple[int, int, int]) -> None:
    decoder = ModulatedDecoder(RUNS, shape, 5, 2)
    codes = numbers("codes", 2, 3, 5).float()
    images = decoder(codes)
    assert images.shape == (2, 3, *shape)
    torch.testing.assert_close(decoder(codes[:, :1]), images[:, :1], rtol=1e-4, atol=1e-5)
    assert ModulatedDecoder(RUNS, shape, 5, 2, "gaussian_learned")(codes).shape[2] == 2 * shape[0]


def test_the_first_part_modulates_only() -> None:
    decoder = ModulatedDecoder(RUNS, (1, 32, 32), 5, 2)
    codes = numbers("codes", 2, 3, 5).float()
    changed = codes.clone()
    changed[..., :2] += 1
    assert not torch.allclose(decoder(codes), decoder(changed))
    with torch.no_grad():
        for modulation in decoder.modulations:
            assert isinstance(modulation, Linear)
            modulation.weight.zero_()
    torch.testing.assert_close(decoder(codes), decoder(changed))
