"""Layers and networks of StyleGAN2: against explicit weights, slow filters and numbers worked out by hand."""

from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from unweave.errors import UnweaveError
from unweave.nn.layers.gradient_penalty import convolve, convolve_transposed
from unweave.nn.networks.style_gan import (
    StyleDiscriminator,
    StyleEncoder,
    StyleGenerator,
    Widths,
    deviation_group,
    resolutions_of,
)
from unweave.nn.networks.style_layers import (
    EqualConv,
    EqualLinear,
    ModulatedConv,
    doubling_matrix,
    filter_matrix,
    filtered,
    normalised,
    with_deviation,
)
from unweave.nn.networks.style_means import StyleMeans
from unweave.streams import Stream

STREAMS = [Stream.of(0), Stream.of(1)]
SMALL = Widths(64, 8)


def random(*shape: int, seed: int = 0) -> Tensor:
    """Standard normal numbers in double precision."""
    drawn = Stream.of(seed).child("test").normal(shape[0], math.prod(shape[1:]))
    return torch.from_numpy(drawn).view(shape)


def slow_filter(x: Tensor, up: int, down: int, before: int, after: int, gain: float) -> Tensor:
    """Zeros between and around pixels (H, W), the filter [1, 3, 3, 1] in both directions, every nth pixel.

    These are the steps of the reference implementation of the authors' upfirdn2d.
    """
    wide = torch.zeros(up * x.shape[0], up * x.shape[1], dtype=x.dtype)
    wide[::up, ::up] = x
    padded = F.pad(wide, (before, after, before, after))
    taps = torch.tensor([1.0, 3.0, 3.0, 1.0], dtype=x.dtype)
    kernel = torch.outer(taps, taps) / 64 * gain
    return F.conv2d(padded[None, None], kernel[None, None])[0, 0, ::down, ::down]


def test_filters_are_those_of_the_authors() -> None:
    x = random(6, 6)
    cases = [
        (doubling_matrix(6).double(), (2, 1, 2, 1, 4.0)),  # upsample2d: padding 2 before and 1 after, gain 4
        (filter_matrix(6, 1, 1, down=2).double(), (1, 2, 1, 1, 1.0)),  # downsample2d
        (filter_matrix(6, 2, 2).double(), (1, 1, 2, 2, 1.0)),  # before a convolution of stride 2
        (filter_matrix(6, 1, 1, gain=2.0).double(), (1, 1, 1, 1, 4.0)),  # after a transposed one
    ]
    for matrix, arguments in cases:
        torch.testing.assert_close(filtered(x, matrix), slow_filter(x, *arguments))


def test_filters_keep_constants_inside_and_the_sum_of_pixels() -> None:
    ones = torch.ones(6, 6)
    doubled, halved = filtered(ones, doubling_matrix(6)), filtered(ones, filter_matrix(6, 1, 1, down=2))
    assert doubled[1:-1, 1:-1].unique().tolist() == pytest.approx([1.0])
    assert doubled[0, 5].item() == pytest.approx(0.75)  # a quarter of the weight is outside, where zeros are
    assert halved[1:-1, 1:-1].unique().tolist() == pytest.approx([1.0])
    point = torch.zeros(6, 6)
    point[2, 3] = 1
    assert filtered(point, doubling_matrix(6)).sum().item() == pytest.approx(4.0)
    assert filtered(point, filter_matrix(6, 1, 1, down=2)).sum().item() == pytest.approx(0.25)


@pytest.mark.parametrize("doubles", [False, True])
def test_a_modulated_convolution_is_one_with_explicit_weights(doubles: bool) -> None:
    """Weights of each image: scaled by its style over input channels, then divided by their norm."""
    layer = ModulatedConv(STREAMS, "conv", 3, 4, 5, side=6 if doubles else None).double()
    x, w = random(2, 3, 4, 6, 6), random(2, 3, 3, seed=1)
    actual = layer(x, w)
    for run in range(2):
        style = w[run] @ layer.affine.weight[run] / math.sqrt(3) + 1
        for image in range(3):
            weight = layer.weight[run] * style[image][None, :, None, None]
            weight = weight / (weight.square().sum((1, 2, 3), keepdim=True) + 1e-8).sqrt()
            if doubles:
                expected = F.conv_transpose2d(x[run, image][None], weight.transpose(0, 1), stride=2)[0]
                expected = torch.stack([slow_filter(channel, 1, 1, 1, 1, 4.0) for channel in expected])
            else:
                expected = F.conv2d(x[run, image][None], weight, padding=1)[0]
            torch.testing.assert_close(actual[run, image], expected)


