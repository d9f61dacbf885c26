"""The formulas of single methods: closed forms, numbers worked out by hand, and the published code's own."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from methods.no_draws import NoDraws
from methods.played import autoencoder_step
from unweave.methods import DIPVAE1, DIPVAE2, AnnealedVAE, BetaTCVAE, BetaVAE, FactorVAE
from unweave.methods.factor_vae import DISCRIMINATOR
from unweave.methods.method import AUTOENCODER, Method, StepContext
from unweave.nn.distributions.gaussian import Estimator, Gaussian, decomposition
from unweave.streams import Stream


class Identity(NoDraws):
    """Draws that leave everything in its place."""

    def normal(self, purpose: str, rows: int, columns: int) -> Tensor:  # noqa: ARG002
        return torch.zeros(rows, columns)

    def permutations(self, purpose: str, rows: int, length: int) -> Tensor:  # noqa: ARG002
        return torch.arange(length).expand(rows, length)


def forward(
    posterior: Gaussian, sample: Tensor, step: int | Tensor = 0, data_size: int = 1000
) -> StepContext:
    return autoencoder_step(
        torch.tensor(50.0, dtype=torch.float64), posterior, sample, step, data_size, Identity()
    )


def some_forward() -> StepContext:
    mean, log_var, noise = (
        torch.from_numpy(Stream.of(0).child(name).normal(8, 3)) for name in ("mean", "log_var", "noise")
    )
    posterior = Gaussian(mean, log_var)
    return forward(posterior, posterior.sample(noise))


def autoencoder_loss(method: Method, context: StepContext) -> float:
    return method.losses(context).players[AUTOENCODER].item()


@pytest.mark.parametrize("estimator", ["weighted", "stratified"])
@pytest.mark.parametrize(
    ("weight", "term"),
    [("alpha", "mutual_information"), ("beta", "total_correlation"), ("gamma", "dimension_wise_kl")],
)
def test_each_weight_of_beta_tcvae_multiplies_its_own_term(
    estimator: Estimator, weight: str, term: str
) -> None:
    """loss(beta) - loss(1) = (beta - 1) TC, and likewise for alpha and gamma."""
    neutral = BetaTCVAE(alpha=1, beta=1, gamma=1, estimator=estimator)
    context = some_forward()
    changed: dict[str, Any] = {weight: 7.5}
    difference = autoencoder_loss(replace(neutral, **changed), context) - autoencoder_loss(neutral, context)
    expected = getattr(
        decomposition(context.forward.posterior, context.forward.sample, context.data_size, estimator), term
    ).item()
    assert neutral.losses(context).terms[term].item() == expected
    assert difference == pytest.approx(6.5 * expected, rel=1e-12)


# (step, capacity): c_max 25, threshold 100,000.
SCHEDULE = [(0, 0.0), (1, 0.00025), (50_000, 12.5), (100_000, 25.0), (250_000, 25.0)]


@pytest.mark.parametrize("as_tensor", [False, True])
@pytest.mark.parametrize(("step", "capacity"), SCHEDULE)
def test_capacity_grows_to_its_maximum_and_stays(step: int, capacity: float, as_tensor: bool) -> None:
    """KL = 10: one mean of sqrt(20), else the prior."""
    mean = torch.tensor([[math.sqrt(20), 0.0]], dtype=torch.float64)
    at = torch.tensor(step) if as_tensor else step
    context = replace(forward(Gaussian(mean, torch.zeros_like(mean)), mean, at), steps=300_000)
    losses = AnnealedVAE(gamma=1000, c_max=25).losses(context)
    assert losses.terms["capacity"].item() == pytest.approx(capacity)
    assert losses.players[AUTOENCODER].item() == pytest.approx(50 + 1000 * abs(10 - capacity))


def test_a_run_that_is_shorter_than_the_threshold_reaches_its_capacity() -> None:
    """After a third of the steps, as 100,000 of 300,000; a threshold within the run counts as it is."""
    steps = torch.tensor([3_000.0, 3_000.0, 300_000.0])
    method = AnnealedVAE(c_max=25, iteration_threshold=torch.tensor([100_000.0, 2_000.0, 100_000.0]))
    zeros = torch.zeros(3, 4, 2)
    for step, expected in ((0, [0.0] * 3), (500, [12.5, 6.25, 0.125]), (1000, [25, 12.5, 0.25])):
        context = replace(forward(Gaussian(zeros, zeros), zeros, torch.tensor(step)), steps=steps)
        assert method.losses(context).terms["capacity"].tolist() == pytest.approx(expected)


# Means (1, 0), (-1, 0), (0, 2), (0, -2), of which Cov = diag(1/2, 2), and (2, 2), (-2, -2), (0, 0), (0, 0) of
# which Cov = [[2, 2], [2, 2]]; variances of q(z|x) 1/4 and 1 in half of the batch each, 5/8 on average.
CROSS = [[1.0, 0.0], [-1.0, 0.0], [0.0, 2.0], [0.0, -2.0]]
LINE = [[2.0, 2.0], [-2.0, -2.0], [0.0, 0.0], [0.0, 0.0]]
DIP: list[tuple[Method, list[list[float]], float, float]] = [
    (DIPVAE1(lambda_od=3, lambda_d_factor=5), CROSS, 0.0, 0.25 + 1.0),
    (DIPVAE1(lambda_od=3, lambda_d_factor=5), LINE, 4.0 + 4.0, 1.0 + 1.0),
    (DIPVAE2(lambda_od=3, lambda_d_factor=5), CROSS, 0.0, 0.125**2 + 1.625**2),
    (DIPVAE2(lambda_od=3, lambda_d_factor=5), LINE, 4.0 + 4.0, 2 * 1.625**2),
]


@pytest.mark.parametrize(("method", "points", "off_diagonal", "diagonal"), DIP)
def test_dip_against_covariances_worked_out_by_hand(
    method: Method, points: list[list[float]], off_diagonal: float, diagonal: float
) -> None:
    mean = torch.tensor(points, dtype=torch.float64) + 7  # a shift changes no covariance
    log_var = torch.tensor([0.25, 0.25, 1.0, 1.0], dtype=torch.float64).log()[:, None].expand(4, 2)
    context = forward(Gaussian(mean, log_var), mean)
    losses = method.losses(context)
    assert losses.terms["off_diagonal"].item() == pytest.approx(off_diagonal)
    assert losses.terms["diagonal"].item() == pytest.approx(diagonal)
    expected = 50 + context.forward.kl.item() + 3 * off_diagonal + 15 * diagonal
    assert losses.players[AUTOENCODER].item() == pytest.approx(expected)


class Published:
    """Inputs and results of the published study's own losses."""

    def __init__(self, folder: Path) -> None:
        self.results: dict[str, float] = json.loads((folder / "losses.json").read_text())["scalars"]
        with np.load(folder / "losses.npz", allow_pickle=False) as arrays:
            names = ("z_mean", "z_logvar", "z", "disc_logits_real", "disc_logits_shuffled")
            self.inputs = {name: torch.from_numpy(arrays[name]).double() for name in names}

    def forward(self, step: int = 100_000, data_size: int = 737_280) -> StepContext:
        posterior = Gaussian(self.inputs["z_mean"], self.inputs["z_logvar"])
        return forward(posterior, self.inputs["z"], step, data_size)

    def regulariser(self, method: Method) -> float:
        return autoencoder_loss(method, self.forward()) - 50


