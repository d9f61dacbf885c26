"""Adversarial autoencoders with classes [1]: from labels, from a few labels, from none, or with heads.

[1] Makhzani, Shlens, Jaitly, Goodfellow, Frey: Adversarial autoencoders, 2015.
[2] Sønderby, Caballero, Theis, Shi, Huszár: Amortised MAP inference for image super-resolution, ICLR 2017.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from unweave.data.supervision import Chosen
from unweave.errors import UnweaveError
from unweave.methods.aae import (
    DISCRIMINATOR_ADAM,
    ENCODER_ADAM,
    REGULARISER,
    AdversarialAutoencoder,
    label_count,
)
from unweave.methods.method import (
    AUTOENCODER,
    Blueprint,
    Losses,
    Phase,
    Player,
    Setting,
    StepContext,
)
from unweave.methods.sampling import Labels
from unweave.nn.distributions.divergences import Verdict, judge
from unweave.nn.networks.classes import ClassAutoencoder, class_blocks, one_hot
from unweave.nn.networks.vae import Discriminator

STYLE, CLASSES, LABELS = "style_discriminator", "class_discriminator", "labels"
# With the usual 1e-4, 30,000 steps reconstruct glyphs badly.
RUN_DEFAULTS: Mapping[str, Any] = {"learning_rate": 1e-3}


@dataclass(frozen=True)
class ClassAAE(AdversarialAutoencoder):
    """Adversarial autoencoders with classes, whose codes are deterministic."""

    @property
    def stochastic(self) -> bool:
        """No code is drawn."""
        return False


@dataclass(frozen=True)
class AAELabels(ClassAAE):
    """Adversarial autoencoder with a class variable learned from some labels.

    Updates with an optimiser each, in this order; [1], section 5:
    1. encoder and decoder minimise rec; two discriminators separate the style z from draws of N(0, I), and
    the class y from one-hot draws of K classes; the encoder minimises the cross-entropy -mean log y_label of
    a batch from the `labelled` images, which ties the classes to the labels.
    2. the encoder minimises -mean log(1 - D(z)) - mean log(1 - D(y)) against both discriminators.

    The encoder outputs a style z and probabilities y of K classes, the values of a `factor` of the data; the
    decoder gets both. The learning rate of the second update is adversarial_rate times 1e-4, that of the
    discriminators 3e-4, and that of the cross-entropy label_rate times the run's.

    The discriminator of classes gets y and one-hot draws with Gaussian noise of standard deviation
    class_noise [2]. Without noise it separates every y that is not exactly one-hot from the draws. The
    encoder then makes all images certain before it can spread them over the classes, and the gradient of the
    softmax vanishes with all images in one class.

    A code is latents - 1 numbers of style and the number of the likeliest class: the classes, 0 to K - 1,
    shifted and scaled to mean 0 and variance 1. It is decoded with the nearest class.

    Differs from [1] as the plain form does (aae.py), and by class_noise.
    """

    adversarial_rate: Setting = 1.0
    """Learning rate of the regularisation, in units of 1e-4."""
    label_rate: Setting = 1.0
    """Learning rate of the cross-entropy relative to the run's."""
    class_noise: Setting = 0.5
    """Standard deviation of the noise of classes before their discriminator."""
    labelled: int = 1000
    """Images with labels; the paper has 100 and 1,000 of MNIST."""
    factor: str = "class"
    """The name of the factor that is the class; class: the first categorical factor; first: the first
    factor."""

    name: ClassVar[str] = "aae_labels"
    run_defaults: ClassVar[Mapping[str, Any]] = RUN_DEFAULTS
    least: ClassVar[Mapping[str, int]] = {"labelled": 1}
    renamed: ClassVar[Mapping[str, str]] = {
        "adversarial_weight": "adversarial_rate",
        "label_weight": "label_rate",
    }
    strength: ClassVar[str | None] = "adversarial_rate"

    @property
    def sampling(self) -> Labels:
        """Images, and some with labels."""
        return Labels(self.labelled, Chosen(self.factor))

    @property
    def players(self) -> tuple[Player, ...]:
        """The autoencoder, and the discriminators of style and class."""
        return _players(lambda plan: (_style(plan), label_count(plan, self.name)))

    @property
    def phases(self) -> tuple[Phase, ...]:
        """The encoder against the discriminators, and for the labels."""
        return _matching(self.adversarial_rate), _labelling(self.label_rate)

    def code_blocks(self, latents: int) -> Mapping[str, Sequence[int]]:
        """The class is the last dimension, style all others."""
        return class_blocks(latents)

    def losses(self, step: StepContext) -> Losses:
        """The objectives of all players and phases."""
        unsupervised = _unsupervised_losses(step, self.class_noise)
        if not step.is_turn_of(LABELS):
            return unsupervised
        _, logits = step.network(AUTOENCODER, ClassAutoencoder).split(step.labelled.images)
        labels = _label_terms(logits, step.labelled.labels)
        players = {**unsupervised.players, LABELS: labels["cross_entropy"]}
        return Losses(players, {**unsupervised.terms, **labels})


