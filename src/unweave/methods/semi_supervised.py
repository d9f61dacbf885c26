"""The study's methods with a few labels [1]: the first dimensions of the code are pulled towards the factors.

[1] Locatello, Tschannen, Bauer, Rätsch, Schölkopf, Bachem: Disentangling factors of variation using few
labels, ICLR 2020.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits

from unweave.data.grid import GroundTruth
from unweave.data.supervision import (
    Binned,
    Labelled,
    Labeller,
    Noisy,
    Partial,
    Perfect,
    Permuted,
    split,
)
from unweave.data.supervision.labels import points_of_run, rows_of_share
from unweave.errors import UnweaveError
from unweave.methods.annealed_vae import AnnealedVAE
from unweave.methods.beta_tcvae import BetaTCVAE
from unweave.methods.beta_vae import BetaVAE
from unweave.methods.dip_vae import DIPVAE1, DIPVAE2
from unweave.methods.factor_vae import FactorVAE
from unweave.methods.method import (
    AUTOENCODER,
    LabelledCodes,
    Losses,
    Method,
    Player,
    Setting,
    StepContext,
)
from unweave.methods.sampling import Labels, Sampling
from unweave.methods.step import network_of
from unweave.nn.distributions.gaussian import Estimator
from unweave.nn.networks.label_maps import Places, Scale
from unweave.streams import Stream

LABEL_MAP = "label_map"
CITATION = """@inproceedings{locatello2020few,
  author = {Francesco Locatello and Michael Tschannen and Stefan Bauer and Gunnar R{\\"a}tsch and
            Bernhard Sch{\\"o}lkopf and Olivier Bachem},
  title = {Disentangling Factors of Variations Using Few Labels},
  booktitle = {International Conference on Learning Representations},
  year = {2020}
}"""
LABELLERS: dict[str, Labeller] = {
    "perfect": Perfect(),
    "binned": Binned(5),
    "noisy": Noisy(0.1),
    "permuted": Permuted(),
    # The same two factors in all runs: networks and losses of a population have labels of the same sizes.
    "partial": Partial(2, seed=0),
}


@dataclass(frozen=True, kw_only=True)
class SemiSupervised(Method):
    """The common part of six methods: base loss + gamma_sup(t) R of labelled codes; [1], section 4.

    Dimension j of the mean code m belongs to label y_j, a whole number below n_j. Sums are over the labelled
    batch and over labels, as in the published code, so gamma_sup is on the scale of its studies:

    xent: R = sum -(t log s + (1 - t) log(1 - s)), t = y_j / n_j and s = sigmoid(m_j).
    l2: R = sum (b m_j - y_j)^2 with one learned number b, which starts at 1.
    embed: R = sum_j mean over the batch of -log softmax(-(m_j - e_j)^2) at y_j, with a learned position e_j
    on the line for each value. It needs no order of the values.
    cov: R = sum_{i != j} Cov(m_i, y_j)^2, the biased covariance over the batch of all codes and labels.

    annealing: "fixed" is gamma_sup throughout, "anneal" grows from 0 to it over annealing_steps, "fine_tune"
    is 0 up to and including that step, and then gamma_sup.

    train_percentage: with 90, as in [1], the first 90% of the labelled images are trained on. The others are
    held out, and R on them (`held_out_points`, `supervised_loss_on`) chooses between runs.

    Differs from the published code: labelled points are drawn at random at each step, not in a fixed order;
    the factors of the partial labeller are the same in all runs; `embed` has sigma 1; b and e are trained by
    the same loss with their own moments of Adam.
    """

    gamma_sup: Setting = 1.0
    """Weight of the loss on labelled images."""
    supervised_loss: Literal["xent", "l2", "embed", "cov"] = "xent"
    """The loss on labelled images: xent, l2, embed or cov."""
    labels: int = 100
    """How many images have labels."""
    labeller: Literal["perfect", "binned", "noisy", "permuted", "partial"] = "perfect"
    """What labels say: perfect, binned (5 values), noisy (10% replaced), permuted or partial (two
    factors)."""
    annealing: Literal["fixed", "anneal", "fine_tune"] = "fixed"
    """How gamma_sup changes: fixed, anneal or fine_tune."""
    annealing_steps: Setting = 100_000.0
    """Updates over which gamma_sup changes, with anneal and fine_tune."""
    train_percentage: int = 100
    """Percentage of the labelled images that are trained on; the others are held out."""

    citation: ClassVar[str] = CITATION
    least: ClassVar[Mapping[str, int]] = {"labels": 1, "train_percentage": 1}
    added: ClassVar[frozenset[str]] = frozenset({"train_percentage"})

    def __post_init__(self) -> None:
        super().__post_init__()
        _ = self.unsupervised  # building the base method checks its settings
        if not isinstance(self.annealing_steps, Tensor) and self.annealing_steps == 0:
            raise UnweaveError(
                f'annealing_steps of {self.name} must be > 0; got 0. For a constant weight use "fixed".'
            )
        if self.train_percentage > 100:
            raise UnweaveError(
                f"train_percentage of {self.name} must be from 1 to 100; got {self.train_percentage}. The "
                "default is 100: no label is held out."
            )

    @property
    @abstractmethod
    def unsupervised(self) -> Method:
        """The base method with the same settings."""

    @property
    def second_batch_needed(self) -> bool:
        """Whether the base method needs one."""
        return self.unsupervised.second_batch_needed

    @property
    def players(self) -> tuple[Player, ...]:
        """The players of the base method, and the parameters of the supervised loss."""
        others = self.unsupervised.players
        if self.supervised_loss == "l2":
            return *others, Player(LABEL_MAP, lambda plan: Scale(plan.streams))
        if self.supervised_loss == "embed":
            return *others, Player(LABEL_MAP, lambda plan: Places(plan.streams, plan.label_sizes))
        return others

    @property
    def sampling(self) -> Sampling:
        """Images, and a batch of labelled images at each step, without those that are held out."""
        return Labels(rows_of_share(self.labels, self.train_percentage / 100), LABELLERS[self.labeller])

    def held_out_points(self, ground_truth: GroundTruth, seed: int) -> Labelled:
        """The labelled points of the run of that seed that it is not trained on."""
        # Row i of the points depends on the seed and on i only, so training sees the first rows of these.
        points = points_of_run(ground_truth, self.labels, Stream.of(seed), LABELLERS[self.labeller])
        return split(points, self.train_percentage / 100)[1]

    def losses(self, step: StepContext) -> Losses:
        """The base's objective and the supervised term."""
        base = self.unsupervised.losses(step)
        supervised, weight = self._supervised(step), self._weight(step)
        players = {**base.players, AUTOENCODER: base.players[AUTOENCODER] + weight * supervised}
        if LABEL_MAP in step.networks:
            players[LABEL_MAP] = weight * supervised
        return Losses(
            players,
            {**base.terms, "supervised_loss": supervised, "supervised_weight": weight.expand_as(supervised)},
        )

    def _supervised(self, step: StepContext) -> Tensor:
        return self.supervised_loss_on(step.labelled_codes, step.networks)

    def supervised_loss_on(self, labelled: LabelledCodes, networks: Mapping[str, nn.Module]) -> Tensor:
        """(...): R on labelled codes; the network "label_map" has what "l2" and "embed" have learned."""
        if labelled.posterior.mean.shape[-1] < len(labelled.sizes):
            raise UnweaveError(
                f"{self.name} needs a latent for each of the {len(labelled.sizes)} labels; got "
                f"{labelled.posterior.mean.shape[-1]}. Take more latents."
            )
        match self.supervised_loss:
            case "xent":
                return cross_entropy(labelled)
            case "l2":
                return squared_error(labelled, network_of(networks, LABEL_MAP, Scale))
            case "embed":
                return embedding_loss(labelled, network_of(networks, LABEL_MAP, Places))
        return cross_covariance(labelled)

    def _weight(self, context: StepContext) -> Tensor:
        """gamma_sup(t)."""
        kl = context.forward.kl
        step = torch.as_tensor(context.step, dtype=kl.dtype, device=kl.device)
        match self.annealing:
            case "anneal":
                return self.gamma_sup * (step / self.annealing_steps).clamp(max=1)
            case "fine_tune":
                return self.gamma_sup * (step > self.annealing_steps).to(kl.dtype)
        return self.gamma_sup * torch.ones_like(step)


@dataclass(frozen=True)
class S2BetaVAE(SemiSupervised):
    """beta-VAE with a supervised loss on a few labelled images.

    See `SemiSupervised`.
    """

    beta: Setting = BetaVAE.beta
    """Weight of the KL divergence from the prior."""

    name: ClassVar[str] = "s2_beta_vae"
    strength: ClassVar[str | None] = BetaVAE.strength

    @property
    def unsupervised(self) -> BetaVAE:
        """BetaVAE with the same settings."""
        return BetaVAE(self.beta)


@dataclass(frozen=True)
class S2AnnealedVAE(SemiSupervised):
    """AnnealedVAE with a supervised loss on a few labelled images.

    See `SemiSupervised`. This combination is not in [1].
    """

    gamma: Setting = AnnealedVAE.gamma
    """Weight of the distance from the capacity."""
    c_max: Setting = AnnealedVAE.c_max
    """The largest capacity, in nats."""
    iteration_threshold: Setting = AnnealedVAE.iteration_threshold
    """The update at which the capacity is c_max; 1 means from the start."""

    name: ClassVar[str] = "s2_annealed_vae"
    strength: ClassVar[str | None] = AnnealedVAE.strength

    @property
    def unsupervised(self) -> AnnealedVAE:
        """AnnealedVAE with the same settings."""
        return AnnealedVAE(self.gamma, self.c_max, self.iteration_threshold)


@dataclass(frozen=True)
class S2FactorVAE(SemiSupervised):
    """FactorVAE with a supervised loss on a few labelled images.

    See `SemiSupervised`.
    """

    gamma: Setting = FactorVAE.gamma
    """Weight of the total correlation."""
    second_batch: bool = FactorVAE.second_batch
    """Shuffle the codes of a second batch, as in the paper's algorithm 2."""

    name: ClassVar[str] = "s2_factor_vae"
    run_defaults: ClassVar[Mapping[str, Any]] = FactorVAE.run_defaults
    strength: ClassVar[str | None] = FactorVAE.strength

    @property
    def unsupervised(self) -> FactorVAE:
        """FactorVAE with the same settings."""
        return FactorVAE(self.gamma, self.second_batch)


@dataclass(frozen=True)
class S2BetaTCVAE(SemiSupervised):
    """beta-TCVAE with a supervised loss on a few labelled images.

    See `SemiSupervised`.
    """

    alpha: Setting = BetaTCVAE.alpha
    """Weight of the mutual information."""
    beta: Setting = BetaTCVAE.beta
    """Weight of the total correlation."""
    gamma: Setting = BetaTCVAE.gamma
    """Weight of the divergences of the dimensions."""
    estimator: Estimator = BetaTCVAE.estimator
    """Estimator of the aggregate posterior: weighted or stratified."""

    name: ClassVar[str] = "s2_beta_tcvae"
    strength: ClassVar[str | None] = BetaTCVAE.strength

    @property
    def unsupervised(self) -> BetaTCVAE:
        """BetaTCVAE with the same settings."""
        return BetaTCVAE(self.alpha, self.beta, self.gamma, self.estimator)


@dataclass(frozen=True)
class S2DIPVAE1(SemiSupervised):
    """DIP-VAE-I with a supervised loss on a few labelled images.

    See `SemiSupervised`.
    """

    lambda_od: Setting = DIPVAE1.lambda_od
    """Weight of the covariances."""
    lambda_d_factor: Setting = DIPVAE1.lambda_d_factor
    """Weight of the variances, in units of lambda_od."""

    name: ClassVar[str] = "s2_dip_vae_i"
    strength: ClassVar[str | None] = DIPVAE1.strength

    @property
    def unsupervised(self) -> DIPVAE1:
        """DIP-VAE-I with the same settings."""
        return DIPVAE1(self.lambda_od, self.lambda_d_factor)


@dataclass(frozen=True)
class S2DIPVAE2(SemiSupervised):
    """DIP-VAE-II with a supervised loss on a few labelled images.

    See `SemiSupervised`.
    """

    lambda_od: Setting = DIPVAE2.lambda_od
    """Weight of the covariances."""
    lambda_d_factor: Setting = DIPVAE2.lambda_d_factor
    """Weight of the variances, in units of lambda_od."""

    name: ClassVar[str] = "s2_dip_vae_ii"
    strength: ClassVar[str | None] = DIPVAE2.strength

    @property
    def unsupervised(self) -> DIPVAE2:
        """DIP-VAE-II with the same settings."""
        return DIPVAE2(self.lambda_od, self.lambda_d_factor)


def cross_entropy(labelled: LabelledCodes) -> Tensor:
    """(...): the loss "xent"."""
    codes, labels = _codes_and_labels(labelled)
    shares = torch.stack([labels[..., j] / size for j, size in enumerate(labelled.sizes)], dim=-1)
    return binary_cross_entropy_with_logits(codes, shares, reduction="none").sum((-2, -1))


def squared_error(labelled: LabelledCodes, scale: Scale) -> Tensor:
    """(...): the loss "l2"."""
    codes, labels = _codes_and_labels(labelled)
    scaled: Tensor = scale(codes)
    return (scaled - labels).square().sum((-2, -1))


def embedding_loss(labelled: LabelledCodes, places: Places) -> Tensor:
    """(...): the loss "embed"."""
    codes, _ = _codes_and_labels(labelled)
    losses = [
        -(-distances).log_softmax(-1).gather(-1, labelled.labels[..., j, None]).squeeze(-1).mean(-1)
        for j, distances in enumerate(places(codes))
    ]
    return torch.stack(losses).sum(0)


def cross_covariance(labelled: LabelledCodes) -> Tensor:
    """(...): the loss "cov"."""
    codes, labels = labelled.posterior.mean, labelled.labels.to(labelled.posterior.mean.dtype)
    centred_codes, centred_labels = (x - x.mean(-2, keepdim=True) for x in (codes, labels))
    covariance = (centred_codes.unsqueeze(-1) * centred_labels.unsqueeze(-2)).mean(-3)  # (..., D, k)
    matching = covariance.diagonal(dim1=-2, dim2=-1).square().sum(-1)
    return covariance.square().sum((-2, -1)) - matching


def _codes_and_labels(labelled: LabelledCodes) -> tuple[Tensor, Tensor]:
    """(..., B, k): the dimensions that belong to labels, and the labels as numbers."""
    codes = labelled.posterior.mean[..., : len(labelled.sizes)]
    return codes, labelled.labels.to(codes.dtype)
