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
        """E over q(z|x,y) of log p(x,y,z) / q(y,z|x), and log q(y|x), summed over z."""
        joint = self.q_z * self.q_y[:, y]
        given_y = joint / joint.sum()
        return float((given_y * np.log(self.p[:, y] / joint)).sum()), float(np.log(joint.sum()))

    def weighted(self, y: int, z: np.ndarray) -> tuple[float, float]:
        """The same from samples z of q(z|x)."""
        weights = torch.from_numpy(np.log(self.q_y[z, y]))[:, None]
        ratios = torch.from_numpy(np.log(self.p[z, y] / (self.q_z[z] * self.q_y[z, y])))[:, None]
        mean, evidence = importance_weighted(weights, ratios)
        return mean.item(), evidence.item()


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
    mean, evidence = importance_weighted(log_q.expand(6, 4), ratios)
    torch.testing.assert_close(mean, ratios.mean(0))
    torch.testing.assert_close(evidence, log_q)


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
    weights, ratios = [], []
    for s in range(3):
        z = normal(q_z).loc + normal(q_z).scale * noise[:, 3 * s : 3 * s + 3]
        q_y = runs.model.infer(y_node, features, {"z": z})
        assert isinstance(q_y, Categorical)
        log_w = (q_y.log_probabilities * y).sum(-1)
        log_p = runs.log_likelihood(images, [y, z]) + prior(z) - math.log(3)
        weights.append(log_w.exp())
        ratios.append(log_p - log_w - normal(q_z).log_prob(z).sum(-1))
    assert (torch.stack(weights).std(0) > 1e-4).all(), "the samples should differ"
    total = weights[0] + weights[1] + weights[2]
    bound = torch.stack([w / total * ratio for w, ratio in zip(weights, ratios, strict=True)]).sum(0)
    log_q = (total / 3).log()
    # alpha N / n = 2 x 60 / 30.
    supervised = -(bound + (1 + 4) * log_q).mean(-1)
    terms = runs.losses.terms
    torch.testing.assert_close(terms["classification"], -log_q.mean(-1), rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(terms["labelled_elbo"], (bound + log_q).mean(-1), rtol=1e-4, atol=1e-3)
    objective = -terms["elbo"] + 4 * supervised
    torch.testing.assert_close(runs.losses.players[MODEL], objective, rtol=1e-4, atol=1e-3)


def test_with_labels_first_the_labelled_loss_is_that_of_m2() -> None:
    """q(y|x) q(z|x,y): log p(x,y,z) - log q(z|x,y) + alpha log q(y|x), a plain mean over samples."""
    method = GeneralizedM2("q(y|x) q(z|x,y)", samples=2, alpha=2.0, labels=60)
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


def test_mistakes_raise_clear_errors() -> None:
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
