"""FactorVAE [1]: a discriminator measures the total correlation of the codes.

[1] Kim, Mnih: Disentangling by Factorising, ICML 2018.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from unweave.methods.method import (
    AUTOENCODER,
    Adam,
    Draws,
    Losses,
    Method,
    Player,
    Setting,
    StepContext,
    code_discriminator,
    elbo_terms,
)
from unweave.nn.distributions.divergences import accuracy

DISCRIMINATOR = "discriminator"


@dataclass(frozen=True)
class FactorVAE(Method):
    """FactorVAE: penalises the total correlation, estimated by a discriminator.

    rec + KL + gamma TC, TC = mean_batch log D(z) / (1 - D(z)); [1], equations 2 and 3.

    The discriminator gives two logits; D = softmax(logits)_0 is the probability that z is a code and not one
    with shuffled dimensions, so log D / (1 - D) = logit_0 - logit_1. It minimises
    -(mean log D(z) + mean log(1 - D(z_shuffled))) / 2, where each dimension of z_shuffled is
    permuted independently over the batch.

    Differs from [1]: both players are updated at once, from one forward pass; and, as in the published
    models, the shuffled codes are those of the same batch. second_batch=True uses a second batch, as in the
    paper's algorithm 2. Differs from the published models: their discriminator's loss clips probabilities to
    [1e-6, 1 - 1e-6], beyond which its gradient is zero; here it comes from the logits and is never clipped.
    """

    gamma: Setting = 10.0
    """Weight of the total correlation."""
    second_batch: bool = False
    """Shuffle the codes of a second batch, as in the paper's algorithm 2."""

    name: ClassVar[str] = "factor_vae"
    # The published models counted the updates of both players: their 300,000 steps are 150,000 of these.
    run_defaults: ClassVar[Mapping[str, Any]] = {"steps": 150_000}
    strength: ClassVar[str | None] = "gamma"
    citation: ClassVar[str] = """@inproceedings{kim2018factorvae,
  author = {Hyunjik Kim and Andriy Mnih},
  title = {Disentangling by Factorising},
  booktitle = {International Conference on Machine Learning},
  year = {2018}
}"""

    @property
    def players(self) -> tuple[Player, ...]:
        """The discriminator."""
        adam = Adam(learning_rate=1e-4, beta1=0.5, beta2=0.9, epsilon=1e-8)
        return (Player(DISCRIMINATOR, code_discriminator(), adam),)

    @property
    def second_batch_needed(self) -> bool:
        """Whether the codes that are shuffled come from a second batch."""
        return self.second_batch

    def losses(self, step: StepContext) -> Losses:
        """The objectives of the autoencoder and of the discriminator."""
        forward = step.forward
        discriminator = step.networks[DISCRIMINATOR]
        # Only the discriminator gets a gradient through the shuffled codes. It gets both halves in one batch:
        # reading its weights, six layers of 1000, takes most of the time.
        to_shuffle = step.second_sample if self.second_batch else forward.sample
        shuffled_codes = shuffle(to_shuffle.detach(), step.draws)
        both = log_ratio(discriminator(torch.cat([forward.sample, shuffled_codes], dim=-2)))
        joint, shuffled = both.chunk(2, dim=-1)
        total_correlation = joint.mean(-1)
        players = {
            AUTOENCODER: forward.reconstruction + forward.kl + self.gamma * total_correlation,
            DISCRIMINATOR: discriminator_loss(joint, shuffled),
        }
        terms = {"total_correlation": total_correlation, "discriminator_accuracy": accuracy(joint, shuffled)}
        return Losses(players, elbo_terms(forward) | terms)


def shuffle(codes: Tensor, draws: Draws) -> Tensor:
    """(..., B, D): codes with each dimension permuted independently over the batch."""
    batch, latents = codes.shape[-2:]
    orders = draws.permutations("shuffle", latents, batch)
    return codes.gather(-2, orders.mT)


def log_ratio(logits: Tensor) -> Tensor:
    """(..., B): log D / (1 - D)."""
    return logits[..., 0] - logits[..., 1]


def discriminator_loss(joint: Tensor, shuffled: Tensor) -> Tensor:
    """(...): -(mean log D(z) + mean log(1 - D(z_shuffled))) / 2 from log ratios (..., B)."""
    return -0.5 * (logsigmoid(joint).mean(-1) + logsigmoid(-shuffled).mean(-1))
