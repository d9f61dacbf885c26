"""The quantised-latent autoencoder [1]: codes of a few values per dimension, and weight decay.

[1] Hsu, Dorrell, Whittington, Wu, Finn: Disentanglement via latent quantization, NeurIPS 2023.
[2] Its authors' program: github.com/kylehkhsu/latent_quantization.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from unweave.methods.method import AUTOENCODER, Losses, Method, Player, Setting, StepContext
from unweave.nn.networks.quantised import QuantisedAutoencoder


@dataclass(frozen=True)
class QLAE(Method):
    """QLAE: quantised latents, one codebook per dimension, and weight decay.

    rec / N + lambda_quantize Q + lambda_commit C + weight_penalty W / 2; [1].

    N is the number of pixels times channels: [1] weighs means. Each dimension of the encoder's output z is
    replaced by the nearest value v of the dimension's codebook. Q = mean |sg(z) - v|^2 moves the values
    towards the codes, C = mean |z - sg(v)|^2 the codes towards the values (means over batch and latents; sg:
    stop gradient). rec is that of the decoder at v, and its gradient goes to z as if v were z
    (straight through). W is the sum of all squared weights of encoder and decoder. There is no noise and no
    prior.

    Defaults are those of [2] where it has them: 10 values and both lambdas 0.01; there are twice as many
    latents as factors, learning rate 1e-3, batches of 128.

    Differs from [1]: the weight decay is part of the loss, whose gradient Adam rescales; [1] uses the
    decoupled decay of AdamW with 0.1. Hence another name and another number. Differs from [2]: its
    decoder has style blocks, and the gradient of each weight is clipped to [-1, 1].
    """

    lambda_quantize: Setting = 0.01
    lambda_commit: Setting = 0.01
    weight_penalty: Setting = 1e-6
    values_per_latent: int = 10

    name: ClassVar[str] = "qlae"
    own_networks: ClassVar[bool] = True
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
        """Encoder, codebook and decoder, which share one objective."""
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
        """False: z is a value of the codebook."""
        return False

    @property
    def exact_weights(self) -> bool:
        """True: rounding to bfloat16 would lose the gradient of the penalty."""
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
        squared_weights = parts.squared_weights()
        loss = (
            rec / math.prod(images.shape[-3:])
            + self.lambda_quantize * quantisation
            + self.lambda_commit * commitment
            + 0.5 * self.weight_penalty * squared_weights
        )
        terms = {"reconstruction": rec, "quantisation": quantisation, "squared_weights": squared_weights}
        return Losses({AUTOENCODER: loss}, terms)
