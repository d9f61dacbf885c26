"""EncDiff [1]: a diffusion model that removes noise from an image, given a few numbers that describe it.

[1] Yang, Lan, Lu, Zheng: Diffusion model with cross attention as an inductive bias for disentanglement,
NeurIPS 2024.
[2] Its authors' program, built upon that of latent diffusion models: github.com/ThomasMrY/EncDiff.
[3] Salimans, Ho: Progressive distillation for fast sampling of diffusion models, ICLR 2022.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, TypeAlias

import torch
from torch import Tensor, nn

from unweave.errors import UnweaveError
from unweave.methods.method import (
    AUTOENCODER,
    AdamW,
    Blueprint,
    Draws,
    Losses,
    Method,
    Player,
    Setting,
    StepContext,
)
from unweave.methods.step import network_of
from unweave.nn.diffusion import TIMESTEPS
from unweave.nn.distributions.gaussian import Gaussian, certain
from unweave.nn.distributions.likelihood import likelihood_named
from unweave.nn.networks.concept_tokens import DiffusionAutoencoder
from unweave.nn.networks.denoiser import MULTIPLES, Denoiser

TOKENS = "tokens"
CHANNEL_MULTIPLE = 8  # heads of attention, and pairs of a sine and a cosine, share the channels evenly

LossType: TypeAlias = Literal["l1", "l2"]
Parameterization: TypeAlias = Literal["eps", "v"]


@dataclass(frozen=True)
class EncDiff(Method):
    """EncDiff: a diffusion autoencoder whose denoiser looks at one token per code.

    mean (v - predicted v(x_t, t, tokens(x)))^2, v = sqrt(a_t) noise - sqrt(1 - a_t) x.

    An encoder makes k numbers of an image x, the codes. A network of its own turns each into a token of
    `context_dim` numbers. x_t = sqrt(a_t) x + sqrt(1 - a_t) noise is the image at a time t, one of 1,000. A
    U-Net predicts the velocity v [3], and so the noise, from x_t, t and the tokens, which it reads by cross
    attention. There is no other term: [1] claims that the diffusion and the attention disentangle.

    With the `parameterization` "eps", the error is that of the noise, as in [1]. It is a_t times that of v,
    so codes count little where there is much noise. The pixels of an image show much of it at most times,
    and in short runs codes stayed unused. With the `loss_type` "l1", errors are absolute, as in [2].

    Decoding starts from a fixed noise, the same for all images, and removes it in `ddim_steps` steps.
    Tokens are a layer of a run: `run.layers(images)["tokens"]`.

    The U-Net has `model_channels` channels, `levels` resolutions and `num_res_blocks` blocks for each. Its
    places are patches of `patch` x `patch` pixels.

    Differs from [2]: the velocity; pixels in patches instead of the latents of a trained VQ autoencoder; a
    smaller U-Net; the run's encoder; the moving average covers the encoder too. See docs/methods/enc_diff.md.
    """

    context_dim: int = 16
    """Numbers of a token."""
    model_channels: int = 64
    """Channels of the first level of the U-Net, a multiple of 8."""
    levels: int = 2
    """Resolutions of the U-Net, 1 to 4."""
    num_res_blocks: int = 1
    """Residual blocks of each level on the way down; one more on the way up."""
    patch: int = 4
    """Side of a patch in pixels."""
    parameterization: Parameterization = "v"
    """Whose error is the loss: v, the velocity, or eps, the noise."""
    loss_type: LossType = "l2"
    """l2: squared errors; l1: absolute errors."""
    ema_rate: Setting = 0.9999
    """Decay of the moving average of the weights; 0: the last weights are used."""
    ddim_steps: int = 20
    """Steps of decoding, 1 to 1,000."""

    name: ClassVar[str] = "enc_diff"
    has_prior: ClassVar[bool] = False
    own_networks: ClassVar[bool] = True
    exportable: ClassVar[bool] = False
    least: ClassVar[Mapping[str, int]] = {
        "context_dim": 1,
        "levels": 1,
        "num_res_blocks": 1,
        "patch": 1,
        "ddim_steps": 1,
    }
    largest_batch: ClassVar[int] = 512
    run_defaults: ClassVar[Mapping[str, Any]] = {
        "steps": 100_000,
        "batch": 128,
        "latents": 20,
        "learning_rate": 2.56e-4,
        "warmup": 0.1,
    }
    citation: ClassVar[str] = """@inproceedings{yang2024encdiff,
  author = {Tao Yang and Cuiling Lan and Yan Lu and Nanning Zheng},
  title = {Diffusion Model with Cross Attention as an Inductive Bias for Disentanglement},
  booktitle = {Advances in Neural Information Processing Systems},
  year = {2024}
}"""

    def __post_init__(self) -> None:
        super().__post_init__()
        channels = self.model_channels
        if channels < 1 or channels % CHANNEL_MULTIPLE:
            raise UnweaveError(
                f"model_channels of enc_diff must be a multiple of {CHANNEL_MULTIPLE}; got {channels}. "
                "The default is 64."
            )
        for name, most in (("levels", len(MULTIPLES)), ("ddim_steps", TIMESTEPS)):
            if getattr(self, name) > most:
                raise UnweaveError(
                    f"{name} of enc_diff must be at most {most:,}; got {getattr(self, name):,}."
                )
        if not isinstance(self.ema_rate, Tensor) and self.ema_rate >= 1:
            raise UnweaveError(
                f"ema_rate of enc_diff must be less than 1; got {self.ema_rate}. The default is 0.9999."
            )

    @property
    def players(self) -> tuple[Player, ...]:
        """Encoder, tokens and U-Net, which share one objective."""
        return (Player(AUTOENCODER, self._networks, AdamW(learning_rate=None), average=self.ema_rate),)

    @property
    def stochastic(self) -> bool:
        """False: codes are a function of the image."""
        return False

    def losses(self, step: StepContext) -> Losses:
        """The mean error of the predicted velocity or noise, at one time for each image."""
        network, images = step.network(AUTOENCODER, DiffusionAutoencoder), step.batch.images
        rows = images.shape[-4]
        times = step.draws.integers("time", rows, (TIMESTEPS,)).squeeze(-1)
        noise = step.draws.normal("noise", rows, math.prod(images.shape[-3:])).view(images.shape)
        codes = network.encode(images).mean
        inputs = network.noisy(images, noise, times), times, network.tokens(codes)
        if self.parameterization == "v":
            difference = network.predicted_velocity(*inputs) - network.velocity(images, noise, times)
        else:
            difference = network.predicted_noise(*inputs) - noise
        error = difference.abs() if self.loss_type == "l1" else difference.square()
        loss = error.mean((-4, -3, -2, -1))
        terms = {"denoising_loss": loss, "code_variance": codes.var(-2, correction=0).mean(-1)}
        return Losses({AUTOENCODER: loss}, terms)

    def code_layers(
        self,
        networks: Mapping[str, nn.Module],
        images: Tensor,
        draws: Draws | None = None,  # noqa: ARG002
    ) -> dict[str, Gaussian]:
        """The tokens of images, (P, B, k, context_dim), without noise."""
        network = network_of(networks, AUTOENCODER, DiffusionAutoencoder)
        return {TOKENS: certain(network.tokens(network.encode(images).mean))}

    def _networks(self, plan: Blueprint) -> DiffusionAutoencoder:
        if likelihood_named(plan.likelihood).mean is not torch.sigmoid:
            raise UnweaveError(
                f'enc_diff has no likelihood, and cannot use "{plan.likelihood}". Leave likelihood at its '
                "default."
            )
        denoiser = Denoiser(
            plan.streams,
            plan.shape,
            self.context_dim,
            self.model_channels,
            self.levels,
            self.num_res_blocks,
            self.patch,
        )
        return DiffusionAutoencoder(
            plan.streams,
            plan.shape,
            plan.latents,
            plan.architecture,
            denoiser,
            self.context_dim,
            self.ddim_steps,
        )
