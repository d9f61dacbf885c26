"""M2: the sum over classes against enumeration, both bounds against torch's distributions, codes."""

from __future__ import annotations

import math
from itertools import product
from typing import Any, cast

import pytest
import torch
from torch import Tensor
from torch.distributions import Bernoulli, Categorical, Normal, kl_divergence
from torch.nn.functional import one_hot

from methods.played import own_step
from training.tiny import TINY
from unweave.errors import UnweaveError
from unweave.methods import M2
from unweave.methods.m2 import MODEL, classes, marginalised
from unweave.methods.method import Batch, Blueprint
from unweave.nn.distributions.gaussian import Gaussian
from unweave.nn.draws import PopulationDraws
from unweave.nn.layers import as_numbers
from unweave.nn.networks.graph_network import GraphNetwork
from unweave.streams import Stream
from unweave.training.batches import HostBatches

CPU = torch.device("cpu")


class Runs:
    """Networks and a batch of two runs."""

    def __init__(self, method: M2, latents: int = 4, batch: int = 3) -> None:
        self.method, source = method, HostBatches(TINY, CPU)
        self.sizes = source.label_sizes(method.sampling)
        streams = [Stream.of(0), Stream.of(1)]
        self.draws = PopulationDraws(streams, torch.zeros((), dtype=torch.int64))
        self.batch: Batch = source.draw(self.draws, 0, "batch", batch, method.sampling)
        self.networks = method.networks(Blueprint(streams, TINY.shape, latents, "released", self.sizes))
        self.model = cast(GraphNetwork, self.networks[MODEL])
        with torch.no_grad():  # else all classes are about alike
            for parameter in self.model.parameters():
                parameter.mul_(2)
        self.at_step = own_step(0, 60, self.draws, "bernoulli", torch.tensor([10.0, 10.0]))

    def bound(self, images: Tensor, label: tuple[int, ...], noise: Tensor) -> Tensor:
        """(P, B): L(x, y) without log p(y), for the same y and noise (P, B, D) for all images."""
        features = self.model.image_features(images)
        shape = (*images.shape[:2], -1)
        values = {
            f"y{j + 1}": one_hot(torch.tensor(value), size).float().expand(shape)
            for j, (value, size) in enumerate(zip(label, self.sizes, strict=True))
        }
        q = self.model.infer(self.model.graph.inference[-1], features, values)
        assert isinstance(q, Gaussian)
        posterior = Normal(q.mean, (q.log_var / 2).exp())
        z = q.mean + (q.log_var / 2).exp() * noise
        logits = self.model.decoder(torch.cat([*values.values(), z], dim=-1))
        likelihood: Tensor = Bernoulli(logits=logits).log_prob(as_numbers(images)).sum((-3, -2, -1))
        kl: Tensor = kl_divergence(posterior, Normal(torch.zeros(()), torch.ones(()))).sum(-1)
        return kl - likelihood

    def q_of_labels(self, images: Tensor) -> list[Categorical]:
        features = self.model.image_features(images)
        nodes = self.model.graph.inference[:-1]
        return [
            Categorical(logits=cast(Any, self.model.infer(node, features, {})).log_probabilities)
            for node in nodes
        ]


