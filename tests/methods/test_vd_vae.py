"""The very deep VAE: its bound, its codes, and what more layers of latents gain."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.distributions import Normal, kl_divergence

import unweave
from methods.played import Played, autoencoder_step
from training.tiny import TINY
from unweave.data.grid import Card, Factor, Factors, GroundTruth, Images
from unweave.errors import UnweaveError
from unweave.evaluation import score_layers
from unweave.methods import VAE, VDVAE
from unweave.methods.method import AUTOENCODER, Blueprint, Method
from unweave.methods.vd_vae import USE, LatentUse
from unweave.nn.distributions.gaussian import Gaussian
from unweave.nn.distributions.likelihood import reconstruction_loss
from unweave.nn.networks.very_deep import Bottleneck, Stage, TopDownBlock, VeryDeep
from unweave.runs.modules import modules_of
from unweave.runs.spec import RunSpec
from unweave.streams import Stream
from unweave.training.batches import HostBatches
from unweave.training.population import Population
from unweave.training.update import Update

SMALL = VDVAE(layers=7, width=8, zdim=3)
PIXELS = math.prod(TINY.shape)


def network_of(case: Played) -> VeryDeep:
    network = case.networks[AUTOENCODER]
    assert isinstance(network, VeryDeep)
    return network


def use_of(case: Played) -> LatentUse:
    network = case.networks[USE]
    assert isinstance(network, LatentUse)
    return network


@torch.no_grad()
def perturbed(case: Played) -> Played:
    """The case with other weights, so that no prior is the initial N(0, I)."""
    for number, parameter in enumerate(case.networks[AUTOENCODER].parameters()):
        noise = torch.randn(parameter.shape, generator=torch.Generator().manual_seed(number))
        parameter.add_(0.1 * noise)
    return case


def blocks_of(network: VeryDeep) -> dict[Stage, list[TopDownBlock]]:
    """The blocks with latents of each stage."""
    stages = [stage for stage in network.stages if isinstance(stage, Stage)]
    return {stage: [block for block in stage.blocks if isinstance(block, TopDownBlock)] for stage in stages}


def last_weight(block: object) -> Tensor:
    """The weights of the last convolution of a block."""
    assert isinstance(block, Bottleneck)
    return block.convolutions[-1].get_parameter("weight")


def passed_by_hand(case: Played) -> tuple[list[Tensor], Tensor]:
    """Divergences of each layer and the output, in the order of the authors' program, on z itself."""
    network, images = network_of(case), case.batch.images
    rows = images.shape[1]
    noise = case.step.draws.normal("noise", rows, sum(layer.size for layer in network.layers))
    noises = list(noise.split([layer.size for layer in network.layers], dim=-1))
    evidence, divergences = network.encoder(images), []
    x = torch.zeros(len(images), rows, 8, 1, 1)
    for stage, blocks in blocks_of(network).items():
        times = stage.start.shape[-1] // x.shape[-1]
        x = stage.start[:, None] + x.repeat_interleave(times, -1).repeat_interleave(times, -2)
        for block in blocks:
            mean, log_scale = block.inference(torch.cat([x, evidence[x.shape[-1]]], 2)).chunk(2, 2)
            prior_mean, prior_log_scale, change = block.prior(x).split([3, 3, 8], 2)
            q, p = Normal(mean, log_scale.exp()), Normal(prior_mean, prior_log_scale.exp())
            divergences.append(kl_divergence(q, p).flatten(2).sum(-1).mean(-1))
            x = x + change + block.join(q.loc + q.scale * noises.pop(0).view_as(mean))
            x = x + block.residual(x)
    return divergences, network.output(x)


@torch.no_grad()
def test_the_bound_is_the_likelihood_and_the_divergence_of_every_layer() -> None:
    """Divergences are those of torch.distributions for posterior and prior of z; losses are per pixel."""
    case = perturbed(Played.of(SMALL))
    divergences, output = passed_by_hand(case)
    rec = reconstruction_loss(output, case.batch.images / 255, "bernoulli")
    kl, losses = torch.stack(divergences).sum(0), case.losses()
    assert [layer.resolution for layer in network_of(case).layers] == [1, 1, 4, 4, 8, 16, 32]
    assert float(kl.min()) > 1
    torch.testing.assert_close(losses.terms["reconstruction"], rec)
    torch.testing.assert_close(losses.terms["kl"], kl)
    torch.testing.assert_close(losses.terms["elbo"], -(rec + kl))
    torch.testing.assert_close(losses.terms["kl_4"], divergences[2] + divergences[3])
    torch.testing.assert_close(losses.players[AUTOENCODER], (rec + kl) / PIXELS)


