"""Layers of latents: their posteriors against densities on a grid, their divergences against draws."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.distributions import Normal, kl_divergence

from unweave.errors import UnweaveError
from unweave.nn.distributions.gaussian import Gaussian
from unweave.nn.networks.ladder import Ladder, layer_sizes, precision_weighted
from unweave.streams import Stream

SHAPE, LATENTS = (1, 32, 32), 5


def ladder(layers: int = 3, seeds: tuple[int, ...] = (0,)) -> Ladder:
    return Ladder([Stream.of(seed) for seed in seeds], SHAPE, LATENTS, "released", layers).requires_grad_(
        False
    )


def normal(name: str, *shape: int) -> Tensor:
    numbers = Stream.of(0).child(name).normal(int(np.prod(shape[:-1])), shape[-1])
    return torch.from_numpy(numbers).float().view(*shape)


def as_normal(gaussian: Gaussian) -> Normal:
    return Normal(gaussian.mean, torch.exp(gaussian.log_var / 2))


def test_the_product_of_two_gaussians_by_integration() -> None:
    evidence, prior = (0.7, np.log(0.3)), (-0.4, np.log(1.7))
    z = np.linspace(-12, 12, 200_001)
    density = np.exp(sum(-((z - mean) ** 2) / (2 * np.exp(log_var)) for mean, log_var in (evidence, prior)))
    density /= density.sum()
    in_units = (z - prior[0]) / np.exp(prior[1] / 2)
    mean = (density * in_units).sum()
    variance = (density * (in_units - mean) ** 2).sum()
    actual = precision_weighted(*(Gaussian(*map(torch.tensor, moments)) for moments in (evidence, prior)))
    assert float(actual.mean) == pytest.approx(mean, abs=1e-6)
    assert float(actual.log_var) == pytest.approx(np.log(variance), abs=1e-6)


numbers = st.floats(-4, 4)


@settings(max_examples=50, deadline=None)
@given(numbers, numbers, numbers, numbers)
def test_the_divergence_from_the_prior_is_that_of_the_latents(a: float, b: float, c: float, d: float) -> None:
    evidence, prior = (
        Gaussian(torch.tensor([m], dtype=torch.float64), torch.tensor([v], dtype=torch.float64))
        for m, v in ((a, b), (c, d))
    )
    precision = torch.exp(-evidence.log_var) + torch.exp(-prior.log_var)
    weighted = evidence.mean * torch.exp(-evidence.log_var) + prior.mean * torch.exp(-prior.log_var)
    product = Normal(weighted / precision, precision.rsqrt())
    actual = precision_weighted(evidence, prior)
    torch.testing.assert_close(actual.kl_per_dimension(), kl_divergence(product, as_normal(prior)))
    assert float(actual.log_var) <= 0


def test_evidence_without_weight_leaves_the_prior_and_with_all_weight_replaces_it() -> None:
    prior = Gaussian(torch.tensor([2.0]), torch.tensor([1.0]))
    nothing = precision_weighted(Gaussian(torch.tensor([5.0]), torch.tensor([60.0])), prior)
    assert float(nothing.kl()) == pytest.approx(0, abs=1e-6)
    certain = precision_weighted(Gaussian(torch.tensor([5.0]), torch.tensor([-60.0])), prior)
    assert float(prior.sample(certain.mean)) == pytest.approx(5.0)
    assert float(certain.log_var) == pytest.approx(-61.0)


def test_divergences_equal_those_of_many_draws() -> None:
    """mean log q(z|x) - log p(z) over z, with densities of z itself and not of codes."""
    network, draws = ladder(), 2000
    for head in (network.bottom_up.encoder.heads, *network.bottom_up.heads):
        mean, log_var = head.bias.chunk(2, dim=-1)  # new networks hardly differ from their priors
        mean.add_(1.5)
        log_var.sub_(1)
    images = normal("image", 1, 1, *SHAPE).sigmoid().expand(1, draws, *SHAPE)
    evidence = network.bottom_up(images)
    inferred = network.infer(images, normal("noise", 1, draws, LATENTS))
    z = inferred.latents.split(network.sizes, dim=-1)
    log_ratio = as_normal(evidence[0]).log_prob(z[0]).sum(-1) - Normal(0.0, 1.0).log_prob(z[0]).sum(-1)
    for layer in (1, 2):
        prior = network.priors[layer - 1](torch.cat(z[:layer], dim=-1))
        precisions = torch.exp(-evidence[layer].log_var), torch.exp(-prior.log_var)
        both = precisions[0] + precisions[1]
        mean = (evidence[layer].mean * precisions[0] + prior.mean * precisions[1]) / both
        log_ratio += Normal(mean, both.rsqrt()).log_prob(z[layer]).sum(-1)
        log_ratio -= as_normal(prior).log_prob(z[layer]).sum(-1)
    closed_form = torch.stack([posterior.kl() for posterior in inferred.posteriors]).sum(dim=0)
    error = float((log_ratio - closed_form).std()) / draws**0.5
    assert float(log_ratio.mean()) == pytest.approx(float(closed_form.mean()), abs=5 * error)
    assert 5 * error < 0.1 * float(closed_form.mean())


def test_codes_give_the_latents_back() -> None:
    network, images = ladder(seeds=(0, 1)), normal("images", 2, 6, *SHAPE).sigmoid()
    noise = normal("noise", 2, 6, LATENTS)
    inferred = network.infer(images, noise)
    assert inferred.posterior.mean.shape == (2, 6, LATENTS)
    codes = inferred.posterior.sample(noise)
    torch.testing.assert_close(network.latents(codes), inferred.latents)


def test_a_code_moves_its_layer_and_those_below() -> None:
    network = ladder()
    assert network.sizes == [1, 2, 2]
    codes = normal("codes", 1, 1, LATENTS)
    before = network.latents(codes)
    for first, end in ((0, 1), (1, 3), (3, 5)):  # the layers, from the top
        changed = codes.clone()
        changed[..., first:end] += 1
        moved = (network.latents(changed) != before).flatten().tolist()
        assert moved == [False] * first + [True] * (LATENTS - first)


def test_one_layer_is_the_usual_encoder_and_decoder() -> None:
    network, images = ladder(layers=1), normal("images", 1, 4, *SHAPE).sigmoid()
    noise = normal("noise", 1, 4, LATENTS)
    inferred, posterior = network.infer(images, noise), network.bottom_up.encoder(images)
    assert len(network.priors) == 0
    torch.testing.assert_close(inferred.posterior.mean, posterior.mean)
    torch.testing.assert_close(inferred.posterior.log_var, posterior.log_var)
    torch.testing.assert_close(inferred.latents, posterior.sample(noise))


@given(st.integers(1, 40), st.integers(1, 8))
def test_latents_are_shared_out_evenly(latents: int, layers: int) -> None:
    if latents < layers:
        with pytest.raises(
            UnweaveError, match=rf"{layers} layers needs at least {layers} latents; got {latents}"
        ):
            layer_sizes(latents, layers)
        return
    sizes = layer_sizes(latents, layers)
    assert sum(sizes) == latents
    assert len(sizes) == layers
    assert max(sizes) - min(sizes) <= 1
