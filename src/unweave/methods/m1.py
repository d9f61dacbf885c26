"""M1 [1]: a VAE, and a classifier on its codes that does not change them.

[1] Kingma, Rezende, Mohamed, Welling: Semi-supervised learning with deep generative models, NeurIPS 2014.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn

from unweave.data.supervision import Chosen
from unweave.methods.method import AUTOENCODER, Blueprint, Losses, Method, Player, StepContext, elbo_terms
from unweave.methods.sampling import Labels, Sampling
from unweave.methods.step import network_of
from unweave.nn.distributions.categorical import indicators
from unweave.nn.layers import Linear, at_least_float32

CLASSIFIER = "classifier"
HIDDEN = 256
CITATION = """@inproceedings{kingma2014semisupervised,
  author = {Diederik P. Kingma and Danilo J. Rezende and Shakir Mohamed and Max Welling},
  title = {Semi-supervised Learning with Deep Generative Models},
  booktitle = {Advances in Neural Information Processing Systems},
  volume = {27},
  year = {2014}
}"""


class Classifier(nn.Module):
    """Codes (P, B, D) -> log-probabilities of the values of each label, (P, B, size)."""

    def __init__(self, plan: Blueprint) -> None:
        super().__init__()
        self.sizes: Sequence[int] = plan.label_sizes
        self.dense = Linear(plan.streams, "classifier.dense1", plan.latents, HIDDEN, "relu")
        self.logits = Linear(plan.streams, "classifier.logits", HIDDEN, sum(self.sizes))

    def forward(self, codes: Tensor) -> list[Tensor]:
        """One tensor per label."""
        logits = at_least_float32(self.logits(self.dense(codes)))
        return [part.log_softmax(-1) for part in logits.split(list(self.sizes), dim=-1)]


@dataclass(frozen=True)
class M1(Method):
    """M1: a VAE, and a classifier that is trained on its codes.

    rec + KL for the VAE; -sum_j log p(y_j|z), z ~ q(z|x), for a classifier; [1], section 2.1.

    The codes are those of the VAE: the labels do not change them. `factors` are the names of the labelled
    factors with commas between them, "first" or "all". The logged `accuracy` of the classifier is
    measured on the labelled points.

    Differs from [1]: the classifier is a dense layer of 256 with a softmax for each factor, where [1] has a
    transductive support vector machine; and it is trained together with the VAE, not after it.
    """

    labels: int = 1000
    """Number of labelled images."""
    factors: str = "all"
    """The labelled factors: names with commas between them, class (the first categorical factor), first
    or all."""

    name: ClassVar[str] = "m1"
    least: ClassVar[Mapping[str, int]] = {"labels": 1}
    added: ClassVar[frozenset[str]] = frozenset({"factors"})
    citation: ClassVar[str] = CITATION

    @property
    def players(self) -> tuple[Player, ...]:
        """The classifier."""
        return (Player(CLASSIFIER, Classifier),)

    @property
    def sampling(self) -> Sampling:
        """Images, and a batch with labels of the chosen factors."""
        return Labels(self.labels, Chosen(self.factors))

    def networks(self, plan: Blueprint) -> dict[str, nn.Module]:
        """The VAE's networks and the classifier."""
        return super().networks(plan) | {CLASSIFIER: Classifier(plan)}

    def predict(self, networks: Mapping[str, nn.Module], images: Tensor) -> Tensor:
        """(P, B, k): the most likely value of each labelled factor, at the mean of q(z|x)."""
        return most_likely(network_of(networks, CLASSIFIER, Classifier)(self.encode(networks, images).mean))

    def losses(self, step: StepContext) -> Losses:
        """The objectives of the VAE and of the classifier."""
        forward = step.forward
        labelled = step.labelled_codes
        noise = step.draws.normal("labelled noise", *labelled.posterior.mean.shape[-2:])
        log_probabilities_by_label = step.networks[CLASSIFIER](labelled.posterior.sample(noise).detach())
        accuracies, entropies = [], []
        for j, (size, log_probabilities) in enumerate(
            zip(labelled.sizes, log_probabilities_by_label, strict=True)
        ):
            label = labelled.labels[..., j]
            entropies.append(
                -(indicators(label, size, log_probabilities) * log_probabilities).sum(-1).mean(-1)
            )
            accuracies.append((log_probabilities.argmax(-1) == label).to(noise.dtype).mean(-1))
        classification = torch.stack(entropies).sum(0)
        return Losses(
            {AUTOENCODER: forward.reconstruction + forward.kl, CLASSIFIER: classification},
            elbo_terms(forward)
            | {"classification": classification, "accuracy": torch.stack(accuracies).mean(0)},
        )


def most_likely(log_probabilities: Sequence[Tensor]) -> Tensor:
    """(..., k): the most likely value of each label, from log-probabilities (..., size) of each."""
    return torch.stack([label.argmax(-1) for label in log_probabilities], dim=-1)
