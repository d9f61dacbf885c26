"""FactorQVAE: its objective by NumPy, its temperature, and the total correlation that it lowers."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.special import log_softmax, softmax
from torch import Tensor

from methods.marks import use_small_networks
from methods.played import Played
from methods.test_tripod import SQUARES
from training.tiny import narrow_discriminators
from unweave.errors import UnweaveError
from unweave.methods import FactorQVAE
from unweave.methods.factor_qvae import shuffle_indicators
from unweave.methods.factor_vae import DISCRIMINATOR
from unweave.methods.method import AUTOENCODER
from unweave.nn.distributions.likelihood import reconstruction_loss
from unweave.nn.networks.quantised import QuantisedAutoencoder
from unweave.runs.spec import RunSpec, spec_of
from unweave.training.batches import HostBatches
from unweave.training.population import Population
from unweave.training.update import Update

VALUES = 7


def network_of(case: Played) -> QuantisedAutoencoder:
    network = case.networks[AUTOENCODER]
    assert isinstance(network, QuantisedAutoencoder)
    return network


@torch.no_grad()
def test_the_objective_is_the_authors() -> None:
    """By NumPy, run by run: distances, Gumbel softmax, means over pixels and latents, cross-entropies."""
    method = FactorQVAE(kl_weight=0.3, gamma=0.2, final_temperature=0.25, num_embeddings=VALUES)
    case = Played.of(method, images=5, latents=3)
    case = Played(case.method, replace(case.step, step=50, steps=100, likelihood="gaussian"))
    network, losses = network_of(case), case.losses()
    network.encoder.heads.weight.mul_(30)
    losses = case.losses()
    z = network.encoder(case.batch.images).mean.double().numpy()
    values = network.codebook.values.double().numpy()
    uniform = case.step.draws.uniform("gumbel", 5, 3 * VALUES).double().numpy().reshape(2, 5, 3, VALUES)
    orders = case.step.draws.permutations("shuffle", 3, 5).numpy()
    for run in range(2):
        distances = (z[run, :, :, None] - values[run, 0]) ** 2
        log_q = log_softmax(-distances, axis=-1)
        # softmax((-distance + g) / T) is the same as with log q, which differs by a constant.
        chosen = softmax((-distances - np.log(-np.log(uniform[run]))) / 0.5, axis=-1)
        kl = float((np.exp(log_q) * (log_q + math.log(VALUES))).sum(-1).sum(-1).mean())
        logits = network.decoder(as_float(chosen @ values[run, 0]).expand(2, -1, -1))[run]
        rec = float(reconstruction_loss(logits, case.batch.images[run] / 255, "gaussian"))
        shuffled = np.stack([chosen[orders[run, d], d] for d in range(3)], axis=1)
        joint, other = (verdicts(case, numbers, run) for numbers in (chosen, shuffled))
        total_correlation = float((joint[:, 0] - joint[:, 1]).mean())
        cross_entropies = -log_softmax(joint, -1)[:, 0].mean() - log_softmax(other, -1)[:, 1].mean()
        assert losses.terms["reconstruction"][run].item() == pytest.approx(rec, rel=1e-4)
        assert losses.terms["kl"][run].item() == pytest.approx(kl, rel=1e-4)
        assert losses.terms["total_correlation"][run].item() == pytest.approx(total_correlation, abs=1e-4)
        assert losses.terms["temperature"][run].item() == pytest.approx(0.5)
        expected = rec / 1024 + 0.3 * kl / 3 + 0.2 * total_correlation
        assert losses.players[AUTOENCODER][run].item() == pytest.approx(expected, rel=1e-4)
        assert losses.players[DISCRIMINATOR][run].item() == pytest.approx(cross_entropies / 2, rel=1e-4)


def verdicts(case: Played, indicators: np.ndarray, run: int) -> np.ndarray:
    """(B, 2): logits of the discriminator of a run."""
    rows = as_float(indicators.reshape(len(indicators), -1)).expand(2, -1, -1)
    logits: Tensor = case.networks[DISCRIMINATOR](rows)
    return logits[run].double().numpy()


def as_float(numbers: np.ndarray) -> Tensor:
    return torch.from_numpy(numbers).float()


def test_the_temperature_is_that_of_the_authors_program() -> None:
    """There it is exp(-1e-5 s), and s counts the updates of both players: 100,000 in 50,000 batches."""
    spec = spec_of(FactorQVAE())
    assert (spec.steps, spec.batch, spec.likelihood) == (50_000, 256, "gaussian")
    case = Played.of(FactorQVAE(), seeds=(0,))
    for update in (0, 12_500, 49_999):
        step = replace(case.step, step=torch.tensor(update), steps=50_000)
        actual = FactorQVAE().temperature(step, torch.ones(()))
        assert actual.item() == pytest.approx(math.exp(-1e-5 * 2 * update), rel=1e-5)
    runs = FactorQVAE(final_temperature=torch.tensor([0.25, 1.0]))
    step = replace(case.step, step=torch.tensor(50), steps=torch.tensor([100, 200]))
    assert runs.temperature(step, torch.ones(())).tolist() == pytest.approx([0.5, 1.0])


def test_a_cold_sample_is_a_value_and_a_hot_one_the_mean_of_all() -> None:
    case = Played.of(FactorQVAE(num_embeddings=VALUES), seeds=(0,), images=50)
    codebook = network_of(case).codebook
    posterior = codebook.posterior(network_of(case).encoder(case.batch.images).mean)
    uniform = case.step.draws.uniform("gumbel", 50, 4 * VALUES).reshape(1, 50, 4, VALUES)
    cold, hot = (codebook.mixed(posterior.sample(uniform, temperature)) for temperature in (1e-4, 1e4))
    distances = (cold.unsqueeze(-1) - codebook.values.flatten()).abs().amin(-1)
    assert (distances < 1e-3).float().mean() > 0.98
    torch.testing.assert_close(hot, codebook.values.mean().expand_as(hot), atol=1e-2, rtol=0)


def test_shuffling_keeps_the_indicators_of_each_latent() -> None:
    case = Played.of(FactorQVAE(), seeds=(0, 1))
    whole = torch.arange(2 * 9 * 3 * 2).reshape(2, 9, 3, 2).float()
    shuffled = shuffle_indicators(whole, case.step.draws)
    for run in range(2):
        for latent in range(3):
            rows = [tuple(row) for row in shuffled[run, :, latent].tolist()]
            assert set(rows) == {tuple(row) for row in whole[run, :, latent].tolist()}
    kept = (shuffled == whole).all(-1).float().mean().item()
    assert kept < 0.5
    apart = [shuffled[run, :, 0].ne(shuffled[run, :, 1] - 2).any() for run in range(2)]
    assert all(apart), "latents move together"


@torch.no_grad()
def test_all_latents_share_the_values_of_the_codes() -> None:
    case = Played.of(FactorQVAE(num_embeddings=VALUES), images=30)
    network = network_of(case)
    network.encoder.heads.weight.mul_(60)
    values = network.codebook.values
    assert values.shape == (2, 1, VALUES)
    codes = case.method.encode(case.networks, case.batch.images).mean
    for run in range(2):
        low, high = values[run].min(), values[run].max()
        allowed = -2 + 4 * (values[run, 0] - low) / (high - low)
        assert ((codes[run].unsqueeze(-1) - allowed).abs().amin(-1) < 1e-5).all()
        assert len(codes[run].unique()) > 2
    logits = case.method.decode(case.networks, codes)
    nearest = network.codebook(network.encoder(case.batch.images).mean)
    torch.testing.assert_close(logits, network.decoder(nearest), rtol=1e-4, atol=1e-4)


def test_bad_settings_and_bf16_are_refused() -> None:
    with pytest.raises(UnweaveError, match=r"final_temperature of factor_qvae must be > 0; got 0\."):
        FactorQVAE(final_temperature=0.0)
    with pytest.raises(UnweaveError, match=r"num_embeddings of factor_qvae must be at least 2; got 1\."):
        FactorQVAE(num_embeddings=1)
    with pytest.raises(UnweaveError, match=r"must not have its weights rounded to bf16\. Use"):
        RunSpec(FactorQVAE(), data="tiny", precision="bf16")


def test_nothing_waits_for_the_device() -> None:
    losses = Played.of(FactorQVAE(), device="meta").losses()
    for value in [*losses.players.values(), *losses.terms.values()]:
        assert value.shape == (2,)
        assert value.device.type == "meta"


def test_gamma_lowers_the_total_correlation_which_the_discriminator_estimates(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Two runs of 500 updates without and with the penalty; 8 values, so that all 8^3 codes are summed up."""
    use_small_networks(monkeypatch)
    device = torch.device("cpu")
    specs = [
        replace(
            spec_of(FactorQVAE(gamma=gamma, num_embeddings=8), data=SQUARES.name, seed=1, latents=3),
            batch=64,
            steps=500,
            architecture="small",
        )
        for gamma in (0.0, 0.05)
    ]
    with narrow_discriminators(100):
        population = Population(specs, SQUARES.shape, device)
    update = Update(population, HostBatches(SQUARES, device), len(SQUARES))
    update.run(400)
    update.take_terms()
    update.run(100)
    [terms] = update.take_terms()
    free, penalised = total_correlations(population)
    assert free > 0.3
    assert penalised < 0.2 * free
    assert terms["total_correlation"].tolist() == pytest.approx([free, penalised], abs=0.1)
    assert terms["reconstruction"][1] < 1.3 * terms["reconstruction"][0]


@torch.no_grad()
def total_correlations(population: Population) -> list[float]:
    """KL(q(k) || prod_d q(k_d)) of each run, exact: q(k) is the mean over all images of prod_d q(k_d | x)."""
    network = population.groups[0].networks[AUTOENCODER]
    assert isinstance(network, QuantisedAutoencoder)
    images = torch.from_numpy(SQUARES.observe(SQUARES.factors_at(np.arange(len(SQUARES)))))
    z = network.encoder(images.expand(2, -1, -1, -1, -1)).mean
    each = network.codebook.posterior(z).log_probabilities.double().exp()
    joint = torch.einsum("pba,pbc,pbd->pacd", *each.unbind(2)) / len(images)
    product = torch.einsum("pa,pc,pd->pacd", *each.mean(1).unbind(1))
    total: list[float] = (joint * (joint / product).log()).sum((1, 2, 3)).tolist()
    return total
