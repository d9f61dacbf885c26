"""The very deep VAE [1]: many layers of latents at several resolutions, drawn from the top down.

[1] Child: Very deep VAEs generalize autoregressive models and can outperform them on images, ICLR 2021.
[2] The authors' program: github.com/openai/vdvae.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

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
from unweave.nn.distributions.gaussian import Gaussian
from unweave.nn.distributions.likelihood import reconstruction_loss
from unweave.nn.layers import as_numbers
from unweave.nn.moving_average import MovingAverage, half_squared_distance
from unweave.nn.networks.very_deep import LatentLayer, VeryDeep, latent_layers

USE = "latent_kl"

# Of [2]; the other optimiser settings are those of a run.
BETA2, WEIGHT_DECAY = 0.9, 0.01


class LatentUse(nn.Module):
    """The average KL divergence of each latent, (P, total latents), which chooses the codes."""

    def __init__(self, plan: Blueprint, total: int) -> None:
        super().__init__()
        if plan.latents > total:
            raise UnweaveError(
                f"vd_vae has {total:,} latents in all, so there are no {plan.latents:,} codes. Use fewer "
                "latents, or more layers."
            )
        self.latents = plan.latents
        self.kl = nn.Parameter(torch.zeros(len(plan.streams), total))

    def forward(self) -> Tensor:
        """(P, D): the numbers of the latents with the largest divergences, from the top down.

        Of equal divergences the first ones count. `topk` alone may choose others on other devices, and in an
        exported network.
        """
        total = self.kl.shape[-1]
        smallest = self.kl.topk(self.latents, dim=-1).values[..., -1:]
        larger, equal = self.kl > smallest, self.kl == smallest
        missing = self.latents - larger.sum(-1, keepdim=True)
        is_chosen = larger | (equal & (equal.long().cumsum(-1) <= missing))
        order = is_chosen * total - torch.arange(total, device=self.kl.device)
        return order.topk(self.latents, dim=-1).indices

    def read(self, latents: Tensor) -> Tensor:
        """(P, B, total latents) -> (P, B, D)."""
        index = self().unsqueeze(1).expand(-1, latents.shape[1], -1)
        return latents.gather(-1, index)

    def write(self, codes: Tensor) -> Tensor:
        """(P, B, D) -> (P, B, total latents); those that are not chosen are 0, the mean of their prior."""
        index, runs = self(), len(self.kl)
        numbers = torch.arange(self.latents, device=index.device).expand(runs, -1)
        source = torch.full_like(self.kl, self.latents, dtype=torch.int64).scatter(1, index, numbers)
        padded = torch.cat([codes, torch.zeros_like(codes[..., :1])], dim=-1)
        return padded.gather(-1, source.unsqueeze(1).expand(-1, codes.shape[1], -1))


@dataclass(frozen=True)
class VDVAE(Method):
    """Very deep VAE: many layers of latents at several resolutions, drawn from the top down.

    (rec + sum_l KL(q(z_l | x, z_above) || p(z_l | z_above))) / N, N numbers in an image; [1], section 2.

    Layers have the resolutions 1, 4, 8, ... up to that of the image, one each from the smallest up, again and
    again; a layer has `zdim` latents at each place. `plain_blocks` are further residual blocks of the decoder
    without latents. Updates whose gradient has a norm of `skip_threshold` or more are skipped (0: none is).
    The trained weights are an exponential moving average with the decay `ema_rate` (0: the last weights).

    A model has thousands of latents, and a run measures as many codes as it has `latents`: those with the
    largest average KL while training. Codes are (z - prior mean) / prior deviation, so their prior is
    N(0, I); all others are 0 when codes are decoded. `code_layers` has the codes of all layers.

    Differs from [2]: networks are smaller, and resolutions have equally many layers; the encoder has as many
    blocks as the decoder, and one more for each pooling. The likelihood is the run's. The decay of the
    average is at most (1 + t) / (10 + t) after t updates.
    """

    layers: int = 8
    """Layers of latents, 1 or more; one for each resolution from 1 x 1 up, again and again."""
    width: int = 64
    """Channels of the features."""
    zdim: int = 16
    """Latents of a layer at each place."""
    plain_blocks: int = 0
    """Further residual blocks of the decoder without latents."""
    skip_threshold: Setting = 400.0
    """The norm of a gradient at which an update is skipped; 0: none is."""
    ema_rate: Setting = 0.999
    """Decay of the moving average of the weights; 0: the last weights are used."""

    name: ClassVar[str] = "vd_vae"
    own_networks: ClassVar[bool] = True
    least: ClassVar[Mapping[str, int]] = {"layers": 1, "width": 1, "zdim": 1}
    largest_batch: ClassVar[int] = 512
    run_defaults: ClassVar[Mapping[str, Any]] = {
        "steps": 50_000,
        "batch": 32,
        "latents": 32,
        "learning_rate": 2e-4,
        "warmup": 0.002,
        "gradient_clip": 200.0,
    }
    citation: ClassVar[str] = """@inproceedings{child2021vdvae,
  author = {Rewon Child},
  title = {Very Deep {VAEs} Generalize Autoregressive Models and Can Outperform Them on Images},
  booktitle = {International Conference on Learning Representations},
  year = {2021}
}"""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.ema_rate, Tensor) and self.ema_rate >= 1:
            raise UnweaveError(
                f"ema_rate of vd_vae must be less than 1; got {self.ema_rate}. The default is 0.999."
            )

    @property
    def players(self) -> tuple[Player, ...]:
        """All networks, which share one objective, and the average divergence of each latent."""
        optimiser = AdamW(learning_rate=None, beta2=BETA2, weight_decay=WEIGHT_DECAY)
        return (
            Player(
                AUTOENCODER,
                self._networks,
                optimiser,
                average=self.ema_rate,
                skip_above=self.skip_threshold,
            ),
            Player(USE, self._use, MovingAverage(), precise=True),
        )

    def losses(self, step: StepContext) -> Losses:
        """The negative evidence lower bound in nats per number of an image, as [2] has it."""
        network, images = step.network(AUTOENCODER, VeryDeep), step.batch.images
        noise = step.draws.normal("noise", images.shape[-4], _total(network.layers))
        inferred = network.infer(images, noise)
        rec = reconstruction_loss(network.output(inferred.features), as_numbers(images), step.likelihood)
        latent_kl = [posterior.kl_per_dimension().mean(-2) for posterior in inferred.posteriors]
        layer_kl = torch.stack([kl.sum(-1) for kl in latent_kl])
        kl = layer_kl.sum(0)
        use = step.network(USE, LatentUse)
        players = {
            AUTOENCODER: (rec + kl) / math.prod(network.shape),
            USE: half_squared_distance(use.parameters(), [torch.cat(latent_kl, dim=-1)]),
        }
        terms = {"reconstruction": rec, "kl": kl, "elbo": -(rec + kl)}
        for resolution, numbers in _by_resolution(network.layers).items():
            terms[f"kl_{resolution}"] = torch.stack([layer_kl[number] for number in numbers]).sum(0)
        return Losses(players, terms)

    def encode(self, networks: Mapping[str, nn.Module], images: Tensor) -> Gaussian:
        """q of the codes that are measured, given the means of the layers above."""
        use, network = network_of(networks, USE, LatentUse), network_of(networks, AUTOENCODER, VeryDeep)
        posteriors = _without_noise(network, images)
        return Gaussian(
            use.read(torch.cat([posterior.mean for posterior in posteriors], dim=-1)),
            use.read(torch.cat([posterior.log_var for posterior in posteriors], dim=-1)),
        )

    def decode(self, networks: Mapping[str, nn.Module], codes: Tensor) -> Tensor:
        """Decoder output; codes that are not measured are 0."""
        latents = network_of(networks, USE, LatentUse).write(codes)
        return network_of(networks, AUTOENCODER, VeryDeep).decode(latents)

    def all_latents(self, networks: Mapping[str, nn.Module], latents: int) -> int:  # noqa: ARG002
        """The latents of all layers."""
        return _total(network_of(networks, AUTOENCODER, VeryDeep).layers)

    def latent_levels(self, networks: Mapping[str, nn.Module], latents: int) -> dict[str, int]:  # noqa: ARG002
        """All latents of each resolution that has some, by names such as 8x8."""
        sizes: dict[str, int] = {}
        for layer in network_of(networks, AUTOENCODER, VeryDeep).layers:
            sizes[layer.group] = sizes.get(layer.group, 0) + layer.size
        return sizes

    def encode_all(self, networks: Mapping[str, nn.Module], images: Tensor) -> Tensor:
        """The mean codes of all layers."""
        posteriors = _without_noise(network_of(networks, AUTOENCODER, VeryDeep), images)
        return torch.cat([posterior.mean for posterior in posteriors], dim=-1)

    def decode_all(self, networks: Mapping[str, nn.Module], codes: Tensor) -> Tensor:
        """Decoder output of codes of all layers."""
        return network_of(networks, AUTOENCODER, VeryDeep).decode(codes)

    def code_layers(
        self, networks: Mapping[str, nn.Module], images: Tensor, draws: Draws | None = None
    ) -> dict[str, Gaussian]:
        """q of the codes of all layers, (P, B, zdim, h, w), by names such as 8x8/2, the top layer first."""
        network = network_of(networks, AUTOENCODER, VeryDeep)
        if draws is None:
            posteriors = _without_noise(network, images)
        else:
            noise = draws.normal("noise", images.shape[1], _total(network.layers))
            posteriors = network.infer(images, noise).posteriors
        return {
            layer.name: Gaussian(
                posterior.mean.unflatten(-1, layer.shape), posterior.log_var.unflatten(-1, layer.shape)
            )
            for layer, posterior in zip(network.layers, posteriors, strict=True)
        }

    def trained_blocks(self, networks: Mapping[str, nn.Module], latents: int) -> dict[str, list[int]]:
        """The codes of each resolution, by names such as 8x8; empty if all have the same resolution."""
        blocks = _measured(networks)
        return blocks if len(blocks) > 1 and latents > 1 else {}

    def code_notes(self, networks: Mapping[str, nn.Module]) -> tuple[str, ...]:
        """Which of the latents are measured."""
        network, use = network_of(networks, AUTOENCODER, VeryDeep), network_of(networks, USE, LatentUse)
        counts = ", ".join(f"{len(codes)} of {name}" for name, codes in _measured(networks).items())
        divergence = use.kl[0].detach()
        share = divergence[use()[0]].sum() / divergence.sum().clamp_min(1e-12)
        return (
            f"Codes are {use.latents:,} of the {_total(network.layers):,} latents of vd_vae, those with the "
            f"largest KL divergence ({counts}), which have {float(share):.0%} of all divergence. All others "
            "are at the mean of their prior when codes are decoded, also for elbo; score_layers has the "
            "bound of the whole model.",
        )

    def _networks(self, plan: Blueprint) -> VeryDeep:
        if plan.architecture != "released":
            raise UnweaveError(
                f'vd_vae has networks of its own and no architecture "{plan.architecture}". Leave '
                "architecture at its default."
            )
        return VeryDeep(
            plan.streams, plan.shape, self.width, self.zdim, self.layers, self.plain_blocks, plan.likelihood
        )

    def _use(self, plan: Blueprint) -> LatentUse:
        return LatentUse(plan, _total(latent_layers(plan.shape, self.zdim, self.layers)))


def _total(layers: Sequence[LatentLayer]) -> int:
    return sum(layer.size for layer in layers)


def _by_resolution(layers: Sequence[LatentLayer]) -> dict[int, list[int]]:
    """The numbers of the layers of each resolution."""
    numbers: dict[int, list[int]] = {}
    for number, layer in enumerate(layers):
        numbers.setdefault(layer.resolution, []).append(number)
    return numbers


def _measured(networks: Mapping[str, nn.Module]) -> dict[str, list[int]]:
    """The codes of each resolution that has some."""
    layers = network_of(networks, AUTOENCODER, VeryDeep).layers
    names = [layer.group for layer in layers for _ in range(layer.size)]
    blocks: dict[str, list[int]] = {}
    for code, latent in enumerate(network_of(networks, USE, LatentUse)()[0].tolist()):
        blocks.setdefault(names[latent], []).append(code)
    return blocks


def _without_noise(network: VeryDeep, images: Tensor) -> list[Gaussian]:
    """The posterior of each layer given the means of the layers above."""
    noise = torch.zeros(*images.shape[:2], _total(network.layers), device=images.device)
    return network.infer(images, noise).posteriors