@dataclass(frozen=True)
class AAESupervised(ClassAAE):
    """Adversarial autoencoder whose decoder gets the true label of each image.

    The style is what the label does not say about an image; [1], section 4. Encoder and decoder minimise rec
    of the style z and the one-hot label; a discriminator separates z from draws of N(0, I), and the encoder
    then minimises -mean log(1 - D(z)).

    All images that the method sees are `labelled` ones, with labels of one `factor`. The encoder also learns
    to predict the label, by a cross-entropy with an optimiser of its own, so that images without a label can
    be encoded. Codes are those of `AAELabels`.

    Differs from [1] as the plain form does (aae.py), and by the prediction of labels.
    """

    adversarial_rate: Setting = 1.0
    """Learning rate of the regularisation, in units of 1e-4."""
    label_rate: Setting = 1.0
    """Learning rate of the cross-entropy relative to the run's."""
    labelled: int = 50_000
    """Images with labels; the method sees no others."""
    factor: str = "class"
    """The name of the factor that is the class; class: the first categorical factor; first: the first
    factor."""

    name: ClassVar[str] = "aae_supervised"
    run_defaults: ClassVar[Mapping[str, Any]] = RUN_DEFAULTS
    least: ClassVar[Mapping[str, int]] = {"labelled": 1}
    strength: ClassVar[str | None] = "adversarial_rate"

    @property
    def sampling(self) -> Labels:
        """Images with labels."""
        return Labels(self.labelled, Chosen(self.factor), unlabelled=False)

    @property
    def players(self) -> tuple[Player, ...]:
        """The autoencoder, and the discriminator of style."""
        return _players(lambda plan: (_style(plan), label_count(plan, self.name)))[:2]

    @property
    def phases(self) -> tuple[Phase, ...]:
        """The encoder against the discriminator, and for the labels."""
        return _matching(self.adversarial_rate), _labelling(self.label_rate)

    def code_blocks(self, latents: int) -> Mapping[str, Sequence[int]]:
        """The class is the last dimension, style all others."""
        return class_blocks(latents)

    def losses(self, step: StepContext) -> Losses:
        """The objectives of all players and phases."""
        network, images = step.network(AUTOENCODER, ClassAutoencoder), step.labelled.images
        style, logits = network.split(images)
        verdict = _judged_style(step, style)
        if not step.is_turn_of(AUTOENCODER):
            return Losses({REGULARISER: verdict.exposure}, {})
        code = network.joined(style, one_hot(step.labelled.labels, network.classes, style.dtype))
        reconstruction = network.decoder.reconstruction(code, images, step.likelihood)
        labels = _label_terms(logits, step.labelled.labels)
        players = {
            AUTOENCODER: reconstruction,
            STYLE: verdict.loss,
            LABELS: labels["cross_entropy"],
            REGULARISER: verdict.exposure,
        }
        terms = {
            "reconstruction": reconstruction,
            "adversarial": verdict.exposure,
            "style_accuracy": verdict.accuracy,
        }
        return Losses(players, {**terms, **labels})


@dataclass(frozen=True)
class AAEClusters(ClassAAE):
    """Adversarial autoencoder with a class variable learned without labels.

    As `AAELabels`, but without labels: the classes are `clusters` that the autoencoder learns unsupervised;
    [1], section 6. A code is latents - 1 numbers of style and the number of the likeliest cluster, scaled as
    in `AAELabels`.
    """

    adversarial_rate: Setting = 1.0
    """Learning rate of the regularisation, in units of 1e-4."""
    class_noise: Setting = 0.5
    """Standard deviation of the noise of clusters before their discriminator."""
    clusters: int = 16
    """Number of clusters; the paper has 16 and 30 on MNIST."""

    name: ClassVar[str] = "aae_clusters"
    run_defaults: ClassVar[Mapping[str, Any]] = RUN_DEFAULTS
    least: ClassVar[Mapping[str, int]] = {"clusters": 2}
    renamed: ClassVar[Mapping[str, str]] = {"adversarial_weight": "adversarial_rate"}
    strength: ClassVar[str | None] = "adversarial_rate"

    @property
    def players(self) -> tuple[Player, ...]:
        """The autoencoder, and the discriminators of style and class."""
        return _players(lambda plan: (_style(plan), self.clusters))

    @property
    def phases(self) -> tuple[Phase, ...]:
        """The encoder against the discriminators."""
        return (_matching(self.adversarial_rate),)

    def code_blocks(self, latents: int) -> Mapping[str, Sequence[int]]:
        """The class is the last dimension, style all others."""
        return class_blocks(latents)

    def losses(self, step: StepContext) -> Losses:
        """The objectives of all players and of the encoder against them."""
        return _unsupervised_losses(step, self.class_noise)


