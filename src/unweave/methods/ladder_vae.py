"""The ladder VAE [1]: layers of latents, sampled from the top down, each with a prior given those above.

[1] Sønderby, Raiko, Maaløe, Sønderby, Winther: Ladder variational autoencoders, NeurIPS 2016.
[2] Child: Very deep VAEs generalize autoregressive models and can outperform them on images, ICLR 2021.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

import torch

from unweave.methods.method import AUTOENCODER, Losses, Method, Player, Setting, StepContext, growth
from unweave.nn.networks.ladder import Ladder

SHARE = 0.1  # of the steps of a run that is shorter than kl_warmup


@dataclass(frozen=True)
class LadderVAE(Method):
    """Ladder VAE: layers of latents, each with a prior given the layers above.

    rec + beta_t sum_l KL(q(z_l | x, z_above) || p(z_l | z_above)), beta_t = beta min(1, t / kl_warmup).

    t counts updates from 1. The top layer has the prior N(0, I) and is inferred from the image as in a VAE;
    layers = 1 is the VAE. For every layer below, the image and the layers above each give a Gaussian: a
    likelihood from the bottom-up pass, and the prior p(z_l | z_above). q is their precision-weighted product
    [1].

    The codes are not z but (z_l - prior mean) / prior deviation: their prior is N(0, I) in all layers, and
    the divergences are the same. They are ordered as they are sampled, the top layer first.

    Differs from [1]: priors and the decoder get the latents of all layers above, not only of the next; this
    is the generative model of [2], here without its deterministic path and with dense layers. There is no
    batch normalisation. kl_warmup is a number of updates; [1] counts epochs. A run that has fewer steps than
    kl_warmup takes a tenth of them, as [1] has 200 of 2,000 epochs.
    """

    beta: Setting = 1.0
    """Weight of the divergences after the warm-up; the paper has 1."""
    kl_warmup: Setting = 10_000.0
    """Updates over which the weight of the divergences grows from 0; 0: the full weight from the start."""
    layers: int = 3
    """Layers of latents, 1 or more."""

    name: ClassVar[str] = "ladder_vae"
    renamed: ClassVar[Mapping[str, str]] = {"warm_up": "kl_warmup"}
    own_networks: ClassVar[bool] = True
    least: ClassVar[Mapping[str, int]] = {"layers": 1}
    strength: ClassVar[str | None] = "beta"
    citation: ClassVar[str] = """@inproceedings{sonderby2016ladder,
  author = {Casper Kaae S{\\o}nderby and Tapani Raiko and Lars Maal{\\o}e and S{\\o}ren Kaae S{\\o}nderby and
            Ole Winther},
  title = {Ladder Variational Autoencoders},
  booktitle = {Advances in Neural Information Processing Systems},
  year = {2016}
}"""

    @property
    def players(self) -> tuple[Player, ...]:
        """All networks, which share one objective."""
        layers = self.layers
        return (
            Player(
                AUTOENCODER,
                lambda plan: Ladder(
                    plan.streams, plan.shape, plan.latents, plan.architecture, layers, plan.likelihood
                ),
            ),
        )

    def losses(self, step: StepContext) -> Losses:
        """The negative evidence lower bound, with a warm-up of its divergences."""
        ladder, images = step.network(AUTOENCODER, Ladder), step.batch.images
        noise = step.draws.normal("noise", images.shape[-4], sum(ladder.sizes))
        inferred = ladder.infer(images, noise)
        rec = ladder.decoder.reconstruction(inferred.latents, images, step.likelihood)
        layer_kl = [posterior.kl().mean(-1) for posterior in inferred.posteriors]
        kl = torch.stack(layer_kl).sum(dim=0)
        begun = replace(step, step=step.step + 1)  # so that kl_warmup = 0 is no warm-up
        beta = self.beta * growth(begun, self.kl_warmup, SHARE, kl)
        terms = {"reconstruction": rec, "kl": kl, "elbo": -(rec + kl), "weight": beta.expand_as(kl)}
        by_layer = {f"kl_{layer}": part for layer, part in enumerate(reversed(layer_kl), 1)}
        return Losses({AUTOENCODER: rec + beta * kl}, terms | by_layer)
