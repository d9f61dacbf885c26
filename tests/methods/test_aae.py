"""The adversarial autoencoder: its objectives from known logits, its priors, and what it learns."""

import math
from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from methods.played import Played
from methods.trained import Trained, cheap_adversaries
from training.tiny import TINY
from unweave.errors import UnweaveError
from unweave.methods import AAE
from unweave.methods.aae import DECODER, DISCRIMINATOR, ENCODER, REGULARISER, Posterior
from unweave.methods.method import Adam, Losses
from unweave.methods.sampling import Images, Labels
from unweave.nn.distributions.likelihood import reconstruction_loss
from unweave.nn.networks.vae import Encoder
from unweave.runs.spec import method_with

__all__ = ["cheap_adversaries"]


class Recorder(nn.Module):
    """A discriminator that records its inputs and returns known logits, of codes and of the prior."""

    def __init__(self, codes: Tensor, prior: Tensor) -> None:
        super().__init__()
        self.logits = torch.cat([codes, prior])[None]
        self.inputs: list[Tensor] = []

    def forward(self, z: Tensor) -> Tensor:
        self.inputs.append(z)
        return self.logits


def logits(*first_minus_second: float) -> Tensor:
    first = torch.tensor(first_minus_second, dtype=torch.float32)
    return torch.stack([first + 0.25, torch.full_like(first, 0.25)], dim=-1)


def judged(case: Played, recorder: Recorder, turn: tuple[str, ...] | None = None) -> Losses:
    networks = {**case.networks, DISCRIMINATOR: recorder}
    return case.method.losses(replace(case.step, networks=networks, turn=turn))


def three_images(method: AAE = AAE()) -> Played:  # noqa: B008
    return Played.of(method, seeds=(0,), images=3)


def codes_of(case: Played) -> Tensor:
    encoder = case.networks[ENCODER]
    assert isinstance(encoder, Encoder)
    return encoder.encode(case.batch.images).mean


def test_the_discriminator_sees_codes_and_the_prior() -> None:
    case, recorder = three_images(), Recorder(logits(0, 0, 0), logits(0, 0, 0))
    judged(case, recorder)
    (inputs,) = recorder.inputs
    prior = case.step.draws.normal("prior", 3, 4)
    torch.testing.assert_close(inputs, torch.cat([codes_of(case), prior], dim=-2))


def test_losses_of_known_logits() -> None:
    """D = 9/10, 1/2, 1/4 for codes and 4/5, 1/2, 1/2 for draws from the prior; KL is no part of it."""
    three, four = math.log(3), math.log(4)
    case, recorder = three_images(), Recorder(logits(2 * three, 0.0, -three), logits(four, 0.0, 0.0))
    losses = judged(case, recorder)
    fooling = -(math.log(1 / 10) + math.log(1 / 2) + math.log(3 / 4)) / 3
    assert losses.players[REGULARISER].item() == pytest.approx(fooling)
    assert losses.terms["adversarial"].item() == pytest.approx(fooling)
    log_codes = (math.log(9 / 10) + math.log(1 / 2) + math.log(1 / 4)) / 3
    log_prior = (math.log(1 / 5) + math.log(1 / 2) + math.log(1 / 2)) / 3
    assert losses.players[DISCRIMINATOR].item() == pytest.approx(-(log_codes + log_prior) / 2)
    assert losses.terms["discriminator_accuracy"].item() == pytest.approx((1 / 3 + 0) / 2)
    made = case.networks[DECODER](codes_of(case))
    expected = reconstruction_loss(made, case.batch.images / 255, "bernoulli").item()
    for player in (ENCODER, DECODER):
        assert losses.players[player].item() == pytest.approx(expected, rel=1e-5)
    assert set(losses.terms) == {"reconstruction", "adversarial", "discriminator_accuracy"}


def test_the_encoder_moves_against_the_updated_discriminator_without_a_reconstruction() -> None:
    method = AAE()
    assert method.turns == ((ENCODER, DECODER, DISCRIMINATOR), (REGULARISER,))
    losses = judged(three_images(), Recorder(logits(0, 0, 0), logits(0, 0, 0)), method.turns[1])
    assert set(losses.players) == {REGULARISER}
    assert losses.players[REGULARISER].item() == pytest.approx(math.log(2))


def test_the_encoder_still_learns_where_the_discriminator_is_sure() -> None:
    """-log(1 - D) has the gradient 1; log D, the saturating form, would have 0."""
    sure = logits(100, 100, 100).requires_grad_()
    losses = judged(three_images(), Recorder(sure, logits(0, 0, 0)))
    (gradient,) = torch.autograd.grad(losses.players[REGULARISER], sure)
    torch.testing.assert_close(gradient, torch.tensor([[1 / 3, -1 / 3]] * 3))


