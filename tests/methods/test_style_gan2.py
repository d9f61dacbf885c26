"""StyleGAN2: penalties with known answers, who learns from what, codes of each level, and a short run."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import unweave
from methods.played import Played
from unweave.data.grid import Card, Factor, Factors, GroundTruth, Images
from unweave.errors import UnweaveError
from unweave.evaluation import frechet_distance, inversion, judges
from unweave.evaluation.frechet import distance_of_samples
from unweave.methods import StyleGAN2
from unweave.methods.method import Blueprint
from unweave.methods.style_gan2 import (
    AVERAGE,
    DISCRIMINATOR,
    GENERATOR,
    MEANS,
    as_logits,
    centred,
    path_lengths,
    r1_penalty,
)
from unweave.nn.draws import PopulationDraws
from unweave.nn.networks.style_gan import StyleDiscriminator, StyleGenerator
from unweave.nn.networks.style_means import StyleMeans
from unweave.runs.run import Run
from unweave.runs.spec import RunSpec
from unweave.streams import Stream
from unweave.training.batches import HostBatches
from unweave.training.population import Population
from unweave.training.update import Update

SMALL = StyleGAN2(mapping_layers=2, channel_base=128, channel_max=32)
STEPS = 150


def _render(factors: Factors, _stream: Stream) -> Images:
    rows = np.arange(8)
    across, along = (np.abs(rows - (1.5 + factors[:, place, None])) < 2 for place in (0, 1))
    return np.asarray((along[:, :, None] & across[:, None, :])[:, None] * np.uint8(255))


PLACES = (Factor("x", 5), Factor("y", 5))
SPOTS = GroundTruth("spots", PLACES, (1, 8, 8), _render, Card("spots", "none", ""), "made up", binary=True)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A short run with four times the usual rates."""
    method = replace(SMALL, ema=0.95, encoder_from=0.4)
    settings: dict[str, Any] = {"steps": STEPS, "batch": 8, "latents": 4, "player_rate": 4.0, "device": "cpu"}
    return unweave.train(method, SPOTS, out=tmp_path_factory.mktemp("runs"), progress=False, **settings)


