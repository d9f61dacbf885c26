"""Elastic-InfoGAN: relaxed categories of a learned prior, its objective, and where the prior ends up."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch
from torch import Tensor, nn

from methods.marks import MARKS
from methods.played import Played, own_step
from methods.test_info_gan import FOOLED, UNSURE, KnownVerdict, PlainGenerator, draws_at
from unweave.errors import UnweaveError
from unweave.methods import ElasticInfoGAN, InfoGAN
from unweave.methods.info_gan import DISCRIMINATOR, GENERATOR
from unweave.methods.method import Batch
from unweave.nn.distributions.categorical import Categorical
from unweave.nn.distributions.gaussian import Gaussian
from unweave.nn.networks.gan import Generator, Guess
from unweave.nn.networks.prior_generator import PriorGenerator
from unweave.runs.spec import RunSpec
from unweave.streams import Stream
from unweave.training.batches import HostBatches
from unweave.training.population import Population
from unweave.training.update import Update

TRUE = torch.tensor([0.6, 0.3, 0.1])


class PlainPriorGenerator(PriorGenerator):
    """The plain generator, with a prior of two or three categories."""

    def __init__(self, inputs: int, log_prior: Tensor) -> None:
        nn.Module.__init__(self)
        self.plain = PlainGenerator(inputs)
        self.prior_logits = nn.Parameter(log_prior.expand(2, -1).clone())

    def forward(self, z: Tensor) -> Tensor:
        logits: Tensor = self.plain(z)
        return logits


class KnownFeatures(KnownVerdict):
    """Q gives the category with the largest input the probability 0.7; features are those of a known pair."""

    def __init__(self, categories: int) -> None:
        three, four = math.log(3), math.log(4)
        super().__init__([2 * three, 0.0, -three], [four, 0.0, 0.0], 0, 0.0)
        self.categories = categories

    def forward(self, x: Tensor) -> tuple[Tensor, Guess]:
        shades = x[:, -3:, 0, 0, ::8][..., : self.categories]
        shades = torch.cat([torch.zeros_like(shades), shades], dim=1)
        right = shades == shades.amax(-1, keepdim=True)
        logits = torch.where(right, math.log(0.7), math.log(0.3))
        numbers = logits[..., :0]
        return self.logits, Guess(Gaussian(numbers, numbers), logits)

    def embed(self, images: Tensor) -> Tensor:
        """The first and the second image of each pair have the same feature, orthogonal to all others."""
        self.inputs.append(images)
        features: Tensor = torch.eye(3).repeat(2, 1).expand(len(images), -1, -1)
        return features


def test_the_objective_is_the_authors() -> None:
    """-log Q(k|x) of the category drawn, without the entropy of the prior, and the weighted NT-Xent of D."""
    log_prior = torch.tensor([0.9, 0.1]).log()
    method = ElasticInfoGAN(categories=2, noise=2, lambda_categories=0.9, lambda_contrast=10.0)
    networks = {GENERATOR: PlainPriorGenerator(4, log_prior), DISCRIMINATOR: KnownFeatures(2)}
    batch = Batch(torch.full((2, 3, 1, 32, 32), 255, dtype=torch.uint8))
    case = Played(method, own_step(torch.tensor(0), 60, draws_at())(batch, networks))
    losses = case.losses()
    entropy = -(0.9 * math.log(0.9) + 0.1 * math.log(0.1))
    information = entropy + math.log(0.7)
    # Cosines are 1 within and 0 between pairs: one positive and four negatives at temperature 1.
    contrast = math.log(math.e + 4) - 1
    assert losses.terms["category_information"].tolist() == pytest.approx([information] * 2, rel=1e-4)
    assert losses.terms["category_accuracy"].tolist() == [1.0, 1.0]
    assert losses.terms["prior_entropy"].tolist() == pytest.approx([entropy] * 2)
    assert losses.terms["prior_largest"].tolist() == pytest.approx([0.9] * 2)
    assert losses.terms["contrast"].tolist() == pytest.approx([contrast] * 2)
    generator = FOOLED - 0.9 * information
    assert losses.players[GENERATOR].tolist() == pytest.approx([generator] * 2, rel=1e-4)
    discriminator = UNSURE - 0.9 * information + 10 * contrast
    assert losses.players[DISCRIMINATOR].tolist() == pytest.approx([discriminator] * 2, rel=1e-4)
    assert "code_error" not in losses.terms, "there is no continuous code"


class OptimalVerdict(KnownVerdict):
    """D = p / (p + q) of true and generated probabilities of three categories; its logit is log p - log q."""

    def __init__(self, generator: PlainPriorGenerator) -> None:
        super().__init__([], [], 0, 0.0)
        self.categories, self.ratio = 3, TRUE.log() - generator.log_prior().detach()

    def forward(self, x: Tensor) -> tuple[Tensor, Guess]:
        category = x[:, :, 0, 0, ::8].logit() / 2
        logits = (category * self.ratio[:, None]).sum(-1)
        numbers = category[..., :0]
        return logits, Guess(Gaussian(numbers, numbers), torch.zeros_like(category))


def test_the_prior_moves_to_the_true_frequencies_if_the_discriminator_is_optimal() -> None:
    """The claim of the paper; the uniform prior of InfoGAN stays where it is."""
    generator = PlainPriorGenerator(3, torch.zeros(3))
    method = ElasticInfoGAN(categories=3, noise=0)
    batch = Batch(torch.zeros((2, 128, 1, 32, 32), dtype=torch.uint8))
    for number in range(40):
        networks = {GENERATOR: generator, DISCRIMINATOR: OptimalVerdict(generator)}
        step = own_step(torch.tensor(number), 60, draws_at(number))(batch, networks)
        loss = method.losses(replace(step, turn=(GENERATOR,))).players[GENERATOR]
        [gradient] = torch.autograd.grad(loss.sum(), [generator.prior_logits])
        generator.prior_logits.data -= 3.0 * gradient
    prior = method.cluster_prior({GENERATOR: generator}).detach()
    torch.testing.assert_close(prior, TRUE.expand(2, -1), atol=0.08, rtol=0)
    assert (prior.argsort(-1) == TRUE.argsort()).all()


def test_the_category_drawn_follows_the_prior_and_a_warm_softmax_is_its_mean() -> None:
    draws = draws_at(seeds=(0,)).uniform("categories", 100_000, 3)
    prior = Categorical(TRUE.log())
    drawn = prior.sample(draws, 0.1).argmax(-1).flatten().bincount() / 100_000
    torch.testing.assert_close(drawn, TRUE, atol=0.005, rtol=0)
    cold = prior.sample(draws, 0.01).mean((-3, -2))
    torch.testing.assert_close(cold, TRUE, atol=0.005, rtol=0)
    hot = prior.sample(draws, 1e4).mean((-3, -2))
    torch.testing.assert_close(hot, torch.full((3,), 1 / 3), atol=1e-3, rtol=0)


def test_the_gradient_of_the_prior_is_that_of_the_expected_loss() -> None:
    """d/da_k of sum_j softmax(a)_j loss_j = softmax(a)_k (loss_k - mean loss), for a loss linear in c."""
    logits, cost = TRUE.log().requires_grad_(), torch.tensor([1.0, -2.0, 4.0])
    draws = draws_at(seeds=(0,)).uniform("categories", 400_000, 3)
    relaxed = Categorical(logits.log_softmax(-1)).sample(draws, 0.1)
    [gradient] = torch.autograd.grad((relaxed @ cost).mean(), [logits])
    expected = TRUE * (cost - TRUE @ cost)
    torch.testing.assert_close(gradient, expected, atol=0.05, rtol=0.05)


def test_only_the_generator_moves_the_prior() -> None:
    method = ElasticInfoGAN(categories=3, noise=2)
    case = Played.of(method, latents=1)
    assert isinstance(case.networks[GENERATOR], PriorGenerator)
    names = [name for name, _ in case.networks[GENERATOR].named_parameters()]
    gradient = dict(zip(names, case.gradients(GENERATOR), strict=True))["prior_logits"]
    assert gradient.shape == (2, 3)
    assert (gradient.abs().sum(-1) > 0).all()
    torch.testing.assert_close(gradient.sum(-1), torch.zeros(2), atol=1e-6, rtol=0)
    torch.testing.assert_close(method.cluster_prior(case.networks), torch.full((2, 3), 1 / 3))


def test_the_contrast_pairs_images_of_the_data_with_transformed_copies() -> None:
    method = ElasticInfoGAN(categories=2, noise=2)
    verdict = KnownFeatures(2)
    networks = {GENERATOR: PlainPriorGenerator(4, torch.zeros(2)), DISCRIMINATOR: verdict}
    images = Played.of(method, images=3, latents=1).batch.images
    step = own_step(torch.tensor(0), 60, draws_at())(Batch(images), networks)
    method.losses(step)
    [pairs] = verdict.inputs
    torch.testing.assert_close(pairs[:, :3], images / 255)
    assert (pairs[:, 3:] != images / 255).any((-3, -2, -1)).all()
    still = ElasticInfoGAN(categories=2, noise=2, rotation=0.0, zoom=0.0)
    still.losses(step)
    torch.testing.assert_close(verdict.inputs[1][:, 3:], images / 255, atol=1e-4, rtol=0)


def test_training_pulls_the_features_of_transformed_images_together() -> None:
    """Two runs that differ in the weight of the contrast only, after a few updates with the defaults."""
    device, weights = torch.device("cpu"), (10.0, 0.0)
    specs = [
        RunSpec(ElasticInfoGAN(lambda_contrast=weight), MARKS.name, latents=1, batch=8, steps=24)
        for weight in weights
    ]
    update = Update(Population(specs, MARKS.shape, device), HostBatches(MARKS, device), len(MARKS))
    update.run(16)
    update.take_terms()
    update.run(8)
    [terms] = update.take_terms()
    trained, untrained = terms["contrast"].tolist()
    assert trained < untrained - 0.2
    assert untrained == pytest.approx(math.log(15), abs=0.2), "a random guess"


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"temperature": 0.0}, "temperature of elastic_info_gan must be > 0; got 0.0"),
        ({"contrast_temperature": 0.0}, "contrast_temperature of elastic_info_gan must be > 0"),
        ({"zoom": 1.0}, "zoom of elastic_info_gan must be below 1"),
        ({"categories": 1}, "categories of elastic_info_gan must be at least 2; got 1"),
    ],
)
def test_bad_settings_are_refused(settings: dict[str, float], text: str) -> None:
    with pytest.raises(UnweaveError, match=text):
        ElasticInfoGAN(**settings)  # type: ignore[arg-type]


@torch.no_grad()
def test_images_of_a_category_show_it_and_differ_in_their_noise() -> None:
    method = InfoGAN(categories=3)
    case = Played.of(method, seeds=(0,), latents=2)
    generator = case.networks[GENERATOR]
    assert isinstance(generator, Generator)
    stream = Stream.of(0)
    images = generator.category_images(torch.tensor([[0, 0, 2]]), stream)
    numbers = torch.from_numpy(2 * stream.uniform(3, 6) - 1).float()
    inputs = torch.cat([torch.eye(3)[[0, 0, 2]], numbers], dim=-1)[None]
    torch.testing.assert_close(images, generator.independent_logits(inputs).sigmoid())
    torch.testing.assert_close(method.cluster_prior(case.networks), torch.full((1, 3), 1 / 3))
