"""Single convolutions by Triton's kernels against torch's own, in float64."""

from collections.abc import Callable
from typing import get_args

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from nn.triton_device import DEVICE, numbers, poison  # noqa: F401

from unweave.nn.kernels import single_convolutions as single  # isort: skip
from unweave.nn.layers import Activation
from unweave.nn.layers import convolution as layers
from unweave.streams import Stream

RUNS, IMAGES = 2, 3


def one_by_one(convolution: Callable[..., Tensor], x: Tensor, weight: Tensor, padding: int) -> Tensor:
    """Each run by itself, in float64."""
    return torch.stack([convolution(a, b, stride=2, padding=padding) for a, b in zip(x, weight, strict=True)])


def check(
    ours: Callable[..., Tensor], theirs: Callable[..., Tensor], x: Tensor, weight: Tensor, padding: int
) -> None:
    """Values and all gradients, with each activation."""
    features = weight.shape[1 if ours is single.convolve else 2]
    bias = numbers(8, RUNS, features)
    for slope in (None, 0.2, 0.0):
        mine = [tensor.float().to(DEVICE).requires_grad_() for tensor in (x, weight, bias)]
        true = [tensor.clone().requires_grad_() for tensor in (x, weight, bias)]
        expected = one_by_one(theirs, true[0], true[1], padding)
        if slope is None:  # the product alone
            mine, true = mine[:2], true[:2]
            got = ours(*mine, padding, "float32")
        else:
            got = ours(mine[0], mine[1], padding, "float32", mine[2], slope)
            expected = F.leaky_relu(expected + true[2][:, None, :, None, None], slope)
        torch.testing.assert_close(got.double().cpu(), expected, rtol=1e-4, atol=1e-4)
        towards = numbers(9, *expected.shape)
        (got * towards.float().to(DEVICE)).sum().backward()
        (expected * towards).sum().backward()
        for actual, exact in zip(mine, true, strict=True):
            assert actual.grad is not None
            torch.testing.assert_close(actual.grad.double().cpu(), exact.grad, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("channels", "padding"), [(1, 1), (2, 1), (3, 1), (32, 1), (16, 0)])
def test_a_convolution(channels: int, padding: int) -> None:
    kernel = 2 + 2 * padding
    x, weight = numbers(1, RUNS, IMAGES, channels, 8, 4), numbers(2, RUNS, 16, channels, kernel, kernel)
    check(single.convolve, F.conv2d, x, weight, padding)


@pytest.mark.parametrize(("channels", "padding"), [(1, 1), (2, 1), (3, 1), (32, 1), (16, 0)])
def test_a_transposed_convolution(channels: int, padding: int) -> None:
    kernel = 2 + 2 * padding
    x, weight = numbers(3, RUNS, IMAGES, 16, 2, 4), numbers(4, RUNS, 16, channels, kernel, kernel)
    check(single.convolve_transposed, F.conv_transpose2d, x, weight, padding)


@pytest.mark.parametrize("channels", [1, 32])
def test_images_have_the_same_gradient_where_weights_need_none(channels: int) -> None:
    x, weight = numbers(1, RUNS, IMAGES, channels, 8, 8).float(), numbers(2, RUNS, 16, channels, 4, 4).float()
    bias = numbers(3, RUNS, 16).float()
    gradients = []
    for needed in (True, False):
        images, *fixed = (tensor.clone().to(DEVICE) for tensor in (x, weight, bias))
        images.requires_grad_()
        for parameter in fixed:
            parameter.requires_grad_(needed)
        single.convolve(images, fixed[0], 1, "float32", fixed[1], 0.2).square().sum().backward()
        gradients.append(images.grad)
        assert all((parameter.grad is not None) == needed for parameter in fixed)
    torch.testing.assert_close(*gradients)


def test_bytes_are_numbers_from_0_to_1() -> None:
    pixels = torch.arange(RUNS * IMAGES * 8 * 8).remainder(256).view(RUNS, IMAGES, 1, 8, 8).to(torch.uint8)
    weight = numbers(5, RUNS, 16, 1, 4, 4)
    got = single.convolve(pixels.to(DEVICE), weight.float().to(DEVICE), 1, "float32")
    expected = one_by_one(F.conv2d, pixels.double() / 255, weight, 1)
    torch.testing.assert_close(got.double().cpu(), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("activation", get_args(Activation))
@pytest.mark.parametrize("kind", [layers.Conv2d, layers.ConvTranspose2d])
def test_layers_are_the_same_by_both_ways(
    kind: type[layers.Conv2d | layers.ConvTranspose2d],
    activation: Activation,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    layer = kind([Stream.of(seed) for seed in range(RUNS)], "layer", 16, 32, activation=activation)
    layer.bias.data = numbers(6, *layer.bias.shape).float()
    layer.to(DEVICE)
    x = numbers(7, RUNS, IMAGES, 16, 4, 4).float().to(DEVICE)
    monkeypatch.setattr(layers, "is_on_kernels", lambda *_: False)
    expected = layer(x)
    monkeypatch.setattr(layers, "is_on_kernels", lambda *_: True)
    torch.testing.assert_close(layer(x), expected, rtol=1e-4, atol=1e-5)
