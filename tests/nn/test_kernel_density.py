"""The dependence of codes by kernel density estimates: cases by hand, and the formula by scipy."""

import math

import numpy as np
import pytest
import torch
from scipy.special import logsumexp
from scipy.stats import norm
from torch import Tensor

from unweave.nn.distributions.kernel_density import kernel_multiinformation
from unweave.streams import Stream


def by_scipy(z: np.ndarray, deviation: np.ndarray) -> float:
    """mean log q(z) - sum_d log q_d(z_d), each density with the authors' bandwidths."""
    count, latents = z.shape
    silverman = (4 / (latents + 2)) ** (1 / (latents + 4)) * count ** (-1 / (latents + 4))
    pairs = z[:, None] - z[None]
    joint = norm.logpdf(pairs, scale=silverman * deviation).sum(-1)
    single = norm.logpdf(pairs, scale=deviation)
    log_q = logsumexp(joint, axis=1) - math.log(count)
    log_marginals = logsumexp(single, axis=1) - math.log(count)
    return float((log_q - log_marginals.sum(-1)).mean())


def codes(rows: int, latents: int) -> Tensor:
    mixed = Stream.of(0).normal(rows, latents) @ Stream.of(1).normal(latents, latents)
    return torch.from_numpy(mixed)


def test_it_is_the_authors_formula() -> None:
    z = codes(40, 3)
    deviation = z.std(0, correction=0) * torch.tensor([1.0, 0.7, 2.0])
    expected = by_scipy(z.numpy(), deviation.numpy())
    assert kernel_multiinformation(z, deviation).item() == pytest.approx(expected, rel=1e-10)
    runs = kernel_multiinformation(torch.stack([z, 2 * z]), deviation.expand(2, -1))
    again = by_scipy(2 * z.numpy(), deviation.numpy())
    assert runs.tolist() == pytest.approx([expected, again], rel=1e-10)


def test_independent_codes_by_hand() -> None:
    """All four pairs of -1 and 1: both densities are products, and differ by their bandwidths only."""
    z = torch.tensor([[1.0, 1], [1, -1], [-1, 1], [-1, -1]], dtype=torch.float64)
    c = 4 ** (-1 / 6)  # (4 / 4)^(1 / 6) 4^(-1 / 6)
    wide, narrow = math.log(1 + math.exp(-2)), math.log(1 + math.exp(-2 / c**2))
    expected = 2 * (narrow - math.log(c) - wide)
    assert kernel_multiinformation(z, torch.ones(2).double()).item() == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("copies", [2, 5])
def test_copies_of_one_code_by_hand(copies: int) -> None:
    """-1 and 1 in all dimensions at once: the joint density has two peaks, the product 2^copies."""
    z = torch.tensor([[1.0], [-1.0]], dtype=torch.float64).repeat(2, copies)
    c = (4 / (copies + 2) / 4) ** (1 / (copies + 4))
    joint = math.log((1 + math.exp(-2 * copies / c**2)) / 2) - copies * math.log(c)
    product = copies * math.log((1 + math.exp(-2)) / 2)
    deviation = torch.ones(copies).double()
    assert kernel_multiinformation(z, deviation).item() == pytest.approx(joint - product, rel=1e-10)


def test_copies_depend_more_than_independent_codes() -> None:
    one, other = codes(200, 1), torch.from_numpy(Stream.of(7).normal(200, 1))
    dependent, independent = torch.cat([one, one], 1), torch.cat([one, other], 1)
    values = [kernel_multiinformation(z, z.std(0, correction=0)) for z in (dependent, independent)]
    assert values[0] > values[1] + 0.3


def test_the_scale_of_a_code_does_not_matter() -> None:
    z, scale = codes(30, 3), torch.tensor([0.01, 1, 50]).double()
    deviation = z.std(0, correction=0)
    expected = kernel_multiinformation(z, deviation)
    torch.testing.assert_close(kernel_multiinformation(scale * z, scale * deviation), expected)


def test_descending_makes_correlated_codes_independent() -> None:
    first, second = codes(64, 2).T.unbind()
    free = torch.stack([first, 0.9 * first + 0.1 * second], 1) / 2
    free.requires_grad_()
    optimiser = torch.optim.Adam([free], lr=0.03)
    correlations = []
    for _ in range(80):
        z = torch.tanh(free)
        correlations.append(torch.corrcoef(z.detach().T)[0, 1].abs().item())
        optimiser.zero_grad()
        kernel_multiinformation(z, z.std(0, correction=0)).backward()
        optimiser.step()
    assert correlations[0] > 0.9
    assert correlations[-1] < 0.1
