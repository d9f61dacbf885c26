"""Tripod [1]: codes on a fixed grid, penalties on their dependence and on their interaction in the decoder.

[1] Hsu, Hamid, Burns, Finn, Wu: Tripod: three complementary inductive biases for disentangled representation
learning, ICML 2024.
[2] Its authors' program: github.com/kylehkhsu/tripod.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from torch import Tensor

from unweave.errors import UnweaveError
from unweave.methods.method import AUTOENCODER, Adam, Draws, Losses, Method, Player, Setting, StepContext
from unweave.nn.distributions.kernel_density import kernel_multiinformation
from unweave.nn.networks.hessian import Directions, normalised_hessian_penalty
from unweave.nn.networks.scalar_grid import GridAutoencoder, straight_through

RATE = 2e-4  # the learning rate of [2]
LEAST_DEVIATION = 1e-6


@dataclass(frozen=True)
class Tripod(Method):
    """Tripod: codes on a fixed grid, and penalties on their dependence and interaction.

    rec / N + lambda_klm KLM + lambda_nhp NHP; [1].

    N is the number of pixels times channels: [1] weighs means. The encoder's output becomes
    z = tanh(output), and each dimension is rounded to one of `values_per_latent` evenly spaced numbers from
    -1 to 1 (finite scalar quantisation). Gradients pass to z as if it were not rounded.

    KLM, the kernel-based latent multiinformation, is the mean over the batch of
    log q(z) - sum_d log q_d(z_d), with kernel density estimates q and q_d from the rounded codes. Bandwidths
    are proportional to the standard deviations of the codes before rounding.

    NHP, the normalised Hessian penalty, estimates the share of the off-diagonal entries in the Hessians of
    the decoder's hidden features, in units of the standard deviations of the codes. Hessians are probed by
    `num_perturbations` random directions of each kind and steps of `epsilon`. It is summed over layers.

    Defaults are those of [2] for Shapes3D. Its runs have twice as many latents as factors.

    The decoder is that of [2] with a quarter of its channels, for every architecture: Hessians need smooth
    activations. The encoder is that of the architecture.

    Differs from [2]: its encoder is a residual network of smooth activations, which gets images from -1 to 1,
    and it clips the gradient of each weight to [-1, 1].
    """

    lambda_klm: Setting = 1e-4
    """Weight of the dependence of codes."""
    lambda_nhp: Setting = 1e-2
    """Weight of the interaction of codes in the decoder."""
    epsilon: Setting = 0.1
    """Step of second differences, in standard deviations of the codes; above 0."""
    num_perturbations: int = 2
    """Random vectors of each kind for each image, 2 or more."""
    values_per_latent: int = 12
    """Values of each dimension, 2 or more."""

    name: ClassVar[str] = "tripod"
    has_prior: ClassVar[bool] = False
    own_networks: ClassVar[bool] = True
    discrete_codes: ClassVar[bool] = True
    largest_batch: ClassVar[int] = 1024
    run_defaults: ClassVar[Mapping[str, Any]] = {"steps": 250_000}
    least: ClassVar[Mapping[str, int]] = {"num_perturbations": 2, "values_per_latent": 2}
    strength: ClassVar[str | None] = "lambda_nhp"
    citation: ClassVar[str] = """@inproceedings{hsu2024tripod,
  author = {Kyle Hsu and Jubayer Ibn Hamid and Kaylee Burns and Chelsea Finn and Jiajun Wu},
  title = {Tripod: Three Complementary Inductive Biases for Disentangled Representation Learning},
  booktitle = {International Conference on Machine Learning},
  year = {2024}
}"""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.epsilon, Tensor) and self.epsilon == 0:
            raise UnweaveError(
                "epsilon of tripod, the step of second differences in deviations of the codes, must be > 0; "
                "got 0. The default is 0.1."
            )

    @property
    def players(self) -> tuple[Player, ...]:
        """Encoder and decoder, which share one objective."""
        size = self.values_per_latent
        return (
            Player(
                AUTOENCODER,
                lambda plan: GridAutoencoder(
                    plan.streams, plan.shape, plan.latents, plan.architecture, size, plan.likelihood
                ),
                Adam(learning_rate=RATE),
            ),
        )

    @property
    def stochastic(self) -> bool:
        """False: z is a value of the grid."""
        return False

    @property
    def exact_weights(self) -> bool:
        """True: second differences and the borders between two values need more digits than bfloat16 has."""
        return True

    @property
    def exact_products(self) -> bool:
        """True: while codes hardly vary, second differences are smaller than the rounding errors of TF32."""
        return True

    def losses(self, step: StepContext) -> Losses:
        """The objective of [1]."""
        parts, images = step.network(AUTOENCODER, GridAutoencoder), step.batch.images
        bounded = parts.bounded(images)
        z = straight_through(parts.quantise(bounded), bounded)
        deviation = bounded.std(dim=-2, correction=0) + LEAST_DEVIATION
        rec = parts.decoder.reconstruction(z, images, step.likelihood)
        multiinformation = kernel_multiinformation(z, deviation)
        around = self._directions(step.draws, *z.shape[-2:])
        penalty = normalised_hessian_penalty(parts.decoder.hidden, z, deviation, around, self.epsilon)
        loss = (
            rec / math.prod(images.shape[-3:])
            + self.lambda_klm * multiinformation
            + self.lambda_nhp * penalty
        )
        terms = {"reconstruction": rec, "multiinformation": multiinformation, "hessian_penalty": penalty}
        return Losses({AUTOENCODER: loss}, terms)

    def _directions(self, draws: Draws, batch: int, latents: int) -> Directions:
        rows = self.num_perturbations * batch
        uniform = draws.uniform("signs", rows, latents)
        signs = 1 - 2 * (uniform < 0.5).to(uniform.dtype)
        return Directions(signs, draws.normal("directions", rows, latents))
