"""Properties of all methods with custom networks."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from methods.host_tensors import sent_by
from methods.played import Played
from methods.variants import OWN, every_variant
from nn import small_vgg
from training.tiny import TINY
from unweave.methods.method import Method


@pytest.fixture(autouse=True)
def vgg(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What LORD may compare images by."""
    small_vgg.install(tmp_path, monkeypatch)


@every_variant(OWN)
def test_there_is_one_loss_and_term_a_run_and_a_loss_for_each_player(method: Method) -> None:
    losses = Played.of(method, seeds=(0, 1, 2)).losses()
    names = {player.name for player in method.players} | {phase.name for phase in method.phases}
    assert set(losses.players) == names
    for value in [*losses.players.values(), *losses.terms.values()]:
        assert value.shape == (3,)
        assert value.dtype == torch.float32
        assert value.isfinite().all()


@every_variant(OWN)
def test_the_losses_of_a_population_are_the_stack_of_single_ones(method: Method) -> None:
    together = Played.of(method, seeds=(3, 7, 11)).losses()
    alone = [Played.of(method, seeds=(seed,)).losses() for seed in (3, 7, 11)]
    for name, actual in together.players.items():
        torch.testing.assert_close(
            actual, torch.cat([one.players[name] for one in alone]), rtol=1e-4, atol=1e-5
        )
    for name, actual in together.terms.items():
        torch.testing.assert_close(
            actual, torch.cat([one.terms[name] for one in alone]), rtol=1e-4, atol=1e-5
        )


@every_variant(OWN)
def test_players_do_not_move_each_other(method: Method) -> None:
    """A player's gradient does not change if the parameters of all others need no gradient."""
    case = Played.of(method)
    together = {player.name: case.gradients(player.name) for player in method.players}
    for name, actual in together.items():
        for other, network in case.networks.items():
            network.requires_grad_(other == name)
        torch.testing.assert_close(case.gradients(name), actual, rtol=0, atol=0)
    assert all(tensor.grad is None for name in together for tensor in case.parameters(name))


@every_variant(OWN)
def test_nothing_is_made_on_another_device(method: Method) -> None:
    case = Played.of(method, device="meta")
    losses = case.losses()
    for value in [*losses.players.values(), *losses.terms.values()]:
        assert value.device.type == "meta"
    assert sent_by(case.losses) == [], "a CUDA graph cannot record copies from the host"


def test_tensors_made_of_python_numbers_are_found() -> None:
    numbers, index = torch.zeros(3, 4, device="meta"), torch.tensor([0, 2], device="meta")
    assert sent_by(lambda: numbers[[0, 2]] + 1) == ["aten.index.Tensor"]
    assert sent_by(lambda: numbers * torch.tensor([1.0, 2, 3, 4], device="meta")) == ["aten.mul.Tensor"]
    assert sent_by(lambda: numbers + torch.ones(4).to("meta")) == ["aten._to_copy.default"]
    assert sent_by(lambda: 2 * numbers[index].sum(0)) == []


@every_variant(OWN)
@torch.no_grad()
def test_codes_have_as_many_dimensions_as_asked_for_and_make_images(method: Method) -> None:
    case = Played.of(method, seeds=(0, 1, 2), images=5, latents=4)
    posterior = case.method.encode(case.networks, case.batch.images[:, :5])
    assert posterior.mean.shape == posterior.log_var.shape == (3, 5, 4)
    logits = case.method.decode(case.networks, posterior.mean)
    assert logits.shape == (3, 5, *TINY.shape)
    assert logits.isfinite().all()


@every_variant(OWN)
@torch.no_grad()
def test_a_code_and_an_image_do_not_depend_on_the_batch(method: Method) -> None:
    case = Played.of(method, images=5)
    images = case.batch.images[:, :5]
    codes = case.method.encode(case.networks, images).mean
    alone = case.method.encode(case.networks, images[:, 2:3]).mean
    torch.testing.assert_close(alone, codes[:, 2:3], rtol=1e-4, atol=1e-5)
    logits = case.method.decode(case.networks, codes)
    torch.testing.assert_close(
        case.method.decode(case.networks, codes[:, 2:3]), logits[:, 2:3], rtol=1e-4, atol=1e-4
    )
