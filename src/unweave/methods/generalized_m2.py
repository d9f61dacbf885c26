"""Semi-supervised models of any factorisation [1]: M2 where labels may depend on unlabelled variables.

[1] Siddharth, Paige, van de Meent, Desmaison, Goodman, Kohli, Wood, Torr: Learning disentangled
representations with semi-supervised deep generative models, NeurIPS 2017.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn

from unweave.data.supervision import Chosen
from unweave.errors import UnweaveError
from unweave.methods.method import Blueprint, Losses, Method, Player, Setting, StepContext
from unweave.methods.sampling import Labels, Sampling, label_dimensions, names_in
from unweave.methods.step import network_of
from unweave.nn.distributions.categorical import Categorical, indicators
from unweave.nn.distributions.gaussian import Gaussian
from unweave.nn.networks.graph import graph_of
from unweave.nn.networks.graph_network import GraphNetwork

MODEL = "model"


@dataclass(frozen=True)
class GeneralizedM2(Method):
    """Generalised M2: semi-supervised VAE with any factorisation of its variables.

    -ELBO(x) - gamma (sum_s w_s / W r_s + (1 + alpha) 1/S sum_s log w_s), W = sum_s w_s; [1], section 3.1.

    The second part is the loss of a labelled image with S samples z_s, with r_s = log p(x,y,z_s) /
    q(y,z_s|x); the ELBO of an unlabelled image is the mean of log p(x,y,z) / q(y,z|x) over q.

    `inference` and `generation` define the parents of each variable: see `unweave.nn.networks.graph`.
    Variables of q are sampled in its order. Known labels are inserted, and the weight of a sample is their
    probability, w_s = prod_j q(y_j | its parents). If no label has a z as its parent, all weights are the
    same, and "q(y|x) q(z|x,y)" has the labelled loss of M2. S is `samples`; an unlabelled image has one.

    Unknown labels are relaxed with the Gumbel softmax at this temperature, and log q(y) is linear between
    their values. Labels without parents in p are uniform, Gaussians normal. The labels named in `continuous`
    are Gaussian numbers instead, scaled to mean 0 and variance 1 over all values. The code has one dimension
    for each label, first, and the Gaussians in the others, as in M2.

    Differs from [1]: gamma weighs means over batches of the same size, so it is the gamma of [1] times n/N,
    for n = `labels` of N images. The defaults of samples and temperature are those of the authors' library,
    whose alpha is 0.1, for smaller images.
    """

    inference: str = "q(z|x) q(y|x,z)"
    """The factorisation of q(y, z|x)."""
    generation: str = "p(y) p(z) p(x|y,z)"
    """The factorisation of p(x, y, z)."""
    alpha: Setting = 1.0
    """Additional weight of the classification of labelled images; 0.1 in the authors' library."""
    gamma: Setting = 1.0
    """Weight of labelled images."""
    temperature: Setting = 0.66
    """Temperature of relaxed labels."""
    samples: int = 8
    """Samples of the latents for each labelled image."""
    factors: str = "class"
    """The labelled factors: names with commas between them, class (the first categorical factor), first
    or all."""
    labels: int = 1000
    """Number of labelled images."""
    continuous: str = ""
    """The labelled factors that are numbers, with Gaussian q and p: names with commas between them."""

    name: ClassVar[str] = "generalized_m2"
    own_networks: ClassVar[bool] = True
    least: ClassVar[Mapping[str, int]] = {"labels": 1, "samples": 1}
    added: ClassVar[frozenset[str]] = frozenset({"continuous"})
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
        for name in names_in(self.continuous):
            if name not in names_in(self.factors):
                raise UnweaveError(
                    f'continuous of generalized_m2 must be names of its factors, "{self.factors}", or "all" '
                    f'where these are "all"; got "{name}".'
                )

    @property
    def players(self) -> tuple[Player, ...]:
        """q and p, which share one objective."""
        return (Player(MODEL, self._model),)

    @property
    def sampling(self) -> Sampling:
        """Images, and a batch with labels of the chosen factors."""
        return Labels(self.labels, Chosen(self.factors))

    def content_dimensions(self, latents: int) -> int:  # noqa: ARG002
        """One for each labelled factor."""
        return label_dimensions(self.factors)

    def predict(self, networks: Mapping[str, nn.Module], images: Tensor) -> Tensor:
        """(P, B, k): the most likely value of each labelled factor by q at the means of other variables."""
        return network_of(networks, MODEL, GraphNetwork).predict(images)

    def losses(self, step: StepContext) -> Losses:
        """The objective of [1], negated."""
        model = step.network(MODEL, GraphNetwork)
        unknown = self._trace(model, step.batch.images, None, 1, step)
        reconstruction = -unknown.log_likelihood.mean((-2, -1))
        kl = (unknown.log_q - unknown.log_p).mean((-2, -1))

        labelled = step.labelled
        known = self._trace(model, labelled.images, labelled.labels, self.samples, step)
        ratios = known.log_likelihood + known.log_p - known.log_q
        bound, log_label = (term.mean(-1) for term in importance_weighted(known.log_weights, ratios))
        supervised = -(bound + (1 + self.alpha) * log_label)
        return Losses(
            {MODEL: reconstruction + kl + self.gamma * supervised},
            {
                "reconstruction": reconstruction,
                "kl": kl,
                "elbo": -(reconstruction + kl),
                "labelled_elbo": bound + log_label,
                "classification": -log_label,
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
            if labels is not None and node.is_label:
                label = labels[..., int(node.name[1:]) - 1]
                values[node.name] = _inserted(model, node.name, label, q, step).repeat(1, samples, 1)
                log_weights.append(log_density(q, values[node.name]))
            elif isinstance(q, Gaussian):
                noise = step.draws.normal(f"{kind} {node.name}", rows, model.widths[node.name])
                values[node.name] = q.sample(noise)
            else:
                noise = step.draws.uniform(f"{kind} {node.name}", rows, model.widths[node.name])
                values[node.name] = q.sample(noise, temperature)
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
            continuous=self._continuous(len(plan.label_sizes)),
        )

    def _continuous(self, labels: int) -> list[int]:
        """The positions of continuous labels."""
        if self.continuous == self.factors:
            return list(range(labels))
        return [names_in(self.factors).index(name) for name in names_in(self.continuous)]


@dataclass(frozen=True)
class Trace:
    """Log densities of S draws for each image, (P, S, B)."""

    log_likelihood: Tensor  # log p(x|...)
    log_p: Tensor  # log p of all other variables
    log_q: Tensor
    log_weights: Tensor  # the part of log_q that belongs to inserted labels


def importance_weighted(log_weights: Tensor, ratios: Tensor) -> tuple[Tensor, Tensor]:
    """(..., B) each, from S samples (..., S, B): sum_s w_s / W ratio_s, and the mean of log w_s.

    The first estimates the mean of the ratio over q(z|x,y), the second the mean of log q(y|x,z) over q(z|x),
    which is at most log q(y|x).
    """
    weights = log_weights.softmax(-2)
    return (weights * ratios).sum(-2), log_weights.mean(-2)


def _inserted(
    model: GraphNetwork, name: str, label: Tensor, q: Gaussian | Categorical, step: StepContext
) -> Tensor:
    """(P, B, width): the value of a known label (P, B).

    A continuous label is uniform in the cell of width 1 around its value. Otherwise its density is unbounded.
    """
    if isinstance(q, Categorical):
        return indicators(label, model.widths[name], q.log_probabilities)
    place = step.draws.uniform(f"labelled {name}", label.shape[-1], 1).squeeze(-1) - 0.5
    return model.standardised(label.to(q.mean) + place, name)


def log_density(distribution: Gaussian | Categorical, values: Tensor) -> Tensor:
    """(...): the log density of values (..., width)."""
    if isinstance(distribution, Gaussian):
        return distribution.log_density(values).sum(-1)
    return distribution.log_density(values)