def test_demodulated_outputs_have_the_variance_of_inputs_whatever_the_style() -> None:
    """Of independent inputs of variance 1: outputs are sums with weights whose squares sum to 1."""
    layer = ModulatedConv(STREAMS[:1], "conv", 3, 16, 32)
    x = random(1, 8, 16, 12, 12).float()
    for scale in (0.1, 10.0):
        inside = layer(x, scale * random(1, 8, 3, seed=2).float())[..., 1:-1, 1:-1]
        assert inside.var().item() == pytest.approx(1.0, abs=0.05)
    plain = ModulatedConv(STREAMS[:1], "image", 3, 16, 3, kernel=1, demodulate=False)
    squares = plain.weight.square().sum((2, 3, 4)).mean().item() / 16
    assert plain(x, torch.zeros(1, 8, 3)).var().item() == pytest.approx(squares, rel=0.05)


def test_equalised_layers_keep_the_variance_and_learn_at_the_same_rate() -> None:
    """The gradient of a stored weight is that of the used one times the constant of its layer."""
    dense = EqualLinear(STREAMS[:1], "dense", 100, 50, rate=0.01)
    assert dense.weight.std().item() == pytest.approx(100, rel=0.05)
    x = random(1, 40, 100).float()
    assert dense(x).var().item() == pytest.approx(1.0, abs=0.1)
    [gradient] = torch.autograd.grad(dense(x).sum(), [dense.weight])
    torch.testing.assert_close(gradient[0], (x[0].sum(0) * 0.01 / 10)[:, None].expand(-1, 50))
    [gradient] = torch.autograd.grad(dense(x).sum(), [dense.bias])
    torch.testing.assert_close(gradient, torch.full((1, 50), 40 * 0.01))
    convolution = EqualConv(STREAMS[:1], "conv", 16, 8, bias=False)
    inside = convolution(random(1, 8, 16, 12, 12).float())[..., 1:-1, 1:-1]
    assert inside.var().item() == pytest.approx(1.0, abs=0.15)


def test_halving_convolutions_are_filters_and_strides() -> None:
    x = random(2, 1, 3, 8, 8)
    halving = EqualConv(STREAMS, "conv", 3, 4, side=8, bias=False).double()
    soft = torch.stack([slow_filter(channel, 1, 1, 2, 2, 1.0) for channel in x[1, 0]])
    expected = F.conv2d(soft[None], halving.weight[1] / math.sqrt(27), stride=2)
    torch.testing.assert_close(halving(x)[1], expected)
    skip = EqualConv(STREAMS, "skip", 3, 4, kernel=1, side=8, bias=False).double()
    small = torch.stack([slow_filter(channel, 1, 2, 1, 1, 1.0) for channel in x[1, 0]])
    torch.testing.assert_close(skip(x)[1], F.conv2d(small[None], skip.weight[1] / math.sqrt(3)))


def test_convolutions_have_right_derivatives_of_both_orders() -> None:
    """Against finite differences, and the results of torch's own convolutions."""
    x, y = random(2, 2, 2, 5, 5).requires_grad_(), random(2, 2, 3, 3, 3, seed=1).requires_grad_()
    weight = random(2, 3, 2, 3, 3, seed=2).requires_grad_()
    for run in range(2):
        same = F.conv2d(x[run], weight[run], stride=2, padding=1)
        torch.testing.assert_close(convolve(x, weight, 2, 1)[run], same)
        back = F.conv_transpose2d(y[run], weight[run], stride=2)
        torch.testing.assert_close(convolve_transposed(y, weight, 2)[run], back)
    for function, inputs in (
        (lambda x, w: convolve(x, w, 2, 1), (x, weight)),
        (lambda y, w: convolve_transposed(y, w, 2), (y, weight)),
    ):
        assert torch.autograd.gradcheck(function, inputs, fast_mode=True)
        assert torch.autograd.gradgradcheck(function, inputs, fast_mode=True)