@dataclass(frozen=True)
class AAEHeads(ClassAAE):
    """Adversarial autoencoder whose clusters each have a learned centre.

    Each cluster has a head in the space of codes: the code is z + y W; [1], section 7.

    z and y are those of `AAEClusters`; the rows of W are the learned heads. The objective of reconstruction
    has a further term: two heads i, j that are closer than eta cost heads_weight (eta - |W_i - W_j|), summed
    over all pairs, which pushes them apart up to eta.

    A code is z + y W, in `latents` dimensions, and the only input of the decoder.

    [1] gives no value of eta; 6 leaves three standard deviations of the style on either side. Heads start
    with random distances around 6.
    """

    adversarial_rate: Setting = 1.0
    """Learning rate of the regularisation, in units of 1e-4."""
    class_noise: Setting = 0.5
    """Standard deviation of the noise of clusters before their discriminator."""
    heads_weight: Setting = 10.0
    """Weight of the term that pushes heads apart."""
    eta: Setting = 6.0
    """The distance up to which heads are pushed apart."""
    clusters: int = 20
    """Number of clusters; the paper has 20 on MNIST."""

    name: ClassVar[str] = "aae_heads"
    least: ClassVar[Mapping[str, int]] = {"clusters": 2}
    renamed: ClassVar[Mapping[str, str]] = {"adversarial_weight": "adversarial_rate"}
    strength: ClassVar[str | None] = "eta"

    @property
    def players(self) -> tuple[Player, ...]:
        """The autoencoder with the heads, and the discriminators of style and class."""
        return _players(lambda plan: (plan.latents, self.clusters), heads=True)

    @property
    def phases(self) -> tuple[Phase, ...]:
        """The encoder against the discriminators."""
        return (_matching(self.adversarial_rate),)

    def losses(self, step: StepContext) -> Losses:
        """The objectives of all players and of the encoder against them."""
        unsupervised = _unsupervised_losses(step, self.class_noise)
        if not step.is_turn_of(AUTOENCODER):
            return unsupervised
        crowding = step.network(AUTOENCODER, ClassAutoencoder).crowding(self.eta)
        players = dict(unsupervised.players)
        players[AUTOENCODER] = players[AUTOENCODER] + self.heads_weight * crowding
        return Losses(players, {**unsupervised.terms, "crowding": crowding})


def _unsupervised_losses(step: StepContext, noise: Setting) -> Losses:
    """The losses that the forms without all labels share."""
    network, images = step.network(AUTOENCODER, ClassAutoencoder), step.batch.images
    style, logits = network.split(images)
    classes = logits.softmax(-1)
    of_style, of_class = _judged_style(step, style), _judged_classes(step, classes, noise)
    exposure = of_style.exposure + of_class.exposure
    if not step.is_turn_of(AUTOENCODER):
        return Losses({REGULARISER: exposure}, {})
    code = network.joined(style, classes)
    reconstruction = network.decoder.reconstruction(code, images, step.likelihood)
    players = {
        AUTOENCODER: reconstruction,
        STYLE: of_style.loss,
        CLASSES: of_class.loss,
        REGULARISER: exposure,
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


def _judged_style(step: StepContext, style: Tensor) -> Verdict:
    return judge(step.networks[STYLE], style, step.draws.normal("style prior", *style.shape[-2:]))


def _judged_classes(step: StepContext, classes: Tensor, noise: Setting) -> Verdict:
    """Probabilities and one-hot draws, both with noise."""
    rows, count = classes.shape[-2:]
    drawn = one_hot(step.draws.integers("class prior", rows, [count]), count, classes.dtype)
    scale = noise[..., None, None] if isinstance(noise, Tensor) else noise
    shaken = [
        points + scale * step.draws.normal(purpose, rows, count)
        for points, purpose in ((classes, "class noise"), (drawn, "class prior noise"))
    ]
    return judge(step.networks[CLASSES], *shaken)


def _label_terms(logits: Tensor, labels: Tensor) -> dict[str, Tensor]:
    """Cross-entropy and accuracy of logits (..., B, K) for labels (..., B, 1)."""
    entropy = -logits.log_softmax(-1).gather(-1, labels).mean((-2, -1))
    right = (logits.argmax(-1, keepdim=True) == labels).to(entropy.dtype).mean((-2, -1))
    return {"cross_entropy": entropy, "label_accuracy": right}


def _matching(rate: Setting) -> Phase:
    """The encoder against the discriminators."""
    return Phase(REGULARISER, f"{AUTOENCODER}.encoder", ENCODER_ADAM, rate)


def _labelling(rate: Setting) -> Phase:
    """The encoder for the labels, with the run's optimiser."""
    return Phase(LABELS, f"{AUTOENCODER}.encoder", None, rate)


def _players(sizes: Callable[[Blueprint], tuple[int, int]], heads: bool = False) -> tuple[Player, ...]:
    """The autoencoder, with the run's learning rate, and two discriminators; `sizes` of style and class."""

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

    return (
        Player(AUTOENCODER, autoencoder),
        Player(STYLE, of_style, DISCRIMINATOR_ADAM),
        Player(CLASSES, of_class, DISCRIMINATOR_ADAM),
    )


def _style(plan: Blueprint) -> int:
    """Dimensions of style where one of the code is the class."""
    if plan.latents < 2:
        raise UnweaveError("a code of style and class has at least 2 latents; got 1. Take more latents.")
    return plan.latents - 1
