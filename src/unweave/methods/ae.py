"""The plain autoencoder [1]: a reconstruction loss without constraints on the codes.

[1] Hinton, Salakhutdinov: Reducing the dimensionality of data with neural networks, Science 313, 2006.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from unweave.methods.method import AUTOENCODER, Losses, Method, StepContext


@dataclass(frozen=True)
class AE(Method):
    """The plain autoencoder: reconstruction only, no noise and no prior.

    rec, at z = mean of q(z|x): no noise and no prior. The encoder's log_var is never trained.

    Differs from [1]: the whole network is trained at once, without pretraining layer by layer.
    """

    name: ClassVar[str] = "ae"
    has_prior: ClassVar[bool] = False
    citation: ClassVar[str] = """@article{hinton2006autoencoder,
  author = {Geoffrey E. Hinton and Ruslan R. Salakhutdinov},
  title = {Reducing the dimensionality of data with neural networks},
  journal = {Science},
  volume = {313},
  number = {5786},
  pages = {504--507},
  year = {2006}
}"""

    @property
    def stochastic(self) -> bool:
        """False: z is the mean."""
        return False

    def losses(self, step: StepContext) -> Losses:
        """The reconstruction loss."""
        forward = step.forward
        return Losses({AUTOENCODER: forward.reconstruction}, {"reconstruction": forward.reconstruction})
