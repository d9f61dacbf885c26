"""M2 [1]: a semi-supervised VAE with one categorical variable per labelled factor.

[1] Kingma, Rezende, Mohamed, Welling: Semi-supervised learning with deep generative models, NeurIPS 2014.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from unweave.data.supervision import Chosen
from unweave.errors import UnweaveError
from unweave.methods.m1 import CITATION
from unweave.methods.method import Blueprint, Losses, Method, Player, Setting, StepContext
from unweave.methods.sampling import Labels, Sampling
from unweave.nn.distributions.categorical import indicators
from unweave.nn.networks.graph import graph_of
from unweave.nn.networks.graph_network import GraphNetwork

MODEL = "model"
GRAPH = graph_of("q(y|x) q(z|x,y)", "p(y) p(z) p(x|y,z)")
MOST_CLASSES = 64  # each needs a pass through the decoder


@dataclass(frozen=True)
class M2(Method):
    """M2: semi-supervised VAE with a categorical variable per labelled factor.

    U(x) + L(x, y) - alpha N/n log q(y|x), for an unlabelled x and a labelled (x, y); [1], equation 9.

    L(x, y) = E_{q(z|x,y)} [-log p(x|y,z)] + KL(q(z|x,y) || p(z)) - log p(y), and
    U(x) = sum_y q(y|x) (L(x, y) + log q(y|x)), over all classes: the combinations of values of the labelled
    `factors`, each a categorical variable with a uniform prior. z is normal. N is the number of images of the
    data set, and n = `labels` that of the labelled ones; the authors' code interprets alpha = 0.1 N this way.

    The code has one dimension for each labelled factor, first, and z in the others: the expected number of
    the value, scaled to mean 0 and variance 1 over all values. z is that of q(z|x,y) at y = q(y|x).

    Differs from [1]: a labelled and an unlabelled batch have the same weight, so the labelled set as a whole
    weighs as much as all other images.
    """

    alpha: Setting = 0.1
    factors: str = "first"
    labels: int = 1000

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
        """The number of labelled factors; 0 for "all", whose number only the data set knows."""
        return 0 if self.factors == "all" else len(self.factors.split(","))

    def losses(self, step: StepContext) -> Losses:
        """The objective of [1], negated."""
        model, images = step.network(MODEL, GraphNetwork), step.batch.images
        unlabelled = _Bounds(model, images, step, "unlabelled")
        choices = classes(model.sizes, images.device)
        log_q = unlabelled.log_q(choices.unsqueeze(0).unsqueeze(0))  # (P, B, classes)
        rec, kl = (term.transpose(1, 2) for term in unlabelled.of_classes(choices))
        reconstruction, divergence = marginalised(log_q, rec, kl)

        labels = step.labelled.labels
        labelled = _Bounds(model, step.labelled.images, step, "labelled")
        labelled_rec, labelled_kl = labelled.of_labels(labels)
        bound = labelled_rec + labelled_kl + math.log(len(choices))
        classification = -labelled.log_q(labels.unsqueeze(-2)).squeeze(-1)
        alpha = self.alpha * (step.data_size / self.labels)
        unlabelled_loss = (reconstruction + divergence).mean(-1)
        objective = unlabelled_loss + bound.mean(-1) + alpha * classification.mean(-1)
        terms = {
            "reconstruction": reconstruction,
            "kl": divergence,
            "elbo": -(reconstruction + divergence),
            "labelled_elbo": -bound,
            "classification": classification,
        }
        return Losses({MODEL: objective}, {name: term.mean(-1) for name, term in terms.items()})


class _Bounds:
    """-log p(x|y,z) and KL(q(z|x,y) || p(z)) of some images, for any y."""

    def __init__(self, model: GraphNetwork, images: Tensor, step: StepContext, purpose: str) -> None:
        self.model, self.images, self.step, self.purpose = model, images, step, purpose
        self.features = model.image_features(images)
        *labels, self.z = model.graph.inference
        self.q = [model.infer_label(node, self.features, {}) for node in labels]

    def log_q(self, labels: Tensor) -> Tensor:
        """log q(y|x) of labels (P or 1, B or 1, n, k), (P, B, n)."""
        return torch.stack(
            [
                q.log_probabilities.gather(-1, labels[..., j].expand(*q.log_probabilities.shape[:-1], -1))
                for j, q in enumerate(self.q)
            ]
        ).sum(0)

    def of_classes(self, choices: Tensor) -> tuple[Tensor, Tensor]:
        """Both terms, (P, n, B), for each of n classes (n, k)."""
        runs, images = self.images.shape[:2]
        return self._terms(choices[None, :, None].expand(runs, -1, images, -1))

    def of_labels(self, labels: Tensor) -> tuple[Tensor, Tensor]:
        """Both terms, (P, B), for one label per image, (P, B, k)."""
        rec, kl = self._terms(labels.unsqueeze(1))
        return rec.squeeze(1), kl.squeeze(1)

    def _terms(self, labels: Tensor) -> tuple[Tensor, Tensor]:
        """(P, n, B) each, for labels (P, n, B, k)."""
        count = labels.shape[1]
        flat = labels.flatten(1, 2)
        features = self.features.repeat(1, count, 1)
        values = {
            f"y{j + 1}": indicators(flat[..., j], size, q.log_probabilities)
            for j, (size, q) in enumerate(zip(self.model.sizes, self.q, strict=True))
        }
        q = self.model.infer_latent(self.z, features, values)
        values["z"] = q.sample(self.step.draws.normal(f"{self.purpose} z", *q.mean.shape[1:]))
        rec = -self.model.log_likelihood(values, self.images, self.step.likelihood)
        return rec, q.kl().unflatten(1, (count, -1))


def marginalised(log_q: Tensor, reconstruction: Tensor, kl: Tensor) -> tuple[Tensor, Tensor]:
    """(...): expected reconstruction and KL(q(y, z|x) || p(y) p(z)) over K classes; all (..., K)."""
    q = log_q.exp()
    of_label = log_q + math.log(log_q.shape[-1])
    return (q * reconstruction).sum(-1), (q * (kl + of_label)).sum(-1)


def classes(sizes: Sequence[int], device: torch.device) -> Tensor:
    """(K, k): all combinations of values of labels."""
    values = [torch.arange(size, device=device) for size in sizes]
    return torch.cartesian_prod(*values).view(-1, len(sizes))


def _model(plan: Blueprint) -> GraphNetwork:
    count = math.prod(plan.label_sizes)
    if count > MOST_CLASSES:
        raise UnweaveError(
            f"m2 sums over all classes of its factors, at most {MOST_CLASSES}; these have {count:,}. Choose "
            "factors of fewer values, or take generalized_m2."
        )
    return GraphNetwork(
        plan.streams,
        plan.shape,
        plan.latents,
        plan.architecture,
        GRAPH,
        plan.label_sizes,
        plan.likelihood,
    )