@pytest.mark.parametrize(("posterior", "stochastic"), [("deterministic", False), ("gaussian", True)])
def test_only_the_gaussian_posterior_is_stochastic(posterior: Posterior, stochastic: bool) -> None:
    case, recorder = three_images(AAE(posterior=posterior)), Recorder(logits(0, 0, 0), logits(0, 0, 0))
    assert case.method.stochastic is stochastic
    judged(case, recorder)
    shown = recorder.inputs[0][:, :3]
    assert torch.equal(shown, codes_of(case)) is not stochastic
    if stochastic:
        encoder = case.networks[ENCODER]
        assert isinstance(encoder, Encoder)
        noise = case.step.draws.normal("noise", 3, 4)
        torch.testing.assert_close(shown, encoder(case.batch.images).sample(noise))


def test_the_discriminator_has_two_layers_and_learns_faster_than_the_encoder_against_it() -> None:
    player, (phase,) = AAE().players[2], AAE(adversarial_rate=3.0).phases
    assert player.optimiser == Adam(learning_rate=3e-4, beta1=0.5, beta2=0.9, epsilon=1e-8)
    assert phase.optimiser == Adam(learning_rate=1e-4, beta1=0.5, beta2=0.9, epsilon=1e-8)
    assert (phase.trains, phase.rate) == (ENCODER, 3.0)
    size = 4 * 1000 + 1000 + 1000 * 1000 + 1000 + 1000 * 2 + 2  # two hidden layers, two logits
    assert sum(weights.numel() for weights in three_images().parameters(DISCRIMINATOR)) == size


@torch.no_grad()
def test_with_labels_the_discriminator_also_gets_the_class_or_none() -> None:
    """Images without a label have an additional class; their prior is the whole mixture ([1], figure 3)."""
    method = AAE(prior="mixture", labelled=50, factor="y")
    case = Played.of(method, seeds=(0,), images=200)
    assert isinstance(method.sampling, Labels)
    assert isinstance(AAE().sampling, Images)
    shown: list[Tensor] = []
    case.networks[DISCRIMINATOR].register_forward_pre_hook(lambda _, inputs: shown.extend(inputs))
    case.losses()
    (inputs,) = shown
    assert inputs.shape == (1, 800, 4 + 5 + 1)
    labels = case.step.labelled.labels[0, :, 0]
    expected = torch.cat([torch.full((200,), 5), labels])
    for tags in inputs[0, :, 4:].chunk(2):
        assert torch.equal(tags, F.one_hot(expected, 6).float())
    drawn, of_labels = inputs[0, 400:600, :2], inputs[0, 600:, :2]
    direction = torch.stack([(labels * 2 * math.pi / 5).cos(), (labels * 2 * math.pi / 5).sin()], -1)
    assert ((of_labels * direction).sum(-1) > 0).float().mean() > 0.97  # 1.4 +- 0.5 along its direction
    assert ((drawn * direction).sum(-1) > 0).float().mean() < 0.8


def test_bad_settings_are_refused() -> None:
    with pytest.raises(UnweaveError, match=r"need a prior with parts; got the normal one\. Use prior mix"):
        AAE(labelled=100)
    with pytest.raises(UnweaveError, match=r"prior swiss_roll of aae needs at least 2 latents; got 1\."):
        Played.of(AAE(prior="swiss_roll"), latents=1)
    with pytest.raises(UnweaveError, match=r"factor of aae must name one factor with.*have \[3, 4, 5\]"):
        Played.of(AAE(prior="mixture", labelled=9, factor="all"))
    with pytest.raises(UnweaveError, match="parts of aae must be at least 1; got 0"):
        AAE(parts=0)


def test_specs_of_earlier_versions_still_load() -> None:
    assert method_with("aae", {"adversarial_weight": 10.0, "posterior": "gaussian"}) == AAE(10.0, "gaussian")


@pytest.mark.usefixtures("cheap_adversaries")
def test_codes_follow_the_prior_while_images_are_reconstructed() -> None:
    run = Trained.of(AAE(), steps=250)
    codes = run.codes()
    assert codes.mean(0).abs().max() < 0.8
    assert 0.5 < codes.std(0).min() < codes.std(0).max() < 1.5
    assert run.terms["discriminator_accuracy"] < 0.65
    assert run.terms["reconstruction"] < 150  # one image for all codes costs at least 185
    assert len(codes) == len(TINY)
