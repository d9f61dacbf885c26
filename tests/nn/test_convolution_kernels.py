"""The Triton kernels of the convolutions against float64, on random shapes."""

from typing import NamedTuple, TypeAlias

import torch
import torch.nn.functional as F
from hypothesis import example, given, settings
from hypothesis import strategies as st
from torch import Tensor

from nn.triton_device import DEVICE, LOW, distance, numbers, poison  # noqa: F401

from unweave.nn.kernels import convolution as kernels  # isort: skip

TOLERANCE = {torch.float32: 1e-5, LOW: 1e-2}

Shape: TypeAlias = tuple[int, int, tuple[int, int], int, int, tuple[int, int], torch.dtype, int]
shapes = st.tuples(
    st.integers(1, 3),  # runs
    st.integers(1, 3),  # images
    st.sampled_from([(2, 2), (4, 2), (2, 8), (4, 8)]),  # the small image
    st.sampled_from([16, 32, 64]),  # channels of the big image
    st.sampled_from([16, 32, 64]),  # and of the small one
    st.sampled_from([(4, 1), (2, 0)]),  # kernel and padding
    st.sampled_from([torch.float32, LOW]),
    st.integers(0, 1000),
)


class Case(NamedTuple):
    big: Tensor
    small: Tensor
    w: Tensor
    bias: Tensor
    padding: int
    dtype: torch.dtype


def case(drawn: Shape) -> Case:
    runs, images, (height, width), big, small, (kernel, padding), dtype, seed = drawn
    return Case(
        numbers(seed, runs, images, 2 * height, 2 * width, big),
        numbers(seed + 1, runs, images, height, width, small),
        numbers(seed + 2, runs, kernel, kernel, big, small),
        numbers(seed + 3, runs, max(big, small)),
        padding,
        dtype,
    )


def correlated(big: Tensor, w: Tensor, padding: int) -> Tensor:
    runs = [
        F.conv2d(b.permute(0, 3, 1, 2), v.permute(3, 2, 0, 1), stride=2, padding=padding)
        for b, v in zip(big, w, strict=True)
    ]
    return torch.stack(runs).permute(0, 1, 3, 4, 2)


def spread_out(small: Tensor, w: Tensor, padding: int) -> Tensor:
    runs = [
        F.conv_transpose2d(s.permute(0, 3, 1, 2), v.permute(3, 2, 0, 1), stride=2, padding=padding)
        for s, v in zip(small, w, strict=True)
    ]
    return torch.stack(runs).permute(0, 1, 3, 4, 2)


@settings(max_examples=12, deadline=None)
@given(shapes)
@example((2, 5, (4, 4), 32, 32, (4, 1), LOW, 3))
def test_forward(drawn: Shape) -> None:
    big, small, w, bias, padding, dtype = case(drawn)
    for product, reference, x, channels in (
        (kernels.correlate, correlated, big, small.shape[-1]),
        (kernels.spread, spread_out, small, big.shape[-1]),
    ):
        exact = reference(x, w, padding) + bias[:, None, None, None, :channels]
        added = bias[:, :channels].float().to(DEVICE).contiguous()
        got, sums = product(x.to(DEVICE, dtype), w.to(DEVICE, dtype), padding, "ieee", bias=added)
        assert sums is None
        assert distance(got, exact.relu()) < TOLERANCE[dtype]


@settings(max_examples=12, deadline=None)
@given(shapes)
@example((2, 5, (4, 4), 32, 32, (4, 1), LOW, 3))
def test_backward(drawn: Shape) -> None:
    big, small, w, _, padding, dtype = case(drawn)
    for product, reference, x, mask in (
        (kernels.correlate, correlated, big, small),
        (kernels.spread, spread_out, small, big),
    ):
        exact = reference(x, w, padding) * (mask > 0)
        on_device = [tensor.to(DEVICE, dtype) for tensor in (x, w, mask)]
        got, sums = product(on_device[0], on_device[1], padding, "ieee", mask=on_device[2])
        assert distance(got, exact) < TOLERANCE[dtype]
        assert sums is not None
        assert distance(sums, exact.sum(dim=(1, 2, 3))) < TOLERANCE[dtype]


@settings(max_examples=12, deadline=None)
@given(shapes)
@example((1, 20, (8, 8), 32, 32, (4, 1), LOW, 3))
def test_weight_gradient(drawn: Shape) -> None:
    big, small, w, _, padding, dtype = case(drawn)
    w.requires_grad_()
    (correlated(big, w, padding) * small).sum().backward()
    got = kernels.weight_gradient(big.to(DEVICE, dtype), small.to(DEVICE, dtype), w.shape[1], padding, "ieee")
    assert w.grad is not None
    assert distance(got, w.grad) < 1e-5  # both sides are exact in bfloat16 and are summed in float32


@settings(max_examples=20, deadline=None)
@given(st.integers(1, 3), st.integers(1, 700), st.sampled_from([1, 3, 32, 512, 1500]))
@example(3, 5, 150_000)  # wide tiles
def test_sums_of_parts(runs: int, parts: int, numbers_each: int) -> None:
    values = numbers(parts, runs, parts, numbers_each)
    assert distance(kernels.summed(values.float().to(DEVICE)), values.sum(dim=1)) < 1e-5
