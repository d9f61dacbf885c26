"""Flows: they are invertible, and their log-determinants and densities are exact."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import TypeVar

import pytest
import torch
from torch import Tensor, nn

from unweave.errors import UnweaveError
from unweave.nn.networks.flow import Flow
from unweave.nn.networks.flow_layers import (
    ActNorm,
    Coupling,
    FlowStep,
    InvertibleConvolution,
    Prior,
    inverse_of_lower,
    squeezed,
    unsqueezed,
)
from unweave.streams import Stream

RUNS = [Stream.of(0), Stream.of(1)]


def numbers(*shape: int, seed: int = 0) -> Tensor:
    drawn = Stream.of(seed).child("x").normal(1, math.prod(shape))
    return torch.from_numpy(drawn).double().view(shape)


Network = TypeVar("Network", bound=nn.Module)


def moved(network: Network, by: float = 0.1) -> Network:
    """The network in float64 with other weights, so that nothing is zero or the identity."""
    network.double()
    for number, parameter in enumerate(network.parameters()):
        parameter.data += by * numbers(*parameter.shape, seed=number)
    return network


def log_determinant(function: Callable[[Tensor], Tensor], x: Tensor) -> float:
    """By autograd: of all derivatives of a function of one image."""
    jacobian = torch.autograd.functional.jacobian(
        lambda row: function(row.view(x.shape)).flatten(), x.flatten()
    )
    return float(torch.linalg.slogdet(jacobian).logabsdet)


def test_the_inverse_of_a_flow_gives_back_the_images() -> None:
    flow = moved(Flow(RUNS, (3, 8, 8), levels=2, depth=2, width=8))
    images = 0.3 * numbers(2, 4, 3, 8, 8)
    output = flow(images)
    torch.testing.assert_close(flow.inverse(output.levels), images, rtol=0, atol=1e-9)
    torch.testing.assert_close(flow.inverse(flow.in_levels(output.latents)), images, rtol=0, atol=1e-9)
    assert [tuple(level.shape[2:]) for level in output.levels] == flow.shapes == [(6, 4, 4), (24, 2, 2)]


def test_in_float32_the_inverse_is_right_to_rounding() -> None:
    flow = Flow(RUNS[:1], (1, 32, 32), levels=3, depth=4, width=16)
    images = numbers(1, 8, 1, 32, 32).float()
    flow.fit(images)
    torch.testing.assert_close(flow.inverse(flow(images).levels), images, rtol=0, atol=2e-5)


def test_log_determinants_of_layers_equal_autograd() -> None:
    """Images of 3 x 3 pixels and 2 channels, as all layers but the squeezing one take them."""
    layers: list[ActNorm | InvertibleConvolution | Coupling | FlowStep] = [
        ActNorm(2, 2),
        InvertibleConvolution(RUNS, "mixing", 2),
        Coupling(RUNS, "coupling", 2, 5),
        FlowStep(RUNS, "step", 2, 5),
    ]
    both = numbers(1, 1, 2, 3, 3).expand(2, 1, 2, 3, 3)
    for layer in layers:
        moved(layer)
        y, stated = layer(both)
        for run in range(2):
            of_run = partial(_of_run, layer, run)
            assert stated[run, 0].item() == pytest.approx(log_determinant(of_run, both[:1]), abs=1e-10)
        torch.testing.assert_close(layer.inverse(y), both, rtol=0, atol=1e-12)


def _of_run(layer: nn.Module, run: int, x: Tensor) -> Tensor:
    y: Tensor = layer(x.expand(2, 1, 2, 3, 3))[0]
    return y[run]


def test_the_log_determinant_of_a_whole_flow_equals_autograd() -> None:
    flow = moved(Flow(RUNS[:1], (1, 4, 4), levels=2, depth=2, width=4))
    x = numbers(1, 1, 1, 4, 4)
    expected = log_determinant(lambda one: flow(one).latents, x)
    assert flow(x).log_determinant.item() == pytest.approx(expected, abs=1e-10)


def test_couplings_change_the_second_half_only_and_depend_on_the_first() -> None:
    layer, x = moved(Coupling(RUNS[:1], "coupling", 4, 5)), numbers(1, 1, 4, 3, 3)
    y = layer(x)[0]
    torch.testing.assert_close(y[:, :, :2], x[:, :, :2], rtol=0, atol=0)
    other = x.clone()
    other[:, :, 0] += 1
    assert not torch.allclose(layer(other)[0][:, :, 2:], y[:, :, 2:])


def test_a_flow_without_coupling_is_a_normal_distribution() -> None:
    """Couplings start as a constant factor sigmoid(2), so a new flow is linear: its density is known."""
    flow = Flow(RUNS[:1], (1, 2, 2), levels=1, depth=1, width=4).double()
    for name, parameter in flow.named_parameters():
        if "coupling" not in name:
            parameter.data += 0.3 * numbers(*parameter.shape, seed=5)
    nothing = torch.zeros(1, 1, 1, 2, 2, dtype=torch.float64)
    matrix = torch.autograd.functional.jacobian(
        lambda row: flow(row.view(1, 1, 1, 2, 2)).latents.flatten(), nothing.flatten()
    )
    inverse = torch.linalg.inv(matrix)
    expected = torch.distributions.MultivariateNormal(
        -inverse @ flow(nothing).latents.flatten().detach(), inverse @ inverse.T
    )
    images = numbers(1, 5, 1, 2, 2)
    torch.testing.assert_close(flow(images).log_density[0], expected.log_prob(images.view(5, 4)))


def test_one_by_one_convolutions_start_orthogonal_and_differ_between_runs() -> None:
    layer = InvertibleConvolution(RUNS, "mixing", 12).double()
    weight = layer.weight()
    unit = torch.eye(12, dtype=torch.float64).expand(2, 12, 12)
    torch.testing.assert_close(weight @ weight.transpose(1, 2), unit, rtol=0, atol=1e-6)
    assert not torch.allclose(weight[0], weight[1])
    alone = InvertibleConvolution(RUNS[1:], "mixing", 12).double()
    torch.testing.assert_close(alone.weight()[0], weight[1], rtol=0, atol=0)
    # A network for the weights of another run, as a run is opened with.
    opened = InvertibleConvolution(RUNS[:1], "mixing", 12).double()
    opened.load_state_dict(alone.state_dict())
    torch.testing.assert_close(opened.weight()[0], weight[1], rtol=0, atol=0)


def test_inverses_of_triangular_matrices_equal_those_of_lapack() -> None:
    for size in (1, 2, 5, 12, 16):
        matrix = numbers(2, size, size).tril(-1) + torch.eye(size, dtype=torch.float64) * 1.5
        expected = torch.linalg.inv(matrix)
        torch.testing.assert_close(inverse_of_lower(matrix), expected, rtol=1e-9, atol=1e-9)


def test_fitting_standardises_all_normalised_channels() -> None:
    flow, seen = Flow(RUNS, (1, 8, 8), levels=1, depth=1, width=6).double(), []
    step = flow.levels[0].get_submodule("steps.0")
    for part in ("norm", "coupling.first", "coupling.second"):
        step.get_submodule(part).register_forward_hook(lambda _part, _x, y: seen.append(y))
    images = 3 + 0.2 * numbers(2, 16, 1, 8, 8)
    flow.fit(images)
    seen.clear()
    flow(images)
    assert len(seen) == 3
    for normalised, first, second in [seen]:
        for y in (normalised[0], first, second):
            variance, mean = torch.var_mean(y, dim=(1, 3, 4), correction=0)
            torch.testing.assert_close(mean, torch.zeros_like(mean), rtol=0, atol=1e-9)
            torch.testing.assert_close(variance, torch.ones_like(variance), rtol=0, atol=1e-4)
    before = flow(images).log_density
    flow(images + 1)
    torch.testing.assert_close(flow(images).log_density, before, rtol=0, atol=0)


def test_the_prior_of_the_last_level_knows_the_edges() -> None:
    prior = moved(Prior(RUNS[:1], "prior", 0, 2))
    x = torch.zeros(1, 1, 2, 5, 5, dtype=torch.float64)
    standardised, _ = prior(x, x[:, :, :0])
    torch.testing.assert_close(standardised[..., 2, 2], standardised[..., 1, 2])
    assert not torch.allclose(standardised[..., 2, 2], standardised[..., 0, 2])
    torch.testing.assert_close(prior.inverse(standardised, x[:, :, :0]), x)


def test_squeezing_puts_a_block_of_pixels_into_channels() -> None:
    x = torch.arange(16.0).view(1, 1, 1, 4, 4)
    assert squeezed(x)[0, 0, :, 0, 1].tolist() == [2.0, 3.0, 6.0, 7.0]
    torch.testing.assert_close(unsqueezed(squeezed(x)), x, rtol=0, atol=0)


def test_inverses_of_absurd_latents_are_finite() -> None:
    flow = moved(Flow(RUNS[:1], (1, 8, 8), levels=2, depth=3, width=8), by=0.5)
    assert flow.inverse(flow.in_levels(1e4 * numbers(1, 3, 64))).isfinite().all()


def test_images_that_cannot_be_halved_so_often_are_refused() -> None:
    with pytest.raises(
        UnweaveError, match=r"a flow of 3 levels must .* multiples of 8; got 12 x 12\. Resize"
    ):
        Flow(RUNS, (1, 12, 12), levels=3, depth=1, width=4)
