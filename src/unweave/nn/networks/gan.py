"""The networks of InfoGAN-CR [1]: a generator, a discriminator that also infers codes, and a judge of pairs.

They are those of the authors' code for 64 x 64 images, for any size that can be halved four times.

[1] Lin, Thekumparampil, Fanti, Oh: InfoGAN-CR and ModelCentrality: self-supervised model training and
selection for disentangling GANs, ICML 2020.
[2] Ioffe, Szegedy: Batch normalization, ICML 2015.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor, nn

from unweave.errors import UnweaveError
from unweave.nn.distributions.gaussian import Gaussian, certain
from unweave.nn.layers import Conv2d, ConvTranspose2d, Layer, Linear, at_least_float32
from unweave.nn.layers.batch_norm import BatchNorm
from unweave.nn.layers.spectral import normalised_layers, through_with
from unweave.nn.networks.classes import class_place, nearest_class, one_hot
from unweave.nn.networks.sizes import Sizes
from unweave.streams import Stream

HALVINGS = 4
SIZES = Sizes(2**HALVINGS, 2**HALVINGS)
DOWN = (32, 32, 64, 64)  # channels of the convolutions of images
UP = (64, 64, 32, 32)  # channels of the generator's images, from the smallest
WIDTH = 128  # of dense layers
CODE_UNITS = math.sqrt(3)  # standard deviations: uniform numbers in [-1, 1] have variance 1/3
DEVIATION = 0.02  # of the initial weights
REFERENCES = 128  # codes whose statistics replace those of a batch


class Generator(nn.Module):
    """Codes and noise (P, B, inputs) -> logits of images (P, B, C, H, W), in float32.

    The first `categories` inputs are the indicator of a category; all others are from -1 to 1.
    """

    reference: Tensor

    def __init__(
        self, streams: Sequence[Stream], shape: tuple[int, int, int], inputs: int, categories: int = 0
    ) -> None:
        super().__init__()
        channels, height, width = _checked(shape)
        self.inputs, self.categories = inputs, categories
        self.first_image = (height // 2**HALVINGS, width // 2**HALVINGS, UP[0])
        size = self.first_image[0] * self.first_image[1] * UP[0]
        self.dense = nn.ModuleList(
            [
                Linear(streams, "generator.dense1", inputs, WIDTH, "relu"),
                Linear(streams, "generator.dense2", WIDTH, size, "relu"),
            ]
        )
        self.dense_norms = nn.ModuleList([BatchNorm(len(streams), features) for features in (WIDTH, size)])
        self.convolutions, self.norms = nn.ModuleList(), nn.ModuleList()
        for number, (before, after) in enumerate(pairwise(UP), 1):
            name = f"generator.deconv{number}"
            self.convolutions.append(ConvTranspose2d(streams, name, before, after, activation="leaky_relu"))
            self.norms.append(BatchNorm(len(streams), after))
        self.logits = ConvTranspose2d(streams, "generator.logits", UP[-1], channels)
        _start_small(self, streams, "generator")
        draws = Stream.of(0).child("reference codes").uniform(REFERENCES, inputs - categories)
        indicators = np.arange(REFERENCES)[:, None] % max(categories, 1) == np.arange(categories)
        reference = np.hstack([indicators, 2 * draws - 1])
        self.register_buffer("reference", torch.from_numpy(reference).float(), persistent=False)

    def forward(self, z: Tensor) -> Tensor:
        """Logits; features are normalised over the batch."""
        return self._logits(z, None)

    def decode(self, codes: Tensor) -> Tensor:
        """Logits of codes in standard deviations, clipped to the range of training, with noise 0.

        If there are categories, the first code is the place of one, and the nearest one is taken.
        """
        numbers = codes[..., 1:] if self.categories else codes
        noise = codes.new_zeros(*codes.shape[:-1], self.inputs - self.categories - numbers.shape[-1])
        inputs = [(numbers / CODE_UNITS).clamp(-1, 1), noise]
        if self.categories:
            nearest = nearest_class(codes[..., :1], self.categories)
            inputs.insert(0, one_hot(nearest, self.categories, codes.dtype))
        return self.independent_logits(torch.cat(inputs, dim=-1))

    def takes_codes(self) -> str:
        """Itself; a category enters as an indicator."""
        if self.categories:
            raise UnweaveError(
                "the first code is a category, along which there is no direction. Use sefa with a run "
                'without categories, or by="linear".'
            )
        return ""

    @property
    def drawn(self) -> int:
        """How many numbers are drawn for an image: codes, noise, and one for the category."""
        return self.inputs - self.categories + (self.categories > 0)

    def from_normal(self, numbers: Tensor, prior: Tensor | None = None) -> Tensor:
        """Logits of standard normal numbers (P, B, drawn), turned into what the generator is trained on.

        If there are categories, the first number decides which one. They have the probabilities `prior`
        (P, K), by default equal ones.
        """
        uniform = (1 + torch.erf(numbers / math.sqrt(2))) / 2
        inputs = [2 * uniform[..., int(self.categories > 0) :] - 1]
        if self.categories:
            equal = numbers.new_full((len(numbers), self.categories), 1 / self.categories)
            ends = (equal if prior is None else prior).cumsum(-1)[:, None, :-1]
            category = (uniform[..., :1] > ends).sum(-1, keepdim=True)
            inputs.insert(0, one_hot(category, self.categories, numbers.dtype))
        return self.independent_logits(torch.cat(inputs, dim=-1))

    def independent_logits(self, z: Tensor) -> Tensor:
        """Logits of each z, independent of the batch: features are normalised over fixed codes and noise.

        Differs from [2], which keeps a moving mean of the statistics of training, and so has a state besides
        its parameters.
        """
        return self._logits(z, self.reference.to(z.dtype).expand(len(z), -1, -1))

    def category_images(self, categories: Tensor, stream: Stream) -> Tensor:
        """(P, B, C, H, W): images from 0 to 1 of categories (P, B), with codes and noise drawn at random."""
        uniform = stream.uniform(categories.shape[-1], self.inputs - self.categories)
        numbers = torch.from_numpy(2 * uniform - 1).to(categories.device, self.reference.dtype)
        indicator = one_hot(categories[..., None], self.categories, numbers.dtype)
        inputs = torch.cat([indicator, numbers.expand(*indicator.shape[:-1], -1)], dim=-1)
        return self.independent_logits(inputs).sigmoid()

    def _logits(self, x: Tensor, over: Tensor | None) -> Tensor:
        """Logits of x, normalised over itself or over another batch that passes the same layers."""
        for layer, norm in zip(self.dense, self.dense_norms, strict=True):
            x, over = _normalised(layer, norm, x, over)
        x, over = self._as_images(x), None if over is None else self._as_images(over)
        for layer, norm in zip(self.convolutions, self.norms, strict=True):
            x, over = _normalised(layer, norm, x, over)
        return at_least_float32(self.logits(x))

    def _as_images(self, features: Tensor) -> Tensor:
        pixels: Tensor = features.unflatten(2, self.first_image)
        return pixels.permute(0, 1, 4, 2, 3)


class Features(nn.Module):
    """Images (P, B, C, H, W) -> features (P, B, 128), by layers with normalised weights."""

    def __init__(self, streams: Sequence[Stream], network: str, shape: tuple[int, int, int]) -> None:
        super().__init__()
        channels, height, width = _checked(shape)
        self.convolutions = nn.ModuleList()
        for number, outputs in enumerate(DOWN, 1):
            name = f"{network}.conv{number}"
            self.convolutions.append(Conv2d(streams, name, channels, outputs, activation="leaky_relu"))
            channels, height, width = outputs, height // 2, width // 2
        inputs = channels * height * width
        self.dense = nn.ModuleList([Linear(streams, f"{network}.dense", inputs, WIDTH, "leaky_relu")])

    def forward(self, x: Tensor, weights: Mapping[nn.Module, Tensor]) -> Tensor:
        """Features of bytes, or of numbers from 0 to 1, with these weights of the layers."""
        small = through_with(weights, self.convolutions, x).permute(0, 1, 3, 4, 2).flatten(2)
        return through_with(weights, self.dense, small)

    @property
    def stacks(self) -> tuple[nn.ModuleList, nn.ModuleList]:
        """All its layers."""
        return self.convolutions, self.dense


@dataclass(frozen=True)
class Guess:
    """Q: what images say about the codes that they were generated from."""

    numbers: Gaussian  # of the continuous codes, (P, B, D)
    category: Tensor  # (P, B, K): logits of the categories; K is 0 where there are none

    def last_rows(self, rows: int) -> Guess:
        """Of the last images of the batch."""
        return Guess(self.numbers[..., -rows:, :], self.category[..., -rows:, :])


class ReadingDiscriminator(nn.Module):
    """Images -> D, the logits (P, B) that they are real; and Q, the codes that they were generated from.

    D and Q share all but their last layers. All weights are spectrally normalised. Q of the continuous codes
    is N(mean, I), or, with `variance`, has a variance for each image and code. If there are categories, the
    first of the `latents` codes is categorical.
    """

    def __init__(
        self,
        streams: Sequence[Stream],
        shape: tuple[int, int, int],
        latents: int,
        variance: bool = False,
        categories: int = 0,
    ) -> None:
        super().__init__()
        self.variance, self.categories = variance, categories
        self.numbers = latents - 1 if categories else latents
        self.features = Features(streams, "discriminator", shape)
        self.verdict = nn.ModuleList([Linear(streams, "discriminator.verdict", WIDTH, 1)])
        outputs = categories + (2 * self.numbers if variance else self.numbers)
        self.guess = nn.ModuleList(
            [
                Linear(streams, "discriminator.guess1", WIDTH, WIDTH, "leaky_relu"),
                Linear(streams, "discriminator.guess2", WIDTH, outputs),
            ]
        )
        _start_small(self, streams, "discriminator")

    def forward(self, x: Tensor) -> tuple[Tensor, Guess]:
        """D and Q."""
        weights = normalised_layers(*self.features.stacks, self.verdict, self.guess)
        features = self.features(x, weights)
        verdict = at_least_float32(through_with(weights, self.verdict, features)).squeeze(-1)
        return verdict, self._read(features, weights)

    def encode(self, images: Tensor) -> Gaussian:
        """Q alone, in standard deviations of the codes; of categories, the place of the likeliest one."""
        weights = normalised_layers(*self.features.stacks, self.guess)
        guess = self._read(self.features(images, weights), weights)
        mean, log_var = CODE_UNITS * guess.numbers.mean, guess.numbers.log_var + 2 * math.log(CODE_UNITS)
        if not self.categories:
            return Gaussian(mean, log_var)
        likeliest = guess.category.argmax(-1, keepdim=True).to(mean.dtype)
        category = certain(class_place(likeliest, self.categories))
        return Gaussian(
            torch.cat([category.mean, mean], dim=-1), torch.cat([category.log_var, log_var], dim=-1)
        )

    def embed(self, images: Tensor) -> Tensor:
        """(P, B, 128): the features of images before the last layer of Q."""
        weights = normalised_layers(*self.features.stacks, self.guess)
        return at_least_float32(through_with(weights, self.guess[:1], self.features(images, weights)))

    def _read(self, features: Tensor, weights: Mapping[nn.Module, Tensor]) -> Guess:
        guess = at_least_float32(through_with(weights, self.guess, features))
        category, numbers = guess[..., : self.categories], guess[..., self.categories :]
        if not self.variance:
            return Guess(Gaussian(numbers, torch.zeros_like(numbers)), category)
        mean, log_var = numbers.chunk(2, dim=-1)
        return Guess(Gaussian(mean, log_var), category)


class PairJudge(nn.Module):
    """Two images (P, B, C, H, W) each -> logits (P, B, D) of which code they share.

    Its input is one image with the channels of both. Its last layer is not normalised.
    """

    def __init__(self, streams: Sequence[Stream], shape: tuple[int, int, int], latents: int) -> None:
        super().__init__()
        self.features = Features(streams, "pairs", (2 * shape[0], *shape[1:]))
        self.logits = Linear(streams, "pairs.logits", WIDTH, latents)
        _start_small(self, streams, "pairs")

    def forward(self, first: Tensor, second: Tensor) -> Tensor:
        """Logits."""
        features = self.features(torch.cat([first, second], dim=2), normalised_layers(*self.features.stacks))
        return at_least_float32(self.logits(features))


def _normalised(
    layer: nn.Module, norm: nn.Module, x: Tensor, over: Tensor | None
) -> tuple[Tensor, Tensor | None]:
    if over is None:
        return norm(layer(x)), None
    x, over = layer(x), layer(over)
    return norm(x, over), norm(over)


def _start_small(network: nn.Module, streams: Sequence[Stream], name: str) -> None:
    """Replace all initial weights by normal numbers with the authors' deviation."""
    for place, part in network.named_modules():
        if isinstance(part, Layer):
            rows, *others = part.weight.shape[1:]
            drawn = [
                stream.child("small weights", name, place).normal(rows, math.prod(others))
                for stream in streams
            ]
            part.weight.data = torch.from_numpy(DEVIATION * np.stack(drawn)).float().view_as(part.weight)


def _checked(shape: tuple[int, int, int]) -> tuple[int, int, int]:
    SIZES.check(shape, "a GAN")
    return shape
