"""DrNet [1]: content that stays the same in a sequence, and pose that does not tell sequences apart.

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

    c and p are content and pose, the first `content` dimensions of the code and the others, from an encoder
    each. Frame t is decoded from its own pose and the content of another frame u of its sequence. The scene
    discriminator C tells two poses of one sequence from poses of two, p_t and p'_u: it minimises
    -mean log C(p_t, p_u) - mean log(1 - C(p_t, p'_u)); the pose encoder wants it to say 1/2. N pixels and
    D_c dimensions: [1] weighs means. Nothing is drawn.

    What moves is the data's to say: categorical factors stay in a sequence, and those of `content_factors`,
    the first so many or names with commas between them. Every other factor moves at a speed of at most
    `speed` values a frame. All `frames` of a sequence are learned from; the authors take two of 12.

    Differs from [1]: frame u may come before t; codes are neither normalised over the batch nor bounded;
    there are no skip connections, as a code must say all; all players move at once. `gaussian` likelihood is
    the paper's squared error.
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
        """Encoders and decoder, which have one objective, and the scene discriminator."""
        return (Player(AUTOENCODER, self._autoencoder), Player(SCENES, self._scene_discriminator))

    @property
    def stochastic(self) -> bool:
        """Codes are certain."""
        return False

    def content_dimensions(self, latents: int) -> int:
        """Those of the content."""
        return part_size(self.content, latents)

    def losses(self, step: StepContext) -> Losses:
        """The objectives of [1]."""
        model, images = step.network(AUTOENCODER, TwoPartAutoencoder), step.batch.images
        content, pose = (part.mean for part in model.encode_parts(images))
        others = _other_frames(images.shape[1] // self.frames, self.frames, step.draws)
        other_content, other_pose = _taken(content, others), _taken(pose, others)

        codes = torch.cat([other_content, pose], dim=-1)
        rec = model.decoder.reconstruction(codes, images, step.likelihood)
        similarity = (content - other_content).square().mean((-2, -1))
        # Of another sequence: a roll by one of them.
        strangers = other_pose.roll(self.frames, dims=1)
        seen = torch.cat([torch.cat([pose, other_pose], dim=-1), torch.cat([pose, strangers], dim=-1)], dim=1)
        logits = step.networks[SCENES](seen).to(rec.dtype)
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
    """(P, sequences x frames): for each frame of a batch the row of another one of its sequence.

    Each sequence has a shift of its own: u = t + shift, from the start again after the last frame.
    """
    shift = 1 + draws.integers("shift", sequences, [frames - 1])
    frame = torch.arange(frames, device=shift.device)
    first = torch.arange(0, sequences * frames, frames, device=shift.device)
    return (first[:, None] + (frame + shift) % frames).flatten(-2)


def _taken(codes: Tensor, rows: Tensor) -> Tensor:
    """(P, B, D): the codes in these rows (P, B)."""
    return codes.gather(1, rows.unsqueeze(-1).expand_as(codes))
