"""The normalised Hessian penalty: functions with known Hessians, and second differences against autograd."""

import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from torch.autograd.functional import hessian

from unweave.nn.networks.hessian import Directions, normalised_hessian_penalty, second_differences
from unweave.streams import Stream

Layers = Callable[[Tensor], list[Tensor]]
MANY = 4000  # directions, so that variances have their expected values within a few per cent


def draws(rows: int, columns: int, seed: int) -> Tensor:
    return torch.from_numpy(Stream.of(seed).normal(rows, columns))


def directions(count: int, codes: int, latents: int) -> Directions:
    signs, normals = draws(count * codes, latents, 1).sign(), draws(count * codes, latents, 2)
    return Directions(signs[None], normals[None])


def penalty(function: Callable[[Tensor], Tensor], deviation: list[float], count: int = MANY) -> float:
    """For functions of codes (..., D), at one code."""
    z = draws(1, len(deviation), 3)[None]
    around = directions(count, 1, len(deviation))
    scales = torch.tensor([deviation], dtype=torch.float64)
    layers: Layers = lambda codes: [function(codes).unsqueeze(-1)]  # noqa: E731
    return normalised_hessian_penalty(layers, z, scales, around, 0.1).item()


def additive(z: Tensor) -> Tensor:
    return z[..., 0].sin() + z[..., 1].exp() + z[..., 2] ** 4


def test_a_sum_of_functions_of_single_codes_has_no_penalty() -> None:
    assert penalty(additive, [1.0, 0.5, 2.0], count=3) < 1e-12


@pytest.mark.parametrize(
    ("function", "deviation", "share"),
    [
        (lambda z: z[..., 0] * z[..., 1], [1.0, 1.0], 1.0),
        # H = [[2, 1], [1, 0]]: 2 of 4 + 2
        (lambda z: z[..., 0] ** 2 + z[..., 0] * z[..., 1], [1.0, 1.0], 2 / 6),
        # In units of deviations 1 and 3, H = [[2, 3], [3, 0]]: 18 of 4 + 18
        (lambda z: z[..., 0] ** 2 + z[..., 0] * z[..., 1], [1.0, 3.0], 18 / 22),
    ],
)
def test_the_penalty_is_the_share_of_off_diagonal_entries(
    function: Callable[[Tensor], Tensor], deviation: list[float], share: float
) -> None:
    assert penalty(function, deviation) == pytest.approx(share, rel=0.1)


def mixed(z: Tensor) -> list[Tensor]:
    """Two layers of three and one features."""
    first = torch.stack([z[..., 0] * z[..., 1], z[..., 1].sin(), (z[..., 0] * z[..., 2]).tanh()], -1)
    return [first, first.sum(-1, keepdim=True).exp()]


def test_second_differences_are_those_of_the_hessian() -> None:
    z, count, step = draws(4, 3, 5)[None], 2, 1e-4
    shifts = directions(count, 4, 3).normals
    for layer, values in enumerate(second_differences(mixed, z, step * shifts)):
        assert values.shape == (1, count, 4, (3, 1)[layer])
        for row in range(4):
            for feature in range(values.shape[-1]):
                exact = hessian(lambda code, at=(layer, feature): mixed(code)[at[0]][at[1]], z[0, row])
                for k in range(count):
                    v = shifts[0, 4 * k + row]
                    actual = values[0, k, row, feature] / step**2
                    torch.testing.assert_close(actual, v @ exact @ v, rtol=1e-4, atol=1e-5)


def test_it_is_the_authors_formula() -> None:
    """For each code and layer: mean variance by signs / (mean variance by normals + 1e-10)."""
    z, around = draws(4, 3, 5)[None], directions(3, 4, 3)
    deviation = torch.tensor([[1.0, 0.3, 2.0]], dtype=torch.float64)
    expected = 0.0
    for row in range(4):
        for layer in range(2):
            variances = []
            for kind in (around.signs, around.normals):
                h = 0.2 * deviation[0] * kind[0, row::4]
                ends = mixed(z[0, row] + h)[layer] + mixed(z[0, row] - h)[layer]
                curvature = (ends - 2 * mixed(z[0, row])[layer]) / 0.04
                variances.append(curvature.var(0, correction=0).mean())
            expected += float(variances[0] / (variances[1] + 1e-10)) / 4
    assert normalised_hessian_penalty(mixed, z, deviation, around, 0.2).item() == pytest.approx(expected)


def test_neither_the_scale_of_codes_nor_that_of_features_matters() -> None:
    z, around, scale = draws(4, 3, 5)[None], directions(3, 4, 3), torch.tensor([0.01, 1, 50]).double()
    deviation = torch.tensor([[1.0, 0.3, 2.0]], dtype=torch.float64)
    expected = normalised_hessian_penalty(mixed, z, deviation, around, 0.1)
    rescaled: Layers = lambda codes: [7 * values for values in mixed(codes / scale)]  # noqa: E731
    actual = normalised_hessian_penalty(rescaled, scale * z, scale * deviation, around, 0.1)
    torch.testing.assert_close(actual, expected)


def test_each_run_has_its_own_step() -> None:
    z, around = draws(4, 3, 5)[None], directions(3, 4, 3)
    deviation = torch.ones(1, 3, dtype=torch.float64)
    alone = [normalised_hessian_penalty(mixed, z, deviation, around, step).item() for step in (0.1, 0.5)]
    twice = Directions(around.signs.repeat(2, 1, 1), around.normals.repeat(2, 1, 1))
    steps = torch.tensor([0.1, 0.5], dtype=torch.float64)
    both = normalised_hessian_penalty(mixed, z.repeat(2, 1, 1), deviation.repeat(2, 1), twice, steps)
    assert both.tolist() == pytest.approx(alone)
    assert not math.isclose(*alone, rel_tol=1e-3)
