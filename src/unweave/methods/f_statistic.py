"""F-statistic loss [1]: a few dimensions of the code separate any two values of a factor.

[1] Ridgeway, Mozer: Learning deep disentangled embeddings with the F-statistic loss, NeurIPS 2018.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn

from unweave.data.supervision import Perfect
from unweave.errors import UnweaveError
from unweave.methods.method import Blueprint, Losses, Method, Player, StepContext
from unweave.methods.sampling import Labels, Sampling
from unweave.nn.distributions.categorical import indicators
from unweave.nn.distributions.f_distribution import log_f_cdf
from unweave.nn.distributions.gaussian import Gaussian, certain
from unweave.nn.networks.vae import Decoder

ENCODER, DECODER = "encoder", "decoder"
TINY = 1e-12  # added to sums of squares, so that equal codes have a gradient


class Embedding(nn.Module):
    """The usual encoder, and the number of values of each factor."""

    def __init__(self, plan: Blueprint) -> None:
        super().__init__()
        self.encoder = plan.encoder()
        self.sizes = plan.label_sizes

    def forward(self, images: Tensor) -> Tensor:
        """Codes (P, B, D): posterior means."""
        mean: Tensor = self.encoder(images).mean
        return mean

    def encode(self, images: Tensor) -> Gaussian:
        """Codes with a negligible variance."""
        return certain(self(images))


@dataclass(frozen=True)
class FStatistic(Method):
    """F-statistic loss: learns from labels dimensions that separate the values of factors.

    -sum over factors, mean over pairs of their values, sum over the d best dimensions of log Pr(S < s).

    s is the F statistic of a dimension for the images of two values: the variance between them over the
    variance within, with 1 and n_1 + n_2 - 2 degrees of freedom; Pr(S < s) is the regularised incomplete beta
    function I_x(1/2, (n_1 + n_2 - 2) / 2) at x = between / (between + within); [1], section 2. The d most
    separated dimensions are chosen for each pair, and the others are unconstrained. Only the labelled images
    train the encoder. A decoder is trained on its codes to visualise them, and does not change the encoder.

    Differs from [1]: a batch is drawn at random, and all factors are used at each step, with the mean over
    pairs, so that a factor of many values weighs as much as one of few; the authors take batches of 12 values
    with 5 images of one factor after another, and sum over pairs. As in [1], values with fewer than two
    images in a batch are left out. The F statistic is exact; the authors' code uses the mean of the two group
    means as the overall mean, which is the same where n_1 = n_2.
    """

    labels: int = 1000
    d: int = 2

    name: ClassVar[str] = "f_statistic"
    own_networks: ClassVar[bool] = True
    least: ClassVar[Mapping[str, int]] = {"labels": 1, "d": 1}
    citation: ClassVar[str] = """@inproceedings{ridgeway2018fstatistic,
  author = {Karl Ridgeway and Michael C. Mozer},
  title = {Learning Deep Disentangled Embeddings With the {F}-Statistic Loss},
  booktitle = {Advances in Neural Information Processing Systems},
  volume = {31},
  year = {2018}
}"""

    @property
    def players(self) -> tuple[Player, ...]:
        """The encoder, and a decoder for pictures."""
        return Player(ENCODER, Embedding), Player(DECODER, _decoder)

    @property
    def sampling(self) -> Sampling:
        """Labels of all factors."""
        return Labels(self.labels, Perfect())

    @property
    def stochastic(self) -> bool:
        """False: codes are deterministic."""
        return False

    def losses(self, step: StepContext) -> Losses:
        """The objective of [1], negated, and the reconstruction loss for the decoder."""
        encoder, decoder = step.network(ENCODER, Embedding), step.network(DECODER, Decoder)
        images, labelled = step.batch.images, step.labelled
        codes = encoder(labelled.images)
        if self.d > codes.shape[-1]:
            raise UnweaveError(f"f_statistic needs at least d = {self.d} latents; got {codes.shape[-1]}.")
        factors = [
            separation(codes, labelled.labels[..., factor], size, self.d)
            for factor, size in enumerate(encoder.sizes)
        ]
        with torch.no_grad():
            image_codes = encoder(images)
        reconstruction = decoder.reconstruction(image_codes, images, step.likelihood)
        separated = torch.stack(factors).sum(0)
        return Losses(
            {ENCODER: -separated, DECODER: reconstruction},
            {"separation": separated, "reconstruction": reconstruction},
        )


def separation(codes: Tensor, labels: Tensor, size: int, dimensions: int) -> Tensor:
    """(...): how confidently codes (..., B, D) separate the values of a label (..., B), at most 0.

    The mean, over pairs of values with two images or more each, of the sum of log Pr(S < s) over the
    dimensions in which the pair is most separated; 0 where there is no such pair.
    """
    belongs = indicators(labels, size, codes)  # (..., B, size)
    counts = belongs.sum(-2)
    # No matrix products: a GPU may compute them in the lower precision of the networks.
    means = (belongs.unsqueeze(-1) * codes.unsqueeze(-2)).sum(-3) / counts.clamp(min=1).unsqueeze(-1)
    distances = (codes.unsqueeze(-2) - means.unsqueeze(-3)).square()
    squares = (belongs.unsqueeze(-1) * distances).sum(-3)  # (..., size, D)
    i, j = torch.triu_indices(size, size, 1, device=codes.device)
    first, second = counts[..., i], counts[..., j]
    weight = first * second / (first + second).clamp(min=1)
    between = weight.unsqueeze(-1) * (means[..., i, :] - means[..., j, :]).square()
    within = squares[..., i, :] + squares[..., j, :]
    freedom = (first + second - 2).clamp(min=1).unsqueeze(-1).expand_as(within)
    confidence = log_f_cdf(between + TINY, within + TINY, freedom).topk(dimensions, dim=-1).values.sum(-1)
    is_counted = (torch.minimum(first, second) >= 2).to(codes.dtype)
    return (confidence * is_counted).sum(-1) / is_counted.sum(-1).clamp(min=1)


def _decoder(plan: Blueprint) -> Decoder:
    return plan.decoder()
