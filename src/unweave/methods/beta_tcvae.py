"""beta-TCVAE [1]: more weight on the total correlation of the codes alone.

[1] Chen, Li, Grosse, Duvenaud: Isolating sources of disentanglement in VAEs, NeurIPS 2018.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from unweave.methods.method import AUTOENCODER, Losses, Method, Setting, StepContext, elbo_terms
from unweave.nn.distributions.gaussian import Estimator, decomposition


@dataclass(frozen=True)
class BetaTCVAE(Method):
    """beta-TCVAE: penalises the total correlation, estimated from the batch.

    rec + alpha I(z; n) + beta TC + gamma sum_d KL(q(z_d) || p(z_d)); [1], equation 4.

    The three add up to KL on average over the data, so alpha = gamma = 1 leaves rec + KL + (beta - 1) TC, and
    alpha = beta = gamma = 1 is the VAE. `estimator` says how q(z) and q(z_d) are estimated from a batch: see
    `unweave.nn.distributions.gaussian.aggregate`.

    Differs from [1]: computed as rec + KL + (alpha - 1) I + (beta - 1) TC + (gamma - 1) sum_d KL_d with KL in
    closed form, which has the same mean and less noise. The published models leave out the constants of
    weighted sampling: their total correlation is lower by (D - 1) log(N M), their gradients are the same.
    """

    alpha: Setting = 1.0
    """Weight of the mutual information."""
    beta: Setting = 6.0
    """Weight of the total correlation."""
    gamma: Setting = 1.0
    """Weight of the divergences of the dimensions."""
    estimator: Estimator = "weighted"
    """Estimator of the aggregate posterior: weighted or stratified."""

    name: ClassVar[str] = "beta_tcvae"
    strength: ClassVar[str | None] = "beta"
    citation: ClassVar[str] = """@inproceedings{chen2018isolating,
  author = {Ricky T. Q. Chen and Xuechen Li and Roger B. Grosse and David K. Duvenaud},
  title = {Isolating Sources of Disentanglement in Variational Autoencoders},
  booktitle = {Advances in Neural Information Processing Systems},
  volume = {31},
  year = {2018}
}"""

    def losses(self, step: StepContext) -> Losses:
        """The objective of [1], negated."""
        forward = step.forward
        parts = decomposition(forward.posterior, forward.sample, step.data_size, self.estimator)
        loss = (
            forward.reconstruction
            + forward.kl
            + (self.alpha - 1) * parts.mutual_information
            + (self.beta - 1) * parts.total_correlation
            + (self.gamma - 1) * parts.dimension_wise_kl
        )
        terms = {
            "mutual_information": parts.mutual_information,
            "total_correlation": parts.total_correlation,
            "dimension_wise_kl": parts.dimension_wise_kl,
        }
        return Losses({AUTOENCODER: loss}, elbo_terms(forward) | terms)
