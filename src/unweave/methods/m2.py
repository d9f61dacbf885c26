"""M2 [1]: a semi-supervised VAE with one categorical variable per labelled factor.

[1] Kingma, Rezende, Mohamed, Welling: Semi-supervised learning with deep generative models, NeurIPS 2014.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol

import torch
from torch import Tensor, nn

from unweave.data.supervision import Chosen
from unweave.errors import UnweaveError
from unweave.methods.m1 import CITATION
from unweave.methods.method import Blueprint, Losses, Method, Player, Setting, StepContext
from unweave.methods.sampling import Labels, Sampling, label_dimensions
from unweave.methods.step import network_of
from unweave.nn.distributions.categorical import Categorical, indicators
from unweave.nn.distributions.gaussian import Gaussian
from unweave.nn.layers import at_least_float32
from unweave.nn.networks.graph import LABELS, graph_of
from unweave.nn.networks.graph_network import GraphNetwork

MODEL = "model"
GRAPH = graph_of("q(y|x) q(z|x,y)", "p(y) p(z) p(x|y,z)")
MOST_CLASSES = 64  # each needs a pass through the decoder


@dataclass(frozen=True)
class M2(Method):
    """M2: semi-supervised VAE with a categorical variable per labelled factor.

    N/(N+n) U(x) + n/(N+n) L(x, y) - alpha log q(y|x), for an image x and a labelled (x, y); [1], equation 9.

    L(x, y) = E_{q(z|x,y)} [-log p(x|y,z)] + KL(q(z|x,y) || p(z)) - log p(y), and
    U(x) = sum_y q(y|x) (L(x, y) + log q(y|x)), over all classes: the combinations of values of the labelled
    `factors`, each a categorical variable with a uniform prior. z is normal. N is the number of images of the
    data set, and n = `labels` that of the labelled ones. This is the objective of the authors' code: sums
    over both sets, with alpha (N+n)/n on the classification of each labelled image, divided by N + n. Their
    alpha is 0.1, for images of 784 pixels; bounds are sums over pixels, and images have 4,096 here.

    The code has one dimension for each labelled factor, first, and z in the others: the expected number of
    the value, scaled to mean 0 and variance 1 over all values. z is that of q(z|x,y) at y = q(y|x). As in
    [1], q(y|x) shares no weights with q(z|x,y).

    Differs from [1]: all classes of an image get the same noise, which makes the comparison of classes less
    noisy and has the same expectation.
    """

    alpha: Setting = 1.0
    """Weight of the classification of labelled images; 0.1 in the paper."""
    factors: str = "class"
    """The labelled factors: names with commas between them, class (the first categorical factor), first
    or all."""
    labels: int = 1000
    """Number of labelled images."""

    name: ClassVar[str] = "m2"
    own_networks: ClassVar[bool] = True
    least: ClassVar[Mapping[str, int]] = {"labels": 1}
    strength: ClassVar[str | None] = "alpha"
    citation: ClassVar[str] = CITATION

    @property
    def players(self) -> tuple[Player, ...]:
        """q and p, which share one objective."""
        return (Player(MODEL, _model),)

    @property
    def sampling(self) -> Sampling:
        """Images, and a batch with labels of the chosen factors."""
        return Labels(self.labels, Chosen(self.factors))

    def content_dimensions(self, latents: int) -> int:  # noqa: ARG002
        """One for each labelled factor."""
        return label_dimensions(self.factors)

    def predict(self, networks: Mapping[str, nn.Module], images: Tensor) -> Tensor:
        """(P, B, k): the most likely value of each labelled factor by q(y|x), for images (P, B, c, h, w)."""
        return network_of(networks, MODEL, GraphNetwork).predict(images)

    def losses(self, step: StepContext) -> Losses:
        """The objective of [1], negated."""
        model = ImageModel(step.network(MODEL, GraphNetwork), step.likelihood)
        bounds = bounds_of(model, step.batch.images, step.labelled.images, step)
        terms = {
            "reconstruction": bounds.reconstruction,
            "kl": bounds.kl,
            "elbo": -(bounds.reconstruction + bounds.kl),
            "labelled_elbo": -bounds.labelled,
            "classification": bounds.classification,
        }
        return Losses({MODEL: bounds.objective(self.alpha, self.labels, step.data_size)}, terms)


class ClassModel(Protocol):
    """q(y|x), q(z|x,y) and p(x|y,z) of M2; x are images, or codes of another model."""

    @property
    def sizes(self) -> tuple[int, ...]:
        """How many values each label has."""

    def features(self, x: Tensor) -> Tensor:
        """(P, B, width): what q(z|x,y) uses of x."""

    def label_posteriors(self, x: Tensor, features: Tensor) -> list[Categorical]:
        """q(y_j|x) of each label."""

    def latent_posterior(self, features: Tensor, labels: Sequence[Tensor]) -> Gaussian:
        """q(z|x,y) for indicators (P, B, size) of each label."""

    def log_likelihood(self, labels: Sequence[Tensor], z: Tensor, x: Tensor) -> Tensor:
        """(P, S, B): log p(x|y,z) of x (P, B, ...), for S values of y and z each, (P, S x B, width)."""


@dataclass(frozen=True)
class ImageModel:
    """The model of images: a GraphNetwork."""

    network: GraphNetwork
    likelihood: str

    @property
    def sizes(self) -> tuple[int, ...]:
        """How many values each label has."""
        return self.network.sizes

    def features(self, x: Tensor) -> Tensor:
        """Features of images."""
        return self.network.image_features(x)

    def label_posteriors(self, x: Tensor, features: Tensor) -> list[Categorical]:
        """q(y_j|x) of each label."""
        label_features = self.network.label_features(x, features)
        return [
            self.network.infer_label(node, label_features, {}) for node in self.network.graph.inference[:-1]
        ]

    def latent_posterior(self, features: Tensor, labels: Sequence[Tensor]) -> Gaussian:
        """q(z|x,y)."""
        return self.network.infer_latent(self.network.graph.inference[-1], features, _named(labels))

    def log_likelihood(self, labels: Sequence[Tensor], z: Tensor, x: Tensor) -> Tensor:
        """log p(x|y,z)."""
        return self.network.log_likelihood(_named(labels) | {"z": z}, x, self.likelihood)


@dataclass(frozen=True)
class Bounds:
    """The terms of M2, means over a batch, (P,) each."""

    reconstruction: Tensor  # of unlabelled x
    kl: Tensor  # KL(q(y, z|x) || p(y) p(z)) of unlabelled x
    labelled: Tensor  # L(x, y)
    classification: Tensor  # -log q(y|x) of labelled x

    def objective(self, alpha: Setting, labels: int, data_size: int) -> Tensor:
        """The objective of [1] as the authors' code weighs it; `labels` of the x have labels."""
        share = labels / (data_size + labels)
        unlabelled = self.reconstruction + self.kl
        return (1 - share) * unlabelled + share * self.labelled + alpha * self.classification


