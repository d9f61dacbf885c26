"""The adversarial autoencoder [1]: the encoder makes its codes look like draws from the prior.

[1] Makhzani, Shlens, Jaitly, Goodfellow, Frey: Adversarial autoencoders, 2015.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal, TypeAlias

import torch
from torch import Tensor

from unweave.data.supervision import Chosen
from unweave.errors import UnweaveError
from unweave.methods.method import (
    Adam,
    Blueprint,
    Losses,
    Method,
    Phase,
    Player,
    Setting,
    StepContext,
)
from unweave.methods.sampling import Images, Labels
from unweave.nn.distributions.divergences import judge
from unweave.nn.distributions.priors import Prior, petals, swiss_roll
from unweave.nn.networks.classes import one_hot
from unweave.nn.networks.vae import Decoder, Discriminator, Encoder

Posterior: TypeAlias = Literal["deterministic", "gaussian"]

ENCODER, DECODER, DISCRIMINATOR, REGULARISER = "encoder", "decoder", "discriminator", "regulariser"
# The discriminators learn faster than the encoder against them, so that they follow the codes.
DISCRIMINATOR_ADAM = Adam(learning_rate=3e-4, beta1=0.5, beta2=0.9, epsilon=1e-8)
ENCODER_ADAM = Adam(learning_rate=1e-4, beta1=0.5, beta2=0.9, epsilon=1e-8)
CITATION = """@article{makhzani2015adversarial,
  author = {Alireza Makhzani and Jonathon Shlens and Navdeep Jaitly and Ian Goodfellow and Brendan Frey},
  title = {Adversarial Autoencoders},
  journal = {arXiv preprint arXiv:1511.05644},
  year = {2015}
}"""


@dataclass(frozen=True)
class AdversarialAutoencoder(Method):
    """What all forms share: each objective has an optimiser, and the encoder is regularised last."""

    own_networks: ClassVar[bool] = True
    citation: ClassVar[str] = CITATION

    @property
    def turns(self) -> tuple[tuple[str, ...], ...]:
        """Reconstruction, discriminators and labels; then the encoder against the discriminators."""
        names = [player.name for player in self.players] + [phase.name for phase in self.phases]
        return tuple(name for name in names if name != REGULARISER), (REGULARISER,)


@dataclass(frozen=True)
class AAE(AdversarialAutoencoder):
    """Adversarial autoencoder: a discriminator matches the codes to the prior.

    Three updates in each step, with an optimiser each; [1], section 2:
    encoder and decoder minimise rec; the discriminator minimises -(mean log D(z) + mean log(1 - D(y))) / 2
    over codes z and as many draws y from the prior; the encoder then minimises -mean log(1 - D(z)).

    D(z) is the probability that z is a code and not a draw from the prior. The loss of the encoder is the
    non-saturating one, whose gradient does not vanish where the discriminator is certain. Its learning rate
    is adversarial_rate times 1e-4, that of the discriminator is 3e-4.

    `posterior` deterministic: z = mean of q(z|x), and its log_var is never trained. gaussian: z is drawn from
    q(z|x); only the losses constrain its noise.

    `prior` normal: N(0, I). mixture: Gaussians around 0 like petals. swiss_roll: a spiral. Both have `parts`
    parts in the first two dimensions; the other dimensions are standard normal. With `labelled` images, [1],
    section 2.3: part k is for images with label k of the `factor`, and the discriminator also gets the label,
    or an additional class for images without one.

    Differs from [1]: Adam instead of stochastic gradient descent with momentum, leaky ReLU in the
    discriminator, and reconstruction and discriminator are updated from the same forward pass. The paper's
    third posterior, a network with noise among its inputs, is not implemented.
    """

    adversarial_rate: Setting = 1.0
    """Learning rate of the regularisation, in units of 1e-4."""
    posterior: Posterior = "deterministic"
    """deterministic: z is the encoder's mean; gaussian: z is drawn from q(z|x)."""
    prior: Prior = "normal"
    """The prior: normal, mixture or swiss_roll."""
    parts: int = 10
    """Parts of a mixture or Swiss roll, without labels."""
    labelled: int = 0
    """Images whose label selects a part of the prior; needs mixture or swiss_roll."""
    factor: str = "class"
    """The labelled factor; class: the first categorical factor; first: the first factor."""

    name: ClassVar[str] = "aae"
    least: ClassVar[Mapping[str, int]] = {"parts": 1}
    renamed: ClassVar[Mapping[str, str]] = {"adversarial_weight": "adversarial_rate"}
    strength: ClassVar[str | None] = "adversarial_rate"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.labelled and self.prior == "normal":
            raise UnweaveError(
                "labelled images of aae need a prior with parts; got the normal one. Use prior mixture or "
                "swiss_roll, or the method aae_labels."
            )

    @property
    def sampling(self) -> Images | Labels:
        """Images, and some with labels where the prior depends on them."""
        return Labels(self.labelled, Chosen(self.factor)) if self.labelled else Images()

    @property
    def players(self) -> tuple[Player, ...]:
        """Encoder, decoder and discriminator."""
        return (
            Player(ENCODER, Blueprint.encoder),
            Player(DECODER, Blueprint.decoder),
            Player(DISCRIMINATOR, self._discriminator, DISCRIMINATOR_ADAM),
        )

    @property
    def phases(self) -> tuple[Phase, ...]:
        """The encoder against the discriminator."""
        return (Phase(REGULARISER, ENCODER, ENCODER_ADAM, self.adversarial_rate),)

    @property
    def stochastic(self) -> bool:
        """Whether z is drawn from q(z|x)."""
        return self.posterior == "gaussian"

    def losses(self, step: StepContext) -> Losses:
        """The objectives of reconstruction, discriminator and encoder."""
        images = step.batch.images
        codes = self._codes(step, images, "noise")
        shown, prior = codes, self._prior(step, "prior")
        if self.labelled:
            labels = step.labelled.labels
            no_label = torch.full_like(labels, self._parts(step))
            of_labelled = self._codes(step, step.labelled.images, "labelled noise")
            shown = self._tagged(step, codes, no_label, of_labelled, labels)
            prior = self._tagged(step, prior, no_label, self._prior(step, "labelled prior", labels), labels)
        verdict = judge(step.networks[DISCRIMINATOR], shown, prior)
        if not step.is_turn_of(DECODER):
            return Losses({REGULARISER: verdict.exposure}, {})
        reconstruction = step.network(DECODER, Decoder).reconstruction(codes, images, step.likelihood)
        players = {
            ENCODER: reconstruction,
            DECODER: reconstruction,
            DISCRIMINATOR: verdict.loss,
            REGULARISER: verdict.exposure,
        }
        terms = {
            "reconstruction": reconstruction,
            "adversarial": verdict.exposure,
            "discriminator_accuracy": verdict.accuracy,
        }
        return Losses(players, terms)

    def _codes(self, step: StepContext, images: Tensor, purpose: str) -> Tensor:
        posterior = step.network(ENCODER, Encoder).encode(images)
        if not self.stochastic:
            return posterior.mean
        return posterior.sample(step.draws.normal(purpose, *posterior.mean.shape[-2:]))

    def _prior(self, step: StepContext, purpose: str, parts: Tensor | None = None) -> Tensor:
        """(..., B, D): draws from the prior, or from these parts (..., B, 1) of it."""
        rows, latents = step.batch.images.shape[-4], step.network(DECODER, Decoder).latents
        normal = step.draws.normal(purpose, rows, latents)
        if self.prior == "normal":
            return normal
        count = self._parts(step)
        if parts is None:
            parts = step.draws.integers(f"{purpose} part", rows, [count])
        if self.prior == "mixture":
            return petals(normal, parts[..., 0], count)
        return swiss_roll(
            normal, parts[..., 0] + step.draws.uniform(f"{purpose} place", rows, 1)[..., 0], count
        )

    def _tagged(
        self, step: StepContext, codes: Tensor, tags: Tensor, more_codes: Tensor, more_tags: Tensor
    ) -> Tensor:
        """(..., 2B, D + K + 1): codes with indicators of their classes, of which the last is "no label"."""
        points, classes = torch.cat([codes, more_codes], dim=-2), torch.cat([tags, more_tags], dim=-2)
        return torch.cat([points, one_hot(classes, self._parts(step) + 1, codes.dtype)], dim=-1)

    def _parts(self, step: StepContext) -> int:
        """How many parts the prior has: one for each value of the factor, where there are labels."""
        if not self.labelled:
            return self.parts
        discriminator = step.network(DISCRIMINATOR, Discriminator)
        return discriminator.latents - step.network(DECODER, Decoder).latents - 1

    def _discriminator(self, plan: Blueprint) -> Discriminator:
        if self.prior != "normal" and plan.latents < 2:
            raise UnweaveError(f"prior {self.prior} of aae needs at least 2 latents; got {plan.latents}.")
        labels = label_count(plan, self.name) + 1 if self.labelled else 0
        return Discriminator(plan.streams, plan.latents + labels, depth=2)


def label_count(plan: Blueprint, method: str) -> int:
    """How many values the labelled factor has."""
    if len(plan.label_sizes) != 1 or plan.label_sizes[0] < 2:
        raise UnweaveError(
            f"factor of {method} must name one factor with at least two values; those it names have "
            f"{list(plan.label_sizes)}."
        )
    return plan.label_sizes[0]
