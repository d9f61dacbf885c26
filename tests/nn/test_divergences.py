"""Divergences from the prior: closed forms of Gaussians, slow loops, and numbers by hand."""

import itertools
import math
from collections.abc import Callable
from typing import get_args

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from unweave.nn.distributions.divergences import (
    Bandwidth,
    Verdict,
    judge,
    kernel_bandwidth,
    mmd,
    stein_direction,
    stein_discrepancy,
    stein_surrogate,
)
from unweave.streams import Stream

RULES: tuple[Bandwidth, ...] = get_args(Bandwidth)


def normal(purpose: str, *shape: int, seed: int = 0) -> Tensor:
    numbers = Stream.of(seed).child(purpose).normal(math.prod(shape[:-1]), shape[-1])
    return torch.from_numpy(numbers).to(torch.float64).reshape(shape)


def width(h: float) -> Tensor:
    return torch.tensor(h, dtype=torch.float64)


def kernel(x: Tensor, y: Tensor, h: float) -> float:
    return math.exp(-sum((float(a) - float(b)) ** 2 for a, b in zip(x, y, strict=True)) / h)


def mean_kernel(distance: float, variance: float, latents: int, h: float) -> float:
    """E exp(-|u|^2 / h) for u ~ N(m, variance I), |m| = distance."""
    spread = h + 2 * variance
    return float((h / spread) ** (latents / 2) * math.exp(-(distance**2) / spread))


def test_bandwidths_of_the_dimension() -> None:
    points = normal("points", 2, 6, 10)
    assert kernel_bandwidth(points, "squared_dimension").item() == 100
    assert kernel_bandwidth(points, "prior").item() == 20


def test_the_bandwidth_of_the_authors() -> None:
    """exp(-mean_d (x_d - y_d)^2 / D), as their program has it."""
    x, y = normal("x", 1, 7), normal("y", 1, 7)
    theirs = torch.exp(-(x - y).square().mean() / 7)
    h = kernel_bandwidth(x, "squared_dimension")
    torch.testing.assert_close((2 - mmd(x, y, h)) / 2, theirs)


def test_the_prior_bandwidth_is_the_mean_distance_of_two_draws() -> None:
    x, y = normal("x", 20_000, 5), normal("y", 20_000, 5)
    assert (x - y).square().sum(-1).mean().item() == pytest.approx(10, rel=0.02)
    assert kernel_bandwidth(x, "prior").item() == 10


def test_the_median_bandwidth_is_that_of_the_pairs() -> None:
    """Points 0, 1, 3 are 1, 4 and 9 apart (squared); 0, 2, 6 twice as far."""
    points = torch.tensor([[[0.0], [1.0], [3.0]], [[0.0], [2.0], [6.0]]], requires_grad=True)
    actual = kernel_bandwidth(points, "median")
    assert actual.tolist() == [4.0, 16.0]
    assert not actual.requires_grad


def test_mmd_by_hand() -> None:
    """Codes 0 and 2, prior 0 and 1, h = 1: k is 1, e^-1 or e^-4."""
    one, four = math.exp(-1), math.exp(-4)
    expected = (2 + 2 * four) / 4 + (2 + 2 * one) / 4 - 2 * (1 + one + four + one) / 4
    codes, prior = torch.tensor([[0.0], [2.0]]).double(), torch.tensor([[0.0], [1.0]]).double()
    assert mmd(codes, prior, width(1)).item() == pytest.approx(expected, abs=1e-12)


def test_mmd_against_a_slow_loop() -> None:
    codes, prior, h = 1.5 * normal("codes", 2, 5, 3) + 1, normal("prior", 2, 7, 3), 3.7
    for run in range(2):
        z, y = codes[run], prior[run]

        def mean(one: Tensor, other: Tensor) -> float:
            pairs = [kernel(a, b, h) for a, b in itertools.product(one, other)]
            return sum(pairs) / len(pairs)

        expected = mean(z, z) + mean(y, y) - 2 * mean(z, y)
        assert mmd(codes, prior, width(h))[run].item() == pytest.approx(expected, abs=1e-12)