def bounds_of(model: ClassModel, unlabelled: Tensor, labelled: Tensor, step: StepContext) -> Bounds:
    """Both bounds of M2, for a batch of unlabelled x and one of x with the labels of the step."""
    choices = classes(model.sizes, unlabelled.device)
    features = model.features(unlabelled)
    log_q = _log_q(model.label_posteriors(unlabelled, features), choices[None, None])  # (P, B, classes)
    runs, images = unlabelled.shape[:2]
    of_classes = choices[None, :, None].expand(runs, -1, images, -1)
    rec, kl = _latent_terms(model, unlabelled, features, of_classes, step, "unlabelled")
    reconstruction, divergence = marginalised(log_q, rec.transpose(1, 2), kl.transpose(1, 2))

    labels, features = step.labelled.labels, model.features(labelled)
    rec, kl = _latent_terms(model, labelled, features, labels.unsqueeze(1), step, "labelled")
    bound = (rec + kl).squeeze(1) + math.log(len(choices))
    classification = -_log_q(model.label_posteriors(labelled, features), labels.unsqueeze(-2)).squeeze(-1)
    return Bounds(*(term.mean(-1) for term in (reconstruction, divergence, bound, classification)))


def _latent_terms(
    model: ClassModel, x: Tensor, features: Tensor, labels: Tensor, step: StepContext, purpose: str
) -> tuple[Tensor, Tensor]:
    """-log p(x|y,z) and KL(q(z|x,y) || p(z)), (P, n, B) each, for labels (P, n, B, k)."""
    count, flat, like = labels.shape[1], labels.flatten(1, 2), at_least_float32(features[..., :1])
    values = [indicators(flat[..., j], size, like) for j, size in enumerate(model.sizes)]
    q = model.latent_posterior(features.repeat(1, count, 1), values)
    noise = step.draws.normal(f"{purpose} z", x.shape[1], q.mean.shape[-1])
    rec = -model.log_likelihood(values, q.sample(noise.repeat(1, count, 1)), x)
    return rec, q.kl().unflatten(1, (count, -1))


def _log_q(posteriors: Sequence[Categorical], labels: Tensor) -> Tensor:
    """log q(y|x) of labels (P or 1, B or 1, n, k), (P, B, n)."""
    return torch.stack(
        [
            q.log_probabilities.gather(-1, labels[..., j].expand(*q.log_probabilities.shape[:-1], -1))
            for j, q in enumerate(posteriors)
        ]
    ).sum(0)


def _named(labels: Sequence[Tensor]) -> dict[str, Tensor]:
    return {f"{LABELS}{number}": label for number, label in enumerate(labels, 1)}


def marginalised(log_q: Tensor, reconstruction: Tensor, kl: Tensor) -> tuple[Tensor, Tensor]:
    """(...): expected reconstruction and KL(q(y, z|x) || p(y) p(z)) over K classes; all (..., K)."""
    q = log_q.exp()
    of_label = log_q + math.log(log_q.shape[-1])
    return (q * reconstruction).sum(-1), (q * (kl + of_label)).sum(-1)


def classes(sizes: Sequence[int], device: torch.device) -> Tensor:
    """(K, k): all combinations of values of labels."""
    values = [torch.arange(size, device=device) for size in sizes]
    return torch.cartesian_prod(*values).view(-1, len(sizes))


def check_classes(name: str, sizes: Sequence[int]) -> None:
    """Refuse labels of too many classes."""
    count = math.prod(sizes)
    if count > MOST_CLASSES:
        raise UnweaveError(
            f"{name} sums over all classes of its factors, at most {MOST_CLASSES}; these have {count:,}. "
            "Choose factors of fewer values, or take generalized_m2."
        )


def _model(plan: Blueprint) -> GraphNetwork:
    check_classes(M2.name, plan.label_sizes)
    return GraphNetwork(
        plan.streams,
        plan.shape,
        plan.latents,
        plan.architecture,
        GRAPH,
        plan.label_sizes,
        plan.likelihood,
        own_label_features=True,
    )
