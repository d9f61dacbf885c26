"""InfoGAN-CR [1]: InfoGAN with a contrastive regulariser.

[1] Lin, Thekumparampil, Fanti, Oh: InfoGAN-CR and ModelCentrality: self-supervised model training and
selection for disentangling GANs, ICML 2020.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from unweave.errors import UnweaveError
from unweave.methods.info_gan import (
    DISCRIMINATOR,
    GENERATOR,
    JUDGING_RATE,
    Variance,
    adam,
    checked_plan,
    gan_players,
    info_losses,
    play,
    symmetric_uniform,
    with_noise,
)
from unweave.methods.method import Draws, Losses, Method, Player, Setting, StepContext
from unweave.nn.networks.gan import PairJudge

PAIR_JUDGE = "pair_judge"


@dataclass(frozen=True)
class InfoGANCR(Method):
    """InfoGAN-CR: InfoGAN with a contrastive regulariser.

    InfoGAN + alpha -mean log H(i|x, x'): the contrastive regulariser of [1].

    x and x' are generated with the same noise and the same code i, drawn at random for each pair; all other
    codes differ, by `gap` at least. H predicts i and minimises -mean log H(i|x, x'), and so does the
    generator in addition to its loss. Both begin after the share `alpha_from` of the steps; before that, this
    is InfoGAN without H. The gap is `gap_start` until the share `gap_until` of the steps, and `gap_end` from
    then on: a wide gap is an easy task.

    The defaults are those of the authors' runs on dSprites: no gap, alpha from step 288,000 of 322,560 on.
    alpha = 0 is InfoGAN.

    Differs from [1] as InfoGAN does, and: H is not initialised again when the gap changes.
    """

    lambda_: Setting = 0.05
    """Weight of the information of codes."""
    alpha: Setting = 2.0
    """Weight of the contrastive regulariser; 0: InfoGAN."""
    alpha_from: Setting = 0.893
    """The share of the steps after which the regulariser is active."""
    gap_start: Setting = 0.0
    """The contrastive gap before gap_until, at most 2."""
    gap_end: Setting = 0.0
    """The contrastive gap from gap_until on, at most 2."""
    gap_until: Setting = 0.0
    """The share of the steps after which the gap changes."""
    noise: int = 5
    """Numbers of noise in addition to the codes."""
    variance: Variance = "unit"
    """Variance of Q: unit, so that its loss is the squared error of codes, or learned, one for each image
    and code."""

    name: ClassVar[str] = "info_gan_cr"
    own_networks: ClassVar[bool] = True
    run_defaults: ClassVar[Mapping[str, Any]] = {"steps": 322_560}
    strength: ClassVar[str | None] = "alpha"
    citation: ClassVar[str] = """@inproceedings{lin2020infogancr,
  author = {Zinan Lin and Kiran Koshy Thekumparampil and Giulia Fanti and Sewoong Oh},
  title = {{InfoGAN-CR} and {ModelCentrality}: Self-supervised Model Training and Selection for Disentangling
           {GANs}},
  booktitle = {International Conference on Machine Learning},
  year = {2020}
}"""

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, most, what in (
            ("gap_start", 2, "the range of a code"),
            ("gap_end", 2, "the range of a code"),
            ("alpha_from", 1, "a share of the steps"),
            ("gap_until", 1, "a share of the steps"),
        ):
            value = getattr(self, name)
            if not isinstance(value, Tensor) and value > most:
                raise UnweaveError(f"{name} of {self.name} must be at most {most}, {what}; got {value!r}.")

    @property
    def players(self) -> tuple[Player, ...]:
        """The generator, the discriminator with Q, and H."""
        judge = Player(
            PAIR_JUDGE,
            lambda plan: PairJudge(checked_plan(plan).streams, plan.shape, plan.latents),
            adam(JUDGING_RATE),
            self.alpha_from,
        )
        return (*gan_players(self.noise, self.variance), judge)

    @property
    def turns(self) -> tuple[tuple[str, ...], ...]:
        """The discriminator with H, and twice the generator."""
        return (DISCRIMINATOR, PAIR_JUDGE), (GENERATOR,), (GENERATOR,)

    @property
    def stochastic(self) -> bool:
        """Whether Q learns a variance."""
        return self.variance == "learned"

    def losses(self, step: StepContext) -> Losses:
        """The objectives of all three players."""
        game = play(step, self.noise)
        without_pairs = info_losses(game, self.lambda_)
        active, gap = self._active_and_gap(torch.as_tensor(step.step, device=game.codes.device), step.steps)
        players, latents = dict(without_pairs.players), game.codes.shape[-1]
        # Before H starts, the log shows the values of random guessing.
        contrast = torch.full_like(players[GENERATOR], math.log(latents))
        right = torch.full_like(contrast, 1 / latents)
        if PAIR_JUDGE in step.networks:
            judged, judged_right = self._contrast(step, game.codes, gap)
            players |= {PAIR_JUDGE: judged, GENERATOR: players[GENERATOR] + self.alpha * active * judged}
            contrast, right = torch.where(active, judged, contrast), torch.where(active, judged_right, right)
        terms = {"contrastive": contrast, "contrastive_accuracy": right, "gap": gap.expand_as(contrast)}
        return Losses(players, dict(without_pairs.terms) | terms)

    def _contrast(self, step: StepContext, like: Tensor, gap: Tensor) -> tuple[Tensor, Tensor]:
        """-mean log H(i|x, x') of as many pairs as there are codes, and the accuracy of H."""
        draws, networks = step.draws, step.networks
        shared, first, second = draw_pairs(draws, like.shape[-2], like.shape[-1], gap)
        inputs = [with_noise(codes, draws, "pair noise", self.noise) for codes in (first, second)]
        images = networks[GENERATOR](torch.cat(inputs, dim=1)).sigmoid().chunk(2, dim=1)
        log_probabilities = networks[PAIR_JUDGE](*images).log_softmax(-1)
        right = log_probabilities.argmax(-1, keepdim=True) == shared
        contrast = -log_probabilities.gather(-1, shared).squeeze(-1).mean(-1)
        return contrast, right.to(contrast.dtype).mean((-2, -1))

    def _active_and_gap(self, step: Tensor, steps: Tensor | int) -> tuple[Tensor, Tensor]:
        """Whether the regulariser is active at this step, and the gap: () or (P,)."""
        is_start = (step < self.gap_until * steps).to(torch.float32)
        gap = is_start * self.gap_start + (1 - is_start) * self.gap_end
        return torch.ceil(self.alpha_from * torch.as_tensor(steps)) <= step, gap


def draw_pairs(draws: Draws, rows: int, latents: int, gap: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Which code each pair shares, (..., rows, 1), and the codes of the first and the second image of it.

    Codes are uniform in [-1, 1]. Those that are not shared are uniform among those at least `gap` apart.
    """
    shared = draws.integers("shared code", rows, [latents])
    first = symmetric_uniform(draws, "first of pair", rows, latents)
    second = symmetric_uniform(draws, "second of pair", rows, latents)
    half = gap[..., None, None] / 2
    apart = torch.where(first > second, half, -half)
    same = torch.arange(latents, device=first.device) == shared
    return (
        shared,
        torch.where(same, first, first * (1 - half) + apart),
        torch.where(same, first, second * (1 - half) - apart),
    )
