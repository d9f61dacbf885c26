"""Stacks of convolutions by Triton's kernels against the same layers by torch's own, in float64."""

import copy
from collections.abc import Callable
from typing import cast

import pytest
import torch
from torch import Tensor, nn

from nn.triton_device import DEVICE, numbers, poison  # noqa: F401

from unweave.nn.kernels import edge, stacks  # isort: skip
from unweave.nn.distributions.likelihood import reconstruction_loss
from unweave.nn.layers import Layer, convolution, lay_out_for_kernels, through, through_to_likelihood
from unweave.nn.layers.convolution import _for_kernels
from unweave.nn.layers.layer import ROUNDED_COPY
from unweave.nn.networks.architectures import build_decoder, build_encoder
from unweave.nn.networks.published import PublishedDecoder, PublishedEncoder
from unweave.streams import Stream

RUNS, IMAGES, SIZE = 2, 2, 32


def layers_of(build: Callable[..., nn.Module], architecture: str, channels: int) -> nn.ModuleList:
    """The convolutions of a network, with biases that are not zero, in float32."""
    streams = [Stream.of(seed) for seed in range(RUNS)]
    network = cast(
        PublishedEncoder | PublishedDecoder, build(streams, (channels, SIZE, SIZE), 4, architecture)
    )
    lay_out_for_kernels(network)
    for number, layer in enumerate(in_order(network.convolutions)):
        layer.bias.data = 0.1 * numbers(number, *layer.bias.shape).float()
    return network.convolutions


def in_order(layers: nn.ModuleList) -> list[Layer]:
    return cast(list[Layer], list(layers))


def exactly(layers: nn.ModuleList) -> nn.ModuleList:
    return copy.deepcopy(layers).double()


def check(ours: nn.ModuleList, exact: nn.ModuleList) -> None:
    for mine, true in zip(ours.parameters(), exact.parameters(), strict=True):
        assert mine.grad is not None
        assert mine.grad.stride() == mine.stride() or mine.ndim == 2  # the optimiser's kernel relies on it
        torch.testing.assert_close(mine.grad.double().cpu(), true.grad, rtol=1e-4, atol=1e-4)


def bytes_of(channels: int) -> Tensor:
    shape = (RUNS, IMAGES, SIZE, SIZE, channels)
    pixels = torch.randint(0, 256, shape, generator=torch.Generator().manual_seed(1)).to(torch.uint8)
    return pixels.permute(0, 1, 4, 2, 3)


@pytest.mark.parametrize(("architecture", "channels"), [("released", 1), ("table2", 3)])
def test_down(architecture: str, channels: int) -> None:
    layers, images = layers_of(build_encoder, architecture, channels).to(DEVICE), bytes_of(channels)
    exact = exactly(layers).cpu()
    expected = through(exact, images.double() / 255)
    got = stacks.down(images.to(DEVICE), *_for_kernels(in_order(layers)))
    torch.testing.assert_close(got.double().cpu(), expected, rtol=1e-4, atol=1e-5)
    weights = numbers(5, *expected.shape)
    (expected * weights).sum().backward()
    (got * weights.float().to(DEVICE)).sum().backward()
    check(layers, exact)


def test_down_with_a_gradient_for_the_images() -> None:
    layers = layers_of(build_encoder, "released", 3).to(DEVICE)
    exact, images = exactly(layers).cpu(), bytes_of(3).double() / 255
    mine, true = images.float().to(DEVICE).requires_grad_(), images.clone().requires_grad_()
    through(exact, true).square().sum().backward()
    stacks.down(mine, *_for_kernels(in_order(layers))).square().sum().backward()
    assert mine.grad is not None
    torch.testing.assert_close(mine.grad.double().cpu(), true.grad, rtol=1e-4, atol=1e-4)
    check(layers, exact)


def test_up() -> None:
    layers = layers_of(build_decoder, "released", 3).to(DEVICE)
    exact, small = exactly(layers).cpu(), numbers(3, RUNS, IMAGES, 64, 2, 2)
    mine, true = small.float().to(DEVICE).requires_grad_(), small.clone().requires_grad_()
    expected, got = through(exact, true), stacks.up(mine, *_for_kernels(in_order(layers)))
    torch.testing.assert_close(got.double().cpu(), expected, rtol=1e-4, atol=1e-5)
    weights = numbers(5, *expected.shape)
    (expected * weights).sum().backward()
    (got * weights.float().to(DEVICE)).sum().backward()
    assert mine.grad is not None
    torch.testing.assert_close(mine.grad.double().cpu(), true.grad, rtol=1e-4, atol=1e-4)
    check(layers, exact)


def test_all_likelihoods_with_a_kernel_are_tried() -> None:
    assert set(edge.LIKELIHOODS) == {"bernoulli", "gaussian"}


@pytest.mark.parametrize(("likelihood", "channels"), [("bernoulli", 3), ("gaussian", 1)])
def test_up_to_likelihood(likelihood: str, channels: int) -> None:
    layers, images = layers_of(build_decoder, "released", channels).to(DEVICE), bytes_of(channels)
    exact, small = exactly(layers).cpu(), numbers(3, RUNS, IMAGES, 64, 2, 2)
    mine, true = small.float().to(DEVICE).requires_grad_(), small.clone().requires_grad_()
    expected = through_to_likelihood(exact, true, images, likelihood)
    got = stacks.up_to_likelihood(mine, images.to(DEVICE), likelihood, *_for_kernels(in_order(layers)))
    torch.testing.assert_close(got.double().cpu(), expected.double(), rtol=1e-5, atol=1e-3)
    scale = torch.arange(1.0, RUNS + 1)
    (expected * scale).sum().backward()
    (got * scale.to(DEVICE)).sum().backward()
    assert mine.grad is not None
    torch.testing.assert_close(mine.grad.double().cpu(), true.grad, rtol=1e-3, atol=1e-4)
    check(layers, exact)


def test_likelihoods_without_a_kernel_are_computed_from_the_logits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(convolution, "have_kernels", lambda *_: True)
    layers, images = layers_of(build_decoder, "released", 1).to(DEVICE), bytes_of(1)
    small = numbers(3, RUNS, IMAGES, 64, 2, 2).float().to(DEVICE)
    got = through_to_likelihood(layers, small, images.to(DEVICE), "laplace")
    expected = reconstruction_loss(
        stacks.up(small, *_for_kernels(in_order(layers))).cpu(), images / 255, "laplace"
    )
    torch.testing.assert_close(got.cpu(), expected)


def test_bf16_kernels_read_the_rounded_copies_of_weights() -> None:
    """Without rounding or copying anything; other precisions, and weights without a copy, ignore them."""
    layers = in_order(layers_of(build_encoder, "released", 1))
    copies = [layer.weight.detach().bfloat16() for layer in layers]
    setattr(layers[0].weight, ROUNDED_COPY, copies[0])
    _, _, parameters, found = _for_kernels(layers)
    assert found == [copies[0], None, None, None]
    weights, _ = stacks._ready(parameters, "bf16", found)
    assert weights[0].data_ptr() == copies[0].data_ptr()
    for weight, rounded in zip(weights, copies, strict=True):
        assert torch.equal(weight, rounded.permute(0, 3, 4, 2, 1))
    precise, _ = stacks._ready(parameters, "tf32", found)
    assert all(weight.dtype == torch.float32 for weight in precise)
