"""The quantised-latent autoencoder [1]: codes made of a few values for each dimension, and small weights.

[1] Hsu, Dorrell, Whittington, Wu, Finn: Disentanglement via latent quantization, NeurIPS 2023.
[2] Its authors' program: github.com/kylehkhsu/latent_quantization.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, cast

import torch
from torch import Tensor, nn

from unweave.methods.method import AUTOENCODER, Batch, Losses, Moment, OwnNetworks, Player, Setting
from unweave.nn.distributions.gaussian import Gaussian
from unweave.nn.networks.quantised import QuantisedAutoencoder

# A code is certain. This spread, a hundredth, is below the distance of two values, and densities exist.
LOG_VAR = 2 * math.log(0.01)


@dataclass(frozen=True)
class QLAE(OwnNetworks):
    """QLAE: quantised latents, one codebook per dimension, and weight decay.

    rec / N + lambda_quantize Q + lambda_commit C + weight_penalty W / 2; [1].

    N is the number of pixels times channels: [1] weighs means. Each dimension of what the encoder gives, z,
    is replaced by the nearest value v of the dimension's codebook. Q = mean |sg(z) - v|^2 moves the values
    towards the codes, C = mean |z - sg(v)|^2 the codes towards the values (means over batch and latents; sg:
    nothing is learned through it). rec is that of the decoder at v, and its gradient goes to z as if v were z
    (straight through). W is the sum of all squared weights of encoder and decoder. There is no noise and no
    prior.

    Defaults are those of [2] where it has them: 10 values and both lambdas 0.01; there are twice as many
    latents as factors, learning rate 1e-3, batches of 128.

    Differs from [1]: weights decay through the loss, whose gradient Adam rescales with all others; in [1]
    they decay beside it, by AdamW with 0.1. Hence another name and another number. Differs from [2]: its
    decoder has style blocks, and the gradient of each weight is clipped to [-1, 1].
    """

    lambda_quantize: Setting = 0.01
    lambda_commit: Setting = 0.01
    weight_penalty: Setting = 1e-6
    values_per_latent: int = 10

    name: ClassVar[str] = "qlae"
    least: ClassVar[Mapping[str, int]] = {"values_per_latent": 2}
    strength: ClassVar[str | None] = "weight_penalty"
    citation: ClassVar[str] = """@inproceedings{hsu2023disentanglement,
  author = {Kyle Hsu and William Dorrell and James C. R. Whittington and Jiajun Wu and Chelsea Finn},
  title = {Disentanglement via Latent Quantization},
  booktitle = {Advances in Neural Information Processing Systems},
  year = {2023}
}"""

    @property
    def players(self) -> tuple[Player, ...]:
        """Encoder, codebook and decoder, which have one objective."""
        size = self.values_per_latent
        return (
            Player(
                AUTOENCODER,
                lambda plan: QuantisedAutoencoder(
                    plan.streams, plan.shape, plan.latents, plan.architecture, size, plan.likelihood
                ),
            ),
        )

    @property
    def stochastic(self) -> bool:
        """z is a value of the codebook."""
        return False

    @property
    def exact_weights(self) -> bool:
        """The penalty's gradient is lost in the rounding of bfloat16."""
        return True

    def losses(self, batch: Batch, networks: Mapping[str, nn.Module], moment: Moment) -> Losses:
        """The objective of [1]."""
        parts = _parts(networks)
        z = parts.encoder(batch.images).mean
        values = parts.codebook(z)
        straight_through = values.detach() + (z - z.detach())
        rec = parts.decoder.reconstruction(straight_through, batch.images, moment.likelihood)
        quantisation = (z.detach() - values).square().mean((-2, -1))
        commitment = (z - values.detach()).square().mean((-2, -1))
        squared_weights = parts.squared_weights()
        loss = (
            rec / math.prod(batch.images.shape[-3:])
            + self.lambda_quantize * quantisation
            + self.lambda_commit * commitment
            + 0.5 * self.weight_penalty * squared_weights
        )
        terms = {"reconstruction": rec, "quantisation": quantisation, "squared_weights": squared_weights}
        return Losses({AUTOENCODER: loss}, terms)

    def encode(self, networks: Mapping[str, nn.Module], images: Tensor) -> Gaussian:
        """The values, shifted and scaled alike in all dimensions so that the codebook goes from -2 to 2."""
        parts = _parts(networks)
        middle, unit = parts.codebook.span()
        codes = (parts.codebook(parts.encoder(images).mean) - middle) / unit
        return Gaussian(codes, torch.full_like(codes, LOG_VAR))

    def decode(self, networks: Mapping[str, nn.Module], codes: Tensor) -> Tensor:
        """Logits of the nearest values: the decoder knows no others."""
        parts = _parts(networks)
        middle, unit = parts.codebook.span()
        logits: Tensor = parts.decoder(parts.codebook(middle + unit * codes))
        return logits


def _parts(networks: Mapping[str, nn.Module]) -> QuantisedAutoencoder:
    return cast(QuantisedAutoencoder, networks[AUTOENCODER])
