"""AnnealedVAE [1]: the information that codes may carry grows during training.

[1] Burgess et al.: Understanding disentangling in beta-VAE, arXiv 1804.03599, 2018.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from unweave.errors import UnweaveError
from unweave.methods.method import AUTOENCODER, Losses, Method, Setting, StepContext, elbo_terms, growth

SHARE = 1 / 3  # of the steps of a run that is shorter than iteration_threshold


@dataclass(frozen=True)
class AnnealedVAE(Method):
    """AnnealedVAE: the capacity of the codes grows during training.

    rec + gamma |KL - C|, C = c_max min(1, step / iteration_threshold), in nats; [1], equation 8.

    KL is the mean over the batch: the capacity C binds the batch, not each image. A run that has fewer steps
    than iteration_threshold reaches c_max after a third of its steps, as the published runs of 300,000 do.
    """

    gamma: Setting = 1000.0
    """Weight of the distance from the capacity."""
    c_max: Setting = 25.0
    """The largest capacity, in nats."""
    iteration_threshold: Setting = 100_000.0
    """The update at which the capacity is c_max; 1 means from the start."""

    name: ClassVar[str] = "annealed_vae"
    strength: ClassVar[str | None] = "c_max"
    citation: ClassVar[str] = """@article{burgess2018understanding,
  author = {Christopher P. Burgess and Irina Higgins and Arka Pal and Loic Matthey and Nick Watters and
            Guillaume Desjardins and Alexander Lerchner},
  title = {Understanding disentangling in {beta-VAE}},
  journal = {arXiv preprint arXiv:1804.03599},
  year = {2018}
}"""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.iteration_threshold, Tensor) and self.iteration_threshold == 0:
            raise UnweaveError(
                "iteration_threshold of annealed_vae must be > 0; got 0. Use 1 to have all of c_max at once."
            )

    def losses(self, step: StepContext) -> Losses:
        """The objective of [1], negated."""
        forward = step.forward
        kl = forward.kl
        capacity = self.c_max * growth(step, self.iteration_threshold, SHARE, kl)
        loss = forward.reconstruction + self.gamma * (kl - capacity).abs()
        return Losses({AUTOENCODER: loss}, elbo_terms(forward) | {"capacity": capacity.expand_as(kl)})
