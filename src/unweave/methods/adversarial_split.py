"""Adversarial split [1]: a code shared by all images of a class, and a code of everything else.

[1] Mathieu, Zhao, Sprechmann, Ramesh, LeCun: Disentangling factors of variation in deep representation using
adversarial training, NeurIPS 2016.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor
from torch.nn.functional import softplus

from unweave.methods.method import AUTOENCODER, Adam, Blueprint, Losses, Method, Player, Setting, StepContext
from unweave.methods.sampling import Groups, factors_in
from unweave.nn.distributions.divergences import accuracy
from unweave.nn.distributions.likelihood import likelihood_named
from unweave.nn.layers import as_numbers
from unweave.nn.networks.two_parts import (
    LabelledDiscriminator,
    Part,
    TwoPartAutoencoder,
    part_size,
)

DISCRIMINATOR = "discriminator"
FIRST = "first"  # class_factors of earlier runs: the first factor of the data, whatever its kind
REAL_TARGET = 0.95  # t, as in the authors' code


@dataclass(frozen=True)
class AdversarialSplit(Method):
    """Adversarial split: a class code and a code of the rest, kept apart by a discriminator.

    rec(s, z) + swap_weight rec(s', z) + beta KL(q(z|x) || N(0, I)) + adversarial_weight N H(t, D(x~, y)).

    The first `content` dimensions of the code are the specified part s(x), which is not drawn; the others are
    the unspecified part z ~ q(z|x). Images come in pairs x, x' of one class: s' = s(x') must reconstruct as
    well as s. That keeps all but the class out of s. To keep the class out of z, images x~ are decoded from
    the s of another pair, of class y, and an unrelated z: that of x, or a draw from the prior. A
    discriminator, which gets the class as a label, minimises (H(t, D(x, y)) - log(1 - D(x~, y))) / 2, both as
    means over images. H(t, D) = -t log D - (1 - t) log(1 - D), t = 0.95 is the target for real images.

    Weights are those of the authors' code: 0.5, 1 and 0.01 for means over the N numbers of an image and 0.6
    for KL / N, all multiplied by 2 N, so that rec is a sum with weight 1. N is pixels times channels. The
    likelihood penalises an error about 1.6 times as much as their squared error, so their 0.6 is 1 here. The
    default of beta is 3: z then holds less of the class.

    The class is the combination of values of `class_factors`: their names with commas between them; "class"
    is the first categorical factor. No other label is used.

    Differs from [1]: two encoders, one for each part; a likelihood for the squared error; half of the
    unrelated z are draws from the prior, which the authors' code leaves out by default; networks without
    batch normalisation, and lower learning rates, 1e-3 and, for the discriminator, 1e-4.
    """

    swap_weight: Setting = 2.0
    """Weight of the reconstruction with the partner's specified code."""
    beta: Setting = 3.0
    """Weight of the KL divergence of the unspecified code; 1 corresponds to the authors' weight."""
    adversarial_weight: Setting = 0.01
    """Weight of the discriminator per pixel and channel."""
    content: Part = "half"
    """Dimensions of the specified code, the first ones: a number, or half of the latents."""
    class_factors: str = "class"
    """Names of the factors that make up the class, with commas between them; class: the first categorical
    factor; first: the first factor."""

    name: ClassVar[str] = "adversarial_split"
    run_defaults: ClassVar[Mapping[str, Any]] = {"learning_rate": 1e-3}
    own_networks: ClassVar[bool] = True
    strength: ClassVar[str | None] = "adversarial_weight"
    citation: ClassVar[str] = """@inproceedings{mathieu2016disentangling,
  author = {Micha{\\"e}l Mathieu and Junbo Jake Zhao and Pablo Sprechmann and Aditya Ramesh and Yann LeCun},
  title = {Disentangling Factors of Variation in Deep Representation Using Adversarial Training},
  booktitle = {Advances in Neural Information Processing Systems},
  year = {2016}
}"""

    @property
    def sampling(self) -> Groups:
        """Pairs of one class, with its labels."""
        shared = 1 if self.class_factors == FIRST else factors_in(self.class_factors)
        return Groups(together=2, shared=shared, chosen="first", labels="shared")

    @property
    def players(self) -> tuple[Player, ...]:
        """The autoencoder and the discriminator."""
        adam = Adam(learning_rate=1e-4, beta1=0.5)
        return (
            # Its gradient comes through the images that the discriminator gets: they must not be rounded.
            Player(AUTOENCODER, self._autoencoder, precise=True),
            Player(
                DISCRIMINATOR,
                lambda p: LabelledDiscriminator(p.streams, p.shape, p.label_sizes, p.architecture),
                adam,
            ),
        )

    @property
    def stochastic(self) -> bool:
        """False: the part s is deterministic, and has no prior."""
        return False

    def codes_without_prior(self, latents: int) -> Sequence[int]:
        """Those of s."""
        return range(self.content_dimensions(latents))

    def content_dimensions(self, latents: int) -> int:
        """Those of s."""
        return part_size(self.content, latents)

    def losses(self, step: StepContext) -> Losses:
        """The objectives of [1]."""
        model, images, labels = step.network(AUTOENCODER, TwoPartAutoencoder), step.batch.images, step.labels
        specified, unspecified = model.encode_parts(images)
        s, rows = specified.mean, images.shape[1]
        z = unspecified.sample(step.draws.normal("noise", rows, unspecified.mean.shape[-1]))
        prior = step.draws.normal("prior", rows // 2, z.shape[-1])

        rec = _reconstruction(model, s, z, images, step)
        swap = _reconstruction(model, _of_partner(s), z, images, step)
        kl = unspecified.kl().mean(-1)

        # The s of another pair, by a roll: its first image gets the z of an image, its second a prior draw.
        unrelated = torch.stack([z[:, 0::2], prior], dim=2).flatten(1, 2)
        generated = likelihood_named(step.likelihood).mean(
            model.decoder(torch.cat([s.roll(2, dims=1), unrelated], dim=-1))
        )
        discriminator = step.networks[DISCRIMINATOR]
        logits = discriminator(
            torch.cat([as_numbers(images), generated], dim=1),
            torch.cat([labels, labels.roll(2, dims=1)], dim=1),
        )
        real, fake = logits.chunk(2, dim=-1)
        fooling = _cross_entropy(fake).mean(-1)

        weight = self.adversarial_weight * math.prod(images.shape[-3:])
        players = {
            AUTOENCODER: rec + self.swap_weight * swap + self.beta * kl + weight * fooling,
            DISCRIMINATOR: 0.5 * (_cross_entropy(real).mean(-1) + softplus(fake).mean(-1)),
        }
        terms = {
            "reconstruction": rec,
            "swap": swap,
            "kl": kl,
            "adversarial": fooling,
            "discriminator_accuracy": accuracy(real, fake),
        }
        return Losses(players, terms)

    def _autoencoder(self, plan: Blueprint) -> TwoPartAutoencoder:
        first = self.content_dimensions(plan.latents)
        return TwoPartAutoencoder(
            plan.streams,
            plan.shape,
            plan.latents,
            first,
            plan.architecture,
            plan.likelihood,
            second_is_drawn=True,
        )


def _reconstruction(
    model: TwoPartAutoencoder, s: Tensor, z: Tensor, images: Tensor, step: StepContext
) -> Tensor:
    """(P,): the reconstruction loss of images decoded from s and z."""
    codes = torch.cat([s, z], dim=-1)
    return model.decoder.reconstruction(codes, images, step.likelihood)


def _cross_entropy(logits: Tensor) -> Tensor:
    """H(t, D) of logits of D, with the target t of real images."""
    return REAL_TARGET * softplus(-logits) + (1 - REAL_TARGET) * softplus(logits)


def _of_partner(s: Tensor) -> Tensor:
    """(P, 2 n, D): the two codes of each pair, swapped."""
    return torch.stack([s[:, 1::2], s[:, 0::2]], dim=2).flatten(1, 2)