@pytest.fixture(scope="module")
def untrained(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """The same before training."""
    settings: dict[str, Any] = {"steps": 1, "batch": 8, "latents": 4, "player_rate": 1e-6, "device": "cpu"}
    return unweave.train(SMALL, SPOTS, out=tmp_path_factory.mktemp("runs"), progress=False, **settings)


class LinearDiscriminator(nn.Module):
    """D(x) = <v, x>, one v for each run."""

    def __init__(self, v: Tensor) -> None:
        super().__init__()
        self.v = nn.Parameter(v)

    def forward(self, images: Tensor, _group: int) -> Tensor:
        return torch.einsum("pchw,pbchw->pb", self.v, images)


def test_r1_of_a_linear_discriminator_is_the_square_of_its_weights() -> None:
    """The gradient at any image is v. The gradient of the penalty, a second derivative, is then 2 v."""
    v = torch.arange(8.0).view(2, 1, 2, 2)
    discriminator = LinearDiscriminator(v)
    penalty = r1_penalty(discriminator, torch.randn(2, 5, 1, 2, 2), 1)
    assert penalty.tolist() == [0 + 1 + 4 + 9, 16 + 25 + 36 + 49]
    [gradient] = torch.autograd.grad(penalty.sum(), [discriminator.v])
    torch.testing.assert_close(gradient, 2 * v)


def test_the_path_length_of_a_linear_generator() -> None:
    """Pixels are A w, summed over layers: the gradient for w of each layer is A^T y / sqrt(pixels)."""
    a = torch.randn(6 * 4, 3, dtype=torch.float64).requires_grad_()
    w = torch.randn(2, 5, 7, 3, dtype=torch.float64).requires_grad_()
    images = (w.sum(2) @ a.T).view(2, 5, 6, 2, 2)
    direction = torch.randn_like(images)
    lengths = path_lengths(images, w, direction)
    expected = (direction.flatten(2) @ a).norm(dim=-1) / 2
    torch.testing.assert_close(lengths, expected)
    # Of an isometry, by directions of unit variance: E |A^T y|^2 is the number of dimensions of w.
    isometry = torch.linalg.qr(torch.randn(16, 3, dtype=torch.float64)).Q
    one = torch.randn(1, 4000, 1, 3, dtype=torch.float64).requires_grad_()
    pixels = (one.squeeze(2) @ isometry.T).view(1, 4000, 1, 4, 4)
    squares = path_lengths(pixels, one, torch.randn_like(pixels)).square().mean() * 16
    assert squares.item() == pytest.approx(3, rel=0.1)


def test_losses_are_those_of_the_paper() -> None:
    """Non-saturating logistic losses of known logits, penalties with their weights, and all terms."""
    case = Played.of(replace(SMALL, r1_gamma=3.0, pl_weight=5.0))
    without = Played.of(replace(SMALL, r1_gamma=0.0, pl_weight=0.0)).losses()
    losses = case.losses()
    terms = losses.terms
    torch.testing.assert_close(without.players[DISCRIMINATOR], terms["discriminator"])
    torch.testing.assert_close(losses.players[DISCRIMINATOR], terms["discriminator"] + 1.5 * terms["r1"])
    assert (losses.players[GENERATOR] > without.players[GENERATOR]).all()
    assert terms["path_length"].tolist() == [0, 0]  # before the first update
    means = case.networks[MEANS]
    assert isinstance(means, StyleMeans)
    means.path_length.data.fill_(0.3)
    again = case.losses().players[GENERATOR] - without.players[GENERATOR]
    means.path_length.data.fill_(0.0)
    plain = losses.players[GENERATOR] - without.players[GENERATOR]
    # 5 mean (l - 0.3)^2 - 5 mean l^2 = 5 (0.09 - 0.6 mean l)
    mean_length = (0.09 - (again - plain) / 5) / 0.6
    [update] = torch.autograd.grad(losses.players[MEANS].sum(), [means.path_length])
    torch.testing.assert_close(mean_length, -update.squeeze(-1), rtol=1e-3, atol=1e-4)


class FixedLogits(StyleDiscriminator):
    """A discriminator that says the same of all real and of all generated images."""

    def __init__(self) -> None:
        nn.Module.__init__(self)

    def forward(self, images: Tensor, group: int) -> Tensor:
        real = torch.full_like(images[:, : images.shape[1] // 2, 0, 0, 0], math.log(3.0))
        logits = torch.cat([real, torch.zeros_like(real)], dim=1)
        return logits + group * 0 * images[:, : logits.shape[1]].sum((2, 3, 4))


def test_known_logits_have_logistic_losses() -> None:
    """-log 3/4 for real images, whose logits are log 3, and -log 1/2 for generated ones."""
    case = Played.of(SMALL)
    step = replace(case.step, networks={**case.networks, DISCRIMINATOR: FixedLogits()}, turn=(DISCRIMINATOR,))
    terms = SMALL.losses(step).terms
    assert terms["discriminator"].tolist() == pytest.approx([math.log(4 / 3) + math.log(2)] * 2)
    assert terms["generator"].tolist() == pytest.approx([math.log(2)] * 2)
    assert terms["discriminator_accuracy"].tolist() == [0.5, 0.5]  # a logit of 0 counts as wrong
    assert terms["r1"].tolist() == [0, 0]


def test_images_of_two_codes_change_at_a_random_layer() -> None:
    draws = PopulationDraws([Stream.of(0)], torch.tensor(0))
    for share in (0.0, 0.9, 1.0):
        first = replace(SMALL, style_mixing_prob=share)._from_first(draws, "test", 2000, 8).squeeze(-1)
        assert first[..., 0].all(), "the first layer has the first code"
        assert (first[..., 1:] <= first[..., :-1]).all(), "layers after the change have the second"
        mixed = ~first.all(-1)
        assert mixed.float().mean().item() == pytest.approx(share, abs=0.02)
        if share:
            starts = first.sum(-1)[mixed].float()
            assert starts.unique().tolist() == [1, 2, 3, 4, 5, 6, 7]
            assert starts.mean().item() == pytest.approx(4, abs=0.15)


def test_images_are_made_by_a_moving_average_of_the_generator() -> None:
    """With a decay of 1/2 after the first update: 1/4, 1/4 and 1/2 of the weights after three updates."""
    cpu = torch.device("cpu")
    spec = RunSpec(replace(SMALL, ema=0.5), SPOTS.name, batch=4, latents=3, steps=10)
    population = Population([spec], SPOTS.shape, cpu)
    update, (group,) = Update(population, HostBatches(SPOTS, cpu), len(SPOTS)), population.groups
    weights = []
    for _ in range(3):
        update.run(1)
        weights.append(group.networks[GENERATOR].get_parameter("synthesis.constant").detach().clone())
    average = group.networks[AVERAGE].get_parameter("synthesis.constant")
    torch.testing.assert_close(average.data, weights[0] / 4 + weights[1] / 4 + weights[2] / 2)
    assert update.take_terms()[0]["code_error"].item() == 1, "the encoder has not started"


def test_levels_of_the_code_set_the_layers_of_their_resolution() -> None:
    case = Played.of(SMALL, images=2)
    generator, means = case.networks[AVERAGE], case.networks[MEANS]
    assert isinstance(generator, StyleGenerator)
    assert isinstance(means, StyleMeans)
    assert SMALL.latent_levels(case.networks, 4) == dict.fromkeys(["4x4", "8x8", "16x16", "32x32"], 4)
    codes, others = torch.randn(2, 2, 4), torch.randn(2, 2, 4)
    same = SMALL.decode_all(case.networks, codes.repeat(1, 1, 4))
    torch.testing.assert_close(same, SMALL.decode(case.networks, codes))
    mixed = SMALL.decode_all(case.networks, torch.cat([codes, codes, others, others], dim=-1))
    w = torch.stack([means.styles(codes)] * 3 + [means.styles(others)] * 5, dim=2)  # 1 + 2 and 2 + 3 layers
    torch.testing.assert_close(mixed, as_logits(generator(w)))
    images = torch.rand(2, 2, 1, 32, 32)
    assert SMALL.encode_all(case.networks, images).shape == (2, 2, SMALL.all_latents(case.networks, 4))


def test_codes_may_be_z() -> None:
    """Their mean square is 1, and decoding does not depend on their length."""
    method = replace(SMALL, codes="z")
    case = Played.of(method)
    codes = method.prior_codes(case.networks, 7 * torch.randn(2, 3, 4))
    torch.testing.assert_close(codes.square().mean(-1), torch.ones(2, 3))
    of_long_codes, of_codes = (method.decode(case.networks, scale * codes).sigmoid() for scale in (3, 1))
    torch.testing.assert_close(of_long_codes, of_codes)
    generator = case.networks[AVERAGE]
    assert isinstance(generator, StyleGenerator)
    expected = as_logits(generator(generator.same_in_all_layers(generator.styles(codes))))
    torch.testing.assert_close(method.decode(case.networks, codes), expected)


def test_sefa_uses_the_styles_of_all_layers(trained: Run) -> None:
    """Its matrices are the Jacobians of styles by codes: of 3 convolutions, and of the last image."""
    generator, means = trained.networks[AVERAGE], trained.networks[MEANS]
    assert isinstance(generator, StyleGenerator)
    assert isinstance(means, StyleMeans)
    codes = torch.stack([torch.zeros(1, 4), *torch.eye(4)[:, None]], dim=1)
    styles = [layer(means.styles(codes))[0] for layer in generator.affines]
    jacobians = [(made[1:] - made[0]).T.detach().numpy() for made in styles]
    weights = SMALL.style_weights(trained.networks)
    assert [tuple(part.shape) for part in weights] == [(32, 4), (32, 4), (16, 4), (16, 4)]
    for part, jacobian in zip(weights, jacobians, strict=True):
        np.testing.assert_allclose(part.detach().numpy(), jacobian, atol=1e-5)
    found = unweave.directions.fit(trained, "sefa", images=20).directions
    np.testing.assert_allclose(
        found.directions, unweave.directions.sefa(jacobians).directions, rtol=1e-2, atol=1e-3
    )
    with pytest.raises(UnweaveError, match="codes z of style_gan2 enter its layers through the mapping"):
        replace(SMALL, codes="z").style_weights(trained.networks)


def test_images_and_logits_are_inverse() -> None:
    images = torch.tensor([0, 51, 255], dtype=torch.uint8)
    assert centred(images).tolist() == pytest.approx([-1, -0.6, 1])
    shown = 255 * as_logits(torch.tensor([-1.5, -0.6, 1.2])).sigmoid()
    assert shown.round().tolist() == [0, 51, 255]


def test_a_short_run_makes_images_like_those_of_the_data(trained: Run, untrained: Run) -> None:
    """Means and covariances of pixels are less than 0.6 times as far away as those before training."""
    real = SPOTS.observe(SPOTS.factors_at(np.arange(25))).reshape(25, -1) / 255
    before, after = (run.sample(300).reshape(300, -1) for run in (untrained, trained))
    assert distance_of_samples(after, real) < 0.6 * distance_of_samples(before, real)
    nearest = [np.square(made[:, None] - real).mean(-1).min(1).mean() for made in (before, after)]
    assert nearest[1] < 0.5 * nearest[0]


def test_the_regularisation_makes_path_lengths_more_alike(
    trained: Run, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Their deviation relative to their mean: 0.30 with the default weight, and 0.35 without."""
    method = replace(SMALL, ema=0.95, encoder_from=1.0, pl_weight=0.0)
    settings: dict[str, Any] = {"steps": STEPS, "batch": 8, "latents": 4, "player_rate": 4.0, "device": "cpu"}
    without = unweave.train(method, SPOTS, out=tmp_path_factory.mktemp("runs"), progress=False, **settings)
    spreads = []
    for run in (trained, without):
        generator = run.networks[AVERAGE]
        assert isinstance(generator, StyleGenerator)
        z, direction = (
            torch.from_numpy(Stream.of(0).child(name).normal(400, size)).float()
            for name, size in (("z", 4), ("direction", 64))
        )
        w = generator.same_in_all_layers(generator.styles(z[None])).clone().requires_grad_()
        lengths = path_lengths(generator(w), w, direction.view(1, 400, 1, 8, 8)).detach()
        spreads.append(float(lengths.std() / lengths.mean()))
    assert spreads[0] < 0.93 * spreads[1]


def test_the_encoder_inverts_generated_images_and_partly_real_ones(trained: Run, untrained: Run) -> None:
    measured = inversion(trained, images=300)
    assert measured.codes.low <= measured.codes.mean <= measured.codes.high < 0.5
    assert measured.generated.mean < 0.3 * measured.mean_generated.mean
    assert measured.real_share < 0.85
    assert inversion(untrained, images=100).codes.mean > 0.9
    assert measured.images == 300
    assert "pixels, real" in str(measured)
    with pytest.raises(UnweaveError, match="inversion needs a trained run, or its folder; got ndarray"):
        inversion(np.zeros(3))  # type: ignore[arg-type]
    codes = SMALL.prior_codes(trained.networks, torch.randn(1, 500, 4)).detach()
    assert codes.mean(1).abs().max().item() < 0.3, "codes are standardised"
    assert codes.std(1).sub(1).abs().max().item() < 0.3


def test_inversion_of_linear_generators_is_known(trained: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """A perfect encoder makes no errors. A constant one has those of mean codes and of mean images.

    Black and white images are 1/2 away from the grey image that it decodes to.
    """
    weights = Stream.of(0).child("weights").normal(4, 64).astype(np.float32) / 50
    inverse = np.linalg.pinv(weights)

    def decoded(codes: Any) -> Any:
        return (0.5 + codes @ weights).reshape(-1, 1, 8, 8)

    def solved(images: Any) -> Any:
        return (images.reshape(-1, 64) - 0.5) @ inverse

    monkeypatch.setattr(trained, "decode", decoded)
    for encode, error in ((solved, 0.0), (lambda images: np.zeros((len(images), 4)), 1.0)):
        monkeypatch.setattr(trained, "encode", encode)
        monkeypatch.setattr(trained, "reconstruct", lambda images, code=encode: decoded(code(images)))
        measured = inversion(trained, images=400)
        assert measured.codes.mean == pytest.approx(error, abs=0.02)
        share = measured.generated.mean / measured.mean_generated.mean
        assert share == pytest.approx(error, abs=0.02)
    assert measured.real.mean == pytest.approx(0.25)
    pixels = SPOTS.observe(SPOTS.factors_at(np.arange(25))) / 255
    assert measured.mean_real.mean == pytest.approx(pixels.var(axis=0).mean(), rel=0.02)


def test_the_distance_to_the_data_falls(
    trained: Run, untrained: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(judges, "STEPS", 40)
    after, before = (frechet_distance(run, images=200) for run in (trained, untrained))
    assert after.low is not None
    assert after.low <= after.distance <= (after.high or 0)
    assert 0 <= after.floor < after.distance < before.distance
    assert (after.images, after.features, after.data) == (200, 1200, "spots")
    assert str(after).startswith("Frechet distance ")
    assert np.isfinite(frechet_distance(trained, images=4).distance)


def test_scores_say_where_codes_are_from(trained: Run) -> None:
    scores = unweave.evaluate(trained, metrics="mig", points=(100, 50))
    assert any("codes w of style_gan2 are guessed by an encoder" in note for note in scores.notes)


def test_notes_say_if_the_encoder_was_never_trained(trained: Run) -> None:
    [note] = replace(SMALL, encoder_from=1.0).code_notes(trained.networks)
    assert note.startswith("The encoder of style_gan2 was not trained, because encoder_from is 1")


def test_samples_are_images_of_z(trained: Run) -> None:
    numbers = torch.from_numpy(Stream.of(0).child("prior").normal(3, 8)[None, :, :4]).float()
    codes = trained.spec.method.prior_codes(trained.networks, numbers)  # type: ignore[attr-defined]
    np.testing.assert_allclose(trained.sample(3), trained.decode(codes[0].numpy()), atol=1e-6)


def test_swaps_mix_levels(trained: Run) -> None:
    """Image (i, j): the coarse level of row i and the fine one of column j."""
    images = SPOTS.observe(SPOTS.factors_at(np.arange(5)))
    assert trained.levels == ("4x4", "8x8")
    mixed = trained.mix(images[:2], images[2:], 1)
    assert mixed.shape == (6, 1, 8, 8)
    a, b = trained.encode(images[[1]]), trained.encode(images[[3]])
    both = torch.from_numpy(np.concatenate([a, b], axis=1))[None]
    expected = trained.spec.method.decode_all(trained.networks, both).sigmoid()[0].detach().numpy()
    np.testing.assert_allclose(mixed[4:5], expected, atol=1e-6)
    unmixed = trained.mix(images[:1], images[:1], 1)
    np.testing.assert_allclose(unmixed, trained.reconstruct(images[:1]), atol=1e-6)
    for rows, columns in ((0, 2), (2, 0), (0, 0)):
        assert trained.mix(images[:rows], images[:columns], 1).shape == (0, 1, 8, 8)
    with pytest.raises(UnweaveError, match=r"levels must be a whole number from 1 to 1; got 2"):
        trained.mix(images[:1], images[:1], 2)
    assert trained.swaps(images, rows=2, columns=4) is not None


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"style_mixing_prob": 1.1}, "style_mixing_prob of style_gan2 must be at most 1, a probability"),
        ({"encoder_from": 2.0}, "encoder_from of style_gan2 must be at most 1, a share of the steps; got 2"),
        ({"ema": 1.5}, "ema of style_gan2 must be at most 1"),
        ({"mapping_layers": 0}, "mapping_layers of style_gan2 must be at least 1"),
        ({"codes": "s"}, "codes of style_gan2 must be 'w' or 'z'; got 's'"),
    ],
)
def test_impossible_settings_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(UnweaveError, match=message):
        StyleGAN2(**settings)


def test_other_architectures_and_likelihoods_are_refused(trained: Run) -> None:
    own = Blueprint([Stream.of(0)], (1, 8, 8), 4)
    for field, plan in (
        ("architecture", replace(own, architecture="mlp")),
        ("likelihood", replace(own, likelihood="gaussian_learned")),
    ):
        with pytest.raises(UnweaveError, match=rf"StyleGAN2 has .* Leave\s+{field} at its default"):
            SMALL.networks(plan)
    with pytest.raises(UnweaveError, match="images must be a whole number >= 2; got 1"):
        inversion(trained, images=1)
    with pytest.raises(UnweaveError, match="images must be a whole number >= 4; got 3"):
        frechet_distance(trained, images=3)
    with pytest.raises(UnweaveError, match="frechet_distance needs a trained run, or its folder; got list"):
        frechet_distance([trained])
