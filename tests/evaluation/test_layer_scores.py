"""What each layer of a code knows: layers that hold known factors, and a trained hierarchy."""

from __future__ import annotations

import math
import tracemalloc
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

import unweave
from training.tiny import TINY
from unweave.data.grid import Card, Factor, Factors, GroundTruth, Images
from unweave.errors import UnweaveError
from unweave.evaluation import evaluate, score_layers
from unweave.evaluation.effort import Effort
from unweave.evaluation.score_store import evaluate_run, kept_scores
from unweave.methods import AE, GVAE, VAE, VDVAE
from unweave.methods.method import AUTOENCODER
from unweave.nn.distributions.gaussian import Gaussian
from unweave.nn.networks.very_deep import VeryDeep
from unweave.runs.run import Run
from unweave.streams import Stream

FACTORS = (Factor("shape", 3), Factor("x", 8), Factor("y", 8))


def _render(factors: Factors, _stream: Stream) -> Images:
    """Images whose first numbers are the values of the factors."""
    images = np.zeros((len(factors), 1, 2, 2), np.uint8)
    images[:, 0].reshape(len(factors), 4)[:, :3] = factors
    return images


NUMBERS = GroundTruth("numbers", FACTORS, (1, 2, 2), _render, Card("", "none", ""), "made up")


class Hierarchy:
    """A run whose layers hold known factors: 1x1 the shape, 4x4 x and y in two layers, among noise."""

    path, data = Path("a hierarchy"), NUMBERS
    spec = SimpleNamespace(method=VAE())

    def layers(self, images: NDArray[np.uint8], _seed: object = None) -> dict[str, Gaussian]:
        values = torch.from_numpy(images.reshape(len(images), 4)[:, :3].astype(np.float32))
        shape, x, y = ((value - value.mean()) / 2 for value in values.unbind(1))
        # Noise that depends on the image only, with a small divergence.
        noise = torch.sin(1e4 * values @ torch.tensor([[0.7], [0.3], [0.9]]) * torch.arange(1, 17)) / 50
        first, second = noise.view(-1, 1, 4, 4).clone(), noise.view(-1, 1, 4, 4).clone()
        first[:, 0, 1, 2], second[:, 0, 3, 3] = x, y
        means = {"1x1/1": shape.view(-1, 1, 1, 1), "4x4/1": first, "4x4/2": second}
        return {name: Gaussian(mean, torch.zeros_like(mean)) for name, mean in means.items()}


def test_layers_of_one_resolution_are_scored_together() -> None:
    scores = score_layers(Hierarchy(), points=(800, 400), most=2, updates=300)
    assert scores.layers == ("1x1", "4x4", "all")
    assert scores.factors == ("shape", "x", "y")
    expected = [[1, 0, 0], [0, 1, 1], [1, 1, 1]]
    np.testing.assert_allclose(scores.information, expected, atol=0.15)
    np.testing.assert_allclose(scores.accuracy[-1], 1, atol=0.1)
    np.testing.assert_allclose(scores.chance, [1 / 3, 1 / 8, 1 / 8], atol=0.1)
    assert scores.latents == ((1, 1), (2, 32), (3, 33))
    # KL(N(m, 1) || N(0, 1)) = m^2 / 2; half the steps of 3 and of 8 values have variances 1/6 and 21/16.
    assert scores.kl[0] == pytest.approx(1 / 12, rel=0.1)
    assert scores.kl[1] == pytest.approx(2 * 21 / 32, rel=0.1)
    assert scores.kl[2] == pytest.approx(scores.kl[0] + scores.kl[1])
    assert math.isnan(scores.elbo)
    frame = scores.frame()
    assert len(frame) == 9
    assert frame[frame["layer"] == "4x4"]["total_latents"].tolist() == [32] * 3
    assert str(scores).splitlines()[1].split() == [
        "1x1",
        *(f"{v:.2f}" for v in scores.information[0]),
        "0.08",
    ]


def test_a_figure_has_a_row_for_each_layer(tmp_path: Path) -> None:
    scores = score_layers(Hierarchy(), points=(90, 60), most=2, updates=1)
    figure = scores.plot(tmp_path / "layers.png")
    assert (tmp_path / "layers.png").stat().st_size > 1000
    [axes] = figure.axes
    assert [label.get_text().split()[0] for label in axes.get_yticklabels()] == ["1x1", "4x4", "all"]
    assert [label.get_text() for label in axes.get_xticklabels()] == ["shape", "x", "y"]


