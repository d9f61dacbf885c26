"""QLAE: its objective and gradients, worked out apart from it."""

import math
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

import unweave
from methods.played import own_step
from training.tiny import TINY
from unweave.errors import UnweaveError
from unweave.evaluation import compare
from unweave.evaluation.effort import Effort
from unweave.evaluation.evaluate import source_of
from unweave.evaluation.score_store import all_kept, evaluate_run
from unweave.methods import QLAE
from unweave.methods.method import AUTOENCODER, Batch, Losses
from unweave.metrics import infomec
from unweave.nn.distributions.likelihood import reconstruction_loss
from unweave.nn.networks.quantised import LOG_VAR, QuantisedAutoencoder
from unweave.runs.spec import RunSpec
from unweave.training.batches import HostBatches
from unweave.training.population import Population, shared_by
from unweave.training.update import Update

SEEDS, IMAGES, LATENTS = (0, 1), 6, 4


class Case:
    """Two runs with different codebooks, and a batch of bytes for each."""

    def __init__(self, method: QLAE, device: str = "cpu") -> None:
        specs = [RunSpec(method, data="tiny", seed=seed, latents=LATENTS) for seed in SEEDS]
        population = Population(specs, TINY.shape, torch.device(device))
        group = population.groups[0]
        assert isinstance(group.method, QLAE)
        self.method, self.networks = group.method, group.networks
        network = self.networks[AUTOENCODER]
        assert isinstance(network, QuantisedAutoencoder)
        self.network = network
        with torch.no_grad():  # so that runs and dimensions differ, and more than one value is chosen
            network.codebook.values.add_(0.1 * population.draws.normal("values", LATENTS, 10))
            network.encoder.heads.weight.mul_(20)
        factors = TINY.sample_factors(len(SEEDS) * IMAGES, 3)
        images = torch.from_numpy(TINY.observe(factors)).to(device).unflatten(0, (len(SEEDS), IMAGES))
        self.batch = Batch(images)
        self.at_step = own_step(0, len(TINY), population.draws, "bernoulli")

    def losses(self) -> Losses:
        return self.method.losses(self.at_step(self.batch, self.networks))

    def gradients(self) -> dict[str, Tensor]:
        """Of the objective for all parameters."""
        names, parameters = zip(*self.network.named_parameters(), strict=True)
        gradients = torch.autograd.grad(self.losses().players[AUTOENCODER].sum(), parameters)
        return dict(zip(names, gradients, strict=True))

    def z(self) -> Tensor:
        encoded: Tensor = self.network.encoder(self.batch.images).mean
        return encoded


def nearest(z: np.ndarray, values: np.ndarray) -> np.ndarray:
    """The index of the nearest value for z (B, D), values (D, V)."""
    return np.array([[np.abs(values[d] - row[d]).argmin() for d in range(len(values))] for row in z])


@torch.no_grad()
def test_the_objective_is_the_papers() -> None:
    case = Case(QLAE(lambda_quantize=0.3, lambda_commit=0.2))
    losses, z = case.losses(), case.z()
    for run in range(2):
        values = case.network.codebook.values[run].numpy()
        index = nearest(z[run].numpy(), values)
        assert len(np.unique(index)) > 2
        quantised = np.take_along_axis(values.T, index, axis=0)
        logits = case.network.decoder(torch.from_numpy(quantised).expand(2, -1, -1))[run]
        rec = float(reconstruction_loss(logits, case.batch.images[run] / 255, "bernoulli"))
        distance = float(((z[run].numpy() - quantised) ** 2).mean())
        weights = case.network.squared_weights()[run].item()
        assert float(losses.terms["reconstruction"][run]) == pytest.approx(rec, rel=1e-5)
        assert float(losses.terms["quantisation"][run]) == pytest.approx(distance, rel=1e-5)
        assert float(losses.terms["squared_weights"][run]) == pytest.approx(weights, rel=1e-6)
        expected = rec / (32 * 32) + 0.3 * distance + 0.2 * distance
        assert float(losses.players[AUTOENCODER][run]) == pytest.approx(expected, rel=1e-5)


