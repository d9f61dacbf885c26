"""Elastic-InfoGAN [1]: categories with learned probabilities, which ignore how an object is shown.

[1] Ojha, Singh, Hsieh, Lee: Elastic-InfoGAN: unsupervised disentangled representation learning in
class-imbalanced data, NeurIPS 2020.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from unweave.errors import UnweaveError
from unweave.methods.info_gan import (
    DISCRIMINATOR,
    GENERATOR,
    build_generator,
    gan_players,
    info_losses,
    play,
    with_category_information,
)
from unweave.methods.method import Blueprint, Draws, Losses, Method, Player, Setting, StepContext
from unweave.methods.step import network_of
from unweave.nn.contrast import nt_xent
from unweave.nn.distributions.categorical import Categorical, indicators
from unweave.nn.layers import as_numbers
from unweave.nn.networks.gan import Generator, ReadingDiscriminator
from unweave.nn.networks.prior_generator import PriorGenerator
from unweave.nn.transforms import moved_images


@dataclass(frozen=True)
class ElasticInfoGAN(Method):
    """Elastic-InfoGAN: InfoGAN with learned probabilities of its categories.

    InfoGAN + lambda_contrast NT-Xent; [1], for data whose classes have unequal, unknown frequencies.

    The first code is one of `categories` K categories. Their probabilities are softmax(a), and a is trained
    with the generator. The generator gets relaxed indicators c = softmax((log softmax(a) + g) / temperature)
    with Gumbel noise g, so gradients reach a. The other codes and the noise are those of `InfoGAN`.

    generator and a: -mean log D(x) - lambda_categories mean log Q(k|x), with k the largest of c
    discriminator: InfoGAN's loss + lambda_contrast NT-Xent(f(y), f(y'))

    y are images of the data and y' the same images, each rotated by up to `rotation` degrees, enlarged or
    shrunk by up to the share `zoom`, and moved by up to the share `shift` of the side. f are the features
    before the last layer of Q; see nn/contrast.py for the loss of pairs. Images of one class thus get similar
    features, and the category follows the class instead of, for example, the rotation.

    Defaults are those of the authors' runs on MNIST.

    Differs from [1]: networks, optimisers and turns are those of `InfoGAN`. The information and NT-Xent also
    train the convolutions that Q shares with D; in the authors' code they train the last layers of Q only.
    Noise is uniform instead of normal.
    """

    lambda_: Setting = 0.05
    """Weight of the information of continuous codes."""
    lambda_categories: Setting = 1.0
    """Weight of the information of the category."""
    lambda_contrast: Setting = 10.0
    """Weight of the contrastive loss NT-Xent."""
    categories: int = 10
    """Number of categories, at least 2."""
    noise: int = 62
    """Numbers of noise in addition to the codes."""
    temperature: Setting = 0.1
    """Temperature of the Gumbel softmax."""
    contrast_temperature: Setting = 1.0
    """Temperature of the contrastive loss NT-Xent."""
    rotation: Setting = 20.0
    """Largest rotation of a copy, in degrees."""
    zoom: Setting = 0.1
    """Largest zoom of a copy; 0.1: factors from 0.9 to 1.1."""
    shift: Setting = 0.0
    """Largest shift of a copy, as a share of the side of the image."""

    name: ClassVar[str] = "elastic_info_gan"
    own_networks: ClassVar[bool] = True
    least: ClassVar[Mapping[str, int]] = {"categories": 2}
    run_defaults: ClassVar[Mapping[str, Any]] = {"steps": 116_000}
    strength: ClassVar[str | None] = "lambda_contrast"
    citation: ClassVar[str] = """@inproceedings{ojha2020elastic,
  author = {Utkarsh Ojha and Krishna Kumar Singh and Cho-Jui Hsieh and Yong Jae Lee},
  title = {{Elastic-InfoGAN}: Unsupervised Disentangled Representation Learning in Class-Imbalanced Data},
  booktitle = {Advances in Neural Information Processing Systems},
  year = {2020}
}"""

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("temperature", "contrast_temperature"):
            if not isinstance(value := getattr(self, name), Tensor) and not value:
                raise UnweaveError(f"{name} of {self.name} must be > 0; got {value!r}.")
        if not isinstance(self.zoom, Tensor) and self.zoom >= 1:
            raise UnweaveError(
                f"zoom of {self.name} must be below 1, a share of the size; got {self.zoom!r}."
            )

    @property
    def players(self) -> tuple[Player, ...]:
        """The generator with the probabilities of its categories, and the discriminator with Q."""

        def generator(plan: Blueprint) -> nn.Module:
            return PriorGenerator(build_generator(plan, self.noise, self.categories))

        plain_generator, discriminator = gan_players(self.noise, "unit", self.categories)
        return replace(plain_generator, build=generator), discriminator

    @property
    def turns(self) -> tuple[tuple[str, ...], ...]:
        """The discriminator, and twice the generator."""
        return (DISCRIMINATOR,), (GENERATOR,), (GENERATOR,)

    @property
    def stochastic(self) -> bool:
        """Whether Q learns a variance."""
        return False

    def content_dimensions(self, latents: int) -> int:  # noqa: ARG002
        """The category."""
        return 1

    def cluster_prior(self, networks: Mapping[str, nn.Module]) -> Tensor:
        """(P, K): the learned probabilities of the categories."""
        return network_of(networks, GENERATOR, PriorGenerator).log_prior().exp()

    def cluster_generator(self, networks: Mapping[str, nn.Module]) -> Generator:
        """The network that makes images of a category."""
        return network_of(networks, GENERATOR, PriorGenerator).generator

    def losses(self, step: StepContext) -> Losses:
        """The objectives of both players."""
        log_prior = step.network(GENERATOR, PriorGenerator).log_prior()
        rows = step.batch.images.shape[-4]
        uniform = step.draws.uniform("categories", rows, self.categories)
        relaxed = Categorical(log_prior.unsqueeze(-2)).sample(uniform, _with_axes(self.temperature, 2))
        game = play(step, self.noise, relaxed)
        game = replace(game, category=indicators(relaxed.argmax(-1), self.categories, relaxed))
        prior = log_prior.detach().exp()
        entropy = -torch.xlogy(prior, prior).sum(-1)
        losses = with_category_information(
            info_losses(game, self.lambda_), game, self.lambda_categories, entropy
        )
        if not step.is_turn_of(DISCRIMINATOR):
            return losses
        contrast = self._contrast(step)
        loss = losses.players[DISCRIMINATOR] + self.lambda_contrast * contrast
        terms = {"contrast": contrast, "prior_entropy": entropy, "prior_largest": prior.amax(-1)}
        return Losses({**losses.players, DISCRIMINATOR: loss}, {**losses.terms, **terms})

    def _contrast(self, step: StepContext) -> Tensor:
        """(...): NT-Xent of images of the data and their transformed copies."""
        images = as_numbers(step.batch.images)
        copies = torch.cat([images, self._transformed(images, step.draws)], dim=-4)
        features = step.network(DISCRIMINATOR, ReadingDiscriminator).embed(copies)
        first, second = features.chunk(2, dim=-2)
        return nt_xent(first, second, self.contrast_temperature)

    def _transformed(self, images: Tensor, draws: Draws) -> Tensor:
        """The images, each rotated, zoomed and shifted by amounts of its own."""
        drawn = 2 * draws.uniform("transformation", images.shape[-4], 4) - 1
        angle = _with_axes(self.rotation, 1) * drawn[..., 0]
        zoom = 1 + _with_axes(self.zoom, 1) * drawn[..., 1]
        return moved_images(images, angle, zoom, _with_axes(self.shift, 2) * drawn[..., 2:])


def _with_axes(setting: Setting, axes: int) -> Setting:
    """A number as it is, and one number a run as (P, 1, ...) with so many axes of length 1."""
    return setting.reshape(-1, *[1] * axes) if isinstance(setting, Tensor) else setting
