"""InfoVAE [1]: the codes of all images together are matched to the prior.

[1] Zhao, Song, Ermon: InfoVAE: balancing learning and inference in variational autoencoders, AAAI 2019.
[2] Makhzani, Shlens, Jaitly, Goodfellow, Frey: Adversarial autoencoders, 2015.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal, TypeAlias

import torch
from torch import Tensor

from unweave.errors import UnweaveError
from unweave.methods.method import (
    AUTOENCODER,
    Adam,
    Losses,
    Method,
    Player,
    Setting,
    StepContext,
    code_discriminator,
    elbo_terms,
)
from unweave.nn.distributions.divergences import (
    Bandwidth,
    judge,
    kernel_bandwidth,
    mmd,
    stein_discrepancy,
    stein_surrogate,
)

Divergence: TypeAlias = Literal["mmd", "stein", "adversarial"]

DISCRIMINATOR = "discriminator"
LAMBDAS: dict[Divergence, float] = {"mmd": 1000.0, "stein": 20.0, "adversarial": 10.0}


@dataclass(frozen=True)
class InfoVAE(Method):
    """InfoVAE: matches the codes of all images together to the prior.

    rec + (1 - alpha) KL(q(z|x) || p(z)) + (alpha + lambda - 1) D(q(z) || p(z)); [1], negated.

    alpha = 0 and lambda = 1 is the VAE. alpha = 1 removes the KL of each image and so does not limit the
    information of its code. D compares the codes of a batch with the prior:

    mmd: the squared maximum mean discrepancy of codes and as many draws from the prior.
    stein: codes move along Stein's variational gradient, by the surrogate -mean z . phi(z) with phi held
    fixed. It follows the gradient of KL(q(z) || p(z)), smoothed by the kernel. The value of the surrogate is
    meaningless; the log has the squared Stein discrepancy.
    adversarial: KL(q(z) || p(z)) = mean log D(z) / (1 - D(z)) of a discriminator that separates codes from
    draws from the prior. The loss is the log ratio, and not the non-saturating loss, because it is a
    divergence in nats, like the KL: with the optimal discriminator alpha and lambda weigh the terms of the
    formula.

    `bandwidth` is the rule for the kernel of mmd and stein: see
    `unweave.nn.distributions.divergences.kernel_bandwidth`.
    lambda "auto" is 1000 for mmd, the paper's value, because this divergence is small. The others are in
    nats: 20 for stein and 10 for adversarial.

    [1] proves that the optimum has p(z|x) = q(z|x) for alpha < 1 and lambda > 0. alpha > 1 rewards the KL of
    each image, and the loss then has no minimum. alpha + lambda < 1 would reward a divergence of q(z) from
    the prior and is an error.

    Differs from [1], which does not specify the discriminator: it is that of [2] with leaky ReLU and Adam.
    Both players are updated at once, from one forward pass.
    """

    alpha: Setting = 0.0
    """How much less the information in codes costs: at 1 it is free."""
    lambda_: Setting | Literal["auto"] = "auto"
    """Weight of matching the prior; auto: 1,000 for mmd, 20 for stein, 10 for adversarial."""
    divergence: Divergence = "mmd"
    """How the prior is matched: mmd, stein or adversarial."""
    bandwidth: Bandwidth = "squared_dimension"
    """The kernel of mmd and stein: squared_dimension, prior or median."""

    name: ClassVar[str] = "info_vae"
    strength: ClassVar[str | None] = "lambda_"
    citation: ClassVar[str] = """@inproceedings{zhao2019infovae,
  author = {Shengjia Zhao and Jiaming Song and Stefano Ermon},
  title = {{InfoVAE}: Balancing Learning and Inference in Variational Autoencoders},
  booktitle = {AAAI Conference on Artificial Intelligence},
  volume = {33},
  pages = {5885--5892},
  year = {2019}
}"""

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.lambda_, str):
            object.__setattr__(self, "lambda_", LAMBDAS[self.divergence])
        if not isinstance(self.prior_weight, Tensor) and self.prior_weight < 0:
            raise UnweaveError(
                f"alpha + lambda of info_vae must be at least 1; got alpha {self.alpha:g} and lambda "
                f"{self.lambda_:g}, which would reward codes for not following the prior. Increase lambda."
            )

    @property
    def prior_weight(self) -> Setting:
        """The weight of the divergence from the prior: alpha + lambda - 1."""
        lambda_ = LAMBDAS[self.divergence] if isinstance(self.lambda_, str) else self.lambda_
        return self.alpha + lambda_ - 1

    @property
    def players(self) -> tuple[Player, ...]:
        """A discriminator, if the divergence is adversarial."""
        if self.divergence != "adversarial":
            return ()
        adam = Adam(learning_rate=1e-4, beta1=0.5, beta2=0.9, epsilon=1e-8)
        return (Player(DISCRIMINATOR, code_discriminator(depth=2), adam),)

    def losses(self, step: StepContext) -> Losses:
        """The objective of [1], negated, and that of the discriminator if there is one."""
        forward = step.forward
        codes, others, terms = forward.sample, {}, elbo_terms(forward)
        if self.divergence == "mmd":
            prior = _draws_like(codes, step)
            width = kernel_bandwidth(torch.cat([codes, prior], dim=-2), self.bandwidth)
            divergence = mmd(codes, prior, width)
            terms["divergence"] = divergence
        elif self.divergence == "stein":
            width = kernel_bandwidth(codes, self.bandwidth)
            divergence = stein_surrogate(codes, width)
            terms["divergence"] = stein_discrepancy(codes, width)
        else:
            verdict = judge(step.networks[DISCRIMINATOR], codes, _draws_like(codes, step))
            divergence = verdict.kl
            terms |= {"divergence": divergence, "discriminator_accuracy": verdict.accuracy}
            others[DISCRIMINATOR] = verdict.loss
        loss = forward.reconstruction + (1 - self.alpha) * forward.kl + self.prior_weight * divergence
        return Losses({AUTOENCODER: loss, **others}, terms)


def _draws_like(codes: Tensor, step: StepContext) -> Tensor:
    """(..., B, D): draws from the prior, as many as there are codes."""
    return step.draws.normal("prior", *codes.shape[-2:])