@torch.no_grad()
def test_one_layer_has_the_bound_of_a_vae() -> None:
    case = Played.of(VDVAE(layers=1, width=8, zdim=4))
    network, images = network_of(case), case.batch.images
    [layer] = network.layers
    [posterior] = network.infer(images, torch.zeros(2, 6, layer.size)).posteriors
    sample = posterior.sample(case.step.draws.normal("noise", 6, layer.size))
    rec = reconstruction_loss(network.decode(sample), images / 255, "bernoulli")
    vae = VAE().losses(autoencoder_step(rec, posterior, sample)).players[AUTOENCODER]
    torch.testing.assert_close(-case.losses().terms["elbo"], vae)


@torch.no_grad()
def test_priors_start_as_standard_normal_and_residuals_small() -> None:
    """The authors set the last convolution of a prior to 0, and scale residuals by 1 / sqrt(blocks)."""
    case = Played.of(SMALL)
    network = network_of(case)
    divergences, _ = passed_by_hand(case)
    inferred = network.infer(case.batch.images, case.step.draws.normal("noise", 6, use_of(case).kl.shape[1]))
    for posterior, divergence in zip(inferred.posteriors, divergences, strict=True):
        standard = kl_divergence(Normal(posterior.mean, torch.exp(posterior.log_var / 2)), Normal(0.0, 1.0))
        torch.testing.assert_close(divergence, standard.sum(-1).mean(-1))
    blocks = [block for stage in blocks_of(network).values() for block in stage]
    assert len(blocks) == 7
    for block in blocks:
        assert not last_weight(block.prior).any()
        # torch draws weights below 1 / sqrt(inputs); here 2 channels, and 7 blocks.
        assert 0.8 < float(last_weight(block.residual).abs().max()) * (2 * 7) ** 0.5 <= 1
    assert 0.8 < float(last_weight(network.encoder.blocks[0]).abs().max()) * (2 * 11) ** 0.5 <= 1


@torch.no_grad()
def test_codes_are_the_latents_of_largest_divergence_from_the_top_down() -> None:
    case = perturbed(Played.of(SMALL, latents=5))
    use, images = use_of(case), case.batch.images
    chosen = torch.tensor([[3, 6, 40, 200, 300], [0, 1, 2, 100, 4000]])
    use.kl.scatter_(1, chosen.flip(1), torch.arange(1.0, 6.0).expand(2, -1))
    assert torch.equal(use(), chosen)
    layers = case.method.code_layers(case.networks, images)
    assert list(layers) == ["1x1/1", "1x1/2", "4x4/1", "4x4/2", "8x8/1", "16x16/1", "32x32/1"]
    assert layers["8x8/1"].mean.shape == (2, 6, 3, 8, 8)
    flat = Gaussian(
        *(
            torch.cat([getattr(q, part).flatten(2) for q in layers.values()], -1)
            for part in ("mean", "log_var")
        )
    )
    posterior = case.method.encode(case.networks, images)
    for run, numbers in enumerate(chosen):
        torch.testing.assert_close(posterior.mean[run], flat.mean[run][:, numbers])
        torch.testing.assert_close(posterior.log_var[run], flat.log_var[run][:, numbers])
    written = use.write(posterior.mean)
    assert int((written != 0).sum()) == 2 * 6 * 5
    torch.testing.assert_close(use.read(written), posterior.mean)
    decoded = case.method.decode(case.networks, posterior.mean)
    torch.testing.assert_close(decoded, network_of(case).decode(written))


@torch.no_grad()
def test_of_equal_divergences_the_first_latents_are_codes() -> None:
    """Many latents of a collapsed layer may have a divergence of exactly 0."""
    use = use_of(Played.of(SMALL, latents=6))
    assert use().tolist() == [[0, 1, 2, 3, 4, 5]] * 2
    use.kl[0, [900, 2000]] = torch.tensor([0.5, 1.0])
    use.kl[1, 10:4000] = 0.5
    use.kl[1, 3000] = 1.0
    assert use().tolist() == [[0, 1, 2, 3, 900, 2000], [10, 11, 12, 13, 14, 3000]]


@torch.no_grad()
def test_all_codes_decode_to_the_pass_without_noise() -> None:
    case = perturbed(Played.of(SMALL))
    network, images = network_of(case), case.batch.images
    inferred = network.infer(images, torch.zeros(2, 6, use_of(case).kl.shape[1]))
    codes = torch.cat([posterior.mean for posterior in inferred.posteriors], -1)
    torch.testing.assert_close(network.decode(codes), network.output(inferred.features))


@torch.no_grad()
def test_modules_of_torch_have_the_choice_of_latents() -> None:
    case = perturbed(Played.of(SMALL, seeds=(0,), latents=4))
    encoder, decoder = modules_of(case.method, case.networks, TINY.shape, 4, "bernoulli")
    posterior = case.method.encode(case.networks, case.batch.images)
    mean, log_var = encoder(case.batch.images[0] / 255)
    torch.testing.assert_close(mean, posterior.mean[0])
    torch.testing.assert_close(log_var, posterior.log_var[0])
    logits = case.method.decode(case.networks, posterior.mean)[0]
    torch.testing.assert_close(decoder(mean), torch.sigmoid(logits))


