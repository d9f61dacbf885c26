"""A VAE whose codes are pushed towards 0, so that few of them are used for an image."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from unweave.methods.method import AUTOENCODER, Losses, Method, Setting, StepContext, elbo_terms


@dataclass(frozen=True)
class SparseVAE(Method):
    """Sparse VAE: adds the absolute size of the mean codes to the loss of the beta-VAE.

    rec + beta KL + weight sum_j |mean_j|, mean over the batch.
    """

    beta: Setting = 1.0
    weight: Setting = 0.1

    name: ClassVar[str] = "sparse_vae"
    strength: ClassVar[str | None] = "weight"
    citation: ClassVar[str] = """@misc{sparse_vae,
  author = {The unweave authors},
  title = {An example of a plug-in},
  year = {2026}
}"""

    def losses(self, step: StepContext) -> Losses:
        """The objective; `abs_code` is written to the log."""
        forward = step.forward
        # (..., B, D) -> (...): sum over latents, mean over the batch; runs are never mixed.
        abs_code = forward.posterior.mean.abs().sum(-1).mean(-1)
        objective = forward.reconstruction + self.beta * forward.kl + self.weight * abs_code
        return Losses({AUTOENCODER: objective}, elbo_terms(forward) | {"abs_code": abs_code})
