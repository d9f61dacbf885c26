"""The Triton kernels at the image's end against float64, on random shapes."""

from typing import NamedTuple, TypeAlias

import pytest
import torch
import torch.nn.functional as F
from hypothesis import example, given, settings
from hypothesis import strategies as st
from torch import Tensor

from nn.triton_device import DEVICE, LOW, distance, numbers, poison  # noqa: F401

from unweave.nn.kernels import edge as kernels  # isort: skip
from unweave.errors import UnweaveError
from unweave.nn.distributions.likelihood import reconstruction_loss

TOLERANCE = {torch.float32: 1e-5, LOW: 1e-2}

Shape: TypeAlias = tuple[int, int, tuple[int, int], int, int, torch.dtype, int]
shapes = st.tuples(
    st.integers(1, 3),  # runs
    st.integers(1, 3),  # images
    st.sampled_from([(2, 2), (4, 2), (2, 8), (8, 16)]),  # the small image
    st.integers(1, 4),  # channels
    st.sampled_from([16, 32]),  # features
    st.sampled_from([torch.float32, LOW]),
    st.integers(0, 1000),
)


class Case(NamedTuple):
    """Bytes of an image, features, weights as the kernels have them, biases of both."""

    image: Tensor
    features: Tensor
    w: Tensor
    image_bias: Tensor
    feature_bias: Tensor
    dtype: torch.dtype


def case(drawn: Shape) -> Case:
    runs, images, (height, width), channels, features, dtype, seed = drawn
    generator = torch.Generator().manual_seed(seed)
    image = torch.randint(0, 256, (runs, images, 2 * height, 2 * width, channels), generator=generator)
    return Case(
        image.to(torch.uint8),
        numbers(seed + 1, runs, images, height, width, features),
        numbers(seed + 2, runs, 4, 4, channels, features),
        numbers(seed + 3, runs, channels),
        numbers(seed + 4, runs, features),
        dtype,
    )


def first(image: Tensor, w: Tensor) -> Tensor:
    runs = [
        F.conv2d(i.permute(0, 3, 1, 2), v.permute(3, 2, 0, 1), stride=2, padding=1)
        for i, v in zip(image, w, strict=True)
    ]
    return torch.stack(runs).permute(0, 1, 3, 4, 2)


def last(features: Tensor, w: Tensor, bias: Tensor) -> Tensor:
    runs = [
        F.conv_transpose2d(f.permute(0, 3, 1, 2), v.permute(3, 2, 0, 1), b, stride=2, padding=1)
        for f, v, b in zip(features, w, bias, strict=True)
    ]
    return torch.stack(runs).permute(0, 1, 3, 4, 2)


@settings(max_examples=12, deadline=None)
@given(shapes)
@example((2, 5, (16, 16), 3, 32, torch.float32, 0))
def test_first_layer_and_its_gradient(drawn: Shape) -> None:
    image, small, w, _, bias, dtype = case(drawn)
    w.requires_grad_()
    exact = first(image.double() / 255, w) + bias[:, None, None, None]
    padded = kernels.padded(image.to(DEVICE))
    activated = kernels.first(padded, w.detach().to(DEVICE, dtype), bias.float().to(DEVICE), "ieee")
    assert distance(activated, exact.relu().detach()) < TOLERANCE[dtype]
    (exact * small).sum().backward()
    gradient = kernels.first_gradient(padded, small.to(DEVICE, dtype), w.shape[3], "ieee")
    assert w.grad is not None
    assert distance(gradient, w.grad) < TOLERANCE[dtype]


@settings(max_examples=8, deadline=None)
@given(shapes, st.sampled_from(kernels.LIKELIHOODS), st.booleans())
@example((2, 3, (16, 16), 3, 32, torch.float32, 0), "bernoulli", True)
def test_likelihood_and_its_gradients(drawn: Shape, likelihood: str, masked: bool) -> None:
    image, features, w, bias, _, dtype = case(drawn)
    w, scale = w / 4, torch.arange(1.0, len(w) + 1)
    exact = [tensor.clone().requires_grad_() for tensor in (features, w, bias)]
    logits = last(*exact).movedim(-1, 2)
    exact_loss = reconstruction_loss(logits, image.movedim(-1, 2).double() / 255, likelihood) * image.shape[1]
    features_gradient, w_gradient, bias_gradient = torch.autograd.grad((exact_loss * scale).sum(), exact)
    f, v = features.to(DEVICE, dtype), w.to(DEVICE, dtype)
    loss, slopes, to_bias = kernels.last_likelihood(
        f, v, bias.float().to(DEVICE), image.to(DEVICE), likelihood, "ieee"
    )
    torch.testing.assert_close(
        loss.double().cpu(), exact_loss.detach().double(), rtol=TOLERANCE[dtype], atol=1e-3
    )
    to_features, to_w, sums = kernels.last_gradient(slopes, f, v, scale.to(DEVICE), masked, "ieee")
    wanted = features_gradient * (features > 0) if masked else features_gradient
    assert distance(to_features, wanted) < 2 * TOLERANCE[dtype]
    assert distance(to_w, w_gradient) < 2 * TOLERANCE[dtype]
    assert distance(to_bias * scale[:, None].to(DEVICE), bias_gradient) < 2 * TOLERANCE[dtype]
    assert distance(sums, wanted.sum(dim=(1, 2, 3))) < 3 * TOLERANCE[dtype]


@pytest.mark.parametrize("channels", [1, 3])
def test_logits(channels: int) -> None:
    _, features, w, bias, _, _ = case((2, 3, (4, 8), channels, 32, torch.float32, 7))
    f, v, b = (tensor.float().to(DEVICE) for tensor in (features, w, bias))
    got = kernels.last(f, v, b, "ieee")
    assert distance(got, last(features, w, bias)) < 1e-5


def test_the_kernel_refuses_likelihoods_that_it_does_not_compute() -> None:
    nothing = torch.empty(0)
    with pytest.raises(UnweaveError, match='the likelihoods bernoulli and gaussian; got "laplace"'):
        kernels.last_likelihood(nothing, nothing, nothing, nothing, "laplace", "tf32")