def test_codes_without_a_prior_have_no_divergence_and_are_chosen_by_their_variance() -> None:
    """All latents but two of 4x4 are constants, far from 0: no divergence tells them from x and y."""

    class Tokens(Hierarchy):
        spec = SimpleNamespace(method=AE())

        def layers(self, images: NDArray[np.uint8], _seed: object = None) -> dict[str, Gaussian]:
            layers = super().layers(images)
            return {
                name: Gaussian(x.mean + 9 * (x.mean.std(0) < 0.1), x.log_var) for name, x in layers.items()
            }

    scores = score_layers(Tokens(), points=(800, 400), most=2, updates=300)
    np.testing.assert_allclose(scores.information, [[1, 0, 0], [0, 1, 1], [1, 1, 1]], atol=0.15)
    assert np.isnan(scores.kl).all()
    assert str(scores).splitlines()[1].split()[-1] == "nan"
    [axes] = scores.plot().axes
    assert [label.get_text() for label in axes.get_yticklabels()] == ["1x1", "4x4", "all"]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    method = VDVAE(layers=5, width=8, zdim=2, ema_rate=0.0)
    folder = tmp_path_factory.mktemp("runs") / "run"
    options: dict[str, Any] = {"steps": 1, "batch": 32, "latents": 40, "learning_rate": 1e-6, "warmup": 0.0}
    return unweave.train(method, TINY, out=folder, device="cpu", **options)


def test_the_bound_of_a_run_is_that_of_its_training(run: Run) -> None:
    """One update with a negligible rate: the logged bound is that of the same weights on other images."""
    scores = score_layers(run, points=(60, 30), updates=1)
    assert scores.layers == ("1x1", "4x4", "8x8", "16x16", "32x32", "all")
    assert scores.elbo == pytest.approx(run.log["elbo"].iloc[0], rel=0.03)
    assert scores.bits_per_dimension == pytest.approx(-scores.elbo / (1024 * math.log(2)))
    assert scores.latents[-1][1] == 2 * (1 + 16 + 64 + 256 + 1024)
    assert sum(scores.kl[:-1]) == pytest.approx(run.log["kl"].iloc[0], rel=0.1)


def test_evaluate_says_which_latents_it_measured(run: Run) -> None:
    scores = evaluate(run, metrics="mig", points=(60, 30))
    [note] = [note for note in scores.notes if note.startswith("Codes are 40 of the 2,722 latents")]
    blocks = run.spec.method.trained_blocks(run.networks, 40)
    assert sum(len(codes) for codes in blocks.values()) in (0, 40)
    assert "elbo; score_layers has the bound" in note
    layers = run.layers(TINY.observe(TINY.factors_at(np.arange(3)), 0))
    assert layers["8x8/1"].mean.shape == (3, 2, 8, 8)


def test_kept_scores_say_which_latents_were_measured(run: Run) -> None:
    """Also where nothing is measured again, and in the file of the scores."""
    for _ in range(2):
        [scores] = evaluate_run(run, "mig", effort=Effort((60, 30)))
        assert sum(note.startswith("Codes are 40 of the 2,722 latents") for note in scores.notes) == 1
    [kept] = kept_scores(run.folder)
    assert kept.notes[0].startswith("Codes are 40 of the 2,722 latents")


def test_reconstructions_and_samples_use_all_latents(run: Run) -> None:
    images = TINY.observe(TINY.factors_at(np.arange(3)), 0)
    latents = torch.cat([layer.mean.flatten(1) for layer in run.layers(images).values()], dim=1)
    network = run.networks[AUTOENCODER]
    assert isinstance(network, VeryDeep)
    np.testing.assert_allclose(run.reconstruct(images), torch.sigmoid(network.decode(latents[None])[0]))
    drawn = torch.from_numpy(Stream.of(5).child("prior").normal(130, 2722).astype(np.float32))
    expected = torch.sigmoid(network.decode(drawn[None, 126:])[0])
    np.testing.assert_allclose(run.sample(130, seed=5)[126:], expected, rtol=1e-5)
    assert run.sample(0).shape == (0, *TINY.shape)


def test_samples_need_memory_for_a_part_of_the_latents_only(run: Run) -> None:
    """Four times as many numbers, 2,722 for each image, need no more memory at a time."""
    peaks = []
    for count in (300, 1200):
        tracemalloc.start()
        run.sample(count)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.2 * peaks[0]


def test_blocks_of_a_code_are_layers_too(tmp_path: Path) -> None:
    model = unweave.train(
        GVAE(content=1), TINY, out=tmp_path / "run", device="cpu", steps=1, batch=4, latents=3
    )
    images = TINY.observe(TINY.factors_at(np.arange(4)), 0)
    layers, codes = model.layers(images), model.encode(images)
    assert list(layers) == ["content", "style"]
    np.testing.assert_allclose(layers["style"].mean, codes[:, 1:], rtol=1e-5)


def test_what_has_no_layers_is_refused() -> None:
    class Flat(Hierarchy):
        def layers(self, _images: NDArray[np.uint8], _seed: object = None) -> dict[str, Gaussian]:
            return {}

    with pytest.raises(UnweaveError, match="the code of vae has no layers or blocks"):
        score_layers(Flat())
    with pytest.raises(UnweaveError, match="score_layers needs a trained run, or its folder; got ndarray"):
        score_layers(np.zeros((3, 2)))
    with pytest.raises(UnweaveError, match="most must be a whole number >= 1; got 0"):
        score_layers(Hierarchy(), most=0)
