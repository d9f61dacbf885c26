"""Semi-supervised models of any factorisation [1]: M2 where labels may depend on unlabelled variables.

[1] Siddharth, Paige, van de Meent, Desmaison, Goodman, Kohli, Wood, Torr: Learning disentangled
representations with semi-supervised deep generative models, NeurIPS 2017.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from unweave.data.supervision import Chosen
from unweave.errors import UnweaveError
from unweave.methods.method import Blueprint, Losses, Method, Player, Setting, StepContext
from unweave.methods.sampling import Labels, Sampling
from unweave.nn.distributions.categorical import Categorical, indicators
from unweave.nn.distributions.gaussian import Gaussian
from unweave.nn.networks.graph import graph_of
from unweave.nn.networks.graph_network import GraphNetwork

MODEL = "model"


@dataclass(frozen=True)
class GeneralizedM2(Method):
    """Generalised M2: semi-supervised VAE with any factorisation of its variables.

    -ELBO(x) - gamma (sum_s w_s / W r_s + (1 + alpha N/n) log(W / S)), W = sum_s w_s; [1], section 3.1.

    The second part is the loss of a labelled image with S samples z_s, with r_s = log p(x,y,z_s) /
    q(y,z_s|x); the ELBO of an unlabelled image is the mean of log p(x,y,z) / q(y,z|x) over q. N and n =
    `labels` are the numbers of all images and of the labelled ones, so alpha is that of M2.

    `inference` and `generation` define the parents of each variable: see `unweave.nn.networks.graph`.
    Variables of q are sampled in its order. Known labels are inserted, and the weight of a sample is their
    probability, w_s = prod_j q(y_j | its parents). If no label has a z as its parent, all weights are the
    same, and "q(y|x) q(z|x,y)" has the labelled loss of M2. S is `samples`; an unlabelled image has one.

    Unknown labels are relaxed with the Gumbel softmax at this temperature, and log q(y) is linear between
    their values. Labels without parents in p are uniform, Gaussians normal. The code has one dimension for
    each label, first, and the Gaussians in the others, as in M2.

    Differs from [1]: gamma weighs means over batches of the same size, and alpha is multiplied by N/n. The
    defaults of samples and temperature are those of the authors' library.
    """

    inference: str = "q(z|x) q(y|x,z)"
    generation: str = "p(y) p(z) p(x|y,z)"
    alpha: Setting = 0.1
    gamma: Setting = 1.0
    temperature: Setting = 0.66
    samples: int = 8
    factors: str = "first"
    labels: int = 1000

    name: ClassVar[str] = "generalized_m2"
    own_networks: ClassVar[bool] = True
    least: ClassVar[Mapping[str, int]] = {"labels": 1, "samples": 1}
    strength: ClassVar[str | None] = "alpha"
    citation: ClassVar[str] = """@inproceedings{siddharth2017learning,
  author = {N. Siddharth and Brooks Paige and Jan-Willem van de Meent and Alban Desmaison and
            Noah D. Goodman and Pushmeet Kohli and Frank Wood and Philip Torr},
  title = {Learning Disentangled Representations with Semi-Supervised Deep Generative Models},
  booktitle = {Advances in Neural Information Processing Systems},
  volume = {30},
  year = {2017}
}"""

    def __post_init__(self) -> None:
        super().__post_init__()
        graph_of(self.inference, self.generation)
        if not isinstance(self.temperature, Tensor) and self.temperature == 0:
            raise UnweaveError("temperature of generalized_m2 must be > 0; got 0. The default is 0.66.")

    @property
    def players(self) -> tuple[Player, ...]:
        """q and p, which share one objective."""
        return (Player(MODEL, self._model),)

    @property
    def sampling(self) -> Sampling:
        """Images, and a batch with labels of the chosen factors."""
        return Labels(self.labels, Chosen(self.factors))

    def content_dimensions(self, latents: int) -> int:  # noqa: ARG002
        """The number of labelled factors; 0 for "all", whose number only the data set knows."""
        return 0 if self.factors == "all" else len(self.factors.split(","))

    def losses(self, step: StepContext) -> Losses:
        """The objective of [1], negated."""
        model = step.network(MODEL, GraphNetwork)
        unknown = self._trace(model, step.batch.images, None, 1, step)
        reconstruction = -unknown.log_likelihood.mean((-2, -1))
        kl = (unknown.log_q - unknown.log_p).mean((-2, -1))

        labelled = step.labelled
        known = self._trace(model, labelled.images, labelled.labels, self.samples, step)
        ratios = known.log_likelihood + known.log_p - known.log_q
        bound, log_evidence = (term.mean(-1) for term in importance_weighted(known.log_weights, ratios))
        alpha = self.alpha * (step.data_size / self.labels)
        supervised = -(bound + (1 + alpha) * log_evidence)
        return Losses(
            {MODEL: reconstruction + kl + self.gamma * supervised},
            {
                "reconstruction": reconstruction,
                "kl": kl,
                "elbo": -(reconstruction + kl),
                "labelled_elbo": bound + log_evidence,
                "classification": -log_evidence,
            },
        )

    def _trace(
        self, model: GraphNetwork, images: Tensor, labels: Tensor | None, samples: int, step: StepContext
    ) -> Trace:
        """Sample the variables of q in its order; known labels (P, B, k) are inserted."""
        features = model.image_features(images).repeat(1, samples, 1)
        temperature = self.temperature
        if isinstance(temperature, Tensor):
            temperature = temperature[:, None, None]
        kind, rows = "unlabelled" if labels is None else "labelled", features.shape[1]
        values: dict[str, Tensor] = {}
        log_q, log_weights = list[Tensor](), list[Tensor]()
        for node in model.graph.inference:
            q = model.infer(node, features, values)
            if isinstance(q, Gaussian):
                noise = step.draws.normal(f"{kind} {node.name}", rows, model.widths[node.name])
                values[node.name] = q.sample(noise)
            elif labels is None:
                noise = step.draws.uniform(f"{kind} {node.name}", rows, model.widths[node.name])
                values[node.name] = q.sample(noise, temperature)
            else:
                label = labels[..., int(node.name[1:]) - 1].repeat(1, samples)
                values[node.name] = indicators(label, model.widths[node.name], q.log_probabilities)
                log_weights.append(log_density(q, values[node.name]))
            log_q.append(log_density(q, values[node.name]))
        log_p = [
            log_density(model.generate(node, values), values[node.name])
            for node in model.graph.generation[:-1]
        ]

        def total(terms: list[Tensor]) -> Tensor:
            summed = torch.stack(terms).sum(0)
            return summed.view(len(summed), samples, -1)

        return Trace(
            log_likelihood=model.log_likelihood(values, images, step.likelihood),
            log_p=total(log_p),
            log_q=total(log_q),
            log_weights=total(log_weights or [torch.zeros_like(log_q[0])]),
        )

    def _model(self, plan: Blueprint) -> GraphNetwork:
        graph = graph_of(self.inference, self.generation)
        return GraphNetwork(
            plan.streams,
            plan.shape,
            plan.latents,
            plan.architecture,
            graph,
            plan.label_sizes,
            plan.likelihood,
        )


@dataclass(frozen=True)
class Trace:
    """Log densities of S draws for each image, (P, S, B)."""

    log_likelihood: Tensor  # log p(x|...)
    log_p: Tensor  # log p of all other variables
    log_q: Tensor
    log_weights: Tensor  # the part of log_q that belongs to inserted labels


def importance_weighted(log_weights: Tensor, ratios: Tensor) -> tuple[Tensor, Tensor]:
    """(..., B) each, from S samples (..., S, B): sum_s w_s / W ratio_s, and log(W / S).

    The first estimates the mean of the ratio over q(z|x,y), the second log q(y|x), both from z ~ q(z|x).
    """
    weights = log_weights.softmax(-2)
    return (weights * ratios).sum(-2), log_weights.logsumexp(-2) - math.log(log_weights.shape[-2])


def log_density(distribution: Gaussian | Categorical, values: Tensor) -> Tensor:
    """(...): the log density of values (..., width)."""
    if isinstance(distribution, Gaussian):
        return distribution.log_density(values).sum(-1)
    return distribution.log_density(values)
