"""The quantised-latent autoencoder [1]: codes of a few values per dimension, and decoupled weight decay.

[1] Hsu, Dorrell, Whittington, Wu, Finn: Disentanglement via latent quantization, NeurIPS 2023.
[2] Its authors' program: github.com/kylehkhsu/latent_quantization.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from unweave.methods.method import AUTOENCODER, AdamW, Blueprint, Losses, Method, Player, Setting, StepContext
from unweave.nn.networks.quantised import QuantisedAutoencoder, separate_codebooks

RATE = 1e-3  # the learning rate of [2]


@dataclass(frozen=True)
class QLAE(Method):
    """QLAE: quantised latents, one codebook per dimension, and decoupled weight decay.

    rec / N + lambda_quantize Q + lambda_commit C, minimised by AdamW with weight decay `decay`; [1].

    N is the number of pixels times channels: [1] weighs means. Each dimension of the encoder's output z is
    replaced by the nearest value v of the dimension's codebook. Q = mean |sg(z) - v|^2 moves the values
    towards the codes, C = mean |z - sg(v)|^2 the codes towards the values (means over batch and latents; sg:
    stop gradient). rec is that of the decoder at v, and its gradient goes to z as if v were z
    (straight through). There is no noise and no prior. With lambda_quantize = 0 the codebook stays fixed.

    At each update, weights also shrink by the learning rate 1e-3 times `decay`. Biases and the codebook do
    not, as in [2].

    Defaults are those of [2]: 10 values, both lambdas 0.01, decay 0.1. Its runs have twice as many latents as
    factors, batches of 128 and 200,000 updates.

    Differs from [2]: its decoder has style blocks, and it clips the gradient of each weight to [-1, 1], which
    gradients of mean losses do not reach.
    """

    lambda_quantize: Setting = 0.01
    """Weight of the term that moves the values towards the codes; 0: the codebook stays fixed."""
    lambda_commit: Setting = 0.01
    """Weight of the term that moves the codes towards the values."""
    decay: Setting = 0.1
    """Weight decay of AdamW."""
    values_per_latent: int = 10
    """Values of each dimension, 2 or more."""

    name: ClassVar[str] = "qlae"
    has_prior: ClassVar[bool] = False
    own_networks: ClassVar[bool] = True
    discrete_codes: ClassVar[bool] = True
    run_defaults: ClassVar[Mapping[str, Any]] = {"batch": 128, "steps": 200_000}
    least: ClassVar[Mapping[str, int]] = {"values_per_latent": 2}
    strength: ClassVar[str | None] = "decay"
    citation: ClassVar[str] = """@inproceedings{hsu2023disentanglement,
  author = {Kyle Hsu and William Dorrell and James C. R. Whittington and Jiajun Wu and Chelsea Finn},
  title = {Disentanglement via Latent Quantization},
  booktitle = {Advances in Neural Information Processing Systems},
  year = {2023}
}"""

    @property
    def players(self) -> tuple[Player, ...]:
        """Encoder, codebook and decoder, which share one objective."""
        return (
            Player(
                AUTOENCODER,
                self._autoencoder,
                AdamW(learning_rate=RATE, weight_decay=self.decay, decayed="weights"),
            ),
        )

    def _autoencoder(self, plan: Blueprint) -> QuantisedAutoencoder:
        codebook = separate_codebooks(len(plan.streams), plan.latents, self.values_per_latent)
        return QuantisedAutoencoder(
            plan.streams, plan.shape, plan.latents, plan.architecture, codebook, plan.likelihood
        )

    @property
    def stochastic(self) -> bool:
        """False: z is a value of the codebook."""
        return False

    @property
    def exact_weights(self) -> bool:
        """True: with weights in bfloat16, codes would often cross the border between two values."""
        return True

    def losses(self, step: StepContext) -> Losses:
        """The objective of [1]."""
        parts, images = step.network(AUTOENCODER, QuantisedAutoencoder), step.batch.images
        z = parts.encoder(images).mean
        values = parts.codebook(z)
        straight_through = values.detach() + (z - z.detach())
        rec = parts.decoder.reconstruction(straight_through, images, step.likelihood)
        quantisation = (z.detach() - values).square().mean((-2, -1))
        commitment = (z - values.detach()).square().mean((-2, -1))
        loss = (
            rec / math.prod(images.shape[-3:])
            + self.lambda_quantize * quantisation
            + self.lambda_commit * commitment
        )
        squared_weights = parts.squared_weights().detach()
        terms = {"reconstruction": rec, "quantisation": quantisation, "squared_weights": squared_weights}
        return Losses({AUTOENCODER: loss}, terms)
