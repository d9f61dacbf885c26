"""Generalised M2: the importance-weighted loss against exact sums over a small discrete model."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import cast

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.distributions import Bernoulli, Normal
from torch.nn.functional import one_hot

from methods.played import own_step
from training.tiny import TINY
from unweave.errors import UnweaveError
from unweave.methods import GeneralizedM2
from unweave.methods.generalized_m2 import MODEL, importance_weighted
from unweave.methods.method import Batch, Blueprint
from unweave.nn.distributions.categorical import Categorical
from unweave.nn.distributions.gaussian import Gaussian
from unweave.nn.draws import PopulationDraws
from unweave.nn.layers import as_numbers
from unweave.nn.networks.graph_network import GraphNetwork
from unweave.streams import Stream
from unweave.training.batches import HostBatches

CPU = torch.device("cpu")


class Discrete:
    """One image, z of 4 values with q(z|x) in eighths, y of 3 values, any p(x, y, z)."""

    def __init__(self, seed: int) -> None:
        self.q_z = np.array([4, 2, 1, 1]) / 8
        self.q_y = np.exp(Stream.of(seed).child("q").normal(4, 3))
        self.q_y /= self.q_y.sum(1, keepdims=True)
        self.p = np.exp(Stream.of(seed).child("p").normal(4, 3) - 5)

    def exact(self, y: int) -> tuple[float, float]:
        """E over q(z|x,y) of log p(x,y,z) / q(y,z|x), and E over q(z|x) of log q(y|x,z), summed over z."""
        joint = self.q_z * self.q_y[:, y]
        given_y = joint / joint.sum()
        mean_log = float((self.q_z * np.log(self.q_y[:, y])).sum())
        assert mean_log < np.log(joint.sum()), "the authors' term is below log q(y|x)"
        return float((given_y * np.log(self.p[:, y] / joint)).sum()), mean_log

    def weighted(self, y: int, z: np.ndarray) -> tuple[float, float]:
        """The same from samples z of q(z|x)."""
        weights = torch.from_numpy(np.log(self.q_y[z, y]))[:, None]
        ratios = torch.from_numpy(np.log(self.p[z, y] / (self.q_z[z] * self.q_y[z, y])))[:, None]
        mean, mean_log = importance_weighted(weights, ratios)
        return mean.item(), mean_log.item()


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_samples_in_their_true_proportions_give_the_exact_loss(seed: int) -> None:
    model, z = Discrete(seed), np.array([0, 0, 0, 0, 1, 1, 2, 3])
    for y in range(3):
        assert model.weighted(y, z) == pytest.approx(model.exact(y), rel=1e-12)


def test_random_samples_come_close() -> None:
    model = Discrete(5)
    uniform = Stream.of(0).uniform(200_000, 1)[:, 0]
    z = np.searchsorted(np.cumsum(model.q_z), uniform)
    assert model.weighted(1, z) == pytest.approx(model.exact(1), abs=0.01)


def test_equal_weights_are_a_plain_mean() -> None:
    ratios = torch.from_numpy(Stream.of(0).normal(6, 4))
    log_q = torch.tensor([-0.5, -1.0, -2.0, -0.1], dtype=torch.float64)
    mean, mean_log = importance_weighted(log_q.expand(6, 4), ratios)
    torch.testing.assert_close(mean, ratios.mean(0))
    torch.testing.assert_close(mean_log, log_q)


class Runs:
    """Networks and a batch of two runs."""

    def __init__(self, method: GeneralizedM2, latents: int = 4) -> None:
        self.method, source = method, HostBatches(TINY, CPU)
        self.sizes = source.label_sizes(method.sampling)
        streams = [Stream.of(0), Stream.of(1)]
        self.draws = PopulationDraws(streams, torch.zeros((), dtype=torch.int64))
        self.batch: Batch = source.draw(self.draws, 0, "batch", 3, method.sampling)
        self.networks = method.networks(Blueprint(streams, TINY.shape, latents, "released", self.sizes))
        self.model = cast(GraphNetwork, self.networks[MODEL])
        with torch.no_grad():  # else all values are about alike
            for parameter in self.model.parameters():
                parameter.mul_(2)
        self.losses = method.losses(
            own_step(0, 60, self.draws, "bernoulli", torch.tensor([9.0, 9.0]))(self.batch, self.networks)
        )

    def labelled(self) -> tuple[Tensor, Tensor]:
        assert self.batch.labelled is not None
        return self.batch.labelled.images, self.batch.labelled.labels

    def log_likelihood(self, images: Tensor, values: list[Tensor]) -> Tensor:
        logits = self.model.decoder(torch.cat(values, dim=-1))
        log_density: Tensor = Bernoulli(logits=logits).log_prob(as_numbers(images)).sum((-3, -2, -1))
        return log_density


def normal(q: Gaussian) -> Normal:
    return Normal(q.mean, (q.log_var / 2).exp())


def prior(z: Tensor) -> Tensor:
    log_density: Tensor = Normal(torch.zeros(()), torch.ones(())).log_prob(z).sum(-1)
    return log_density


def test_labels_that_depend_on_z_against_a_loop_over_samples() -> None:
    """q(z|x) q(y|x,z): the label weighs the samples."""
    runs = Runs(GeneralizedM2(samples=3, alpha=2.0, gamma=4.0, labels=30))
    images, labels = runs.labelled()
    features, (z_node, y_node) = runs.model.image_features(images), runs.model.graph.inference
    q_z = runs.model.infer(z_node, features, {})
    assert isinstance(q_z, Gaussian)
    noise = runs.draws.normal("labelled z", 9, 3)
    y = one_hot(labels[..., 0], 3).float()
    log_weights, log_like, kl = [], [], []
    for s in range(3):
        z = normal(q_z).loc + normal(q_z).scale * noise[:, 3 * s : 3 * s + 3]
        q_y = runs.model.infer(y_node, features, {"z": z})
        assert isinstance(q_y, Categorical)
        log_w = (q_y.log_probabilities * y).sum(-1)
        log_weights.append(log_w)
        log_like.append(runs.log_likelihood(images, [y, z]))
        kl.append(log_w + normal(q_z).log_prob(z).sum(-1) - prior(z) + math.log(3))
    assert (torch.stack(log_weights).std(0) > 1e-4).all(), "the samples should differ"
    elbo = authors_elbo(torch.stack(log_weights), torch.stack(log_like), torch.stack(kl), 2.0)
    terms = runs.losses.terms
    mean_log = torch.stack(log_weights).mean(0)
    torch.testing.assert_close(terms["classification"], -mean_log.mean(-1), rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(terms["labelled_elbo"], elbo - 2 * mean_log.mean(-1), rtol=1e-4, atol=1e-3)
    objective = -terms["elbo"] - 4 * elbo
    torch.testing.assert_close(runs.losses.players[MODEL], objective, rtol=1e-4, atol=1e-3)


def authors_elbo(log_weights: Tensor, log_like: Tensor, kl: Tensor, alpha: float) -> Tensor:
    """(P,): the labelled objective of probtorch.objectives.montecarlo, from S samples (S, P, B), beta = 1.

    log_like and kl are averaged with weights softmax(log q(y|...)), and ml is the plain mean of log q(y|...);
    the objective is log_like - kl + (1 + alpha) ml, mean over the batch.
    """
    weights = log_weights.exp() / log_weights.exp().sum(0)
    ml = log_weights.mean(0)
    return ((weights * log_like).sum(0) - (weights * kl).sum(0) + (1 + alpha) * ml).mean(-1)


def test_the_weight_of_labels_is_that_of_the_library() -> None:
    """1.1 with its alpha: the change of the labelled loss if log q(y|...) of all samples grows by one."""
    weights = torch.zeros(8, 1, dtype=torch.float64, requires_grad=True)
    bound, mean_log = importance_weighted(weights, torch.zeros_like(weights))
    (bound + (1 + 0.1) * mean_log).sum().backward()
    assert weights.grad is not None
    assert weights.grad.sum().item() == pytest.approx(1.1)


def test_with_labels_first_the_labelled_loss_is_that_of_m2() -> None:
    """q(y|x) q(z|x,y): log p(x,y,z) - log q(z|x,y) + alpha log q(y|x), a plain mean over samples."""
    method = GeneralizedM2("q(y|x) q(z|x,y)", samples=2, alpha=2.0, labels=30)
    runs = Runs(method)
    images, labels = runs.labelled()
    features, (y_node, z_node) = runs.model.image_features(images), runs.model.graph.inference
    y = one_hot(labels[..., 0], 3).float()
    q_y, q_z = runs.model.infer(y_node, features, {}), runs.model.infer(z_node, features, {"y1": y})
    assert isinstance(q_y, Categorical)
    assert isinstance(q_z, Gaussian)
    noise, elbo = runs.draws.normal("labelled z", 6, 3), torch.zeros(2, 3)
    for s in range(2):
        z = q_z.mean + (q_z.log_var / 2).exp() * noise[:, 3 * s : 3 * s + 3]
        ratio = runs.log_likelihood(images, [y, z]) + prior(z) - normal(q_z).log_prob(z).sum(-1)
        elbo += (ratio - math.log(3)) / 2
    log_q = (q_y.log_probabilities * y).sum(-1)
    terms = runs.losses.terms
    torch.testing.assert_close(terms["labelled_elbo"], elbo.mean(-1), rtol=1e-4, atol=1e-3)
    objective = -terms["elbo"] - elbo.mean(-1) - 2 * log_q.mean(-1)
    torch.testing.assert_close(runs.losses.players[MODEL], objective, rtol=1e-4, atol=1e-3)


def test_unlabelled_images_against_relaxed_draws_written_out() -> None:
    runs = Runs(GeneralizedM2(temperature=0.5))
    images, features = runs.batch.images, runs.model.image_features(runs.batch.images)
    z_node, y_node = runs.model.graph.inference
    q_z = runs.model.infer(z_node, features, {})
    assert isinstance(q_z, Gaussian)
    z = q_z.mean + (q_z.log_var / 2).exp() * runs.draws.normal("unlabelled z", 3, 3)
    q_y = runs.model.infer(y_node, features, {"z": z})
    assert isinstance(q_y, Categorical)
    gumbel = -(-runs.draws.uniform("unlabelled y1", 3, 3).log()).log()
    y = ((q_y.log_probabilities + gumbel) / 0.5).softmax(-1)
    kl = (normal(q_z).log_prob(z).sum(-1) - prior(z)) + (y * (q_y.log_probabilities + math.log(3))).sum(-1)
    torch.testing.assert_close(runs.losses.terms["kl"], kl.mean(-1), rtol=1e-4, atol=1e-4)
    rec = -runs.log_likelihood(images, [y, z]).mean(-1)
    torch.testing.assert_close(runs.losses.terms["reconstruction"], rec, rtol=1e-4, atol=1e-3)


def test_a_run_keeps_its_temperature_in_a_population() -> None:
    alone = Runs(GeneralizedM2(temperature=0.5)).losses.players[MODEL]
    other = Runs(GeneralizedM2(temperature=2.0)).losses.players[MODEL]
    method = replace(GeneralizedM2(), temperature=torch.tensor([0.5, 2.0]))
    torch.testing.assert_close(Runs(method).losses.players[MODEL], torch.stack([alone[0], other[1]]))


def test_any_factorisation_is_declared_in_two_lines() -> None:
    """Size given the rest of the code, a mixture of Gaussians for z, and a parent of y only."""
    method = GeneralizedM2(
        "q(y2|x) q(z|x,y2) q(z2|x,z) q(y1|x,z)",
        "p(y1) p(z|y1) p(y2|z) p(z2) p(x|y1,y2,z,z2)",
        factors="size,y",
    )
    runs = Runs(method, latents=6)
    assert runs.sizes == (3, 5)
    assert torch.isfinite(runs.losses.players[MODEL]).all()
    gradients = torch.autograd.grad(runs.losses.players[MODEL].sum(), list(runs.model.parameters()))
    assert all(gradient.abs().sum() > 0 for gradient in gradients)
    assert method.encode(runs.networks, runs.batch.images).mean.shape == (2, 3, 6)


def test_continuous_labels_are_gaussian_numbers() -> None:
    """x has 4 values, cells of width 1 from -0.5 to 3.5: mean 1.5 and variance 4^2 / 12."""
    method = GeneralizedM2(factors="size,x", continuous="x", samples=2, alpha=2.0, labels=30)
    runs = Runs(method, latents=5)
    images, labels = runs.labelled()
    features, (z_node, size_node, x_node) = runs.model.image_features(images), runs.model.graph.inference
    q_z = runs.model.infer(z_node, features, {})
    assert isinstance(q_z, Gaussian)
    noise, cell = runs.draws.normal("labelled z", 6, 3), runs.draws.uniform("labelled y2", 3, 1)
    size = one_hot(labels[..., 0], 3).float()
    x = (labels[..., 1:].float() + cell - 0.5 - 1.5) / (4 / math.sqrt(12))
    log_weights, log_like, kl = [], [], []
    for s in range(2):
        z = normal(q_z).loc + normal(q_z).scale * noise[:, 3 * s : 3 * s + 3]
        q_size, q_x = (runs.model.infer(node, features, {"z": z}) for node in (size_node, x_node))
        assert isinstance(q_size, Categorical)
        assert isinstance(q_x, Gaussian)
        log_w = (q_size.log_probabilities * size).sum(-1) + normal(q_x).log_prob(x).sum(-1)
        log_weights.append(log_w)
        log_like.append(runs.log_likelihood(images, [size, x, z]))
        kl.append(log_w + normal(q_z).log_prob(z).sum(-1) - prior(z) + math.log(3) - prior(x))
    elbo = authors_elbo(torch.stack(log_weights), torch.stack(log_like), torch.stack(kl), 2.0)
    objective = -runs.losses.terms["elbo"] - elbo
    torch.testing.assert_close(runs.losses.players[MODEL], objective, rtol=1e-4, atol=1e-3)

    code = method.encode(runs.networks, images).mean
    assert code.shape == (2, 3, 5)
    predicted = method.predict(runs.networks, images)[..., 1]
    expected = (code[..., 1] * 4 / math.sqrt(12) + 1.5).clamp(0, 3)
    assert ((predicted - expected).abs() <= 0.5).all()
    moved = code + torch.tensor([0.0, 0.3, 0.0, 0.0, 0.0])
    assert (method.decode(runs.networks, moved) - method.decode(runs.networks, code)).abs().max() > 1e-4


def test_mistakes_raise_clear_errors() -> None:
    with pytest.raises(UnweaveError, match=r'must be names of its factors, "size", or "all" .* got "x"'):
        GeneralizedM2(factors="size", continuous="x")
    with pytest.raises(UnweaveError, match="y must come before z, which depends on it"):
        GeneralizedM2(inference="q(z|x,y) q(y|x)")
    with pytest.raises(UnweaveError, match="samples of generalized_m2 must be at least 1; got 0"):
        GeneralizedM2(samples=0)
    with pytest.raises(UnweaveError, match="temperature of generalized_m2 must be > 0; got 0"):
        GeneralizedM2(temperature=0)
    with pytest.raises(
        UnweaveError, match="a code of 3 labels and 1 Gaussian variables needs at least 4 latents"
    ):
        Runs(GeneralizedM2(factors="all"), latents=3)
