"""InfoGAN with a categorical code: its objective, its codes, and whether images show their category."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from methods.played import Played
from methods.test_info_gan import BOUND, FOOLED, UNSURE, KnownVerdict, known
from training.tiny import TINY
from unweave.errors import UnweaveError
from unweave.methods import InfoGAN
from unweave.methods.info_gan import DISCRIMINATOR, GENERATOR, category_bound
from unweave.nn.distributions.gaussian import Gaussian
from unweave.nn.networks.gan import Generator, Guess, ReadingDiscriminator
from unweave.runs.spec import RunSpec
from unweave.training.batches import HostBatches
from unweave.training.population import Population
from unweave.training.update import Update


class KnownCategory(KnownVerdict):
    """Q for the plain generator: it gives the true one of two categories the probability 0.7."""

    def __init__(self, real: list[float], fake: list[float], latents: int, error: float) -> None:
        super().__init__(real, fake, latents, error)
        self.numbers, self.categories = latents, 2

    def forward(self, x: Tensor) -> tuple[Tensor, Guess]:
        shades = x[:, :, 0, 0, ::8].logit() / 2
        category, numbers = shades[..., :2], shades[..., 2:] + self.error
        return self.logits, Guess(Gaussian(numbers, torch.zeros_like(numbers)), math.log(7 / 3) * category)


def test_the_objective_with_categories_is_the_papers() -> None:
    """Equation 5 of [1] with H(c) = log 2 for the category, and two continuous codes instead of four."""
    case = known(InfoGAN(lambda_=0.3, categories=2, lambda_categories=0.9))
    three, four = math.log(3), math.log(4)
    verdict = KnownCategory([2 * three, 0.0, -three], [four, 0.0, 0.0], 2, 0.5)
    networks = {**case.networks, DISCRIMINATOR: verdict}
    losses = case.method.losses(replace(case.step, networks=networks))
    category, numbers = math.log(2) + math.log(0.7), BOUND / 2
    assert losses.terms["category_information"].tolist() == pytest.approx([category] * 2, rel=1e-4)
    assert losses.terms["category_accuracy"].tolist() == [1.0, 1.0]
    assert losses.terms["information"].tolist() == pytest.approx([numbers] * 2, rel=1e-4)
    for player, loss in ((GENERATOR, FOOLED), (DISCRIMINATOR, UNSURE)):
        expected = loss - 0.3 * numbers - 0.9 * category
        assert losses.players[player].tolist() == pytest.approx([expected] * 2, rel=1e-4)


def test_a_category_that_is_known_is_worth_its_entropy_and_a_random_guess_nothing() -> None:
    category = torch.eye(5).repeat(2, 4, 1)
    certain = torch.log(category.clamp_min(1e-20))
    torch.testing.assert_close(category_bound(certain, category), torch.full((2,), math.log(5)))
    uniform = torch.full_like(category, -math.log(5))
    torch.testing.assert_close(category_bound(uniform, category), torch.zeros(2), atol=1e-6, rtol=0)


@torch.no_grad()
def test_the_first_code_is_the_category() -> None:
    case = Played.of(InfoGAN(categories=5))
    discriminator, generator = case.networks[DISCRIMINATOR], case.networks[GENERATOR]
    assert isinstance(discriminator, ReadingDiscriminator)
    assert isinstance(generator, Generator)
    guess = discriminator(case.batch.images)[1]
    posterior = case.method.encode(case.networks, case.batch.images)
    assert posterior.mean.shape == (2, 6, 4)
    places = torch.tensor([-2.0, -1, 0, 1, 2]) / math.sqrt(2)  # mean 0, variance 1
    torch.testing.assert_close(posterior.mean[..., 0], places[guess.category.argmax(-1)])
    torch.testing.assert_close(posterior.mean[..., 1:], math.sqrt(3) * guess.numbers.mean)
    codes = torch.zeros(2, 5, 4)
    codes[..., 0] = places + 0.1  # the nearest one is taken
    inputs = torch.cat([torch.eye(5).expand(2, -1, -1), torch.zeros(2, 5, 8)], dim=-1)
    torch.testing.assert_close(case.method.decode(case.networks, codes), generator.independent_logits(inputs))
    assert (generator.reference[:, :5].sum(-1) == 1).all()


def test_images_show_the_category_that_they_are_generated_from() -> None:
    """The paper's claim: the information term makes images tell their category. Guessing is right in 1 of 4.

    The weight is large, so that 40 updates are enough.
    """
    device, method = torch.device("cpu"), InfoGAN(categories=4, lambda_categories=100.0)
    spec = RunSpec(method, TINY.name, latents=2, batch=8, steps=40, seed=0)
    population = Population([spec], TINY.shape, device)
    update = Update(population, HostBatches(TINY, device), len(TINY))
    update.run(20)
    update.take_terms()
    update.run(20)
    [terms] = update.take_terms()
    assert float(terms["category_accuracy"]) > 0.5


def test_categories_do_not_change_the_spec_of_a_run_without_them() -> None:
    written = RunSpec(InfoGAN(), "dsprites").to_dict()["method"]
    assert written == {"name": "info_gan", "lambda_": 0.05, "noise": 5, "variance": "unit"}
    assert RunSpec.from_dict(RunSpec(InfoGAN(categories=3)).to_dict()).method == InfoGAN(categories=3)


def test_one_category_is_refused() -> None:
    with pytest.raises(UnweaveError, match="must be 0, for continuous codes only, or at least 2; got 1"):
        InfoGAN(categories=1)
