"""Spectral norms against singular value decompositions."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from unweave.nn.layers import Conv2d, Linear, spectral
from unweave.nn.layers.spectral import normalised_layers, through_with
from unweave.streams import Stream

RUNS = [Stream.of(seed) for seed in (0, 1, 2)]


def spectral_norms(weight: Tensor) -> Tensor:
    """Those of a single layer."""
    return spectral.spectral_norms([weight])[0]


def normalised(weight: Tensor) -> Tensor:
    """The weights of a single layer."""
    return spectral.normalised([weight])[0]


def through_normalised(layers: nn.ModuleList, x: Tensor) -> Tensor:
    return through_with(normalised_layers(layers), layers, x)


def matrices(seed: int, rows: int, columns: int, runs: int = 3) -> Tensor:
    drawn = [Stream.of(seed).child(str(run)).normal(rows, columns) for run in range(runs)]
    return torch.from_numpy(np.stack(drawn))


def with_singular_values(values: Tensor) -> Tensor:
    left, _ = torch.linalg.qr(matrices(5, len(values), len(values), 1)[0])
    right, _ = torch.linalg.qr(matrices(6, len(values), len(values), 1)[0])
    matrix: Tensor = left @ torch.diag(values.to(left)) @ right
    return matrix


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 10**6), st.integers(1, 40), st.integers(1, 40))
def test_the_norm_is_the_largest_singular_value(seed: int, rows: int, columns: int) -> None:
    weight = matrices(seed, rows, columns)
    largest = torch.linalg.svdvals(weight)[:, 0]
    actual = spectral_norms(weight)
    assert (actual <= largest * (1 + 1e-9)).all()
    assert (actual >= largest * (1 - 0.006)).all()


@pytest.mark.parametrize("share", [0.9, 0.98, 0.99, 0.995, 0.999, 1.0])
def test_the_worst_case_is_many_values_just_below_the_largest(share: float) -> None:
    values = torch.cat([torch.ones(1), torch.full((127,), share)])
    actual = spectral_norms(with_singular_values(values)[None].float()).item()
    assert 1 - 0.006 < actual < 1 + 1e-5


def test_a_gap_between_values_makes_it_exact() -> None:
    values = torch.linspace(0.9, 0.1, 32)
    values[0] = 1.0
    assert spectral_norms(3 * with_singular_values(values)[None]).item() == pytest.approx(3.0, rel=1e-9)


def test_weights_of_a_convolution_are_a_matrix_of_outputs_by_all_else() -> None:
    layer = Conv2d(RUNS, "conv", 8, 16)
    expected = torch.linalg.svdvals(layer.weight.detach().reshape(3, 16, 8 * 16))[:, 0]
    torch.testing.assert_close(spectral_norms(layer.weight.detach()), expected, rtol=0.006, atol=0)


def test_the_gradient_is_that_of_the_largest_singular_value() -> None:
    weight = torch.stack([with_singular_values(torch.tensor([2.0, 1.5, 0.3, 0.1])) for _ in range(2)])
    weight.requires_grad_()
    [actual] = torch.autograd.grad(spectral_norms(weight).sum(), weight)
    u, _, vh = torch.linalg.svd(weight.detach())
    torch.testing.assert_close(actual, u[:, :, :1] @ vh[:, :1, :], rtol=1e-6, atol=1e-8)


def test_the_gradient_of_normalised_weights_is_that_of_a_decomposition() -> None:
    weight = with_singular_values(torch.tensor([2.0, 1.5, 0.3]))[None].requires_grad_()
    towards = matrices(9, 3, 3, 1)
    [actual] = torch.autograd.grad((normalised(weight) * towards).sum(), weight)
    [expected] = torch.autograd.grad((weight / torch.linalg.svdvals(weight)[0, 0] * towards).sum(), weight)
    torch.testing.assert_close(actual, expected, rtol=1e-6, atol=1e-8)


def test_runs_do_not_mix() -> None:
    weight = matrices(1, 7, 12) * torch.tensor([1.0, 100.0, 0.01])[:, None, None]
    alone = torch.cat([spectral_norms(one[None]) for one in weight])
    torch.testing.assert_close(spectral_norms(weight), alone, rtol=1e-12, atol=0)


def test_normalised_weights_stretch_nothing_and_keep_their_direction() -> None:
    weight = 20 * matrices(2, 6, 30)
    actual = normalised(weight)
    torch.testing.assert_close(torch.linalg.svdvals(actual)[:, 0], torch.ones(3).double(), rtol=0.007, atol=0)
    torch.testing.assert_close(normalised(actual), actual, rtol=0.007, atol=1e-6)
    torch.testing.assert_close(actual / actual[:, :1, :1], weight / weight[:, :1, :1])


@settings(deadline=None, max_examples=20)
@given(
    st.lists(st.tuples(st.integers(1, 20), st.integers(1, 20)), min_size=1, max_size=4), st.integers(0, 99)
)
def test_layers_of_all_sizes_are_measured_together_as_alone(sizes: list[tuple[int, int]], seed: int) -> None:
    layers = [100.0**-i * matrices(seed + i, *size) for i, size in enumerate(sizes)]
    for actual, layer in zip(spectral.spectral_norms(layers), layers, strict=True):
        torch.testing.assert_close(actual, spectral_norms(layer), rtol=1e-9, atol=0)


def test_weights_that_are_all_zero_stay_so() -> None:
    weight = torch.zeros(2, 3, 4, requires_grad=True)
    actual = normalised(weight)
    [gradient] = torch.autograd.grad(actual.sum(), weight)
    assert (actual == 0).all()
    assert gradient.isfinite().all()


def test_rounded_weights_are_measured_in_full() -> None:
    weight = matrices(3, 20, 30).bfloat16()
    actual = spectral_norms(weight)
    assert actual.dtype == torch.float32
    torch.testing.assert_close(actual, torch.linalg.svdvals(weight.float())[:, 0], rtol=0.006, atol=0)


def test_layers_are_applied_with_normalised_weights() -> None:
    layers = [Linear(RUNS, "first", 5, 7, "leaky_relu"), Linear(RUNS, "second", 7, 2, "leaky_relu")]
    with torch.no_grad():
        for layer in layers:
            layer.bias.copy_(torch.linspace(-1, 1, layer.bias.numel()).view_as(layer.bias))
    x = matrices(4, 6, 5).float()
    expected = x
    for layer in layers:
        norms = torch.linalg.svdvals(layer.weight)[:, 0, None, None]
        y = expected @ (layer.weight / norms) + layer.bias[:, None]
        expected = torch.where(y > 0, y, 0.2 * y)
    torch.testing.assert_close(through_normalised(nn.ModuleList(layers), x), expected, rtol=1e-4, atol=1e-5)


def test_bytes_become_numbers_from_0_to_1() -> None:
    layers = nn.ModuleList([Conv2d(RUNS, "conv", 1, 4)])
    pixels = torch.arange(3 * 2 * 16 * 16).remainder(256).view(3, 2, 1, 16, 16).to(torch.uint8)
    torch.testing.assert_close(
        through_normalised(layers, pixels), through_normalised(layers, pixels.float() / 255)
    )