@pytest.mark.parametrize("factors", ["first", "size,x"])
def test_both_bounds_against_enumeration(factors: str) -> None:
    runs = Runs(M2(alpha=3.0, factors=factors, labels=20))
    losses = runs.method.losses(runs.at_step(runs.batch, runs.networks))
    combinations = list(product(*[range(size) for size in runs.sizes]))
    width = 4 - len(runs.sizes)
    noise = runs.draws.normal("unlabelled z", 3 * len(combinations), width)
    q = runs.q_of_labels(runs.batch.images)
    unlabelled = torch.zeros(2, 3)
    for number, label in enumerate(combinations):
        bound = runs.bound(runs.batch.images, label, noise[:, 3 * number : 3 * number + 3])
        log_q = torch.stack(
            [of.log_prob(torch.tensor(value)) for of, value in zip(q, label, strict=True)]
        ).sum(0)
        unlabelled += log_q.exp() * (bound + math.log(len(combinations)) + log_q)
    torch.testing.assert_close(losses.terms["elbo"], -unlabelled.mean(-1), rtol=1e-4, atol=1e-3)
    terms = losses.terms
    torch.testing.assert_close(terms["elbo"], -(terms["reconstruction"] + terms["kl"]))

    assert runs.batch.labelled is not None
    labels, images = runs.batch.labelled.labels, runs.batch.labelled.images
    noise = runs.draws.normal("labelled z", 3, width)
    labelled, missed = torch.zeros(2, 3), torch.zeros(2, 3)
    q = runs.q_of_labels(images)
    for run, image in product(range(2), range(3)):
        label = tuple(labels[run, image].tolist())
        labelled[run, image] = runs.bound(images, label, noise)[run, image] + math.log(len(combinations))
        missed[run, image] = -sum(
            of.probs[run, image, value].log() for of, value in zip(q, label, strict=True)
        )
    torch.testing.assert_close(terms["labelled_elbo"], -labelled.mean(-1), rtol=1e-4, atol=1e-3)
    torch.testing.assert_close(terms["classification"], missed.mean(-1), rtol=1e-4, atol=1e-4)
    # alpha N / n = 3 x 60 / 20.
    total = unlabelled.mean(-1) + labelled.mean(-1) + 9 * missed.mean(-1)
    torch.testing.assert_close(losses.players[MODEL], total, rtol=1e-4, atol=1e-3)


def test_at_the_true_posterior_the_bound_is_the_evidence() -> None:
    """min over q(y|x) of the sum over classes is -log sum_y p(y) exp(-L(x, y))."""
    bounds = torch.from_numpy(Stream.of(0).normal(5, 7)) * 3
    reconstruction, kl = marginalised((-bounds).log_softmax(-1), bounds - 1, torch.ones_like(bounds))
    torch.testing.assert_close(reconstruction + kl, math.log(7) - (-bounds).logsumexp(-1))


def test_marginalised_against_numbers_worked_out_by_hand() -> None:
    """q = (3/4, 1/4): 3/4 x 8 + 1/4 x 4 = 7; KL 3/4 x 1 + 1/4 x 3 + 3/4 log(3/2) + 1/4 log(1/2)."""
    log_q = torch.tensor([0.75, 0.25], dtype=torch.float64).log()
    rec, kl = marginalised(log_q, torch.tensor([8.0, 4.0]), torch.tensor([1.0, 3.0]))
    assert rec.item() == pytest.approx(7)
    assert kl.item() == pytest.approx(1.5 + 0.75 * math.log(1.5) + 0.25 * math.log(0.5))


def test_classes_are_all_combinations() -> None:
    assert classes((2, 3), CPU).tolist() == [list(pair) for pair in product(range(2), range(3))]
    assert classes((4,), CPU).tolist() == [[0], [1], [2], [3]]


def test_labels_are_the_first_dimensions_of_the_code() -> None:
    runs = Runs(M2(factors="y,size"))
    assert runs.sizes == (5, 3)
    code = runs.method.encode(runs.networks, runs.batch.images)
    assert code.mean.shape == (2, 3, 4)
    expected = [
        of.probs @ (torch.arange(float(n)) - (n - 1) / 2)
        for of, n in zip(runs.q_of_labels(runs.batch.images), (5, 3), strict=True)
    ]
    torch.testing.assert_close(code.mean[..., 0], expected[0] / math.sqrt(2))
    torch.testing.assert_close(code.mean[..., 1], expected[1] / math.sqrt(2 / 3))
    logits = runs.method.decode(runs.networks, code.mean)
    assert logits.shape == (2, 3, *TINY.shape)
    values = [
        M2().content_dimensions(9),
        M2(factors="a,b").content_dimensions(9),
        M2(factors="all").content_dimensions(9),
    ]
    assert values == [1, 2, 0]


def test_mistakes_raise_clear_errors() -> None:
    with pytest.raises(UnweaveError, match=r"at most 64; these have 120\. Choose factors of fewer values"):
        M2().networks(Blueprint([Stream.of(0)], TINY.shape, 4, label_sizes=(40, 3)))
    with pytest.raises(UnweaveError, match="labels of m2 must be at least 1"):
        M2(labels=0)
    with pytest.raises(UnweaveError, match='tiny has no factor "shape"'):
        Runs(M2(factors="shape"))
    with pytest.raises(UnweaveError, match="factors of m2 must be a text; got 1"):
        M2(factors=1)  # type: ignore[arg-type]
