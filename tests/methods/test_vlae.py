"""The variational ladder autoencoder: its objective, its depths, and what training makes of them."""

import math

import pytest
import torch
from torch import Tensor
from torch.distributions import Normal, kl_divergence

from methods.played import Played
from training.tiny import TINY
from unweave.errors import UnweaveError
from unweave.methods import VLAE
from unweave.methods.method import AUTOENCODER, Blueprint
from unweave.nn.distributions.likelihood import reconstruction_loss
from unweave.nn.networks.variational_ladder import VariationalLadder
from unweave.runs.spec import RunSpec
from unweave.streams import Stream
from unweave.training.batches import HostBatches
from unweave.training.population import Population
from unweave.training.update import Update

TOP, MIDDLE, BOTTOM = slice(0, 1), slice(1, 2), slice(2, 4)  # of 4 latents


def ladder_of(case: Played) -> VariationalLadder:
    network = case.networks[AUTOENCODER]
    assert isinstance(network, VariationalLadder)
    return network


@torch.no_grad()
def test_the_objective_is_the_negative_elbo_of_a_flat_prior() -> None:
    """Densities and divergences are those of torch.distributions."""
    case = Played.of(VLAE(beta=3.0), VLAE(beta=0.5), step=1999)
    ladder, images = ladder_of(case), case.batch.images
    posterior = ladder.encode(images)
    q = Normal(posterior.mean, torch.exp(posterior.log_var / 2))
    z = q.loc + q.scale * case.step.draws.normal("noise", 6, 4)
    rec = reconstruction_loss(ladder.decode(z), images / 255, "bernoulli")
    divergence = kl_divergence(q, Normal(0.0, 1.0)).mean(-2)
    kl = divergence.sum(-1)
    losses = case.losses()
    torch.testing.assert_close(losses.terms["reconstruction"], rec)
    torch.testing.assert_close(losses.terms["kl"], kl)
    torch.testing.assert_close(losses.terms["elbo"], -(rec + kl))
    for name, part in (("kl_top", TOP), ("kl_middle", MIDDLE), ("kl_bottom", BOTTOM)):
        torch.testing.assert_close(losses.terms[name], divergence[:, part].sum(-1))
    # The authors' program weighs the divergence by 1 - exp(-t / 2000) at update t.
    weight = torch.tensor([3.0, 0.5]) * (1 - math.exp(-1))
    torch.testing.assert_close(losses.players[AUTOENCODER], rec + weight * kl)


def changed_posterior(ladder: VariationalLadder, images: Tensor, part: torch.nn.Module) -> list[bool]:
    """Which of the means change if the weights of a part of the encoder do."""
    before = ladder.encode(images).mean
    for parameter in part.parameters():
        parameter.mul_(1.5)
    after = ladder.encode(images).mean
    for parameter in part.parameters():
        parameter.div_(1.5)
    return [not torch.allclose(a, b) for a, b in zip(before.unbind(-1), after.unbind(-1), strict=True)]


@torch.no_grad()
def test_a_depth_is_inferred_from_the_layers_up_to_it() -> None:
    case = Played.of(VLAE(), latents=4)
    ladder, images = ladder_of(case), case.batch.images
    assert ladder.sizes == [1, 1, 2]
    assert changed_posterior(ladder, images, ladder.encoder.top) == [True, False, False, False]
    assert changed_posterior(ladder, images, ladder.encoder.upper) == [True, True, False, False]
    assert changed_posterior(ladder, images, ladder.encoder.lower) == [True] * 4


@torch.no_grad()
def test_a_depth_enters_the_decoder_above_the_layers_that_it_passes() -> None:
    """The features from above are the first half of the channels of the last stage."""
    ladder = ladder_of(Played.of(VLAE(), latents=4))
    z = torch.linspace(-1, 1, 2 * 3 * 4).view(2, 3, 4)
    before = ladder.decoder.features(z).chunk(2, dim=2)
    for depth, moves in ((TOP, (True, False)), (MIDDLE, (True, False)), (BOTTOM, (False, True))):
        changed = z.clone()
        changed[..., depth] += 1
        after = ladder.decoder.features(changed).chunk(2, dim=2)
        assert tuple(not torch.equal(a, b) for a, b in zip(before, after, strict=True)) == moves
        assert not torch.equal(ladder.decode(changed), ladder.decode(z))


def test_the_shallow_latents_learn_first() -> None:
    """Few layers lie between the bottom and the image, so its latents hold what is learned first."""
    device = torch.device("cpu")
    spec = RunSpec(VLAE(), TINY.name, seed=0, latents=3, batch=8, steps=80, learning_rate=1e-3)
    population = Population([spec], TINY.shape, device)
    update = Update(population, HostBatches(TINY, device), len(TINY))
    logged = []
    for _ in range(4):
        update.run(20)
        logged += update.take_terms()
    assert float(logged[-1]["reconstruction"]) < 0.7 * float(logged[0]["reconstruction"])
    assert float(logged[-1]["kl_bottom"]) > 10 * float(logged[-1]["kl_top"] + logged[-1]["kl_middle"])


def test_nothing_waits_for_the_device() -> None:
    losses = Played.of(VLAE(), VLAE(beta=2.0), device="meta").losses()
    for value in [*losses.players.values(), *losses.terms.values()]:
        assert value.shape == (2,)
        assert value.device.type == "meta"


def test_what_it_cannot_build_is_refused() -> None:
    def build(latents: int = 3, size: int = 32, architecture: str = "released") -> None:
        VLAE().networks(Blueprint([Stream.of(0)], (1, size, size), latents, architecture))

    with pytest.raises(UnweaveError, match='vlae has networks of its own and no architecture "mlp"'):
        build(architecture="mlp")
    with pytest.raises(UnweaveError, match="a ladder of 3 layers needs at least 3 latents; got 2"):
        build(latents=2)
    with pytest.raises(UnweaveError, match=r"a variational ladder autoencoder must have .* got 28 x 28"):
        build(size=28)
