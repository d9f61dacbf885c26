"""DrNet [1]: content that is constant in a sequence, and pose that does not identify the sequence.

[1] Denton, Birodkar: Unsupervised learning of disentangled representations from video, NeurIPS 2017.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor
from torch.nn.functional import softplus

from unweave.methods.method import AUTOENCODER, Blueprint, Draws, Losses, Method, Player, Setting, StepContext
from unweave.methods.sampling import Sequences, factors_in
from unweave.nn.distributions.divergences import accuracy
from unweave.nn.networks.two_parts import Part, TwoPartAutoencoder, part_size
from unweave.nn.networks.vae import Discriminator

SCENES = "scene_discriminator"


@dataclass(frozen=True)
class DrNet(Method):
    """DrNet: content and pose of image sequences, kept apart by a scene discriminator.

    rec / N + alpha |c_t - c_u|^2 / D_c - beta mean (log C(p_t, p_u) + log(1 - C(p_t, p_u))) / 2; [1].

    c and p are content and pose, the first `content` dimensions of the code and the others, each with its own
    encoder. Frame t is decoded from its own pose and the content of another frame u of its sequence. The
    scene discriminator C separates two poses of one sequence from poses of two, p_t and p'_u: it minimises
    -mean log C(p_t, p_u) - mean log(1 - C(p_t, p'_u)); the pose encoder drives its output to 1/2. N is the
    number of pixels and D_c of content dimensions: [1] weighs means. Codes are deterministic.

    In a sequence, categorical factors and `content_factors` (a number of first factors, or names with commas
    between them) stay constant. Every other factor moves at a speed of at most `speed` values per frame. All
    `frames` of a sequence are used; the authors use two of 12.

    Differs from [1]: frame u may come before t; codes are neither normalised over the batch nor bounded;
    there are no skip connections, as a code must hold all information; all players are updated at once. The
    `gaussian` likelihood is the paper's squared error.
    """

    alpha: Setting = 1.0
    beta: Setting = 0.1
    content: Part = "half"
    content_factors: int | str = 0
    frames: int = 4
    speed: int = 8

    name: ClassVar[str] = "drnet"
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
        return Sequences(self.frames, factors_in(self.content_factors), self.speed)

    @property
    def players(self) -> tuple[Player, ...]:
        """Encoders and decoder, which share one objective, and the scene discriminator."""
        return (Player(AUTOENCODER, self._autoencoder), Player(SCENES, self._scene_discriminator))

    @property
    def stochastic(self) -> bool:
        """False: codes are deterministic."""
        return False

    def content_dimensions(self, latents: int) -> int:
        """The number of content dimensions."""
        return part_size(self.content, latents)

    def losses(self, step: StepContext) -> Losses:
        """The objectives of [1]."""
        model, images = step.network(AUTOENCODER, TwoPartAutoencoder), step.batch.images
        content, pose = (part.mean for part in model.encode_parts(images))
        others = _other_frames(images.shape[1] // self.frames, self.frames, step.draws)
        other_content, other_pose = _select_rows(content, others), _select_rows(pose, others)

        codes = torch.cat([other_content, pose], dim=-1)
        rec = model.decoder.reconstruction(codes, images, step.likelihood)
        similarity = (content - other_content).square().mean((-2, -1))
        # Poses of another sequence, by a roll over one sequence.
        unrelated = other_pose.roll(self.frames, dims=1)
        same_scene, two_scenes = (torch.cat([pose, other], dim=-1) for other in (other_pose, unrelated))
        logits = step.networks[SCENES](torch.cat([same_scene, two_scenes], dim=1)).to(rec.dtype)
        same, different = (logits[..., 0] - logits[..., 1]).chunk(2, dim=-1)
        undecided = 0.5 * (softplus(-same) + softplus(same)).mean(-1)

        players = {
            AUTOENCODER: rec / math.prod(images.shape[-3:]) + self.alpha * similarity + self.beta * undecided,
            SCENES: softplus(-same).mean(-1) + softplus(different).mean(-1),
        }
        terms = {
            "reconstruction": rec,
            "similarity": similarity,
            "adversarial": undecided,
            "discriminator_accuracy": accuracy(same, different),
        }
        return Losses(players, terms)

    def _autoencoder(self, plan: Blueprint) -> TwoPartAutoencoder:
        first = self.content_dimensions(plan.latents)
        return TwoPartAutoencoder(
            plan.streams, plan.shape, plan.latents, first, plan.architecture, plan.likelihood
        )

    def _scene_discriminator(self, plan: Blueprint) -> Discriminator:
        pose = plan.latents - self.content_dimensions(plan.latents)
        return Discriminator(plan.streams, 2 * pose, width=100, depth=2)


def _other_frames(sequences: int, frames: int, draws: Draws) -> Tensor:
    """(P, sequences x frames): for each frame of a batch, the row of another frame of its sequence.

    Each sequence has its own random shift: u = (t + shift) mod frames.
    """
    shift = 1 + draws.integers("shift", sequences, [frames - 1])
    frame = torch.arange(frames, device=shift.device)
    first = torch.arange(0, sequences * frames, frames, device=shift.device)
    return (first[:, None] + (frame + shift) % frames).flatten(-2)


def _select_rows(codes: Tensor, rows: Tensor) -> Tensor:
    """(P, B, D): the codes in these rows (P, B)."""
    return codes.gather(1, rows.unsqueeze(-1).expand_as(codes))
