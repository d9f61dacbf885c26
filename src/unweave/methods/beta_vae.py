"""beta-VAE [1]: more weight on the divergence from the prior.

[1] Higgins et al.: beta-VAE: learning basic visual concepts with a constrained variational framework,
ICLR 2017.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from unweave.methods.method import AUTOENCODER, Losses, Method, Setting, StepContext, elbo_terms


@dataclass(frozen=True)
class BetaVAE(Method):
    """beta-VAE: the KL divergence from the prior is weighted by beta.

    rec + beta KL; [1], equation 4. beta = 1 is the VAE.

    beta weighs sums over pixels and latents; it is not the normalised beta that [1] also plots.
    """

    beta: Setting = 4.0
    """Weight of the KL divergence from the prior."""

    name: ClassVar[str] = "beta_vae"
    strength: ClassVar[str | None] = "beta"
    citation: ClassVar[str] = """@inproceedings{higgins2017betavae,
  author = {Irina Higgins and Loic Matthey and Arka Pal and Christopher Burgess and Xavier Glorot and
            Matthew Botvinick and Shakir Mohamed and Alexander Lerchner},
  title = {{beta-VAE}: Learning Basic Visual Concepts with a Constrained Variational Framework},
  booktitle = {International Conference on Learning Representations},
  year = {2017}
}"""

    def losses(self, step: StepContext) -> Losses:
        """The objective of [1], negated."""
        forward = step.forward
        return Losses({AUTOENCODER: forward.reconstruction + self.beta * forward.kl}, elbo_terms(forward))
