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
from unweave.methods.m2 import MODEL, Bounds, bounds_of, classes, marginalised
from unweave.methods.method import Batch, Blueprint
from unweave.methods.step import LabelledBatch
from unweave.nn.distributions.gaussian import Gaussian
from unweave.nn.draws import PopulationDraws
from unweave.nn.layers import as_numbers
from unweave.nn.networks.feature_model import FeatureModel
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
        assert self.model.classifier is not None
        features = self.model.classifier.features(images)
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
    noise = runs.draws.normal("unlabelled z", 3, width)  # the same for all classes
    q = runs.q_of_labels(runs.batch.images)
    unlabelled = torch.zeros(2, 3)
    for label in combinations:
        bound = runs.bound(runs.batch.images, label, noise)
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
    objective = authors_objective(-labelled, -missed, -unlabelled, 20, 60, 3.0)
    torch.testing.assert_close(losses.players[MODEL], objective, rtol=1e-4, atol=1e-3)


def authors_objective(
    labelled: Tensor, log_q: Tensor, unlabelled: Tensor, n_labelled: int, n_unlabelled: int, alpha: float
) -> Tensor:
    """(P,): what learn_yz_x_ss.py of github.com/dpkingma/nips14-ssl minimises, for bounds (P, B) of batches.

    There, a labelled batch is n_labelled / M images and an unlabelled one n_unlabelled / M. Bounds are summed
    over both, log q(y|x) times beta, and the sum times M is divided by the number of all images.
    """
    total = n_labelled + n_unlabelled
    beta = alpha * total / n_labelled
    sum_labelled = (labelled + beta * log_q).sum(-1) * (n_labelled / labelled.shape[-1])
    sum_unlabelled = unlabelled.sum(-1) * (n_unlabelled / unlabelled.shape[-1])
    return (sum_labelled + sum_unlabelled) / -total


@pytest.mark.parametrize(("labels", "images"), [(1000, 737_280), (100, 5400), (3000, 60)])
def test_gradients_of_the_terms_are_those_of_the_authors(labels: int, images: int) -> None:
    """With their alpha and 1,000 labels of dSprites, classification weighs 0.1 of the unlabelled bound."""
    ours = [torch.full((2,), value, requires_grad=True) for value in (100.0, 10.0, 120.0, 1.0)]
    gradients = torch.autograd.grad(Bounds(*ours).objective(0.1, labels, images).sum(), ours)
    theirs = [torch.full((2, 5), value, requires_grad=True) for value in (-120.0, -1.0, -110.0)]
    objective = authors_objective(theirs[0], theirs[1], theirs[2], labels, images, 0.1)
    expected = torch.autograd.grad(objective.sum(), theirs)
    labelled, classification, unlabelled = (-gradient.sum(-1) for gradient in expected)
    for actual, wanted in zip(gradients, (unlabelled, unlabelled, labelled, classification), strict=True):
        torch.testing.assert_close(actual, wanted)
    if labels == 1000:
        assert (gradients[3] / gradients[0]).tolist() == pytest.approx([0.1, 0.1], rel=2e-3)


def test_the_classifier_shares_no_weights_with_the_rest() -> None:
    runs = Runs(M2(labels=20))
    [q] = runs.q_of_labels(runs.batch.images)
    used = torch.autograd.grad(q.logits.sum(), list(runs.model.parameters()), allow_unused=True)
    names = [name for name, _ in runs.model.named_parameters()]
    moved = {name for name, gradient in zip(names, used, strict=True) if gradient is not None}
    assert moved == {name for name in names if name.startswith(("classifier.", "inference.y1."))}
    predicted = runs.method.predict(runs.networks, runs.batch.images)
    assert predicted.tolist() == q.probs.argmax(-1, keepdim=True).tolist()


def clusters(stream: Stream, n: int) -> tuple[Tensor, Tensor]:
    """Numbers (n, 8) in four flat clusters, each with its own two directions of style, and the clusters."""
    label = torch.from_numpy(stream.child("label").integers(n, [4])[:, 0])
    centres, styles = (
        torch.from_numpy(Stream.of(5).child(name).normal(4, 16)) for name in ("centre", "style")
    )
    style = torch.from_numpy(stream.child("style").normal(n, 2)).unsqueeze(-1)
    directions = styles[label].unflatten(-1, (2, 8))
    noise = torch.from_numpy(stream.child("noise").normal(n, 8))
    return (1.5 * centres[label, :8] + (0.7 * style * directions).sum(1) + 0.1 * noise).float(), label


def test_unlabelled_data_improve_on_a_classifier_of_the_same_labels() -> None:
    """The paper's claim, on clusters with 12 labels: alpha 0.1, the default, and the classifier alone."""
    (unlabelled, _), (labelled, labels), (test, truth) = (
        clusters(Stream.of(seed), n) for seed, n in ((1, 3000), (2, 12), (3, 1000))
    )
    streams = [Stream.of(0)] * 3
    model = FeatureModel(streams, 8, 5, (4,))
    optimiser = torch.optim.Adam(model.parameters(), lr=1e-3)
    alpha, weight = torch.tensor([0.1, M2().alpha, 1.0]), torch.tensor([1.0, 1.0, 0.0])
    for step in range(400):
        draws = PopulationDraws(streams, torch.tensor(step))
        images = unlabelled[draws.integers("images", 32, [3000])[..., 0]]
        index = draws.integers("labelled", 32, [12])[..., 0]
        batch = Batch(images, None, LabelledBatch(labelled[index], labels[index].unsqueeze(-1), index))
        context = own_step(step, 3000, draws)(batch, {})
        bounds = bounds_of(model, images, labelled[index], context)
        whole = bounds.objective(alpha, 12, 3000)
        objective = weight * whole + (1 - weight) * bounds.classification
        optimiser.zero_grad()
        objective.sum().backward()
        optimiser.step()
    with torch.no_grad():
        [q] = model.label_posteriors(test.expand(3, -1, -1), test)
    few, more, alone = (q.log_probabilities.argmax(-1) == truth).double().mean(-1).tolist()
    assert more > 0.97
    assert more > alone + 0.03
    assert few > 0.5, "a quarter is chance"


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
