"""Glow: its likelihood of known data, what short runs learn, and its latents."""

from __future__ import annotations

import math
import tracemalloc
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import unweave
from methods.played import own_step
from unweave.data.grid import Card, Factor, Factors, GroundTruth, Images
from unweave.errors import UnweaveError
from unweave.evaluation import FlowLatents
from unweave.evaluation.flow_latents import attribute_direction
from unweave.methods import VAE, Glow
from unweave.methods.glow import FLOW, continuous, discrete
from unweave.methods.method import Batch, Blueprint
from unweave.nn.distributions.likelihood import HALF_LOG_TWO_PI, LOWEST_LOG_VARIANCE
from unweave.nn.draws import PopulationDraws
from unweave.nn.networks.flow import Flow
from unweave.runs.run import Run
from unweave.runs.spec import spec_of
from unweave.streams import Stream
from unweave.training.batches import HostBatches
from unweave.training.population import Population
from unweave.training.update import Update


def _render(factors: Factors, _stream: Stream) -> Images:
    place = np.arange(8) - 3.5
    across, down, light = (factors[:, column, None, None] for column in range(3))
    grey = 110 + 4 * (across - 3) * place + 4 * (down - 3) * place[:, None] + 4 * light
    return np.asarray(np.clip(np.rint(grey), 0, 255), np.uint8)[:, None]


FACTORS = (Factor("across", 7), Factor("down", 7), Factor("light", 9))
PLANES = GroundTruth("planes", FACTORS, (1, 8, 8), _render, Card("planes", "none", ""), "made up")
SHORT: dict[str, Any] = {"batch": 32, "latents": 3, "device": "cpu", "progress": False}