# (shift of the mean, standard deviation, latents, h)
GAUSSIANS = [(0.0, 1.0, 2, 4.0), (1.0, 1.0, 2, 4.0), (0.5, 0.5, 3, 9.0), (2.0, 1.5, 1, 1.0)]


@pytest.mark.parametrize(("shift", "deviation", "latents", "h"), GAUSSIANS)
def test_mmd_of_gaussians_has_a_closed_form(shift: float, deviation: float, latents: int, h: float) -> None:
    """Means over 4,000 batches of 16; a point with itself has k = 1, which adds the known bias."""
    batches, size = 4000, 16
    codes = deviation * normal("codes", batches, size, latents)
    codes[..., 0] += shift
    actual = mmd(codes, normal("prior", batches, size, latents), width(h))
    within_codes = mean_kernel(0, 2 * deviation**2, latents, h)
    within_prior = mean_kernel(0, 2, latents, h)
    between = mean_kernel(shift, deviation**2 + 1, latents, h)
    bias = (1 - within_codes + 1 - within_prior) / size
    expected = within_codes + within_prior - 2 * between + bias
    assert actual.mean().item() == pytest.approx(expected, abs=5 * actual.std().item() / math.sqrt(batches))
    assert actual.std().item() / math.sqrt(batches) < 0.003


@given(st.integers(0, 1000), st.floats(-20, 20), st.floats(0.01, 20), st.sampled_from(RULES))
@settings(deadline=None, max_examples=30)
def test_mmd_is_a_squared_distance(seed: int, shift: float, scale: float, rule: Bandwidth) -> None:
    codes, prior = scale * normal("codes", 6, 3, seed=seed) + shift, normal("prior", 6, 3, seed=seed)
    h = kernel_bandwidth(torch.cat([codes, prior]), rule)
    actual = mmd(codes, prior, h).item()
    assert -1e-12 <= actual <= 2
    assert mmd(prior, codes, h).item() == pytest.approx(actual, abs=1e-12)
    assert mmd(codes, codes.flip(0), h).item() == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("rule", RULES)
def test_codes_that_go_down_the_mmd_come_close_to_the_prior(rule: Bandwidth) -> None:
    """Codes start as N(2, 0.3^2). The last stragglers take long, as far from all others k hardly changes."""
    codes, prior = 2 + 0.3 * normal("codes", 64, 1), normal("prior", 256, 1)
    h = kernel_bandwidth(prior, rule)
    before = mmd(codes, prior, h).item()
    for _ in range(400):
        codes.requires_grad_()
        (gradient,) = torch.autograd.grad(mmd(codes, prior, h), codes)
        codes = codes.detach() - 64 * gradient
    assert mmd(codes, prior, h).item() < before / 50
    assert codes.median().item() == pytest.approx(0, abs=0.2)


def test_stein_direction_against_a_slow_loop() -> None:
    codes, h = 1.5 * normal("codes", 2, 5, 3) + 1, 3.7
    actual = stein_direction(codes, width(h))
    for run, i, d in itertools.product(range(2), range(5), range(3)):
        z = codes[run]
        terms = [
            kernel(z[j], z[i], h) * (-z[j, d] + 2 / h * (z[i, d] - z[j, d])).item() for j in range(len(z))
        ]
        assert actual[run, i, d].item() == pytest.approx(sum(terms) / len(z), abs=1e-12)


def test_stein_direction_is_scores_and_gradients_of_the_kernel() -> None:
    """1/B sum_j k(z_j, z) grad log p(z_j) + grad_{z_j} k(z_j, z), both gradients from torch."""
    codes, h = normal("codes", 6, 3) + 0.5, 2.0
    actual = stein_direction(codes, width(h))
    for i, at in enumerate(codes):
        points = codes.clone().requires_grad_()
        kernels = torch.exp(-(points - at).square().sum(-1) / h)
        log_prior = torch.distributions.Normal(0.0, 1.0).log_prob(points).sum()
        (scores,) = torch.autograd.grad(log_prior, points)
        (repulsion,) = torch.autograd.grad(kernels.sum(), points)
        expected = (kernels.detach()[:, None] * scores + repulsion).mean(0)
        torch.testing.assert_close(actual[i], expected)


