"""FactorQVAE [1]: a discrete VAE with one codebook of numbers, and a penalty on the total correlation.

[1] Baykal, Kandemir, Unal: Disentanglement with factor quantized variational autoencoders, 2024.
[2] Its authors' program: github.com/ituvisionlab/FactorQVAE.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from unweave.errors import UnweaveError
from unweave.methods.factor_vae import DISCRIMINATOR, discriminator_loss, log_ratio
from unweave.methods.method import (
    AUTOENCODER,
    Adam,
    Blueprint,
    Draws,
    Losses,
    Method,
    Player,
    Setting,
    StepContext,
)
from unweave.nn.distributions.divergences import accuracy
from unweave.nn.networks.quantised import QuantisedAutoencoder, shared_codebook
from unweave.nn.networks.vae import Discriminator

RATE = 1e-3  # of both players in [2]
FINAL_TEMPERATURE = math.exp(-1)
WIDTH, DEPTH = 1000, 5  # hidden layers of the discriminator of [2]


@dataclass(frozen=True)
class FactorQVAE(Method):
    """FactorQVAE: codes share one codebook of numbers; penalises the total correlation.

    rec / N + kl_weight KL / D + gamma TC; [1].

    N is the number of pixels times channels, D that of latents: [2] weighs means. All latents share a learned
    codebook of `num_embeddings` K numbers v. The encoder's output z of a latent gives the probabilities
    q_k = softmax_k(-(z - v_k)^2). KL = sum over latents of log K - H(q), the divergence from equal
    probabilities.

    In training each latent has relaxed indicators w = softmax((log q + g) / T) with Gumbel noise g, and the
    decoder gets sum_k w_k v_k. T falls from 1 to `final_temperature` as T = final_temperature^t, where t is
    the elapsed share of the steps. Trained codes are the nearest values.

    TC = mean log D(w) / (1 - D(w)) as in `FactorVAE`. The discriminator D gets the D K numbers w of an image,
    and minimises -(mean log D(w) + mean log(1 - D(w_shuffled))) / 2, where the indicators of each latent are
    permuted over the batch.

    Defaults are those of [2] for Shapes3D: squared errors (`likelihood` gaussian), batches of 256 and 50,000
    updates. Both learning rates are 1e-3 and fall to 0 as half a cosine. Its runs have twice as many latents
    as factors.

    Differs from [2]: its networks are deeper. Shuffled indicators are those of the same batch, there of a
    second one. Both players are updated at once, and rates fall to 0 instead of 1.25e-6. The
    output is a sigmoid; there it is linear.
    """

    kl_weight: Setting = 1e-3
    """Weight of the divergence from equal probabilities."""
    gamma: Setting = 1e-4
    """Weight of the total correlation."""
    final_temperature: Setting = FINAL_TEMPERATURE
    """Temperature at the end of training, exp(-1); above 0."""
    num_embeddings: int = 64
    """Values of the codebook, 2 or more."""

    name: ClassVar[str] = "factor_qvae"
    has_prior: ClassVar[bool] = False
    own_networks: ClassVar[bool] = True
    discrete_codes: ClassVar[bool] = True
    run_defaults: ClassVar[Mapping[str, Any]] = {"batch": 256, "steps": 50_000, "likelihood": "gaussian"}
    least: ClassVar[Mapping[str, int]] = {"num_embeddings": 2}
    strength: ClassVar[str | None] = "gamma"
    citation: ClassVar[str] = """@article{baykal2024disentanglement,
  author = {Gulcin Baykal and Melih Kandemir and Gozde Unal},
  title = {Disentanglement with Factor Quantized Variational Autoencoders},
  journal = {arXiv preprint arXiv:2409.14851},
  year = {2024}
}"""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.final_temperature, Tensor) and self.final_temperature == 0:
            raise UnweaveError("final_temperature of factor_qvae must be > 0; got 0. The default is 0.368.")

    @property
    def players(self) -> tuple[Player, ...]:
        """Encoder, codebook and decoder; and the discriminator."""
        adam = Adam(learning_rate=RATE)
        return (
            Player(AUTOENCODER, self._autoencoder, adam, schedule="cosine"),
            Player(DISCRIMINATOR, self._discriminator, adam, schedule="cosine"),
        )

    def _autoencoder(self, plan: Blueprint) -> QuantisedAutoencoder:
        codebook = shared_codebook(plan.streams, self.num_embeddings)
        return QuantisedAutoencoder(
            plan.streams, plan.shape, plan.latents, plan.architecture, codebook, plan.likelihood
        )

    def _discriminator(self, plan: Blueprint) -> Discriminator:
        return Discriminator(plan.streams, plan.latents * self.num_embeddings, WIDTH, DEPTH)

    @property
    def exact_weights(self) -> bool:
        """True: with weights in bfloat16, codes would often cross the border between two values."""
        return True

    def losses(self, step: StepContext) -> Losses:
        """The objectives of both players."""
        parts, images = step.network(AUTOENCODER, QuantisedAutoencoder), step.batch.images
        posterior = parts.codebook.posterior(parts.encoder(images).mean)
        _, batch, latents, size = posterior.log_probabilities.shape
        uniform = step.draws.uniform("gumbel", batch, latents * size).unflatten(-1, (latents, size))
        temperature = self.temperature(step, uniform)
        chosen = posterior.sample(uniform, temperature.reshape(-1, 1, 1, 1))
        rec = parts.decoder.reconstruction(parts.codebook.mixed(chosen), images, step.likelihood)
        kl = posterior.kl_to_uniform().sum(-1).mean(-1)
        shuffled_indicators = shuffle_indicators(chosen.detach(), step.draws)
        both = torch.cat([chosen, shuffled_indicators], dim=1).flatten(-2)
        joint, shuffled = log_ratio(step.networks[DISCRIMINATOR](both)).chunk(2, dim=-1)
        total_correlation = joint.mean(-1)
        pixels = math.prod(images.shape[-3:])
        players = {
            AUTOENCODER: rec / pixels + self.kl_weight * kl / latents + self.gamma * total_correlation,
            DISCRIMINATOR: discriminator_loss(joint, shuffled),
        }
        terms = {
            "reconstruction": rec,
            "kl": kl,
            "total_correlation": total_correlation,
            "discriminator_accuracy": accuracy(joint, shuffled),
            "temperature": temperature.expand(len(rec)),
        }
        return Losses(players, terms)

    def temperature(self, step: StepContext, like: Tensor) -> Tensor:
        """T at this step, (1,) or (P,), with the type and device of `like`."""
        elapsed = torch.as_tensor(step.step, dtype=like.dtype, device=like.device) / step.steps
        return self.final_temperature ** elapsed.reshape(-1)


def shuffle_indicators(indicators: Tensor, draws: Draws) -> Tensor:
    """(P, B, D, K): indicators with each latent's permuted independently over the batch."""
    batch, latents, size = indicators.shape[-3:]
    orders = draws.permutations("shuffle", latents, batch).mT
    return indicators.gather(-3, orders.unsqueeze(-1).expand(*orders.shape, size))