@pytest.fixture(scope="module")
def published(reference: Path) -> Published:
    folder = reference / "reference"
    if not (folder / "losses.npz").is_file():
        pytest.skip("the published losses are not among the reference data")
    return Published(folder)


PUBLISHED: list[tuple[Method, str]] = [
    (BetaVAE(beta=1), "gaussian_kl"),
    (BetaVAE(beta=4), "beta_vae_regularizer_beta4"),
    (DIPVAE1(lambda_od=10, lambda_d_factor=10), "dip_i_regularizer_od10_factor10"),
    (DIPVAE2(lambda_od=10, lambda_d_factor=1), "dip_ii_regularizer_od10_factor1"),
    (AnnealedVAE(gamma=1000, c_max=25), "annealed_regularizer_gamma1000_c25"),
]


@pytest.mark.parametrize(
    ("method", "name"), PUBLISHED, ids=lambda value: value if isinstance(value, str) else ""
)
def test_published_regularisers(published: Published, method: Method, name: str) -> None:
    assert published.regulariser(method) == pytest.approx(published.results[name], rel=1e-5)


def test_published_total_correlation_lacks_its_constants(published: Published) -> None:
    """Theirs leaves out -log(N M) of log q(z) and of each log q(z_d): it is lower by (D - 1) log(N M)."""
    batch, latents = published.inputs["z"].shape
    constant = (latents - 1) * math.log(737_280 * batch)
    actual = BetaTCVAE(beta=6).losses(published.forward()).terms["total_correlation"].item()
    expected = published.results["beta_tc_vae_total_correlation"]
    assert actual - constant == pytest.approx(expected, rel=1e-5)
    loss = published.regulariser(BetaTCVAE(beta=6)) - 5 * constant
    assert loss == pytest.approx(published.results["beta_tc_vae_regularizer_beta6"], rel=1e-5)


def test_published_players_of_factor_vae(published: Published) -> None:
    class Recorded(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            answers = published.inputs["disc_logits_real"], published.inputs["disc_logits_shuffled"]
            self.answers = torch.cat(answers, dim=-2)

        def forward(self, _z: Tensor) -> Tensor:
            return self.answers

    losses = FactorVAE().losses(replace(published.forward(), networks={DISCRIMINATOR: Recorded()}))
    tc, discriminator = losses.terms["total_correlation"].item(), losses.players[DISCRIMINATOR].item()
    assert tc == pytest.approx(published.results["factor_vae_tc"], rel=1e-5)
    name = "factor_vae_discriminator_loss_minimised"
    assert discriminator == pytest.approx(published.results[name], rel=1e-5)
