"""What holds for the losses of every method on the shared autoencoder."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import pytest
import torch
from torch import Tensor, nn
from torch.distributions import Normal, kl_divergence

from methods.host_tensors import sent_by
from methods.played import autoencoder_step
from methods.variants import SHARED, every_variant, variants
from unweave.methods import (
    AE,
    DIPVAE1,
    DIPVAE2,
    GVAE,
    M1,
    MLVAE,
    S2DIPVAE1,
    S2DIPVAE2,
    VAE,
    AdaGVAE,
    AdaMLVAE,
    AnnealedVAE,
    BetaTCVAE,
    BetaVAE,
    FactorVAE,
    GVAELabels,
    InfoVAE,
    MLVAELabels,
    S2AnnealedVAE,
    S2BetaTCVAE,
    S2BetaVAE,
    S2FactorVAE,
)
from unweave.methods.factor_vae import DISCRIMINATOR
from unweave.methods.method import (
    AUTOENCODER,
    Blueprint,
    LabelledCodes,
    Losses,
    Method,
    Player,
    StepContext,
    numeric_settings,
)
from unweave.methods.sampling import Labels
from unweave.nn.distributions.gaussian import Gaussian
from unweave.streams import Stream

WITH_PLAYERS = [kind for kind in SHARED if any(method.players for method in variants(kind))]
BATCH, LATENTS = 6, 3
SIZES = (2, 4)  # of labels


class SeededDraws:
    """One stream a run, as the trainer has."""

    def __init__(self, seeds: Sequence[int], like: Tensor) -> None:
        self.streams = [Stream.of(seed) for seed in seeds]
        self.like = like
        self.known: dict[tuple[str, int, int], Tensor] = {}

    def normal(self, purpose: str, rows: int, columns: int) -> Tensor:
        if (purpose, rows, columns) not in self.known:
            numbers = [torch.from_numpy(run.child(purpose).normal(rows, columns)) for run in self.streams]
            self.known[purpose, rows, columns] = torch.stack(numbers).to(self.like)
        return self.known[purpose, rows, columns]

    def uniform(self, _purpose: str, _rows: int, _columns: int) -> Tensor:
        raise AssertionError("no autoencoder draws uniform numbers")

    def integers(self, _purpose: str, _rows: int, _sizes: Sequence[int]) -> Tensor:
        raise AssertionError("no autoencoder draws whole numbers")

    def permutations(self, purpose: str, rows: int, length: int) -> Tensor:
        if (purpose, rows, length) not in self.known:
            orders = [torch.from_numpy(run.child(purpose).permutations(rows, length)) for run in self.streams]
            self.known[purpose, rows, length] = torch.stack(orders).to(self.like.device)
        return self.known[purpose, rows, length]


class SmallDiscriminator(nn.Module):
    def __init__(self, seeds: Sequence[int], like: Tensor) -> None:
        super().__init__()
        draws = SeededDraws(seeds, like)
        self.hidden = nn.Parameter(draws.normal("hidden", LATENTS, 4))
        self.out = nn.Parameter(draws.normal("out", 4, 2))

    def forward(self, z: Tensor) -> Tensor:
        return torch.tanh(z @ self.hidden) @ self.out


@dataclasses.dataclass(frozen=True)
class Runs:
    """Some runs with everything but the method; mean and log_var replace the encoder."""

    mean: Tensor
    log_var: Tensor
    draws: SeededDraws
    discriminator: SmallDiscriminator
    others: dict[str, nn.Module] = dataclasses.field(default_factory=dict)
    step: int = 30_000

    @classmethod
    def of(cls, *seeds: int, dtype: torch.dtype = torch.float64, device: str = "cpu") -> Runs:
        draws = SeededDraws(seeds, torch.zeros((), dtype=dtype, device=device))
        mean, log_var = (
            draws.normal(name, BATCH, LATENTS).clone().requires_grad_() for name in ("mean", "log_var")
        )
        return cls(mean, log_var, draws, SmallDiscriminator(seeds, draws.like))

    def forward(self, method: Method, networks: dict[str, nn.Module] | None = None) -> StepContext:
        posterior = method.merged(Gaussian(self.mean, self.log_var), self.labels(method))
        noise = self.draws.normal("noise", BATCH, LATENTS)
        sample = posterior.sample(noise * float(method.stochastic))
        other = posterior.sample(self.draws.normal("other noise", BATCH, LATENTS)) + 1
        return autoencoder_step(
            reconstruction=(sample.sin() + 2).sum(-1).mean(-1),
            posterior=posterior,
            sample=sample,
            step=self.step,
            data_size=1000,
            draws=self.draws,
            networks=self.networks(method) if networks is None else networks,
            second_sample=other if method.second_batch_needed else None,
            labelled=self.labelled() if isinstance(method.sampling, Labels) else None,
        )

    def networks(self, method: Method) -> dict[str, nn.Module]:
        """Those of the players besides the autoencoder."""
        return {player.name: self.network(player) for player in method.players}

    def network(self, player: Player) -> nn.Module:
        """Of a player besides the autoencoder: a small one for the discriminator, others as they are."""
        if player.name == DISCRIMINATOR:
            return self.discriminator
        if player.name not in self.others:
            plan = Blueprint(self.draws.streams, (1, 32, 32), LATENTS, label_sizes=SIZES)
            self.others[player.name] = player.build(plan).to(self.draws.like)
        return self.others[player.name]

    def labelled(self) -> LabelledCodes:
        """The same posteriors in another order, as if they were of labelled images."""
        posterior = Gaussian(self.mean.flip(-2), self.log_var.flip(-2))
        return LabelledCodes(posterior, (self.draws.normal("label", BATCH, len(SIZES)) > 0).long(), SIZES)

    def labels(self, method: Method) -> Tensor | None:
        """(P, B, k) values of two factors, if the method gets labels."""
        if not getattr(method.sampling, "labels", False):
            return None
        return (self.draws.normal("labels", BATCH, 2) > 0).long()

    def losses(self, method: Method, networks: dict[str, nn.Module] | None = None) -> Losses:
        return method.losses(self.forward(method, networks))


# Settings at which a method is the plain VAE (or, without a prior, the reconstruction).
NEUTRAL: dict[str, list[Method]] = {
    "vae": [VAE()],
    "ae": [AE()],
    "beta_vae": [BetaVAE(beta=1)],
    "annealed_vae": [AnnealedVAE(gamma=1, c_max=0)],
    "factor_vae": [FactorVAE(gamma=0), FactorVAE(gamma=0, second_batch=True)],
    "beta_tcvae": [BetaTCVAE(beta=1), BetaTCVAE(beta=1, estimator="stratified")],
    "dip_vae_i": [DIPVAE1(lambda_od=0)],
    "dip_vae_ii": [DIPVAE2(lambda_od=0)],
    "info_vae": [
        InfoVAE(alpha=0, lambda_=1),
        InfoVAE(alpha=0, lambda_=1, divergence="stein"),
        InfoVAE(alpha=0, lambda_=1, divergence="adversarial"),
    ],
    "ml_vae": [MLVAE(content=0), MLVAE(content=0, group_size=3)],
    "gvae": [GVAE(content=0)],
    "ada_gvae": [AdaGVAE(beta=1), AdaGVAE(beta=1, k_known=True)],
    "ada_ml_vae": [AdaMLVAE(beta=1)],
    "gvae_labels": [GVAELabels(beta=1)],
    "ml_vae_labels": [MLVAELabels(beta=1)],
    "s2_beta_vae": [S2BetaVAE(beta=1, gamma_sup=0), S2BetaVAE(beta=1, gamma_sup=0, supervised_loss="embed")],
    "s2_annealed_vae": [S2AnnealedVAE(gamma=1, c_max=0, gamma_sup=0)],
    "s2_factor_vae": [S2FactorVAE(gamma=0, gamma_sup=0)],
    "s2_beta_tcvae": [S2BetaTCVAE(beta=1, gamma_sup=0)],
    "s2_dip_vae_i": [S2DIPVAE1(lambda_od=0, gamma_sup=0)],
    "s2_dip_vae_ii": [S2DIPVAE2(lambda_od=0, gamma_sup=0)],
    "m1": [M1()],
}


@pytest.mark.parametrize("method", SHARED, ids=lambda method: method.name)
def test_the_neutral_setting_is_the_negative_elbo(method: type[Method]) -> None:
    runs = Runs.of(0, 1)
    for neutral in NEUTRAL[method.name]:
        context = runs.forward(neutral)
        posterior = Normal(context.forward.posterior.mean, torch.exp(context.forward.posterior.log_var / 2))
        kl = kl_divergence(posterior, Normal(torch.tensor(0.0), torch.tensor(1.0))).sum(-1).mean(-1)
        rec = context.forward.reconstruction
        losses = runs.losses(neutral)
        if not neutral.stochastic:
            torch.testing.assert_close(losses.players[AUTOENCODER], rec)
            continue
        torch.testing.assert_close(losses.players[AUTOENCODER], rec + kl)
        torch.testing.assert_close(losses.terms["elbo"], -(rec + kl))
        torch.testing.assert_close(losses.terms["kl"], kl)


def with_settings(method: Method, scales: Sequence[float]) -> list[Method]:
    """The method with all its numbers multiplied, once for each scale."""
    numbers = {name: getattr(method, name) for name in numeric_settings(method)}
    scaled = [{name: value * scale for name, value in numbers.items()} for scale in scales]
    return [dataclasses.replace(method, **settings) for settings in scaled]


def stacked(methods: Sequence[Method]) -> Method:
    """One method whose numbers are tensors with a value for each run."""
    numbers = {
        name: torch.tensor([getattr(method, name) for method in methods], dtype=torch.float64)
        for name in numeric_settings(methods[0])
    }
    return dataclasses.replace(methods[0], **numbers)


@every_variant(SHARED)
def test_the_loss_of_a_population_is_the_stack_of_single_losses(method: Method) -> None:
    methods, seeds = with_settings(method, [0.5, 1.0, 3.0]), (3, 7, 11)
    together = Runs.of(*seeds).losses(stacked(methods))
    alone = [Runs.of(seed).losses(one) for seed, one in zip(seeds, methods, strict=True)]
    for name, actual in together.players.items():
        torch.testing.assert_close(actual, torch.cat([losses.players[name] for losses in alone]))
    for name, actual in together.terms.items():
        torch.testing.assert_close(actual, torch.cat([losses.terms[name] for losses in alone]))


@every_variant(SHARED)
def test_there_is_one_loss_and_term_a_run_in_the_precision_of_the_networks(method: Method) -> None:
    losses = Runs.of(0, 1, dtype=torch.float32).losses(method)
    assert set(losses.players) == {AUTOENCODER, *(player.name for player in method.players)}
    for value in [*losses.players.values(), *losses.terms.values()]:
        assert value.shape == (2,)
        assert value.dtype == torch.float32


@every_variant(SHARED)
def test_nothing_is_made_on_another_device(method: Method) -> None:
    runs = Runs.of(0, 1, device="meta")
    losses = runs.losses(method)
    for value in [*losses.players.values(), *losses.terms.values()]:
        assert value.device.type == "meta"
    assert sent_by(lambda: runs.losses(method)) == [], "a CUDA graph cannot record copies from the host"


def holds_something_fixed(method: Method) -> bool:
    """Whether the gradient is not that of the value, by design: see tests/methods/test_info_vae.py."""
    return isinstance(method, InfoVAE) and (
        method.divergence == "stein" or (method.divergence == "mmd" and method.bandwidth == "median")
    )


@every_variant(SHARED)
def test_gradients_of_the_autoencoder(method: Method) -> None:
    if holds_something_fixed(method):
        return
    runs = Runs.of(0, 1)

    def loss(mean: Tensor, log_var: Tensor) -> Tensor:
        return dataclasses.replace(runs, mean=mean, log_var=log_var).losses(method).players[AUTOENCODER]

    assert torch.autograd.gradcheck(loss, (runs.mean, runs.log_var))


@every_variant(WITH_PLAYERS)
def test_gradients_of_the_other_players(method: Method) -> None:
    runs = Runs.of(0, 1)
    for player in method.players:
        weights = tuple(runs.network(player).parameters())
        many = sum(weight.numel() for weight in weights) > 1000

        def loss(*_: Tensor, name: str = player.name) -> Tensor:
            return runs.losses(method).players[name]

        assert torch.autograd.gradcheck(loss, weights, fast_mode=many)


@every_variant(WITH_PLAYERS)
def test_players_do_not_move_each_other(method: Method) -> None:
    """A player's gradient does not change if the parameters of the others need no gradient."""
    runs = Runs.of(0, 1)
    own = {AUTOENCODER: [runs.mean, runs.log_var]}
    own |= {player.name: list(runs.network(player).parameters()) for player in method.players}
    losses = runs.losses(method).players
    actual = {name: gradients(losses[name], own[name]) for name in own}
    everything = [tensor for tensors in own.values() for tensor in tensors]
    assert all(tensor.grad is None for tensor in everything)
    for name, tensors in own.items():
        for tensor in everything:
            tensor.requires_grad_(any(tensor is mine for mine in tensors))
        alone = gradients(runs.losses(method).players[name], tensors)
        torch.testing.assert_close(actual[name], alone, rtol=0, atol=0)


def gradients(loss: Tensor, tensors: list[Tensor]) -> list[Tensor]:
    return list(torch.autograd.grad(loss.sum(), tensors, retain_graph=True))
