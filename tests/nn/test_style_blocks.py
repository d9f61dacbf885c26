"""The decoder of style blocks: against torch's own normalisations, and its layers and sizes."""

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from unweave.nn.layers import Layer
from unweave.nn.networks.style_blocks import CHANNELS, WIDTH, SmoothDense, StyleBlock, StyleDecoder
from unweave.streams import Stream

STREAMS = [Stream.of(0), Stream.of(1)]


def numbers(*shape: int) -> Tensor:
    generator = torch.Generator().manual_seed(0)
    return torch.randn(shape, generator=generator)


@torch.no_grad()
def test_a_smooth_layer_is_a_product_layer_normalisation_and_gelu() -> None:
    layer, x = SmoothDense(STREAMS, "layer", 3, 5), numbers(2, 4, 3)
    layer.scale.copy_(numbers(2, 5))
    layer.shift.copy_(numbers(2, 5) / 2)
    for run in range(2):
        y = x[run] @ layer.linear.weight[run] + layer.linear.bias[run]
        expected = F.gelu(F.layer_norm(y, (5,), layer.scale[run], layer.shift[run]))
        torch.testing.assert_close(layer(x)[run], expected)


@torch.no_grad()
def test_a_block_adds_two_modulated_convolutions() -> None:
    block, x, style = StyleBlock(STREAMS, "block", 6), numbers(2, 3, 6, 4, 5), numbers(2, 3, WIDTH)
    for run in range(2):
        y = x[run]
        for convolution, modulation in zip(block.convolutions, block.modulations, strict=True):
            assert isinstance(convolution, Layer)
            assert isinstance(modulation, Layer)
            y = F.instance_norm(F.conv2d(y, convolution.weight[run], convolution.bias[run], padding=1))
            change = style[run] @ modulation.weight[run] + modulation.bias[run]
            scale, shift = change[..., None, None].chunk(2, dim=1)
            y = F.gelu(y * (1 + scale) + shift)
        torch.testing.assert_close(block(x, style)[run], x[run] + y, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("sides", "levels", "first"),
    [((64, 64), 4, (4, 4)), ((50, 34), 3, (7, 5)), ((8, 8), 1, (4, 4)), ((5, 7), 1, (3, 4))],
)
@torch.no_grad()
def test_levels_double_a_learned_image_up_to_the_size(
    sides: tuple[int, int], levels: int, first: tuple[int, int]
) -> None:
    decoder, z = StyleDecoder(STREAMS, (3, *sides), 2), numbers(2, 2, 2)
    assert decoder(z).shape == (2, 2, 3, *sides)
    assert decoder.first_image.shape == (2, CHANNELS[0], *first)
    hidden = decoder.hidden(z)
    assert len(hidden) == levels
    assert hidden[0].shape == (2, 2, WIDTH)
    for level, values in enumerate(hidden[1:], 1):
        size = [side * 2**level for side in first]
        assert values.shape == (2, 2, CHANNELS[level], *size)
    torch.testing.assert_close(decoder.hidden(z)[0], decoder.dense(z))


def test_a_likelihood_with_two_outputs_doubles_the_last_channels() -> None:
    decoder = StyleDecoder(STREAMS, (3, 8, 8), 2, "gaussian_learned")
    assert decoder(numbers(2, 2, 2)).shape == (2, 2, 6, 8, 8)