@pytest.mark.parametrize(("shift", "latents", "h"), [(0.0, 2, 4.0), (0.0, 10, 100.0), (1.5, 3, 6.0)])
def test_stein_direction_of_a_shifted_prior(shift: float, latents: int, h: float) -> None:
    """For q = N(m, I) it is -m E k(z, .), which is 0 where q is the prior: (grad log p - grad log q)(z) = -m.

    20,000 batches that have their first code in common, where the direction is looked at.
    """
    batches, size = 20_000, 8
    codes = normal("codes", batches, size, latents)
    codes[..., 0] += shift
    at = torch.full((latents,), 0.4, dtype=torch.float64)
    codes[:, 0] = at
    # A code's own part, k = 1 times -z, is known. The others are draws from q.
    others = (size * stein_direction(codes, width(h))[:, 0] + at) / (size - 1)
    distance = math.sqrt((0.4 - shift) ** 2 + (latents - 1) * 0.4**2)
    expected = torch.zeros(latents, dtype=torch.float64)
    expected[0] = -shift * mean_kernel(distance, 1.0, latents, h)
    error = others.std(0) / math.sqrt(batches)
    assert error.max() < 0.004
    assert ((others.mean(0) - expected).abs() < 5 * error).all()


def test_the_surrogate_moves_codes_along_the_direction() -> None:
    codes = (1.5 * normal("codes", 2, 5, 3) + 1).requires_grad_()
    (gradient,) = torch.autograd.grad(stein_surrogate(codes, width(3.0)).sum(), codes)
    torch.testing.assert_close(gradient, -stein_direction(codes, width(3.0)) / 5)


@pytest.mark.parametrize("rule", RULES)
def test_codes_that_follow_the_surrogate_become_the_prior(rule: Bandwidth) -> None:
    """Codes start as N(4, 0.3^2) and end with the moments of N(0, 1)."""
    codes = (4 + 0.3 * normal("codes", 64, 1)).requires_grad_()
    for _ in range(400):
        loss = stein_surrogate(codes, kernel_bandwidth(codes, rule))
        (gradient,) = torch.autograd.grad(loss, codes)
        codes = (codes - 64 * 0.2 * gradient).detach().requires_grad_()
    assert codes.mean().item() == pytest.approx(0, abs=0.1)
    assert codes.std().item() == pytest.approx(1, abs=0.15)


def test_stein_discrepancy_against_a_slow_version() -> None:
    """s(x) k s(y) + s(x) grad_y k + s(y) grad_x k + trace grad_x grad_y k with s(z) = -z, by torch."""
    codes, h, total = normal("codes", 4, 2) + 0.5, 3.0, 0.0
    for i, j in itertools.permutations(range(4), 2):
        x, y = codes[i].clone().requires_grad_(), codes[j].clone().requires_grad_()
        k = torch.exp(-(x - y).square().sum() / h)
        grad_x, grad_y = torch.autograd.grad(k, (x, y), create_graph=True)
        trace = sum(torch.autograd.grad(grad_x[d], y, retain_graph=True)[0][d] for d in range(2))
        total += ((x @ y) * k - x @ grad_y - y @ grad_x + trace).item()
    assert stein_discrepancy(codes, width(h)).item() == pytest.approx(total / 12, abs=1e-12)


@pytest.mark.parametrize(("shift", "latents", "h"), [(0.0, 2, 4.0), (1.0, 3, 6.0), (2.0, 10, 100.0)])
def test_stein_discrepancy_of_a_shifted_prior(shift: float, latents: int, h: float) -> None:
    """For q = N(m, I) it is |m|^2 E k(z, z')."""
    batches = 4000
    codes = normal("codes", batches, 16, latents)
    codes[..., 0] += shift
    actual = stein_discrepancy(codes, width(h))
    error = actual.std().item() / math.sqrt(batches)
    assert error < 0.05
    assert actual.mean().item() == pytest.approx(shift**2 * mean_kernel(0, 2, latents, h), abs=5 * error)


