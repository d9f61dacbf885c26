"""DrNet [1]: content that is constant in a sequence, and pose that does not identify the sequence.

[1] Denton, Birodkar: Unsupervised learning of disentangled representations from video, NeurIPS 2017.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor, nn
from torch.nn.functional import softplus

from unweave.methods.method import AUTOENCODER, Blueprint, Draws, Losses, Method, Player, Setting, StepContext
from unweave.methods.sampling import Sequences, factors_in
from unweave.methods.step import network_of
from unweave.nn.distributions.divergences import accuracy
from unweave.nn.distributions.gaussian import Gaussian, certain
from unweave.nn.moving_average import MovingAverage, half_squared_distance
from unweave.nn.networks.skip import SkipAutoencoder, map_shapes
from unweave.nn.networks.two_parts import Part, TwoPartAutoencoder, part_size
from unweave.nn.networks.vae import Discriminator

SCENES, STATISTICS = "scene_discriminator", "code_statistics"
# Far below the variance of untrained outputs (1e-4 on dSprites): otherwise content could still shrink.
LEAST_VARIANCE = 1e-12


class CodeStatistics(nn.Module):
    """Mean and variance of each dimension of the codes, (P, D), for codes of single images.

    `maps` are the means of feature maps of these shapes, (P, C, H, W), where the decoder gets such maps.
    """

    def __init__(self, plan: Blueprint, shapes: Sequence[tuple[int, int, int]] = ()) -> None:
        super().__init__()
        runs = len(plan.streams)
        self.mean = nn.Parameter(torch.zeros(runs, plan.latents))
        self.variance = nn.Parameter(torch.ones(runs, plan.latents))
        self.maps = nn.ParameterList([torch.zeros(runs, *shape) for shape in shapes])

    def forward(self, codes: Tensor) -> Tensor:
        """Bounded codes (P, B, D) of the encoders' outputs."""
        return torch.tanh(normalised(codes, self.mean.unsqueeze(1), self.variance.unsqueeze(1)))

    def following(self, mean: Tensor, variance: Tensor, maps: Sequence[Tensor]) -> Tensor:
        """(P,): the loss whose update averages means and variances (P, 1, D), and maps (P, B, C, H, W)."""
        targets = [mean.squeeze(1), variance.squeeze(1), *(feature_map.mean(1) for feature_map in maps)]
        return half_squared_distance(self.parameters(), targets)

    def average_maps(self, images: int) -> list[Tensor]:
        """The average maps, for each image of a batch: (P, B, C, H, W)."""
        return [average.unsqueeze(1).expand(-1, images, -1, -1, -1) for average in self.maps]


