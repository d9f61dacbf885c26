"""The adversarial autoencoder [1]: the encoder makes its codes look like draws from the prior.

[1] Makhzani, Shlens, Jaitly, Goodfellow, Frey: Adversarial autoencoders, 2015.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal, TypeAlias

from unweave.methods.method import (
    AUTOENCODER,
    Adam,
    Losses,
    Method,
    Player,
    Setting,
    StepContext,
    code_discriminator,
)
from unweave.nn.distributions.divergences import judge

Posterior: TypeAlias = Literal["deterministic", "gaussian"]

DISCRIMINATOR = "discriminator"
CITATION = """@article{makhzani2015adversarial,
  author = {Alireza Makhzani and Jonathon Shlens and Navdeep Jaitly and Ian Goodfellow and Brendan Frey},
  title = {Adversarial Autoencoders},
  journal = {arXiv preprint arXiv:1511.05644},
  year = {2015}
}"""


@dataclass(frozen=True)
class AAE(Method):
    """Adversarial autoencoder: a discriminator matches the codes to the prior.

    rec - adversarial_weight mean log(1 - D(z)); [1], section 2, without labels or clusters.

    D(z) is the probability that z is a code and not a draw from the prior N(0, I). The discriminator
    minimises -(mean log D(z) + mean log(1 - D(y))) / 2 over codes z and as many draws y. The encoder
    minimises the non-saturating loss, whose gradient does not vanish where the discriminator is certain.

    `posterior` deterministic: z = mean of q(z|x), and its log_var is never trained. gaussian: z is drawn from
    q(z|x); only the two losses constrain its noise.

    Differs from [1]: in [1] encoder and decoder make a step for rec, then the discriminator, then the encoder
    again against it, each by its own stochastic gradient descent. Here all are updated at once, from one
    forward pass, by Adam; adversarial_weight, which the paper does not have, stands for the ratio of the two
    learning rates. The discriminator has leaky ReLU. The paper's third posterior, a network with noise among
    its inputs, is not implemented.
    """

    adversarial_weight: Setting = 10.0
    posterior: Posterior = "deterministic"

    name: ClassVar[str] = "aae"
    strength: ClassVar[str | None] = "adversarial_weight"
    citation: ClassVar[str] = CITATION

    @property
    def players(self) -> tuple[Player, ...]:
        """The discriminator."""
        adam = Adam(learning_rate=1e-4, beta1=0.5, beta2=0.9, epsilon=1e-8)
        return (Player(DISCRIMINATOR, code_discriminator(depth=2), adam),)

    @property
    def stochastic(self) -> bool:
        """Whether z is drawn from q(z|x)."""
        return self.posterior == "gaussian"

    def losses(self, step: StepContext) -> Losses:
        """The objectives of the autoencoder and of the discriminator."""
        forward = step.forward
        codes = forward.sample
        prior = step.draws.normal("prior", *codes.shape[-2:])
        verdict = judge(step.networks[DISCRIMINATOR], codes, prior)
        players = {
            AUTOENCODER: forward.reconstruction + self.adversarial_weight * verdict.exposure,
            DISCRIMINATOR: verdict.loss,
        }
        terms = {
            "reconstruction": forward.reconstruction,
            "adversarial": verdict.exposure,
            "discriminator_accuracy": verdict.accuracy,
        }
        return Losses(players, terms)
