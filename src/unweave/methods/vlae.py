"""The variational ladder autoencoder [1]: latents that enter and leave the networks at different depths.

[1] Zhao, Song, Ermon: Learning hierarchical features from deep generative models, ICML 2017.
[2] The authors' program: github.com/ermongroup/Variational-Ladder-Autoencoder.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from unweave.errors import UnweaveError
from unweave.methods.method import AUTOENCODER, Blueprint, Losses, Method, Player, Setting, StepContext
from unweave.nn.networks.variational_ladder import VariationalLadder

KL_TIME = 2000  # updates; the time constant of the weight of the divergence in [2]


@dataclass(frozen=True)
class VLAE(Method):
    """VLAE: a VAE whose latents enter and leave the networks at three depths.

    rec + beta_t KL(q(z|x) || N(0, I)), beta_t = beta (1 - exp(-t / 2000)); [1], section 5.

    t counts updates from 1. All latents have the same flat prior. Those of the bottom depth pass few layers,
    and can hold simple features only; those of the top pass all layers. Latents are divided evenly between
    the depths. Codes are ordered from the top down.

    Differs from [2]: rec is that of the run's likelihood (there a Laplace density); there is no batch
    normalisation; the standard deviation of q is not bounded by 1; the latents of a depth are always
    concatenated with the features from above (there added for MNIST). Layers are those of the other methods
    here; each depth is inferred from its features by one dense layer.
    """

    beta: Setting = 1.0
    """Weight of the KL divergence from the prior."""

    name: ClassVar[str] = "vlae"
    own_networks: ClassVar[bool] = True
    run_defaults: ClassVar[Mapping[str, Any]] = {"batch": 100, "learning_rate": 2e-4}  # of [2]
    strength: ClassVar[str | None] = "beta"
    citation: ClassVar[str] = """@inproceedings{zhao2017learning,
  author = {Shengjia Zhao and Jiaming Song and Stefano Ermon},
  title = {Learning Hierarchical Features from Deep Generative Models},
  booktitle = {International Conference on Machine Learning},
  year = {2017}
}"""

    @property
    def players(self) -> tuple[Player, ...]:
        """Encoder and decoder, which share one objective."""
        return (Player(AUTOENCODER, _networks),)

    def losses(self, step: StepContext) -> Losses:
        """The negative evidence lower bound, with a warm-up of its divergence."""
        ladder, images = step.network(AUTOENCODER, VariationalLadder), step.batch.images
        posterior = ladder.encode(images)
        noise = step.draws.normal("noise", images.shape[-4], posterior.mean.shape[-1])
        rec = ladder.reconstruction(posterior.sample(noise), images, step.likelihood)
        by_depth = [part.sum(-1).mean(-1) for part in posterior.kl_per_dimension().split(ladder.sizes, -1)]
        kl = torch.stack(by_depth).sum(dim=0)
        beta = self.beta * _warm_up(torch.as_tensor(step.step, dtype=kl.dtype, device=kl.device))
        terms = {"reconstruction": rec, "kl": kl, "elbo": -(rec + kl), "weight": beta.expand_as(kl)}
        names = ("kl_top", "kl_middle", "kl_bottom")
        return Losses({AUTOENCODER: rec + beta * kl}, terms | dict(zip(names, by_depth, strict=True)))


def _warm_up(step: Tensor) -> Tensor:
    return 1 - torch.exp(-(step + 1) / KL_TIME)


def _networks(plan: Blueprint) -> VariationalLadder:
    if plan.architecture != "released":
        raise UnweaveError(
            f'vlae has networks of its own and no architecture "{plan.architecture}". Leave architecture at '
            "its default."
        )
    return VariationalLadder(plan.streams, plan.shape, plan.latents, plan.likelihood)