FUNCTIONS: list[Callable[[Tensor, Tensor], Tensor]] = [
    stein_direction,
    stein_surrogate,
    stein_discrepancy,
    lambda codes, h: mmd(codes, codes.flip(-2) + 1, h),
]


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("function", FUNCTIONS)
def test_runs_do_not_mix(function: Callable[[Tensor, Tensor], Tensor], rule: Bandwidth) -> None:
    codes = normal("codes", 3, 6, 4) * torch.tensor([1.0, 2.0, 5.0])[:, None, None]
    together = function(codes, kernel_bandwidth(codes, rule))
    alone = [function(run, kernel_bandwidth(run, rule)) for run in codes]
    torch.testing.assert_close(together, torch.stack(alone))


# Codes of a run that has collapsed, has exploded, or has two heaps far apart.
AWKWARD = {
    "all alike": torch.full((8, 4), 0.7),
    "nearly alike": 0.7 + 1e-6 * torch.arange(32.0).reshape(8, 4),
    "far away": torch.full((8, 4), 1e4) + torch.arange(8.0)[:, None],
    "two heaps": torch.tensor([[-1e3], [1e3]]).repeat(4, 4),
}


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("name", AWKWARD)
def test_awkward_codes_stay_finite_in_float32(name: str, rule: Bandwidth) -> None:
    codes = AWKWARD[name].clone().requires_grad_()
    prior = normal("prior", 8, 4).float()
    own, pooled = kernel_bandwidth(codes, rule), kernel_bandwidth(torch.cat([codes, prior]), rule)
    for value in (mmd(codes, prior, pooled), stein_surrogate(codes, own), stein_discrepancy(codes, own)):
        assert value.dtype == torch.float32
        (gradient,) = torch.autograd.grad(value, codes, retain_graph=True)
        assert torch.isfinite(value)
        assert torch.isfinite(gradient).all()


def test_mmd_in_float32_keeps_its_digits() -> None:
    codes, prior = normal("codes", 64, 10), normal("prior", 64, 10)
    h = kernel_bandwidth(codes, "squared_dimension")
    exact = mmd(codes, prior, h).item()
    assert mmd(codes.float(), prior.float(), h.float()).item() == pytest.approx(exact, abs=1e-6)


def test_the_verdict_by_hand() -> None:
    """D = 9/10, 1/2, 1/4 for codes and 4/5, 1/2, 1/5 for draws from the prior."""
    ratios = [
        torch.tensor(r).double() for r in ([math.log(9), 0, -math.log(3)], [math.log(4), 0, -math.log(4)])
    ]
    verdict = Verdict(*ratios)
    log_codes = (math.log(9 / 10) + math.log(1 / 2) + math.log(1 / 4)) / 3
    log_prior = (math.log(1 / 5) + math.log(1 / 2) + math.log(4 / 5)) / 3
    assert verdict.loss.item() == pytest.approx(-(log_codes + log_prior) / 2)
    assert verdict.kl.item() == pytest.approx(math.log(3) / 3)
    assert verdict.exposure.item() == pytest.approx(
        -(math.log(1 / 10) + math.log(1 / 2) + math.log(3 / 4)) / 3
    )
    assert verdict.accuracy.item() == pytest.approx((1 / 3 + 1 / 3) / 2)


class BestDiscriminator(nn.Module):
    """Of q = N(1, 1) in each dimension and the prior: log q(z) - log p(z) = sum z - D/2."""

    def forward(self, z: Tensor) -> Tensor:
        ratio = (z - 0.5).sum(-1)
        return torch.stack([ratio + 3, torch.full_like(ratio, 3.0)], dim=-1)


def test_the_best_discriminator_gives_the_divergence() -> None:
    """KL(N(1, I) || N(0, I)) = D/2 = 1; standard error of 40,000 points 0.007."""
    verdict = judge(BestDiscriminator(), normal("codes", 40_000, 2) + 1, normal("prior", 40_000, 2))
    assert verdict.kl.item() == pytest.approx(1, abs=0.03)
    assert (-verdict.prior.mean()).item() == pytest.approx(1, abs=0.03)


def test_a_fooling_encoder_still_learns_where_the_discriminator_is_sure() -> None:
    ratios = torch.full((2, 4), 80.0, dtype=torch.float64, requires_grad=True)
    (gradient,) = torch.autograd.grad(Verdict(ratios, -ratios).exposure.sum(), ratios)
    torch.testing.assert_close(gradient, torch.full_like(ratios, 1 / 4))
