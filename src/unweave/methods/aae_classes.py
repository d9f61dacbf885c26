"""Adversarial autoencoders with classes [1]: from a few labels, from none, or as heads of clusters.

[1] Makhzani, Shlens, Jaitly, Goodfellow, Frey: Adversarial autoencoders, 2015.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar

import torch

from unweave.data.supervision import Chosen
from unweave.errors import UnweaveError
from unweave.methods.aae import CITATION
from unweave.methods.method import AUTOENCODER, Adam, Blueprint, Losses, Method, Player, Setting, StepContext
from unweave.methods.sampling import Labels
from unweave.nn.distributions.divergences import judge
from unweave.nn.networks.classes import ClassAutoencoder, one_hot
from unweave.nn.networks.vae import Discriminator

STYLE, CLASSES = "style_discriminator", "class_discriminator"


@dataclass(frozen=True)
class AAELabels(Method):
    """Adversarial autoencoder with a class variable learned from some labels.

    rec + w (style and class look like their priors) + label_weight cross-entropy; [1], section 5.

    The encoder outputs a style z and probabilities y of K classes, the values of a `factor` of the data; the
    decoder gets both. Two discriminators separate z from draws of N(0, I), and y from one-hot draws of the K
    classes. The cross-entropy is -mean log y_label over a batch from the `labelled` images. It ties the
    classes to the labels.

    A code is latents - 1 numbers of style and the number of the likeliest class: the classes, 0 to K - 1,
    shifted and scaled to mean 0 and variance 1. It is decoded with the nearest class.

    Differs from [1] as the plain form does (aae.py): all players are updated at once, by Adam. Each step has
    a batch of labelled images, instead of a separate training phase.
    """

    adversarial_weight: Setting = 10.0
    label_weight: Setting = 10.0
    labelled: int = 1000
    factor: str = "first"

    name: ClassVar[str] = "aae_labels"
    own_networks: ClassVar[bool] = True
    least: ClassVar[Mapping[str, int]] = {"labelled": 1}
    strength: ClassVar[str | None] = "label_weight"
    citation: ClassVar[str] = CITATION

    @property
    def sampling(self) -> Labels:
        """Images, and some with labels."""
        return Labels(self.labelled, Chosen(self.factor))

    @property
    def players(self) -> tuple[Player, ...]:
        """The autoencoder, and the discriminators of style and class."""
        return _players(lambda plan: (_style(plan), _values(plan)))

    @property
    def stochastic(self) -> bool:
        """No code is drawn."""
        return False

    def losses(self, step: StepContext) -> Losses:
        """The objectives of all three."""
        unsupervised = _adversarial_losses(step, self.adversarial_weight)
        _, logits = step.network(AUTOENCODER, ClassAutoencoder).split(step.labelled.images)
        labels = step.labelled.labels
        entropy = -logits.log_softmax(-1).gather(-1, labels).mean((-2, -1))
        right = (logits.argmax(-1, keepdim=True) == labels).to(entropy.dtype).mean((-2, -1))
        players = dict(unsupervised.players)
        players[AUTOENCODER] = players[AUTOENCODER] + self.label_weight * entropy
        terms = {"cross_entropy": entropy, "label_accuracy": right}
        return Losses(players, dict(unsupervised.terms) | terms)


@dataclass(frozen=True)
class AAEClusters(Method):
    """Adversarial autoencoder with a class variable learned without labels.

    rec + w (style and class look like their priors): classes without labels; [1], section 6.

    As `AAELabels`, but without labels: the classes are `clusters` that the autoencoder learns unsupervised.
    A code is latents - 1 numbers of style and the number of the likeliest cluster, scaled as in `AAELabels`.
    """

    adversarial_weight: Setting = 10.0
    clusters: int = 16

    name: ClassVar[str] = "aae_clusters"
    own_networks: ClassVar[bool] = True
    least: ClassVar[Mapping[str, int]] = {"clusters": 2}
    strength: ClassVar[str | None] = "adversarial_weight"
    citation: ClassVar[str] = CITATION

    @property
    def players(self) -> tuple[Player, ...]:
        """The autoencoder, and the discriminators of style and class."""
        return _players(lambda plan: (_style(plan), self.clusters))

    @property
    def stochastic(self) -> bool:
        """No code is drawn."""
        return False

    def losses(self, step: StepContext) -> Losses:
        """The objectives of all three."""
        return _adversarial_losses(step, self.adversarial_weight)


@dataclass(frozen=True)
class AAEHeads(Method):
    """Adversarial autoencoder whose clusters each have a learned centre.

    Each cluster has a head in the space of codes: the code is z + y W; [1], section 7.

    z and y are those of `AAEClusters`; the rows of W are the learned heads. Two heads i, j that are closer
    than eta cost heads_weight (eta - |W_i - W_j|), summed over all pairs, which pushes them apart up to eta.

    A code is z + y W, in `latents` dimensions, and the only input of the decoder.

    [1] gives no value of eta; 6 leaves three standard deviations of the style on either side.
    """

    adversarial_weight: Setting = 10.0
    heads_weight: Setting = 10.0
    eta: Setting = 6.0
    clusters: int = 20

    name: ClassVar[str] = "aae_heads"
    own_networks: ClassVar[bool] = True
    least: ClassVar[Mapping[str, int]] = {"clusters": 2}
    strength: ClassVar[str | None] = "eta"
    citation: ClassVar[str] = CITATION

    @property
    def players(self) -> tuple[Player, ...]:
        """The autoencoder with the heads, and the discriminators of style and class."""
        return _players(lambda plan: (plan.latents, self.clusters), heads=True)

    @property
    def stochastic(self) -> bool:
        """No code is drawn."""
        return False

    def losses(self, step: StepContext) -> Losses:
        """The objectives of all three."""
        unsupervised = _adversarial_losses(step, self.adversarial_weight)
        crowding = step.network(AUTOENCODER, ClassAutoencoder).crowding(self.eta)
        players = dict(unsupervised.players)
        players[AUTOENCODER] = players[AUTOENCODER] + self.heads_weight * crowding
        return Losses(players, dict(unsupervised.terms) | {"crowding": crowding})


def _adversarial_losses(step: StepContext, weight: Setting) -> Losses:
    """The losses that the three forms share."""
    network, images = step.network(AUTOENCODER, ClassAutoencoder), step.batch.images
    rows, (style, logits) = images.shape[-4], network.split(images)
    classes = logits.softmax(-1)
    code = network.joined(style, classes)
    reconstruction = network.decoder.reconstruction(code, images, step.likelihood)
    drawn = step.draws.integers("class prior", rows, [network.classes])
    of_style = judge(step.networks[STYLE], style, step.draws.normal("style prior", rows, network.style))
    of_class = judge(step.networks[CLASSES], classes, one_hot(drawn, network.classes, classes.dtype))
    exposure = of_style.exposure + of_class.exposure
    players = {
        AUTOENCODER: reconstruction + weight * exposure,
        STYLE: of_style.loss,
        CLASSES: of_class.loss,
    }
    share = classes.mean(-2)
    terms = {
        "reconstruction": reconstruction,
        "adversarial": exposure,
        "style_accuracy": of_style.accuracy,
        "class_accuracy": of_class.accuracy,
        "class_entropy": -torch.xlogy(share, share).sum(-1),
    }
    return Losses(players, terms)


def _players(sizes: Callable[[Blueprint], tuple[int, int]], heads: bool = False) -> tuple[Player, ...]:
    """The autoencoder, with the run's learning rate, and two discriminators; `sizes` of style and class."""
    adam = Adam(learning_rate=1e-4, beta1=0.5, beta2=0.9, epsilon=1e-8)

    def autoencoder(plan: Blueprint) -> ClassAutoencoder:
        return ClassAutoencoder(
            plan.streams, plan.shape, *sizes(plan), plan.architecture, heads, plan.likelihood
        )

    def of_style(plan: Blueprint) -> Discriminator:
        return Discriminator(plan.streams, sizes(plan)[0], depth=2)

    def of_class(plan: Blueprint) -> Discriminator:
        # Separate streams: the layers of both discriminators have the same names.
        streams = [stream.child("class discriminator") for stream in plan.streams]
        return Discriminator(streams, sizes(plan)[1], depth=2)

    return Player(AUTOENCODER, autoencoder), Player(STYLE, of_style, adam), Player(CLASSES, of_class, adam)


def _style(plan: Blueprint) -> int:
    """Dimensions of style where one of the code is the class."""
    if plan.latents < 2:
        raise UnweaveError("a code of style and class has at least 2 latents; got 1. Take more latents.")
    return plan.latents - 1


def _values(plan: Blueprint) -> int:
    """How many classes the labels have."""
    if len(plan.label_sizes) != 1 or plan.label_sizes[0] < 2:
        raise UnweaveError(
            "factor of aae_labels must name one factor with at least two values; those it names have "
            f"{list(plan.label_sizes)}."
        )
    return plan.label_sizes[0]
