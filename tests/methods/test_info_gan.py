"""InfoGAN and InfoGAN-CR: objectives of known verdicts, the bound on information, pairs, and their judge."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.stats import norm
from torch import Tensor, nn

from methods.played import Played, own_step
from unweave.errors import UnweaveError
from unweave.methods import InfoGAN, InfoGANCR
from unweave.methods.info_gan import DISCRIMINATOR, GENERATOR, information_bound
from unweave.methods.info_gan_cr import PAIR_JUDGE, draw_pairs
from unweave.methods.method import Adam, Batch, Blueprint, Method
from unweave.nn.distributions.gaussian import Gaussian
from unweave.nn.draws import PopulationDraws
from unweave.nn.networks.gan import Guess, PairJudge, ReadingDiscriminator
from unweave.streams import Stream


def draws_at(step: int = 0, seeds: Sequence[int] = (0, 1)) -> PopulationDraws:
    return PopulationDraws([Stream.of(seed) for seed in seeds], torch.tensor(step))


class PlainGenerator(nn.Module):
    """Eight columns of an image show each code as a shade of grey; noise does not show."""

    def __init__(self, latents: int) -> None:
        super().__init__()
        self.latents, self.gain = latents, nn.Parameter(torch.ones(2))

    def forward(self, z: Tensor) -> Tensor:
        shades = self.gain[:, None, None] * 2 * z[..., : self.latents]
        return shades.repeat_interleave(8, dim=-1)[..., None, None, :].expand(-1, -1, 1, 32, -1)


class KnownVerdict(ReadingDiscriminator):
    """D with known logits, and Q that predicts the code plus an error."""

    def __init__(self, real: list[float], fake: list[float], latents: int, error: float) -> None:
        nn.Module.__init__(self)
        self.numbers, self.categories, self.error = latents, 0, error
        self.logits = torch.tensor([real + fake, real + fake])
        self.inputs: list[Tensor] = []

    def forward(self, x: Tensor) -> tuple[Tensor, Guess]:
        self.inputs.append(x)
        codes = x[:, :, 0, 0, ::8].logit() / 2  # undoes the plain generator
        guess = codes + self.error
        return self.logits, Guess(Gaussian(guess, torch.zeros_like(guess)), guess[..., :0])


class Nearest(nn.Module):
    """H for the plain generator: the code whose shade differs least, with a known confidence."""

    def __init__(self, sharpness: float) -> None:
        super().__init__()
        self.sharpness = sharpness

    def forward(self, first: Tensor, second: Tensor) -> Tensor:
        return -self.sharpness * (first - second)[:, :, 0, 0, ::8].abs()


def known(method: Method, images: int = 3, error: float = 0.5, sharpness: float = 0.0) -> Played:
    """D = 9/10, 1/2, 1/4 for real images and 4/5, 1/2, 1/2 for generated ones."""
    three, four = math.log(3), math.log(4)
    verdict = KnownVerdict([2 * three, 0.0, -three], [four, 0.0, 0.0], 4, error)
    networks: dict[str, nn.Module] = {
        GENERATOR: PlainGenerator(4),
        DISCRIMINATOR: verdict,
        PAIR_JUDGE: Nearest(sharpness),
    }
    batch = Batch(torch.full((2, images, 1, 32, 32), 255, dtype=torch.uint8))
    return Played(method, own_step(torch.tensor(0), 60, draws_at())(batch, networks))


FOOLED = -(math.log(4 / 5) + math.log(1 / 2) + math.log(1 / 2)) / 3
REAL = -(math.log(9 / 10) + math.log(1 / 2) + math.log(1 / 4)) / 3
UNSURE = REAL - (math.log(1 / 5) + math.log(1 / 2) + math.log(1 / 2)) / 3
# Four codes, each wrong by 1/2: log N(1/2; 0, 1) four times, and four times log 2 for the codes' entropy.
BOUND = 4 * (math.log(2) - 0.125 - 0.5 * math.log(2 * math.pi))


def test_objectives_of_known_verdicts() -> None:
    losses = known(InfoGAN(lambda_=0.3)).losses()
    assert losses.terms["generator"].tolist() == pytest.approx([FOOLED] * 2)
    assert losses.terms["discriminator"].tolist() == pytest.approx([UNSURE] * 2)
    assert losses.terms["information"].tolist() == pytest.approx([BOUND] * 2, rel=1e-4)
    assert losses.terms["code_error"].tolist() == pytest.approx([0.25] * 2, rel=1e-4)
    assert losses.players[GENERATOR].tolist() == pytest.approx([FOOLED - 0.3 * BOUND] * 2, rel=1e-4)
    assert losses.players[DISCRIMINATOR].tolist() == pytest.approx([UNSURE - 0.3 * BOUND] * 2, rel=1e-4)
    assert losses.terms["discriminator_accuracy"].tolist() == pytest.approx([1 / 6] * 2)


def test_the_discriminator_sees_the_data_first_and_then_as_many_generated_images() -> None:
    case = known(InfoGAN())
    case.losses()
    discriminator = case.networks[DISCRIMINATOR]
    assert isinstance(discriminator, KnownVerdict)
    (inputs,) = discriminator.inputs
    assert inputs.shape == (2, 6, 1, 32, 32)
    assert (inputs[:, :3] == 1).all()
    codes = 2 * case.step.draws.uniform("codes", 3, 4) - 1
    torch.testing.assert_close(inputs[:, 3:], case.networks[GENERATOR](codes).sigmoid())


def test_a_perfect_guess_is_worth_the_codes_entropy() -> None:
    codes = 2 * draws_at().uniform("codes", 50, 3) - 1
    certain = Gaussian(codes, torch.full_like(codes, -math.log(2 * math.pi)))  # its density is 1 at the mean
    torch.testing.assert_close(information_bound(certain, codes), torch.full((2,), 3 * math.log(2)))


def true_information(deviation: float) -> float:
    """I(c; c + deviation noise) for c uniform in [-1, 1]: the entropy of the sum, less that of the noise."""

    def density(x: float) -> float:
        return float(norm.cdf((x + 1) / deviation) - norm.cdf((x - 1) / deviation)) / 2

    reach = 1 + 8 * deviation
    entropy, _ = quad(lambda x: -density(x) * math.log(max(density(x), 1e-300)), -reach, reach, limit=400)
    return entropy - float(norm.entropy(scale=deviation))


@pytest.mark.parametrize("deviation", [0.5, 0.1, 0.02])
def test_the_bound_is_below_the_information_of_a_noisy_channel_and_close(deviation: float) -> None:
    """Q = N(x, deviation^2) is the true posterior but near -1 and 1, where it does not know of the ends."""
    draws = draws_at(seeds=(0,))
    codes = 2 * draws.uniform("codes", 200_000, 1) - 1
    inputs = codes + deviation * draws.normal("channel", 200_000, 1)
    posterior = Gaussian(inputs, torch.full_like(inputs, 2 * math.log(deviation)))
    bound, truth = float(information_bound(posterior, codes)), true_information(deviation)
    assert bound == pytest.approx(math.log(2) - float(norm.entropy(scale=deviation)), abs=0.005)
    assert truth - deviation < bound < truth
    blurred = Gaussian(inputs, posterior.log_var + 1)
    assert float(information_bound(blurred, codes)) < bound


@settings(deadline=None, max_examples=20)
@given(st.floats(0, 2), st.integers(0, 1000))
def test_pairs_share_one_code_and_differ_in_all_others_by_the_gap(gap: float, step: int) -> None:
    shared, first, second = draw_pairs(draws_at(step), 40, 5, torch.tensor(gap))
    assert shared.shape == (2, 40, 1)
    assert max(float(first.abs().max()), float(second.abs().max())) <= 1 + 1e-6
    same = torch.zeros(2, 40, 5).scatter(-1, shared, 1) == 1
    assert torch.equal(first[same], second[same])
    assert bool(((first - second).abs()[~same] >= gap - 1e-6).all())


@pytest.mark.parametrize("gap", [0.0, 0.7, 1.9])
def test_codes_of_pairs_are_uniform_among_those_that_are_allowed(gap: float) -> None:
    """A difference d >= gap has a density in proportion to 2 - d: its mean is gap + (2 - gap) / 3."""
    shared, first, second = draw_pairs(draws_at(seeds=(0,)), 40_000, 4, torch.tensor(gap))
    assert torch.bincount(shared.flatten(), minlength=4).tolist() == pytest.approx([10_000] * 4, rel=0.05)
    same = torch.zeros(1, 40_000, 4).scatter(-1, shared, 1) == 1
    distance = (first - second).abs()[~same]
    assert float(distance.mean()) == pytest.approx(gap + (2 - gap) / 3, rel=0.01)
    assert float(distance.var()) == pytest.approx((2 - gap) ** 2 / 18, rel=0.03)
    assert float(first[same].var()) == pytest.approx(1 / 3, rel=0.02)
    assert abs(float(first.mean())) < 0.01
    assert float((first > second)[~same].float().mean()) == pytest.approx(0.5, abs=0.01)


def test_gaps_may_differ_between_runs() -> None:
    _, first, second = draw_pairs(draws_at(), 100, 4, torch.tensor([0.0, 1.5]))
    apart = (first - second).abs()
    assert float(apart[0].min()) < 0.1
    assert float(apart[1][apart[1] > 0].min()) >= 1.5 - 1e-6


def test_a_judge_of_plain_codes_predicts_the_shared_one() -> None:
    method = InfoGANCR(alpha=2.0, alpha_from=0.0, gap_end=0.5)
    losses = known(method, sharpness=1e4).losses()
    without = known(InfoGAN()).losses()
    assert losses.terms["contrastive_accuracy"].tolist() == [1.0, 1.0]
    assert losses.terms["contrastive"].tolist() == pytest.approx([0.0, 0.0], abs=1e-6)
    torch.testing.assert_close(losses.players[GENERATOR], without.players[GENERATOR])


def test_a_judge_without_information_guesses_at_random() -> None:
    losses = known(InfoGANCR(alpha=2.0, alpha_from=0.0), sharpness=0.0).losses()
    without = known(InfoGAN()).losses()
    assert losses.players[PAIR_JUDGE].tolist() == pytest.approx([math.log(4)] * 2)
    expected = without.players[GENERATOR] + 2 * math.log(4)
    torch.testing.assert_close(losses.players[GENERATOR], expected)
    torch.testing.assert_close(losses.players[DISCRIMINATOR], without.players[DISCRIMINATOR])


def test_a_judge_learns_to_tell_the_shared_code_of_a_plain_generator() -> None:
    """Guessing is right in one case of four."""
    step = torch.tensor(0)
    draws = PopulationDraws([Stream.of(3), Stream.of(4)], step)
    plain, judge = PlainGenerator(4), PairJudge([Stream.of(3), Stream.of(4)], (1, 32, 32), 4)
    adam = torch.optim.Adam(judge.parameters(), lr=2e-3, betas=(0.5, 0.999))
    accuracy = torch.zeros(2)
    for _ in range(70):
        shared, first, second = draw_pairs(draws, 24, 4, torch.tensor(1.0))
        logits = judge(plain(first).sigmoid(), plain(second).sigmoid()).log_softmax(-1)
        loss = -logits.gather(-1, shared).mean((-2, -1)).sum()
        adam.zero_grad()
        loss.backward()
        adam.step()
        accuracy = (logits.argmax(-1, keepdim=True) == shared).float().mean((-2, -1))
        step += 1
    assert bool((accuracy > 0.8).all()), accuracy


def test_without_weight_it_is_info_gan() -> None:
    one, other = Played.of(InfoGAN()), Played.of(InfoGANCR(alpha=0.0, alpha_from=0.0))
    for player in (GENERATOR, DISCRIMINATOR):
        assert torch.equal(one.losses().players[player], other.losses().players[player])
        torch.testing.assert_close(one.gradients(player), other.gradients(player))


def test_the_regulariser_is_inactive_before_its_first_step() -> None:
    method = InfoGANCR(alpha=3.0, alpha_from=0.25)
    at = (74_999, 75_000)  # of 300,000
    before, after = (Played.of(method, step=step) for step in at)
    plain = [Played.of(InfoGAN(), step=step).losses().players[GENERATOR] for step in at]
    torch.testing.assert_close(before.losses().players[GENERATOR], plain[0])
    contrast = after.losses().terms["contrastive"]
    torch.testing.assert_close(after.losses().players[GENERATOR], plain[1] + 3 * contrast)


def test_before_the_judge_starts_it_is_info_gan_and_logs_random_guesses() -> None:
    """It makes no difference whether the network of H exists because another run has started it."""
    method = InfoGANCR(alpha=3.0, alpha_from=0.25)
    with_judge = Played.of(method)
    networks = {name: net for name, net in with_judge.networks.items() if name != PAIR_JUDGE}
    losses, plain = (
        replace(with_judge, step=replace(with_judge.step, networks=networks)).losses(),
        Played.of(InfoGAN()).losses(),
    )
    assert losses.players.keys() == plain.players.keys()
    for player in losses.players:
        assert torch.equal(losses.players[player], plain.players[player])
    assert losses.terms["contrastive"].tolist() == pytest.approx([math.log(4)] * 2)
    assert losses.terms["contrastive_accuracy"].tolist() == [0.25, 0.25]
    torch.testing.assert_close(dict(losses.terms), dict(with_judge.losses().terms))


@pytest.mark.parametrize("method", [InfoGAN(), InfoGANCR(alpha_from=0.0)], ids=["info_gan", "info_gan_cr"])
def test_the_generator_has_the_same_objective_in_its_own_turn(method: Method) -> None:
    """D gets no images of the data in this turn; its output for generated images does not depend on them."""
    case = Played.of(method)
    own = replace(case, step=replace(case.step, turn=(GENERATOR,)))
    losses = own.losses()
    assert DISCRIMINATOR not in losses.players
    torch.testing.assert_close(losses.players[GENERATOR], case.losses().players[GENERATOR])
    torch.testing.assert_close(own.gradients(GENERATOR), case.gradients(GENERATOR), rtol=1e-3, atol=1e-5)


def test_discriminator_and_judge_move_first_and_the_generator_twice() -> None:
    assert InfoGAN().turns == ((DISCRIMINATOR,), (GENERATOR,), (GENERATOR,))
    assert InfoGANCR().turns == ((DISCRIMINATOR, PAIR_JUDGE), (GENERATOR,), (GENERATOR,))
    judge = InfoGANCR(alpha_from=0.3).players[-1]
    assert (judge.name, judge.starts) == (PAIR_JUDGE, 0.3)


def test_the_gap_narrows_at_its_step_in_each_run_by_its_own_settings() -> None:
    methods = [
        InfoGANCR(gap_start=1.9, gap_end=0.1, gap_until=0.5),
        InfoGANCR(gap_start=1.5, gap_end=0.0, gap_until=1.0),
    ]
    at = (149_999, 150_000, 299_999, 300_000)
    gaps = [Played.of(*methods, step=step).losses().terms["gap"].tolist() for step in at]
    expected = [[1.9, 1.5], [0.1, 1.5], [0.1, 1.5], [0.1, 0.0]]
    np.testing.assert_allclose(gaps, expected, rtol=1e-6)


def test_pairs_have_the_same_noise() -> None:
    """A generator that shows noise alone makes two images that are one."""

    class Noise(nn.Module):
        def forward(self, z: Tensor) -> Tensor:
            return z[..., 4:, None, None].sum(-3, keepdim=True).expand(-1, -1, 1, 32, 32)

    class Same(nn.Module):
        def forward(self, first: Tensor, second: Tensor) -> Tensor:
            assert torch.equal(first, second)
            assert first.std() > 0.1
            return torch.zeros(2, 3, 4)

    case = known(InfoGANCR(alpha_from=0.0))
    networks = {**case.networks, GENERATOR: Noise(), PAIR_JUDGE: Same()}
    losses = case.method.losses(replace(case.step, networks=networks))
    assert losses.terms["contrastive"].tolist() == pytest.approx([math.log(4)] * 2)


@torch.no_grad()
@pytest.mark.parametrize("noise", [0, 5])
def test_codes_are_decoded_without_noise_and_within_their_range(noise: int) -> None:
    case = Played.of(InfoGAN(noise=noise))
    codes = torch.full((2, 3, 4), math.sqrt(3))
    generator: Any = case.networks[GENERATOR]
    expected = generator.independent_logits(torch.cat([torch.ones(2, 3, 4), torch.zeros(2, 3, noise)], -1))
    torch.testing.assert_close(case.method.decode(case.networks, codes), expected)
    torch.testing.assert_close(case.method.decode(case.networks, 5 * codes), expected)
    assert not torch.allclose(case.method.decode(case.networks, 0.5 * codes), expected)


@torch.no_grad()
def test_the_encoder_is_q_in_units_of_the_codes_deviation() -> None:
    for method, log_var in ((InfoGAN(), 0.0), (InfoGANCR(variance="learned"), None)):
        case = Played.of(method)
        discriminator: Any = case.networks[DISCRIMINATOR]
        guess = discriminator(case.batch.images)[1].numbers
        posterior = case.method.encode(case.networks, case.batch.images)
        torch.testing.assert_close(posterior.mean, math.sqrt(3) * guess.mean)
        torch.testing.assert_close(posterior.log_var, guess.log_var + math.log(3))
        assert log_var is None or bool((guess.log_var == log_var).all())
    assert not InfoGAN().stochastic
    assert InfoGAN(variance="learned").stochastic


def test_each_player_has_the_published_optimiser() -> None:
    rates = {GENERATOR: 1e-3, DISCRIMINATOR: 2e-3, PAIR_JUDGE: 2e-3}
    for player in InfoGANCR().players:
        rate = rates[player.name]
        assert player.optimiser == Adam(learning_rate=rate, beta1=0.5, beta2=0.999, epsilon=1e-8)


def test_a_gap_wider_than_a_code_is_refused() -> None:
    for name in ("gap_start", "gap_end"):
        with pytest.raises(
            UnweaveError, match=f"{name} of info_gan_cr must be at most 2, the range of a code; g"
        ):
            replace(InfoGANCR(), **{name: 2.1})  # type: ignore[arg-type]


def test_a_number_of_steps_in_place_of_a_share_is_refused() -> None:
    for name in ("alpha_from", "gap_until"):
        with pytest.raises(
            UnweaveError, match=f"{name} of info_gan_cr must be at most 1, a share of the steps; got 5"
        ):
            replace(InfoGANCR(), **{name: 5e4})  # type: ignore[arg-type]


@pytest.mark.parametrize("method", [InfoGAN(), InfoGANCR()], ids=["info_gan", "info_gan_cr"])
def test_another_architecture_is_refused(method: Method) -> None:
    plan = Blueprint([Stream.of(0)], (1, 32, 32), 3, "mlp")
    for player in method.players:
        with pytest.raises(UnweaveError, match='InfoGAN has networks of its own and no architecture "mlp"'):
            player.build(plan)
