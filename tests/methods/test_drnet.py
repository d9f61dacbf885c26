"""DrNet: which frames are combined, the objectives of known codes and logits, and which loss trains what."""

import math
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from methods.played import own_step
from training.tiny import TINY
from unweave.errors import UnweaveError
from unweave.methods import DrNet
from unweave.methods.drnet import SCENES, _other_frames
from unweave.methods.method import AUTOENCODER, Batch, Blueprint
from unweave.methods.sampling import Sequences
from unweave.nn.distributions.gaussian import CERTAIN_LOG_VAR, Gaussian
from unweave.nn.distributions.likelihood import reconstruction_loss
from unweave.nn.draws import PopulationDraws
from unweave.nn.networks.two_parts import TwoPartAutoencoder
from unweave.streams import Stream
from unweave.training.batches import HostBatches

SHAPE = (1, 4, 4)


def draws(*seeds: int) -> PopulationDraws:
    return PopulationDraws([Stream.of(seed) for seed in seeds], torch.zeros((), dtype=torch.int64))


@given(st.integers(1, 5), st.integers(2, 6), st.integers(0, 99))
@settings(max_examples=30, deadline=None)
def test_the_other_frame_is_another_of_the_same_sequence(sequences: int, frames: int, seed: int) -> None:
    rows = _other_frames(sequences, frames, draws(seed, seed + 1))
    own = torch.arange(sequences * frames).expand(2, -1)
    assert (rows // frames == own // frames).all()
    assert (rows != own).all()
    assert all(sorted(run) == list(range(sequences * frames)) for run in rows.tolist())


def test_all_other_frames_are_met() -> None:
    rows = _other_frames(200, 4, draws(0))[0].view(200, 4)
    shifts = (rows[:, 0] % 4).bincount(minlength=4)
    assert shifts[0] == 0
    assert (shifts[1:] > 40).all()


class Decoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inputs: list[Tensor] = []

    def reconstruction(self, codes: Tensor, images: Tensor, likelihood: Any) -> Tensor:
        self.inputs.append(codes)
        logits = codes.sum(-1)[..., None, None, None].expand(*codes.shape[:-1], *SHAPE)
        return reconstruction_loss(logits, images, likelihood)


class Model(TwoPartAutoencoder):
    first: Any
    second: Any
    decoder: Any

    def __init__(self, content: Tensor, pose: Tensor) -> None:
        nn.Module.__init__(self)
        self.content, self.pose, self.decoder = content, pose, Decoder()

    def encode_parts(self, _images: Tensor) -> tuple[Gaussian, Gaussian]:
        return Gaussian(self.content, self.content), Gaussian(self.pose, self.pose)


class Scenes(nn.Module):
    """Known logits of each pair of poses, and a record of them."""

    def __init__(self, same: list[float], different: list[float]) -> None:
        super().__init__()
        ratios = torch.tensor([same + different])
        self.logits = torch.stack([ratios + 0.5, torch.full_like(ratios, 0.5)], dim=-1)

    def forward(self, pairs: Tensor) -> Tensor:
        self.inputs = pairs
        return self.logits


def test_objectives_of_known_codes_and_logits() -> None:
    """Two sequences of two frames; C = 4/5, 1/2 for poses of one sequence, 1/4, 1/2 for poses of two."""
    content = torch.tensor([[[1.0, 0.0], [2.0, 0.5], [0.0, 0.0], [-1.0, 3.0]]])
    pose = torch.tensor([[[0.1], [0.2], [0.3], [0.4]]])
    model, images = Model(content, pose), torch.linspace(0, 1, 64).view(1, 4, *SHAPE)
    scenes = Scenes([math.log(4), 0.0] * 2, [-math.log(3), 0.0] * 2)
    at_step = own_step(0, 60, draws(0), "gaussian")
    networks = {AUTOENCODER: model, SCENES: scenes}
    losses = DrNet(frames=2, alpha=5, beta=7).losses(at_step(Batch(images), networks))

    codes = [
        [2.0, 0.5, 0.1],
        [1.0, 0.0, 0.2],
        [-1.0, 3.0, 0.3],
        [0.0, 0.0, 0.4],
    ]  # content of the other frame
    assert model.decoder.inputs[0][0].tolist() == pytest.approx(np.array(codes))
    same, different = [[0.1, 0.2], [0.2, 0.1], [0.3, 0.4], [0.4, 0.3]], [[0.1, 0.4], [0.2, 0.3]]
    assert scenes.inputs[0, :4].tolist() == pytest.approx(np.array(same))
    assert scenes.inputs[0, 4:6].tolist() == pytest.approx(np.array(different))

    decoded = 1 / (1 + np.exp(-np.array(codes).sum(1)))
    rec = ((decoded[:, None] - images.view(4, 16).numpy()) ** 2).sum() / 4
    similarity = (2 * (1 + 0.25) + 2 * (1 + 9)) / 8
    undecided = -(0.5 * math.log(4 / 5 * 1 / 5) + 0.5 * math.log(1 / 2 * 1 / 2)) / 2
    log_probability = (math.log(4 / 5) + math.log(1 / 2)) / 2 + (math.log(3 / 4) + math.log(1 / 2)) / 2
    terms = {
        "reconstruction": rec,
        "similarity": similarity,
        "adversarial": undecided,
        "discriminator_accuracy": (0.5 + 0.5) / 2,
    }
    assert {name: value.item() for name, value in losses.terms.items()} == pytest.approx(terms, rel=1e-5)
    expected = rec / 16 + 5 * similarity + 7 * undecided
    assert losses.players[AUTOENCODER].item() == pytest.approx(expected, rel=1e-5)
    assert losses.players[SCENES].item() == pytest.approx(-log_probability, rel=1e-5)


def test_the_pose_loss_is_smallest_for_an_undecided_discriminator() -> None:
    pose = torch.zeros(1, 4, 1)
    for logit in (-3.0, 0.0, 3.0):
        scenes = Scenes([logit] * 4, [0.0] * 4)
        networks = {AUTOENCODER: Model(pose, pose), SCENES: scenes}
        at_step = own_step(0, 60, draws(0), "bernoulli")
        losses = DrNet(frames=2).losses(at_step(Batch(torch.zeros(1, 4, *SHAPE)), networks))
        value = losses.terms["adversarial"].item()
        assert value == pytest.approx(math.log(2)) if logit == 0 else value > 1.5


def test_which_loss_trains_which_network() -> None:
    method = DrNet(frames=2)
    plan = Blueprint([Stream.of(0), Stream.of(1)], TINY.shape, 4)
    networks = method.networks(plan)
    model, scenes = networks[AUTOENCODER], networks[SCENES]
    assert isinstance(model, TwoPartAutoencoder)
    batch = HostBatches(TINY, torch.device("cpu")).draw(draws(0, 1), 0, "batch", 3, method.sampling)
    at_step = own_step(0, 60, draws(0, 1), "bernoulli")
    losses = method.losses(at_step(batch, networks))

    def moved(loss: Tensor) -> list[bool]:
        """Content encoder, pose encoder, decoder, scene discriminator."""
        players = (model.first, model.second, model.decoder, scenes)
        gradients = [
            torch.autograd.grad(loss.sum(), list(p.parameters()), allow_unused=True, retain_graph=True)
            for p in players
        ]
        return [any(g is not None and bool(g.abs().sum() > 0) for g in of_player) for of_player in gradients]

    assert moved(losses.terms["reconstruction"]) == [True, True, True, False]
    assert moved(losses.terms["similarity"]) == [True, False, False, False]
    assert moved(losses.terms["adversarial"]) == [False, True, False, True]
    before = torch.autograd.grad(losses.players[SCENES].sum(), list(scenes.parameters()))
    model.requires_grad_(False)
    alone = method.losses(at_step(batch, networks)).players[SCENES]
    torch.testing.assert_close(before, torch.autograd.grad(alone.sum(), list(scenes.parameters())))


def test_codes_are_certain_and_content_comes_first() -> None:
    method = DrNet(content=3)
    plan = Blueprint([Stream.of(0)], TINY.shape, 4)
    networks = method.networks(plan)
    images = torch.from_numpy(TINY.observe(TINY.sample_factors(5, 0)))[None]
    posterior, model = method.encode(networks, images), networks[AUTOENCODER]
    assert isinstance(model, TwoPartAutoencoder)
    torch.testing.assert_close(posterior.mean[..., :3], model.first(images).mean)
    torch.testing.assert_close(posterior.log_var, torch.full((1, 5, 4), CERTAIN_LOG_VAR))
    assert method.decode(networks, posterior.mean).shape == (1, 5, *TINY.shape)
    assert not method.stochastic
    assert (method.content_dimensions(4), DrNet().content_dimensions(9)) == (3, 4)


def test_what_stays_and_what_moves() -> None:
    assert DrNet().sampling == Sequences(4, 0, 8)
    assert DrNet(content_factors="size, x", frames=3, speed=1).sampling == Sequences(3, ("size", "x"), 1)
    source = HostBatches(TINY, torch.device("cpu"))
    batch = source.draw(draws(0), 0, "batch", 30, DrNet(content_factors=1).sampling)
    sizes = (batch.images[0] > 0).flatten(1).sum(-1).view(30, 4)  # white pixels: the square's size
    assert (sizes == sizes[:, :1]).all()
    assert len(sizes[:, 0].unique()) == 3
    moved = (batch.images[0].view(30, 4, -1).float().diff(dim=1).abs().sum(-1) > 0).any(1)
    assert moved.all()


@pytest.mark.parametrize(
    ("setting", "text"),
    [
        ({"frames": 1}, "frames of drnet must be at least 2; got 1"),
        ({"speed": 0}, "speed of drnet must be at least 1; got 0"),
        ({"content_factors": -1}, "content_factors of drnet must be a whole number >= 0 or a text; got -1"),
    ],
)
def test_bad_settings_are_refused(setting: dict[str, int], text: str) -> None:
    with pytest.raises(UnweaveError, match=text):
        DrNet(**setting)


def test_too_much_content_is_refused() -> None:
    source = HostBatches(TINY, torch.device("cpu"))
    with pytest.raises(UnweaveError, match="tiny has 3 factors, of which a sequence cannot hold 4"):
        source.draw(draws(0), 0, "batch", 2, DrNet(content_factors=4).sampling)
    with pytest.raises(UnweaveError, match="nothing of tiny can move"):
        source.draw(draws(0), 0, "batch", 2, DrNet(content_factors=3).sampling)
