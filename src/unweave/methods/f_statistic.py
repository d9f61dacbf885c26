"""F-statistic loss [1]: a few dimensions of the code separate any two values of a factor.

[1] Ridgeway, Mozer: Learning deep disentangled embeddings with the F-statistic loss, NeurIPS 2018.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor, nn

from unweave.data.supervision import Perfect
from unweave.errors import UnweaveError
from unweave.methods.method import Blueprint, Losses, Method, Player, StepContext
from unweave.methods.sampling import Balance, Labels, Sampling, labels_in_turn
from unweave.methods.step import LabelledBatch
from unweave.nn.distributions.f_distribution import log_f_cdf
from unweave.nn.distributions.gaussian import Gaussian, certain
from unweave.nn.moving_average import MovingAverage, half_squared_distance
from unweave.nn.networks.vae import Decoder

# The encoder has the weights of the learner at the best held-out separation.
ENCODER, LEARNER, SCORES, DECODER = "encoder", "learner", "scores", "decoder"
TINY = 1e-12  # added to sums of squares, so that equal codes have a gradient
AVERAGED = 50  # batches of a label over which its held-out separation is averaged


class Embedding(nn.Module):
    """The usual encoder, whose codes are the means."""

    def __init__(self, plan: Blueprint) -> None:
        super().__init__()
        self.encoder = plan.encoder()

    def forward(self, images: Tensor) -> Tensor:
        """Codes (P, B, D): posterior means."""
        mean: Tensor = self.encoder(images).mean
        return mean

    def encode(self, images: Tensor) -> Gaussian:
        """Codes with a negligible variance."""
        return certain(self(images))


class Scores(nn.Module):
    """The held-out separation of each label, averaged over its last batches, and the best sum.

    Until each average covers enough batches, every sum counts as the best.
    """

    def __init__(self, plan: Blueprint) -> None:
        super().__init__()
        runs, labels = len(plan.streams), len(labels_in_turn(plan.label_sizes))
        self.scores = nn.Parameter(torch.zeros(runs, labels))
        self.best = nn.Parameter(torch.zeros(runs, 1))  # the highest sum of scores so far

    def forward(self, score: Tensor, is_scored: Tensor, step: Tensor | int) -> tuple[Tensor, Tensor]:
        """(P,): the loss whose update averages scores, and whether the sum is the highest so far, 1 or 0.

        score (P,) is the held-out separation of the step's label, if `is_scored`.
        """
        step, labels = torch.as_tensor(step, device=score.device), self.scores.shape[1]
        share = (1 / (step // labels + 1)).clamp(min=1 / AVERAGED)
        share = share * (torch.arange(labels, device=score.device) == step % labels)
        change = share * is_scored.unsqueeze(-1) * (score.unsqueeze(-1) - self.scores)
        scores = (self.scores + change).detach()
        total = scores.sum(-1, keepdim=True)
        is_best = (total >= self.best) | (step < AVERAGED * labels)
        targets = scores, torch.where(is_best, total, self.best)
        return half_squared_distance((self.scores, self.best), targets), is_best.squeeze(-1).to(score.dtype)


@dataclass(frozen=True)
class FStatistic(Method):
    """F-statistic loss: learns from labels dimensions that separate the values of factors.

    -mean over pairs of values of a factor, sum over the d best dimensions of log Pr(S < s).

    s is the F statistic of a dimension for the images of two values: the variance between them over the
    variance within, with 1 and n_1 + n_2 - 2 degrees of freedom; Pr(S < s) is the regularised incomplete beta
    function I_x(1/2, (n_1 + n_2 - 2) / 2) at x = between / (between + within); [1], section 2. The d most
    separated dimensions are chosen for each pair, and the others are unconstrained.

    As in the authors' program, a batch has up to `images` images of each of up to `values` values of one
    factor, and factors take turns. Values with fewer than two images are left out. The encoder learns from
    labelled images only, and `held_out` of them, by default a fifth, are for early stopping: codes are those
    of the weights with the highest held-out separation, averaged over the last batches of each factor. A
    decoder is trained on these codes to visualise them, and does not change the encoder.

    Differs from [1]: the mean over pairs, not the sum, so that a factor of many values weighs as much as one
    of few; early stopping by the separation, where the authors fit classifiers to held-out codes. The F
    statistic is exact; the authors' code uses the mean of the two group means as the overall mean, which is
    the same where n_1 = n_2.
    """

    labels: int = 1000
    """How many images have labels, of all factors."""
    d: int = 2
    """Dimensions in which two values must differ."""
    values: int = 12
    """Values of a factor in a batch, at most."""
    images: int = 5
    """Images of each value in a batch, at most."""
    held_out: int | Literal["fifth"] = "fifth"
    """Labels for early stopping: a number, or a fifth of them; with 0 the last weights are kept."""

    name: ClassVar[str] = "f_statistic"
    has_prior: ClassVar[bool] = False
    own_networks: ClassVar[bool] = True
    run_defaults: ClassVar[Mapping[str, Any]] = {"learning_rate": 2e-4}  # of [1]
    least: ClassVar[Mapping[str, int]] = {"labels": 1, "d": 1, "values": 2, "images": 2}
    citation: ClassVar[str] = """@inproceedings{ridgeway2018fstatistic,
  author = {Karl Ridgeway and Michael C. Mozer},
  title = {Learning Deep Disentangled Embeddings With the {F}-Statistic Loss},
  booktitle = {Advances in Neural Information Processing Systems},
  volume = {31},
  year = {2018}
}"""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self._held_out >= self.labels:
            raise UnweaveError(
                f"held_out of f_statistic must be less than labels = {self.labels}, as the encoder learns "
                f"from the others; got {self.held_out}."
            )

    @property
    def players(self) -> tuple[Player, ...]:
        """The encoder that is kept, a decoder for pictures, the encoder that learns, and its scores."""
        copies = MovingAverage(1.0)
        return (
            Player(ENCODER, Embedding, copies, precise=True),
            Player(DECODER, _decoder),
            Player(LEARNER, Embedding),
            Player(SCORES, Scores, copies, precise=True),
        )

    @property
    def sampling(self) -> Sampling:
        """Labels of all factors."""
        return Labels(self.labels, Perfect(), balance=Balance(self.values, self.images, self._held_out))

    @property
    def _held_out(self) -> int:
        return self.labels // 5 if self.held_out == "fifth" else self.held_out

    @property
    def stochastic(self) -> bool:
        """False: codes are deterministic."""
        return False

    def losses(self, step: StepContext) -> Losses:
        """The objective of [1] for the learner; the others follow it."""
        encoder, learner = step.network(ENCODER, Embedding), step.network(LEARNER, Embedding)
        decoder, images = step.network(DECODER, Decoder), step.batch.images
        separated, _ = self._separation(learner, step.labelled, half=0)
        terms = {"separation": separated}
        score, is_scored = torch.zeros_like(separated), torch.zeros_like(separated)
        with torch.no_grad():
            if self._held_out:
                score, is_scored = self._separation(learner, step.labelled, half=1)
                terms["held_out_separation"] = score
            codes = encoder(images)
        of_scores, is_best = step.network(SCORES, Scores)(score, is_scored, step.step)
        reconstruction = decoder.reconstruction(codes, images, step.likelihood)
        players = {
            ENCODER: is_best * half_squared_distance(encoder.parameters(), learner.parameters()),
            DECODER: reconstruction,
            LEARNER: -separated,
            SCORES: of_scores,
        }
        return Losses(players, {**terms, "reconstruction": reconstruction})

    def networks(self, plan: Blueprint) -> dict[str, nn.Module]:
        """The encoder that is kept, and the decoder."""
        return {ENCODER: Embedding(plan), DECODER: _decoder(plan)}

    def _separation(self, learner: Embedding, labelled: LabelledBatch, half: int) -> tuple[Tensor, Tensor]:
        """(P,), (P,): separation of one half of a balanced batch, and whether it has pairs of values."""
        halves = 2 if self._held_out else 1
        images, index = (tensor.chunk(halves, dim=1)[half] for tensor in (labelled.images, labelled.index))
        codes = learner(images)
        if codes.shape[-1] < self.d:
            raise UnweaveError(f"f_statistic needs at least d = {self.d} latents; got {codes.shape[-1]}.")
        return separation(
            codes.unflatten(1, (-1, self.images)), (index >= 0).unflatten(1, (-1, self.images)), self.d
        )


def separation(codes: Tensor, is_taken: Tensor, dimensions: int) -> tuple[Tensor, Tensor]:
    """How confidently codes separate values, at most 0, and 1 or 0: whether there are pairs of values; (...).

    codes (..., V, m, D) are those of m images of each value, of which those count that are taken (..., V, m).
    It is the mean, over pairs of values with two images or more each, of the sum of log Pr(S < s) over the
    dimensions in which the pair is most separated; 0 where there is no such pair.
    """
    belongs = is_taken.to(codes.dtype).unsqueeze(-1)
    counts = belongs.sum((-2, -1))  # (..., V)
    means = (belongs * codes).sum(-2) / counts.clamp(min=1).unsqueeze(-1)
    squares = (belongs * (codes - means.unsqueeze(-2)).square()).sum(-2)  # (..., V, D)
    i, j = torch.triu_indices(codes.shape[-3], codes.shape[-3], 1, device=codes.device)
    first, second = counts[..., i], counts[..., j]
    weight = first * second / (first + second).clamp(min=1)
    between = weight.unsqueeze(-1) * (means[..., i, :] - means[..., j, :]).square()
    within = squares[..., i, :] + squares[..., j, :]
    freedom = (first + second - 2).clamp(min=1).unsqueeze(-1).expand_as(within)
    confidence = log_f_cdf(between + TINY, within + TINY, freedom).topk(dimensions, dim=-1).values.sum(-1)
    is_counted = (torch.minimum(first, second) >= 2).to(codes.dtype)
    pairs = is_counted.sum(-1)
    return (confidence * is_counted).sum(-1) / pairs.clamp(min=1), pairs.clamp(max=1)


def _decoder(plan: Blueprint) -> Decoder:
    return plan.decoder()