@torch.no_grad()
def test_blocks_and_notes_say_what_is_measured() -> None:
    case = Played.of(SMALL, seeds=(0,), latents=4)
    use = use_of(case)
    use.kl.fill_(0.01)
    use.kl[0, [1, 7, 8, 150]] = 1.0
    blocks = {"1x1": [0], "4x4": [1, 2], "8x8": [3]}
    assert case.method.trained_blocks(case.networks, 4) == blocks
    [note] = case.method.code_notes(case.networks)
    total = 3 * (2 * 1 + 2 * 16 + 64 + 256 + 1024)
    share = 4 / (4 + 0.01 * (total - 4))
    assert f"Codes are 4 of the {total:,} latents of vd_vae" in note
    assert f"(1 of 1x1, 2 of 4x4, 1 of 8x8), which have {share:.0%} of all divergence" in note
    use.kl[0, [1, 150]] = 0.0
    use.kl[0, [9, 10]] = 1.0
    assert case.method.trained_blocks(case.networks, 4) == {}


def test_the_average_divergence_follows_the_batches() -> None:
    case = Played.of(SMALL)
    losses = case.losses()
    [gradient] = torch.autograd.grad(losses.players[USE].sum(), case.parameters(USE))
    torch.testing.assert_close(-gradient.sum(-1), losses.terms["kl"].detach(), rtol=1e-4, atol=1e-5)


def _render(factors: Factors, _stream: Stream) -> Images:
    places, half = np.arange(16), 1 + factors[:, 0, None]
    across, along = (np.abs(places - 3 - 3 * factors[:, j, None]) <= half for j in (1, 2))
    return np.asarray((along[:, :, None] & across[:, None, :])[:, None] * np.uint8(255))


SQUARES = GroundTruth(
    "small_squares",
    (Factor("size", 3), Factor("x", 4), Factor("y", 4)),
    (1, 16, 16),
    _render,
    Card("squares", "none", ""),
    "made up",
)


def trained_bound(method: Method, **options: Any) -> float:
    """Nats per image at the end of a short training."""
    options = {"latents": 2, "learning_rate": 5e-3} | options
    spec = RunSpec(method, SQUARES.name, seed=1, batch=8, steps=100, **options)
    population = Population([spec], SQUARES.shape, torch.device("cpu"))
    update = Update(population, HostBatches(SQUARES, torch.device("cpu")), len(SQUARES))
    update.run(80)
    update.take_terms()
    update.run(20)
    return -float(update.take_terms()[0]["elbo"])


def test_layers_of_latents_describe_images_in_fewer_nats_than_one_and_than_a_vae() -> None:
    """All have four residual blocks at four resolutions; depth is what [1] gains by.

    The VAE has the architecture, of two, and the learning rate, of three, with which it is best.
    """
    bounds = [trained_bound(VDVAE(layers, 16, 4, plain_blocks=4 - layers)) for layers in (1, 2, 4)]
    assert bounds[2] < 0.95 * bounds[1] < 0.8 * bounds[0]
    assert bounds[2] < 0.9 * trained_bound(VAE(), latents=10, learning_rate=1e-3, architecture="mlp")


def test_the_default_settings_learn(tmp_path: Path) -> None:
    """At first each pixel needs log 2 nats. The weights are the average, and no update is skipped."""
    tiny = replace(
        SQUARES, shape=(1, 8, 8), render=lambda factors, stream: _render(factors, stream)[..., ::2, ::2]
    )
    run = unweave.train(VDVAE(), tiny, out=tmp_path, steps=25, device="cpu", progress=False)
    spec = run.spec
    assert (spec.batch, spec.latents, spec.learning_rate, spec.gradient_clip) == (32, 32, 2e-4, 200.0)
    assert run.log["skipped_updates"].iloc[-1] == 0
    start, end = 64 * math.log(2), -score_layers(run, points=(60, 30), updates=1).elbo
    assert end < 0.85 * start


def test_what_it_cannot_build_is_refused() -> None:
    def build(latents: int = 3, height: int = 32, architecture: str = "released") -> None:
        VDVAE(layers=1).networks(Blueprint([Stream.of(0)], (1, height, 32), latents, architecture))

    with pytest.raises(UnweaveError, match='vd_vae has networks of its own and no architecture "mlp"'):
        build(architecture="mlp")
    with pytest.raises(UnweaveError, match=r"squares of 8, 16, 32, 64, \.\.\. pixels; got 48 x 32"):
        build(height=48)
    with pytest.raises(UnweaveError, match="vd_vae has 16 latents in all, so there are no 17 codes"):
        build(latents=17)
    with pytest.raises(UnweaveError, match="ema_rate of vd_vae must be less than 1; got 1"):
        VDVAE(ema_rate=1.0)
    with pytest.raises(UnweaveError, match="layers of vd_vae must be at least 1; got 0"):
        VDVAE(layers=0)
