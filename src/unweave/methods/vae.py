"""The variational autoencoder [1], the baseline of the other methods.

[1] Kingma, Welling: Auto-Encoding Variational Bayes, ICLR 2014.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from unweave.methods.method import AUTOENCODER, Losses, Method, StepContext, elbo_terms


@dataclass(frozen=True)
class VAE(Method):
    """The variational autoencoder, the baseline of all other VAE methods.

    rec + KL: the negative evidence lower bound; [1], equation 3.

    rec = -E log p(x|z), estimated with one z for each x. KL = KL(q(z|x) || N(0, I)), in closed form.
    """

    name: ClassVar[str] = "vae"
    citation: ClassVar[str] = """@inproceedings{kingma2014vae,
  author = {Diederik P. Kingma and Max Welling},
  title = {Auto-Encoding Variational {Bayes}},
  booktitle = {International Conference on Learning Representations},
  year = {2014}
}"""

    def losses(self, step: StepContext) -> Losses:
        """The negative evidence lower bound."""
        forward = step.forward
        return Losses({AUTOENCODER: forward.reconstruction + forward.kl}, elbo_terms(forward))
