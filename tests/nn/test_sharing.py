"""Posteriors that images share: against densities multiplied on a grid, and numbers worked out by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.distributions import Normal, kl_divergence

from unweave.errors import UnweaveError
from unweave.nn.distributions.gaussian import Gaussian
from unweave.nn.distributions.sharing import (
    Rule,
    average,
    below_midpoint,
    distance,
    group_kl,
    in_groups,
    product,
    published_product,
    share,
    share_content,
    shared_dimensions,
    smallest,
    ungrouped,
)
from unweave.streams import Stream

RULES = pytest.mark.parametrize(
    "rule", [product, published_product, average], ids=["product", "published product", "average"]
)


def some(*shape: int, seed: int = 0) -> Gaussian:
    """Posteriors of any shape, of random means and log variances."""
    stream, count = Stream.of(seed), math.prod(shape)
    mean, log_var = (
        torch.from_numpy(stream.child(n).normal(count, 1)).view(shape) for n in ("mean", "log_var")
    )
    return Gaussian(mean, log_var)


def column(means: list[float], variances: list[float]) -> Gaussian:
    """The posteriors of one dimension, (m, 1)."""
    mean, variance = (torch.tensor(values, dtype=torch.float64)[:, None] for values in (means, variances))
    return Gaussian(mean, variance.log())


@pytest.mark.parametrize(
    ("means", "variances"),
    [([1.0, -2.0], [0.5, 3.0]), ([0.3, 0.4, -1.0], [1.2, 0.2, 2.0]), ([0.7], [0.9])],
)
def test_the_product_is_that_of_the_densities(means: list[float], variances: list[float]) -> None:
    points = np.linspace(-30, 30, 600_001)
    log_density = sum(-0.5 * (points - m) ** 2 / v for m, v in zip(means, variances, strict=True))
    density = np.exp(log_density - log_density.max())  # type: ignore[union-attr]
    density /= density.sum()
    mean = (points * density).sum()
    variance = ((points - mean) ** 2 * density).sum()
    actual = product(column(means, variances))
    assert actual.mean.item() == pytest.approx(mean, abs=1e-8)
    assert actual.log_var.exp().item() == pytest.approx(variance, rel=1e-8)


def test_rules_by_hand() -> None:
    pair = column([0.0, 2.0], [1.0, 3.0])
    together = product(pair)  # precision 1 + 1/3, mean (0 + 2/3) / (4/3)
    assert (together.mean.item(), together.log_var.exp().item()) == pytest.approx((0.5, 0.75))
    together = published_product(pair)  # 2 * 1 * 3 / (1 + 3)
    assert (together.mean.item(), together.log_var.exp().item()) == pytest.approx((0.5, 1.5))
    together = average(pair)
    assert (together.mean.item(), together.log_var.exp().item()) == pytest.approx((1.0, 2.0))


@RULES
def test_the_posterior_of_a_single_image_is_unchanged(rule: Rule) -> None:
    alone = some(5, 1, 3)
    together = rule(alone)
    torch.testing.assert_close(together.mean, alone.mean)
    torch.testing.assert_close(together.log_var, alone.log_var)


@RULES
def test_the_order_of_a_group_does_not_matter(rule: Rule) -> None:
    group = some(2, 6, 3)
    one, other = rule(group), rule(group[:, [4, 0, 2, 5, 1, 3]])
    torch.testing.assert_close(one.mean, other.mean)
    torch.testing.assert_close(one.log_var, other.log_var)


@given(st.integers(1, 9), st.floats(-3, 3), st.floats(0.1, 5))
@settings(deadline=None, max_examples=30)
def test_agreement_makes_the_product_surer_and_not_the_average(m: int, mean: float, variance: float) -> None:
    alike = column([mean] * m, [variance] * m)
    assert product(alike).mean.item() == pytest.approx(mean)
    assert average(alike).mean.item() == pytest.approx(mean)
    assert product(alike).log_var.exp().item() == pytest.approx(variance / m)
    assert average(alike).log_var.exp().item() == pytest.approx(variance)


@RULES
def test_extreme_variances_stay_finite(rule: Rule) -> None:
    wild = Gaussian(torch.tensor([[1.0], [2.0]]), torch.tensor([[-200.0], [200.0]]))
    together = rule(wild)
    assert together.mean.isfinite().all()
    assert together.log_var.isfinite().all()


@RULES
def test_both_images_learn_through_what_is_shared(rule: Rule) -> None:
    pair = some(2, 4)
    parts = pair.mean.requires_grad_(), pair.log_var.requires_grad_()
    marked = torch.tensor([True, False, True, False])
    merged = share(pair, marked, rule)
    assert torch.equal(merged.mean[0, marked], merged.mean[1, marked])
    assert torch.equal(merged.log_var[0, marked], merged.log_var[1, marked])
    assert torch.equal(merged.mean[:, ~marked], pair.mean[:, ~marked])
    # What the first image draws its code from: in shared dimensions it comes from the second as well.
    for part in (merged.mean, merged.log_var):
        gradients = torch.autograd.grad(part[0].sum(), parts, retain_graph=True, allow_unused=True)
        reached = sum((g != 0).long() for g in gradients if g is not None)
        assert isinstance(reached, Tensor)
        assert (reached[0] > 0).all()
        assert torch.equal(reached[1] > 0, marked)


def test_groups_are_neighbours_and_back() -> None:
    batch = some(2, 6, 3)
    grouped = in_groups(batch, 3)
    assert grouped.mean.shape == (2, 2, 3, 3)
    assert torch.equal(grouped.mean[1, 1, 2], batch.mean[1, 5])
    assert torch.equal(ungrouped(grouped).log_var, batch.log_var)


def test_content_is_in_front_and_of_any_group() -> None:
    for m in (1, 2, 5):
        group = some(m, 4)
        merged = share_content(group, 3, product)
        torch.testing.assert_close(merged.mean[:, :3], product(group).mean[:, :3].expand(m, 3))
        assert torch.equal(merged.mean[:, 3:], group.mean[:, 3:])
    assert torch.equal(share_content(some(3, 4), 0, average).mean, some(3, 4).mean)
    with pytest.raises(UnweaveError, match=r"5 of 4 dimensions cannot be content\. Set content to 4 or less"):
        share_content(some(2, 4), 5, product)


def test_the_content_of_a_group_counts_once() -> None:
    """By hand: two groups of three, of which each content is one code."""
    merged = ungrouped(share_content(some(2, 3, 5), 2, average))
    prior = Normal(torch.tensor(0.0).double(), torch.tensor(1.0).double())
    divergences = kl_divergence(Normal(merged.mean, torch.exp(merged.log_var / 2)), prior)
    content = (divergences[0, :2].sum() + divergences[3, :2].sum()) / 6
    style = divergences[:, 2:].sum() / 6
    actual = group_kl(merged, 2, 3)
    torch.testing.assert_close(torch.stack(actual), torch.stack([content, style]))


def test_the_distance_is_a_divergence() -> None:
    pairs = some(7, 2, 3)
    first, second = (Normal(pairs.mean[:, i], torch.exp(pairs.log_var[:, i] / 2)) for i in (0, 1))
    torch.testing.assert_close(distance(pairs)[:, 0], kl_divergence(first, second))


def test_which_dimensions_are_shared() -> None:
    distances = torch.tensor([[0.0, 5.0, 1.0, 2.4, 2.6], [3.0, 3.0, 3.0, 3.0, 3.0]])
    assert below_midpoint(distances).tolist() == [[True, False, True, True, False], [False] * 5]
    counts = torch.tensor([[2], [4]])
    assert smallest(distances, counts).tolist() == [[True, False, True, False, False], [True] * 4 + [False]]
    assert not smallest(distances, torch.tensor(0)).any()


def test_shared_dimensions_are_counted() -> None:
    pairs = some(3, 2, 4)
    marked = torch.tensor([[[True, False, True, False]], [[False] * 4], [[True] * 4]])
    merged = ungrouped(share(pairs, marked, average))
    assert shared_dimensions(merged, 2).item() == 2.0