def all_images() -> Images:
    return PLANES.observe(PLANES.factors_at(np.arange(len(PLANES))))


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A short run with the defaults of the method."""
    return unweave.train(Glow(), PLANES, out=tmp_path_factory.mktemp("glow"), steps=50, **SHORT)


def test_grey_levels_become_intervals_and_are_found_again() -> None:
    images = torch.arange(256, dtype=torch.uint8).view(1, 1, 1, 16, 16)
    for bits in (8, 5, 1):
        levels = images.long() // 2 ** (8 - bits)
        low, high = (continuous(images, bits, noise) for noise in (0.0, 1.0))
        # The formula of the authors' program: floor(x / 2^(8 - bits)) / 2^bits - 1/2.
        torch.testing.assert_close(low, levels / 2**bits - 0.5, rtol=0, atol=1e-7)
        torch.testing.assert_close(high - low, torch.full_like(low, 2.0**-bits), rtol=0, atol=1e-6)
        again = discrete(continuous(images, bits), bits) * (2**bits - 1)
        torch.testing.assert_close(again, levels.float(), rtol=0, atol=1e-4)
    assert continuous(images.float() / 255, 5).equal(continuous(images, 5))


def test_bits_of_noise_are_those_that_a_normal_distribution_needs() -> None:
    """Uniform noise needs n_bits_x bits; a normal density needs half of log2(2 pi e / 12) more, 0.25.

    Couplings start as a factor s = sigmoid(2) of half of the channels: s^2 / 2 - log s - 1/2 nats more each.
    """
    method, plan = Glow(n_levels=1, depth=1, width=4), Blueprint([Stream.of(0)], (1, 16, 16), 2)
    noise = Stream.of(1).integers(200, [256] * 256)
    batch = Batch(torch.from_numpy(np.asarray(noise, np.uint8)).view(1, 200, 1, 16, 16))
    draws = PopulationDraws(plan.streams, torch.zeros((), dtype=torch.int64))
    s = 1 / (1 + math.exp(-2))
    extra = 0.5 * math.log2(math.pi * math.e / 6) + 0.5 * (s * s / 2 - math.log(s) - 0.5) / math.log(2)
    for bits in (8, 5):
        method = Glow(n_levels=1, depth=1, width=4, n_bits_x=bits)
        step = own_step(0, 100, draws)(batch, method.networks(plan))
        method.initialise(step)
        found = method.losses(step).terms["bits_per_dimension"]
        assert found.item() == pytest.approx(bits + extra, abs=0.01)


def _first_shift(population: Population) -> torch.Tensor:
    flow = population.groups[0].networks[FLOW]
    shift: nn.Parameter = flow.get_parameter("levels.0.steps.0.norm.shift")
    return shift.detach().clone()


def test_the_first_batch_normalises_the_flow_once() -> None:
    cpu = torch.device("cpu")
    spec = spec_of(Glow(depth=1, width=4), data=PLANES.name, steps=100, batch=32)
    for first_step in (0, 1):  # a run that resumes is not normalised again
        population = Population([spec], PLANES.shape, cpu)
        population.step.fill_(first_step)
        Update(population, HostBatches(PLANES, cpu), len(PLANES)).run(1)
        images = HostBatches(PLANES, cpu).draw(population.draws, 0, "batch", 32, spec.method.sampling).images
        mean = continuous(images, 8).unflatten(-1, (4, 2)).unflatten(-3, (4, 2)).mean((1, 2, 3, 5)).flatten()
        distance = (_first_shift(population)[0] + mean).abs().max()
        assert bool(distance < 2e-3) == (first_step == 0)


def test_short_runs_need_fewer_bits_than_independent_pixels_and_than_any_such_vae(
    run: Run, tmp_path: Path
) -> None:
    images = all_images()
    bits = FlowLatents(run).bits_per_dimension(images).mean()
    start = unweave.train(Glow(), PLANES, out=tmp_path, steps=1, **SHORT)
    pixels = images.reshape(len(images), -1).T
    shares = [np.array(list(Counter(pixel.tolist()).values())) / len(images) for pixel in pixels]
    independent = np.mean([-(share * np.log2(share)).sum() for share in shares])
    # A VAE with the most flexible likelihood, without an error and without a divergence from the prior.
    vae = 8 + (HALF_LOG_TWO_PI + 0.5 * LOWEST_LOG_VARIANCE) / math.log(2)
    assert bits < FlowLatents(start).bits_per_dimension(images).mean() - 1
    assert bits < independent - 1
    assert bits < vae - 0.5


def test_bits_per_dimension_are_a_score_of_flows(run: Run, tmp_path: Path) -> None:
    scores = unweave.evaluate(run, metrics="bits_per_dimension, mig", points=(300, 100))
    expected = FlowLatents(run).bits_per_dimension(all_images()).mean()
    assert scores["bits_per_dimension"] == pytest.approx(expected, abs=0.1)
    assert scores.score("bits_per_dimension").protocol == "bits_per_dimension[uniform1,n300]"
    assert "The codes are the first 3 principal components of the 64 latents of the flow." in scores.notes
    vae = unweave.train(VAE(), PLANES, out=tmp_path, steps=1, architecture="mlp", **SHORT)
    with pytest.raises(
        UnweaveError, match=r"bits_per_dimension cannot be .*: it needs a run of a flow, such as"
    ):
        unweave.evaluate(vae, metrics="bits_per_dimension", points=(300, 100))
    with pytest.raises(UnweaveError, match=r"vae is no flow with latents of images\. Use a run of glow"):
        FlowLatents(vae)


def test_latents_are_as_large_as_images_and_give_them_back(run: Run) -> None:
    latents, images = FlowLatents(run), all_images()[::9]
    encoded = latents.encode(images)
    assert encoded.shape == (len(images), 64)
    assert np.abs(latents.decode(encoded) * 255 - images).max() < 0.1
    assert latents.encode(images / np.float32(255)) == pytest.approx(encoded, abs=1e-3)
    np.testing.assert_array_equal(FlowLatents(run.path).encode(images), encoded)
    samples = latents.sample(3, seed=1)
    assert samples.shape == (3, 1, 8, 8)
    assert ((samples >= 0) & (samples <= 1)).all()


def test_bits_need_memory_for_a_part_of_the_images_only(run: Run) -> None:
    """The noise of 2,205 images is 1.1 MB; drawn at once, 10,000 colour images of 64 x 64 needed 4 GB."""
    latents, images = FlowLatents(run), np.concatenate([all_images()] * 5)
    tracemalloc.start()
    bits = latents.bits_per_dimension(images)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 0.7e6
    flow = run.networks[FLOW]
    assert isinstance(flow, Flow)
    uniform = Stream.of(0).child("dequantisation").uniform(len(images), 64)[-3:]
    noise = torch.from_numpy(uniform).float().view(1, 3, 1, 8, 8)
    x = continuous(torch.from_numpy(images[-3:])[None], 8, noise)
    expected = Glow().bits_per_dimension(flow(x).log_density, x)[0]
    np.testing.assert_allclose(bits[-3:], expected, rtol=1e-5)


def test_samples_of_a_run_are_of_all_latents(run: Run) -> None:
    """In a decoded code, all other principal components are 0."""
    drawn = Stream.of(3).child("prior").normal(200, 64)
    np.testing.assert_allclose(run.sample(200, seed=3), FlowLatents(run).decode(drawn), atol=2 / 1024)


def test_codes_are_standardised_and_keep_what_is_logged(run: Run) -> None:
    codes = run.encode(all_images())
    assert 0.3 < codes.std(0).min() < codes.std(0).max() < 3
    assert 0.1 < run.log["read_out_share"].iloc[-1] < 1


def test_attribute_directions_change_their_factor(run: Run) -> None:
    directions = FlowLatents(run).attribute_directions(points=300)
    assert directions.names == ("across", "down", "light")
    images = all_images()[::40]
    brightness = [directions.moved(images, "light", amount).mean() for amount in (-0.5, 0, 0.5)]
    assert brightness[0] + 0.02 < brightness[1] < brightness[2] - 0.02
    factors = PLANES.factors_at(np.arange(len(PLANES)))
    codes = directions.codes(all_images())
    alike = np.corrcoef(codes.T, factors.T)[:3, 3:]
    assert (np.abs(alike).argmax(1) == np.arange(3)).all()
    scores = unweave.evaluate(directions.codes, data=PLANES, metrics="r2_linear, mig", points=(200, 100))
    assert scores["r2_linear"] > 0.5


def test_a_direction_is_a_difference_of_means() -> None:
    latents = np.array([[0.0, 1.0], [2.0, 1.0], [9.0, 9.0], [5.0, 4.0]])
    assert attribute_direction(latents, np.array([0, 0, 1, 2]), 3).tolist() == [4.0, 3.0]
    with pytest.raises(UnweaveError, match=r"large and with small values. Use more points"):
        attribute_direction(latents, np.zeros(4), 2)


def test_wrong_input_is_refused(run: Run) -> None:
    latents = FlowLatents(run)
    with pytest.raises(UnweaveError, match=r"images must be \(n, 1, 8, 8\); got \(2, 8, 8\)"):
        latents.encode(np.zeros((2, 8, 8)))
    with pytest.raises(UnweaveError, match=r"uint8, or numbers in \[0, 1\]; these reach from 0 to 128"):
        latents.bits_per_dimension(np.tile([0.0, 128.0], (1, 1, 8, 4)))
    with pytest.raises(UnweaveError, match="FlowLatents needs a trained run, or its folder; got ndarray"):
        FlowLatents(np.zeros(3))  # type: ignore[arg-type]
    with pytest.raises(UnweaveError, match=r"latents must be \(n, 64\); got \(2, 3\)"):
        latents.decode(np.zeros((2, 3)))
    with pytest.raises(UnweaveError, match=r'there is no factor "lights". Did you mean "light"'):
        latents.attribute_directions(300).moved(all_images()[:1], "lights", 1)
    with pytest.raises(UnweaveError, match=r"n must be a whole number >= 0; got -1"):
        latents.sample(-1)
    for temperature in (float("nan"), -0.5, "warm"):
        with pytest.raises(UnweaveError, match="temperature must be a number >= 0; got"):
            latents.sample(2, temperature)  # type: ignore[arg-type]
    with pytest.raises(UnweaveError, match=r"points must be a whole number >= 2; got 9\.5"):
        latents.attribute_directions(9.5)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("plan", "message"),
    [
        ({"architecture": "mlp"}, 'Glow has networks of its own and no architecture "mlp". Leave'),
        ({"likelihood": "gaussian_learned"}, 'no likelihood "gaussian_learned". Leave likelihood at'),
        ({"shape": (1, 28, 28)}, "a flow of 3 levels must have .* multiples of 8; got 28 x 28"),
        (
            {"latents": 65},
            r"images of shape \(1, 8, 8\) have 64 latents in a flow, which is less than latents 65",
        ),
    ],
)
def test_what_it_does_not_have_is_refused(plan: dict[str, Any], message: str) -> None:
    with pytest.raises(UnweaveError, match=message):
        Glow().networks(replace(Blueprint([Stream.of(0)], (1, 8, 8), 3), **plan))


def test_more_bits_than_a_byte_has_are_refused() -> None:
    with pytest.raises(UnweaveError, match=r"n_bits_x of glow must be at most 8, .* got 9"):
        Glow(n_bits_x=9)


def test_larger_flows_have_the_sizes_of_the_settings() -> None:
    flow = Glow(n_levels=2, depth=3, width=8).networks(Blueprint([Stream.of(0)], (3, 64, 64), 4))[FLOW]
    assert isinstance(flow, Flow)
    assert flow.shapes == [(6, 32, 32), (24, 16, 16)]
    assert flow.get_parameter("levels.1.steps.2.coupling.second.convolution.weight").shape == (1, 8, 8, 1, 1)