@dataclass(frozen=True)
class DrNet(Method):
    """DrNet: content and pose of image sequences, separated by a scene discriminator.

    rec / N + alpha |c_t - c_u|^2 / D_c - beta mean (log C(p_t, p_u) + log(1 - C(p_t, p_u))) / 2; [1].

    c and p are content and pose, the first `content` dimensions of the code and the others, each with its own
    encoder. Codes are deterministic. Each dimension is normalised to mean 0 and variance 1 over the batch,
    and codes are tanh of that. The similarity of contents is measured before tanh: content can then become
    similar within sequences only by what differs between them, not by shrinking. Frame t is decoded from its
    own pose and the content of another frame u of its sequence. The scene discriminator C separates two poses
    of one sequence from poses of two, p_t and p'_u: it minimises -mean log C(p_t, p_u) - mean log(1 - C(p_t,
    p'_u)); the pose encoder drives its output to 1/2. As in the authors' programs, c_u and p_u in the last
    two terms are constants. N is the number of pixels and D_c of content dimensions: [1] weighs means.

    In a sequence, categorical factors and `content_factors` (a number of first factors, or names with commas
    between them) are constant. By default each frame draws all other factors independently; with a number as
    `speed`, they move by at most that many values per frame. All `frames` of a sequence are used; the authors
    use two of 12.

    With `skip`, the decoder also gets the feature maps of the content encoder for frame u. Codes alone are
    then decoded with average maps.

    Differs from [1]: frame u may come before t; the normalisation has no learned scale, and the authors
    measure similarity after tanh, both of which let content shrink; all players are updated at once. The
    `gaussian` likelihood is the paper's squared error.
    """

    alpha: Setting = 1.0
    """Weight of the similarity of contents."""
    beta: Setting = 0.1
    """Weight of the adversarial term."""
    content: Part = "half"
    """Dimensions of the content, the first ones: a number, or half of them."""
    content_factors: int | str = 0
    """Factors that are constant besides categorical ones: a number of first factors, or names with commas
    between them."""
    frames: int = 4
    """Frames of a sequence, 2 or more."""
    speed: int | Literal["independent"] = "independent"
    """How poses of a sequence are drawn: independent, or moving by at most this many values a frame."""
    skip: bool = False
    """Whether the decoder also gets feature maps of the content encoder."""

    name: ClassVar[str] = "drnet"
    run_defaults: ClassVar[Mapping[str, Any]] = {"learning_rate": 1e-3}
    has_prior: ClassVar[bool] = False
    own_networks: ClassVar[bool] = True
    least: ClassVar[Mapping[str, int]] = {"frames": 2, "speed": 1}
    strength: ClassVar[str | None] = "beta"
    citation: ClassVar[str] = """@inproceedings{denton2017drnet,
  author = {Emily Denton and Vighnesh Birodkar},
  title = {Unsupervised Learning of Disentangled Representations from Video},
  booktitle = {Advances in Neural Information Processing Systems},
  year = {2017}
}"""

    @property
    def sampling(self) -> Sequences:
        """Frames of sequences."""
        step = None if self.speed == "independent" else self.speed
        return Sequences(self.frames, factors_in(self.content_factors), step)

    @property
    def players(self) -> tuple[Player, ...]:
        """Encoders and decoder, which share one objective, the scene discriminator, and the statistics."""
        return (
            Player(AUTOENCODER, self._autoencoder),
            Player(SCENES, self._scene_discriminator),
            Player(STATISTICS, self._statistics, MovingAverage(), precise=True),
        )

    @property
    def stochastic(self) -> bool:
        """False: codes are deterministic."""
        return False

    def content_dimensions(self, latents: int) -> int:
        """The number of content dimensions."""
        return part_size(self.content, latents)

    def losses(self, step: StepContext) -> Losses:
        """The objectives of [1]."""
        images = step.batch.images
        outputs, maps = _encoded(step.networks, images)
        variance, mean = torch.var_mean(outputs, dim=1, correction=0, keepdim=True)
        normal = normalised(outputs, mean, variance)
        content, pose = normal.tensor_split([self.content_dimensions(outputs.shape[-1])], dim=-1)
        others = _other_frames(images.shape[1] // self.frames, self.frames, step.draws)
        other_content, pose = _select_rows(content, others), torch.tanh(pose)

        codes = torch.cat([torch.tanh(other_content), pose], dim=-1)
        other_maps = [_select_rows(feature_map, others) for feature_map in maps]
        rec = _reconstruction(step.networks, codes, other_maps, images, step.likelihood)
        similarity = (content - other_content.detach()).square().mean((-2, -1))
        same, different = self._scene_logits(step.networks[SCENES], pose, _select_rows(pose, others).detach())
        undecided = 0.5 * (softplus(-same) + softplus(same)).mean(-1)

        players = {
            AUTOENCODER: rec / math.prod(images.shape[-3:]) + self.alpha * similarity + self.beta * undecided,
            SCENES: softplus(-same).mean(-1) + softplus(different).mean(-1),
            STATISTICS: step.network(STATISTICS, CodeStatistics).following(mean, variance, maps),
        }
        terms = {
            "reconstruction": rec,
            "similarity": similarity,
            "adversarial": undecided,
            "discriminator_accuracy": accuracy(same, different),
        }
        return Losses(players, terms)

    def encode(self, networks: Mapping[str, nn.Module], images: Tensor) -> Gaussian:
        """Bounded codes, normalised by the moving averages of their means and variances."""
        outputs, _ = _encoded(networks, images)
        return certain(network_of(networks, STATISTICS, CodeStatistics)(outputs))

    def decode(self, networks: Mapping[str, nn.Module], codes: Tensor) -> Tensor:
        """Decoder output of codes; with skip connections, for average feature maps."""
        if not self.skip:
            return network_of(networks, AUTOENCODER, TwoPartAutoencoder).decode(codes)
        maps = network_of(networks, STATISTICS, CodeStatistics).average_maps(codes.shape[1])
        return network_of(networks, AUTOENCODER, SkipAutoencoder).decode_with(codes, maps)

    def _scene_logits(self, scenes: nn.Module, pose: Tensor, other_pose: Tensor) -> tuple[Tensor, Tensor]:
        """(P, B) log odds that two poses are of one scene: for pairs of one sequence, and of two."""
        unrelated = other_pose.roll(self.frames, dims=1)  # by one sequence
        pairs = [torch.cat([pose, other], dim=-1) for other in (other_pose, unrelated)]
        logits = scenes(torch.cat(pairs, dim=1)).to(pose.dtype)
        same, different = (logits[..., 0] - logits[..., 1]).chunk(2, dim=-1)
        return same, different

    def _autoencoder(self, plan: Blueprint) -> nn.Module:
        kind = SkipAutoencoder if self.skip else TwoPartAutoencoder
        first = self.content_dimensions(plan.latents)
        return kind(plan.streams, plan.shape, plan.latents, first, plan.architecture, plan.likelihood)

    def _statistics(self, plan: Blueprint) -> CodeStatistics:
        return CodeStatistics(plan, map_shapes(plan.shape) if self.skip else ())

    def _scene_discriminator(self, plan: Blueprint) -> Discriminator:
        pose = plan.latents - self.content_dimensions(plan.latents)
        return Discriminator(plan.streams, 2 * pose, width=100, depth=2)


def normalised(codes: Tensor, mean: Tensor, variance: Tensor) -> Tensor:
    """Codes with mean 0 and variance 1."""
    return (codes - mean) * torch.rsqrt(variance + LEAST_VARIANCE)


def _other_frames(sequences: int, frames: int, draws: Draws) -> Tensor:
    """(P, sequences x frames): for each frame of a batch, the row of another frame of its sequence.

    Each sequence has its own random shift: u = (t + shift) mod frames.
    """
    shift = 1 + draws.integers("shift", sequences, [frames - 1])
    frame = torch.arange(frames, device=shift.device)
    first = torch.arange(0, sequences * frames, frames, device=shift.device)
    return (first[:, None] + (frame + shift) % frames).flatten(-2)


def _select_rows(tensor: Tensor, rows: Tensor) -> Tensor:
    """(P, B, ...): the rows (P, B) of a tensor."""
    return tensor.gather(1, rows.view(*rows.shape, *[1] * (tensor.dim() - 2)).expand_as(tensor))


def _encoded(networks: Mapping[str, nn.Module], images: Tensor) -> tuple[Tensor, list[Tensor]]:
    """Outputs of both encoders, (P, B, D), and the feature maps for the decoder, if it gets any."""
    model = networks[AUTOENCODER]
    if isinstance(model, SkipAutoencoder):
        return model.encode_with_maps(images)
    content, pose = network_of(networks, AUTOENCODER, TwoPartAutoencoder).encode_parts(images)
    return torch.cat([content.mean, pose.mean], dim=-1), []


def _reconstruction(
    networks: Mapping[str, nn.Module], codes: Tensor, maps: Sequence[Tensor], images: Tensor, likelihood: str
) -> Tensor:
    """(P,): the reconstruction loss of codes, and of feature maps, if the decoder gets any."""
    model = networks[AUTOENCODER]
    if isinstance(model, SkipAutoencoder):
        return model.reconstruction(codes, maps, images, likelihood)
    two_parts = network_of(networks, AUTOENCODER, TwoPartAutoencoder)
    return two_parts.decoder.reconstruction(codes, images, likelihood)
