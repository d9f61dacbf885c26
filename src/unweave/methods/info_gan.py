"""InfoGAN [1]: a generator of images whose codes can be inferred from the images.

[1] Chen, Duan, Houthooft, Schulman, Sutskever, Abbeel: InfoGAN: interpretable representation learning by
information maximizing generative adversarial nets, NeurIPS 2016.
[2] Lin, Thekumparampil, Fanti, Oh: InfoGAN-CR and ModelCentrality: self-supervised model training and
selection for disentangling GANs, ICML 2020.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, TypeAlias

import torch
from torch import Tensor, nn
from torch.nn.functional import softplus

from unweave.errors import UnweaveError
from unweave.methods.method import Adam, Blueprint, Draws, Losses, Method, Player, Setting, StepContext
from unweave.methods.step import network_of
from unweave.nn.distributions.divergences import accuracy
from unweave.nn.distributions.gaussian import Gaussian
from unweave.nn.distributions.likelihood import likelihood_named
from unweave.nn.layers import as_numbers, num_runs
from unweave.nn.networks.classes import one_hot
from unweave.nn.networks.gan import Generator, Guess, ReadingDiscriminator

GENERATOR, DISCRIMINATOR = "generator", "discriminator"
GENERATING_RATE, JUDGING_RATE = 1e-3, 2e-3

Variance: TypeAlias = Literal["unit", "learned"]


@dataclass(frozen=True)
class InfoGAN(Method):
    """InfoGAN: a GAN that maximises the information between codes and images.

    GAN - lambda I(c; x), by the bound I >= H(c) + E log Q(c|x); [1], equations 5 and 6, networks of [2].

    The generator maps codes c, uniform in [-1, 1], and `noise` further such numbers to an image x. The
    discriminator D separates generated from real images, and Q, which shares its convolutions, predicts c:

    generator: -mean log D(x) - lambda mean log Q(c|x)
    discriminator: -mean log D(real) - mean log(1 - D(x)) - lambda mean log Q(c|x)

    Q is N(mean, I), or, with variance "learned", N(mean, diag(exp(log_var))) as in [1]. It is the encoder of
    real images. Decoding generates an image: noise is 0, its mean, and codes outside of the range are
    clipped. The codes of encoder and decoder are sqrt(3) c, which has variance 1 like the codes of other
    methods.

    With `categories`, 2 or more, the first code is one of so many categories, all equally likely, as in the
    MNIST runs of [1]. The generator gets its indicator, and Q predicts a probability of each. Its information
    has the weight lambda_categories, 1 in [1]. The code of an image is the likeliest category, as a number
    that has mean 0 and variance 1 over all categories.

    As in [2], the discriminator is updated first, and then the generator twice. Updating both at once, from
    one forward pass, gives worse codes: see docs/methods/info_gan.md.

    Differs from [2]: spectral norms are exact, not estimated by one power iteration per step. See
    nn/networks/gan.py for the replacement of the moving means of batch normalisation.
    """

    lambda_: Setting = 0.05
    """Weight of the information of continuous codes."""
    noise: int = 5
    """Numbers of noise in addition to the codes."""
    variance: Variance = "unit"
    """Variance of Q: unit, so that its loss is the squared error of codes, or learned, one for each image
    and code."""
    categories: int = 0
    """Values of the first code if it is categorical, 2 or more; 0: all codes are continuous."""
    lambda_categories: Setting = 1.0
    """Weight of the information of the category."""

    name: ClassVar[str] = "info_gan"
    own_networks: ClassVar[bool] = True
    run_defaults: ClassVar[Mapping[str, Any]] = {"steps": 288_000}
    added: ClassVar[frozenset[str]] = frozenset({"categories", "lambda_categories"})
    strength: ClassVar[str | None] = "lambda_"
    citation: ClassVar[str] = """@inproceedings{chen2016infogan,
  author = {Xi Chen and Yan Duan and Rein Houthooft and John Schulman and Ilya Sutskever and Pieter Abbeel},
  title = {{InfoGAN}: Interpretable Representation Learning by Information Maximizing Generative Adversarial
           Nets},
  booktitle = {Advances in Neural Information Processing Systems},
  year = {2016}
}"""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.categories == 1:
            raise UnweaveError(
                "categories of info_gan must be 0, for continuous codes only, or at least 2; got 1."
            )

    @property
    def players(self) -> tuple[Player, ...]:
        """The generator, and the discriminator with Q."""
        return gan_players(self.noise, self.variance, self.categories)

    @property
    def turns(self) -> tuple[tuple[str, ...], ...]:
        """The discriminator, and twice the generator."""
        return (DISCRIMINATOR,), (GENERATOR,), (GENERATOR,)

    @property
    def stochastic(self) -> bool:
        """Whether Q learns a variance."""
        return self.variance == "learned"

    def cluster_prior(self, networks: Mapping[str, nn.Module]) -> Tensor:
        """(P, K): the probabilities of the categories, all equal."""
        generator = self.cluster_generator(networks)
        return generator.reference.new_full((num_runs(generator), self.categories), 1 / self.categories)

    def cluster_generator(self, networks: Mapping[str, nn.Module]) -> Generator:
        """The network that makes images of a category."""
        if not self.categories:
            raise UnweaveError(
                f"this {self.name} has no categories. Train it with categories=10, for example."
            )
        return network_of(networks, GENERATOR, Generator)

    def losses(self, step: StepContext) -> Losses:
        """The objectives of both players."""
        game = play(step, self.noise)
        losses = info_losses(game, self.lambda_)
        if not self.categories:
            return losses
        return with_category_information(losses, game, self.lambda_categories)


@dataclass(frozen=True)
class Game:
    """The outputs of D and Q in one step; codes are (..., B, D)."""

    real: Tensor | None  # (..., B): logits of D for images of the data; None: it is not the turn of D
    fake: Tensor  # (..., B): logits of D for generated images
    guess: Guess  # Q of generated images
    codes: Tensor  # continuous codes that the images were generated from
    category: Tensor  # (..., B, K): indicators of their categories; K is 0 where there are none


def information_bound(guess: Gaussian, codes: Tensor) -> Tensor:
    """(...): H(c) + mean log Q(c|x), at most the mutual information of codes and images, in nats."""
    return codes.shape[-1] * math.log(2) + guess.log_density(codes).sum(-1).mean(-1)


def category_bound(log_probabilities: Tensor, category: Tensor, entropy: Tensor | None = None) -> Tensor:
    """(...): H + mean log Q, at most the mutual information of categories and images, in nats.

    Log probabilities and indicators of the categories are (..., B, K). H is the entropy of the categories, by
    default log K.
    """
    mean_log_q = (log_probabilities * category).sum(-1).mean(-1)
    return (math.log(category.shape[-1]) if entropy is None else entropy) + mean_log_q


def play(step: StepContext, noise: int, category: Tensor | None = None) -> Game:
    """Generate as many images as the batch has, and apply D and Q to all of them at once.

    The generator's loss does not depend on images of the data: in its turn D gets generated images only.
    `category` (..., B, K) is what the generator gets as indicators. By default all categories are equally
    likely.
    """
    discriminator = step.network(DISCRIMINATOR, ReadingDiscriminator)
    images, draws = step.batch.images, step.draws
    rows = images.shape[-4]
    codes = symmetric_uniform(draws, "codes", rows, discriminator.numbers)
    if category is None:
        category = _drawn_categories(draws, rows, discriminator.categories, codes)
    inputs = torch.cat([category, with_noise(codes, draws, "noise", noise)], dim=-1)
    fake = step.networks[GENERATOR](inputs).sigmoid()
    if not step.is_turn_of(DISCRIMINATOR):
        logits, guess = discriminator(fake)
        return Game(None, logits, guess, codes, category)
    logits, guess = discriminator(torch.cat([as_numbers(images), fake], dim=-4))
    real_logits, fake_logits = logits.chunk(2, dim=-1)
    return Game(real_logits, fake_logits, guess.last_rows(rows), codes, category)


def info_losses(game: Game, lambda_: Setting) -> Losses:
    """-log D = softplus(-logit) and -log(1 - D) = softplus(logit)."""
    fooled = softplus(-game.fake).mean(-1)
    information = information_bound(game.guess.numbers, game.codes)
    # The bound and mean log Q differ by the entropy of the codes, which is constant.
    players = {GENERATOR: fooled - lambda_ * information}
    if game.real is None:
        return Losses(players, {})
    unsure = softplus(-game.real).mean(-1) + softplus(game.fake).mean(-1)
    players[DISCRIMINATOR] = unsure - lambda_ * information
    terms = {
        "generator": fooled,
        "discriminator": unsure,
        "discriminator_accuracy": accuracy(game.real, game.fake),
        "information": information,
    }
    if game.codes.shape[-1]:  # the only code may be a category
        terms["code_error"] = (game.guess.numbers.mean - game.codes).square().mean((-2, -1))
    return Losses(players, terms)


def with_category_information(
    losses: Losses, game: Game, weight: Setting, entropy: Tensor | None = None
) -> Losses:
    """The losses of both players with the information of the category, and its terms in the log.

    `entropy` is that of the categories, by default log K. It must not have a gradient: the bound and mean log
    Q then differ by a constant.
    """
    log_probabilities = game.guess.category.log_softmax(-1)
    information = category_bound(log_probabilities, game.category, entropy)
    players = {name: loss - weight * information for name, loss in losses.players.items()}
    right = log_probabilities.argmax(-1) == game.category.argmax(-1)
    terms = {"category_information": information, "category_accuracy": right.to(information.dtype).mean(-1)}
    return Losses(players, {**losses.terms, **terms} if losses.terms else {})


def build_generator(plan: Blueprint, noise: int, categories: int = 0) -> Generator:
    """The generator of `latents` codes, of which the first may be a category, and of noise."""
    inputs = plan.latents + noise + (categories - 1 if categories else 0)
    return Generator(checked_plan(plan).streams, plan.shape, inputs, categories)


def gan_players(noise: int, variance: Variance, categories: int = 0) -> tuple[Player, Player]:
    """The generator, and the discriminator with Q."""

    def generator(plan: Blueprint) -> nn.Module:
        return build_generator(plan, noise, categories)

    def discriminator(plan: Blueprint) -> nn.Module:
        return ReadingDiscriminator(
            checked_plan(plan).streams, plan.shape, plan.latents, variance == "learned", categories
        )

    return (
        # Rounding in bf16 would shift the outlines of generated images.
        Player(GENERATOR, generator, adam(GENERATING_RATE), precise=True),
        Player(DISCRIMINATOR, discriminator, adam(JUDGING_RATE)),
    )


def adam(rate: float) -> Adam:
    """The optimiser of a player."""
    return Adam(learning_rate=rate, beta1=0.5)


def checked_plan(plan: Blueprint) -> Blueprint:
    """The plan; raise an error if it asks for another architecture or likelihood."""
    if plan.architecture != "released":
        raise UnweaveError(
            f'InfoGAN has networks of its own and no architecture "{plan.architecture}". Leave architecture '
            "at its default."
        )
    if likelihood_named(plan.likelihood).mean is not torch.sigmoid:
        raise UnweaveError(
            f'InfoGAN generates images by a sigmoid and has no likelihood "{plan.likelihood}". Leave '
            "likelihood at its default."
        )
    return plan


def with_noise(codes: Tensor, draws: Draws, purpose: str, noise: int) -> Tensor:
    """Codes, and after them so many numbers of noise: what the generator gets."""
    if noise == 0:
        return codes
    return torch.cat([codes, symmetric_uniform(draws, purpose, codes.shape[-2], noise)], dim=-1)


def _drawn_categories(draws: Draws, rows: int, categories: int, like: Tensor) -> Tensor:
    """(..., rows, categories): indicators of categories, all equally likely."""
    if not categories:
        return like[..., :0]
    return one_hot(draws.integers("categories", rows, [categories]), categories, like.dtype)


def symmetric_uniform(draws: Draws, purpose: str, rows: int, columns: int) -> Tensor:
    """Numbers that are uniform in [-1, 1]."""
    return 2 * draws.uniform(purpose, rows, columns) - 1