def test_values_move_towards_the_codes_and_by_nothing_else() -> None:
    """The gradient of value v_k: 2 lambda / (B D) sum over the codes that chose it of v_k - z."""
    case = Case(QLAE(lambda_quantize=0.3, lambda_commit=0.7))
    actual = case.gradients()["codebook.values"].numpy()
    for run in range(2):
        values = case.network.codebook.values[run].detach().numpy()
        z = case.z()[run].detach().numpy()
        index, expected = nearest(z, values), np.zeros_like(values)
        for row in range(IMAGES):
            for d in range(LATENTS):
                expected[d, index[row, d]] += 2 * 0.3 * (values[d, index[row, d]] - z[row, d])
        np.testing.assert_allclose(actual[run], expected / (IMAGES * LATENTS), rtol=1e-4, atol=1e-7)


def test_the_encoder_learns_straight_through_the_values() -> None:
    """What z gets is the decoder's gradient at the values, and 2 lambda / (B D) (z - v) of the commitment."""
    case = Case(QLAE(lambda_quantize=5.0, lambda_commit=0.7))
    gradients = case.gradients()
    z = case.z()
    values = case.network.codebook(z).detach().requires_grad_()
    rec = case.network.decoder.reconstruction(values, case.batch.images, "bernoulli")
    [by_decoder] = torch.autograd.grad(rec.sum() / 1024, values, retain_graph=True)
    direction = by_decoder + 2 * 0.7 / (IMAGES * LATENTS) * (z - values).detach()
    encoder = dict(case.network.encoder.named_parameters())
    expected = torch.autograd.grad((z * direction).sum(), list(encoder.values()))
    for name, gradient in zip(encoder, expected, strict=True):
        torch.testing.assert_close(gradients[f"encoder.{name}"], gradient, rtol=1e-4, atol=1e-7)
    decoder = dict(case.network.decoder.named_parameters())
    for name, gradient in zip(
        decoder, torch.autograd.grad(rec.sum() / 1024, list(decoder.values())), strict=True
    ):
        torch.testing.assert_close(gradients[f"decoder.{name}"], gradient, rtol=1e-4, atol=1e-7)


def updated(method: QLAE, steps: int) -> tuple[list[str], list[Tensor], list[Tensor]]:
    """Names of all parameters, and their values by this package and by torch.optim.AdamW after some updates.

    As in the authors' program, weights decay by 0.1, and biases and the codebook do not. torch adds epsilon
    after bias correction; its epsilon is set at each step so that both forms are equal.
    """
    spec = RunSpec(method, data="tiny", latents=LATENTS, batch=IMAGES, steps=steps)
    population = Population([spec], TINY.shape, torch.device("cpu"))
    (player,) = population.players
    network = player.networks[AUTOENCODER]
    names = [name for name, _ in network.named_parameters()]
    theirs = [parameter.detach().clone().requires_grad_() for parameter in network.parameters()]
    groups = [
        {"params": [t], "weight_decay": 0.1 if name.endswith("weight") else 0.0}
        for name, t in zip(names, theirs, strict=True)
    ]
    optimiser = torch.optim.AdamW(groups, lr=1e-3)
    update = Update(population, HostBatches(TINY, torch.device("cpu")), len(TINY))
    for step in range(steps):
        ((_, gradients),) = update.gradients()
        for parameter, gradient in zip(theirs, gradients, strict=True):
            parameter.grad = gradient.detach().clone()
        for group in optimiser.param_groups:
            group["eps"] = 1e-8 / math.sqrt(1 - 0.999 ** (step + 1))
        optimiser.step()
        update.run(1)
    return names, list(network.parameters()), theirs


def test_decay_equals_that_of_adamw() -> None:
    names, ours, theirs = updated(QLAE(), 5)
    assert {name.rpartition(".")[2] for name in names} == {"weight", "bias", "values"}
    for name, actual, expected in zip(names, ours, theirs, strict=True):
        torch.testing.assert_close(actual, expected, rtol=0, atol=2e-7, msg=name)