def test_the_minibatch_deviation_is_that_by_hand() -> None:
    """Two groups of two images with one pixel: deviations 1 and 2 of one feature, 3 and 0 of the other."""
    x = torch.tensor([[[0.0, 0.0], [2.0, 6.0], [1.0, 5.0], [5.0, 5.0]]])[..., None, None]
    actual = with_deviation(x, 2)
    assert actual[0, :, 2, 0, 0].tolist() == pytest.approx([2.0, 2.0, 1.0, 1.0], abs=1e-4)
    torch.testing.assert_close(actual[:, :, :2], x)
    assert with_deviation(x, 1)[0, :, 2].flatten().tolist() == pytest.approx([1e-4] * 4)


def test_z_is_divided_by_its_root_mean_square() -> None:
    assert normalised(torch.tensor([3.0, 4.0])).tolist() == pytest.approx(
        [3 / math.sqrt(12.5), 4 / math.sqrt(12.5)]
    )


@pytest.mark.parametrize("shape", [(1, 8, 8), (3, 16, 16)])
def test_networks_take_squares_of_powers_of_two(shape: tuple[int, int, int]) -> None:
    generator = StyleGenerator(STREAMS, shape, 5, SMALL, 2)
    synthesis = generator.synthesis
    w = generator.same_in_all_layers(generator.styles(random(2, 3, 5).float()))
    assert w.shape == (2, 3, 4 if shape[1] == 8 else 6, 5)  # 2 log2(side) - 2 layers, as in the paper
    noise = random(2, 3, synthesis.noise_size).float()
    assert synthesis.noise_size == 16 + 2 * 64 + (2 * 256 if shape[1] == 16 else 0)
    images = generator(w, noise)
    assert images.shape == (2, 3, *shape)
    torch.testing.assert_close(images, generator(w))  # the strength of noise starts at 0
    synthesis.get_parameter("blocks.0.convolutions.0.strength").data.fill_(1.0)
    assert not torch.allclose(generator(w, noise), generator(w))
    assert StyleDiscriminator(STREAMS, shape, SMALL)(images, 3).shape == (2, 3)
    assert StyleEncoder(STREAMS, shape, 5, SMALL)(images).shape == (2, 3, 5)


def test_other_sizes_are_refused() -> None:
    for shape in ((1, 4, 4), (1, 24, 24), (1, 8, 16)):
        with pytest.raises(UnweaveError, match="images for StyleGAN2 must be squares of 8, 16, 32"):
            resolutions_of(shape)


def test_coarse_layers_come_first() -> None:
    """A change of w in the first layer reaches all pixels through all resolutions; in the last, one layer."""
    generator = StyleGenerator(STREAMS[:1], (1, 8, 8), 5, SMALL, 2)
    w = generator.same_in_all_layers(generator.styles(random(1, 2, 5).float())).clone().requires_grad_()
    images = generator(w)
    assert all(part.abs().sum() > 0 for part in torch.autograd.grad(images.sum(), w)[0].unbind(2))
    # The last layer only makes the image of its features: its style scales one term of a sum.
    halfway = w.detach().clone()
    halfway[:, :, -1] = (w[:, :, -1] + w[:, :, -1].flip(1)).detach() / 2
    swapped = w.detach().clone()
    swapped[:, :, -1] = w[:, :, -1].flip(1).detach()
    torch.testing.assert_close(generator(halfway), (images + generator(swapped)).detach() / 2)


def test_batches_have_groups_of_up_to_four() -> None:
    assert [deviation_group(images) for images in (32, 12, 9, 2, 7)] == [4, 4, 3, 2, 1]


def test_codes_are_standardised_by_the_moments_of_w() -> None:
    means = StyleMeans(1, 2)
    means.first_moment.data = torch.tensor([[1.0, -1.0]])
    means.second_moment.data = torch.tensor([[5.0, 1.25]])
    codes = means.standardised(torch.tensor([[[3.0, -2.0]]]))
    assert codes.tolist() == [[[1.0, -2.0]]]
    assert means.styles(codes).tolist() == [[[3.0, -2.0]]]