def test_without_its_weight_the_codebook_stays_fixed() -> None:
    names, ours, _ = updated(QLAE(lambda_quantize=0.0), 5)
    values = ours[names.index("codebook.values")]
    assert torch.equal(values, torch.linspace(-0.5, 0.5, 10).expand_as(values))


def test_runs_with_different_decay_are_not_trained_by_one_optimiser() -> None:
    specs = [RunSpec(QLAE(decay=decay), data="tiny", latents=LATENTS) for decay in (0.1, 0.2)]
    assert shared_by(specs[0]) != shared_by(specs[1])


@torch.no_grad()
def test_codes_are_values_on_a_scale_from_minus_2_to_2() -> None:
    case = Case(QLAE())
    posterior = case.method.encode(case.networks, case.batch.images)
    for run in range(2):
        values = case.network.codebook.values[run].numpy()
        index = nearest(case.z()[run].numpy(), values)
        chosen = np.take_along_axis(values.T, index, axis=0)
        expected = -2 + 4 * (chosen - values.min()) / (values.max() - values.min())
        np.testing.assert_allclose(posterior.mean[run].numpy(), expected, atol=1e-5)
    assert torch.equal(posterior.log_var, torch.full_like(posterior.mean, LOG_VAR))
    assert not case.method.stochastic


@torch.no_grad()
def test_decoding_takes_the_nearest_values() -> None:
    case = Case(QLAE())
    case.network.codebook.values.copy_(torch.linspace(-0.5, 0.5, 10))
    codes = case.method.encode(case.networks, case.batch.images).mean
    logits = case.method.decode(case.networks, codes)
    torch.testing.assert_close(logits, case.network.decoder(case.network.codebook(case.z())))
    # The spread of a code does not reach another value.
    drawn = codes + 2 * math.exp(LOG_VAR / 2)
    torch.testing.assert_close(case.method.decode(case.networks, drawn), logits)


def test_nothing_waits_for_the_device() -> None:
    losses = Case(QLAE(), device="meta").losses()
    for value in [*losses.players.values(), *losses.terms.values()]:
        assert value.shape == (2,)
        assert value.device.type == "meta"


def test_a_codebook_needs_two_values() -> None:
    with pytest.raises(
        UnweaveError, match=r"values_per_latent of qlae must be at least 2; got 1\. The default"
    ):
        QLAE(values_per_latent=1)


def test_bf16_is_refused() -> None:
    with pytest.raises(UnweaveError, match=r"must not have its weights rounded to bf16\. Use"):
        RunSpec(QLAE(), data="tiny", latents=LATENTS, precision="bf16")


def test_scores_of_a_run_count_its_values(tmp_path: Path) -> None:
    """The authors count discrete codes. Samples of q(z|x) are not discrete, and have the usual estimate."""
    run = unweave.train(
        QLAE(), TINY, out=tmp_path, latents=LATENTS, batch=8, steps=3, device="cpu", progress=False
    )
    effort = Effort((60, 30))
    mean, sampled = evaluate_run(run, "infomec", ("mean", "sampled"), effort, data=TINY)
    protocols = [{score.name: score.protocol for score in record.scores} for record in (mean, sampled)]
    assert protocols[0]["infomec.modularity"] == "infomec[counted,logistic100,n60,mean]"
    assert protocols[1]["infomec.modularity"] == "infomec[neighbours10,logistic100,n60,sampled]"
    assert not any("approximate" in note for note in mean.notes)
    sample = source_of(run, effort).sample(effort.points, "mean", effort.stream)
    expected = infomec(sample.counted_codes, sample.counted_factors, discrete=True)
    assert mean["infomec.compactness"] == pytest.approx(expected.compactness, abs=1e-12)
    assert all_kept(run.folder, ["infomec"], ["mean", "sampled"], effort)
    both = compare(run, run, metrics="infomec", points=(60, 30), repeats=2)
    assert both["infomec.modularity"].protocol == "infomec[counted,logistic100,n60,mean]"
    with_vae = compare(run, run.encode, data=TINY, metrics="infomec", points=(60, 30), repeats=2)
    assert with_vae["infomec.modularity"].protocol == "infomec[neighbours10,logistic100,n60,mean]"
