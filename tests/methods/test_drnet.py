"""DrNet: which frames are combined, the objectives of known codes and logits, and which loss trains what."""

import math
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.model_selection import cross_val_predict  # type: ignore[import-untyped]
from sklearn.neighbors import KNeighborsClassifier  # type: ignore[import-untyped]
from torch import Tensor, nn

from methods.played import Played, own_step
from training.tiny import TINY
from unweave.errors import UnweaveError
from unweave.methods import DrNet
from unweave.methods.drnet import SCENES, STATISTICS, CodeStatistics, _other_frames
from unweave.methods.method import AUTOENCODER, Batch, Blueprint
from unweave.methods.sampling import Sequences
from unweave.nn.distributions.gaussian import CERTAIN_LOG_VAR, Gaussian
from unweave.nn.distributions.likelihood import reconstruction_loss
from unweave.nn.draws import PopulationDraws
from unweave.nn.networks.skip import SkipAutoencoder, map_shapes
from unweave.nn.networks.two_parts import TwoPartAutoencoder
from unweave.nn.networks.vae import Discriminator
from unweave.runs.spec import RunSpec
from unweave.streams import Stream
from unweave.training.batches import HostBatches
from unweave.training.factors import host_factors
from unweave.training.population import Population
from unweave.training.update import Update

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


def networks_of(model: Model, scenes: nn.Module) -> dict[str, nn.Module]:
    latents = model.content.shape[-1] + model.pose.shape[-1]
    statistics = CodeStatistics(Blueprint([Stream.of(0)], SHAPE, latents))
    return {AUTOENCODER: model, SCENES: scenes, STATISTICS: statistics}


def normalised(outputs: Tensor) -> Tensor:
    """Batch normalisation with a scale of 1; tanh of it is the last layer of the authors' encoders."""
    return nn.BatchNorm1d(outputs.shape[-1], eps=1e-20, affine=False)(outputs[0])  # type: ignore[no-any-return]


def test_objectives_of_known_codes_and_logits() -> None:
    """Two sequences of two frames; C = 4/5, 1/2 for poses of one sequence, 1/4, 1/2 for poses of two."""
    content = torch.tensor([[[1.0, 0.0], [2.0, 0.5], [0.0, 0.0], [-1.0, 3.0]]])
    pose = torch.tensor([[[0.1], [0.2], [0.3], [0.4]]])
    model, images = Model(content, pose), torch.linspace(0, 1, 64).view(1, 4, *SHAPE)
    scenes = Scenes([math.log(4), 0.0] * 2, [-math.log(3), 0.0] * 2)
    at_step = own_step(0, 60, draws(0), "gaussian")
    networks = networks_of(model, scenes)
    losses = DrNet(frames=2, alpha=5, beta=7, content=2).losses(at_step(Batch(images), networks))

    c, p = normalised(content).numpy(), np.tanh(normalised(pose).numpy())
    codes = np.concatenate([np.tanh(c[[1, 0, 3, 2]]), p], axis=1)  # content of the other frame
    assert model.decoder.inputs[0][0].tolist() == pytest.approx(codes, rel=1e-4)
    same, different = p[[0, 1, 1, 0, 2, 3, 3, 2]].reshape(4, 2), p[[0, 3, 1, 2]].reshape(2, 2)
    assert scenes.inputs[0, :4].tolist() == pytest.approx(same, rel=1e-4)
    assert scenes.inputs[0, 4:6].tolist() == pytest.approx(different, rel=1e-4)

    decoded = 1 / (1 + np.exp(-codes.sum(1)))
    rec = ((decoded[:, None] - images.view(4, 16).numpy()) ** 2).sum() / 4
    similarity = ((c[0] - c[1]) ** 2).mean() / 2 + ((c[2] - c[3]) ** 2).mean() / 2
    undecided = -(0.5 * math.log(4 / 5 * 1 / 5) + 0.5 * math.log(1 / 2 * 1 / 2)) / 2
    log_probability = (math.log(4 / 5) + math.log(1 / 2)) / 2 + (math.log(3 / 4) + math.log(1 / 2)) / 2
    terms = {
        "reconstruction": rec,
        "similarity": similarity,
        "adversarial": undecided,
        "discriminator_accuracy": (0.5 + 0.5) / 2,
    }
    assert {name: value.item() for name, value in losses.terms.items()} == pytest.approx(terms, rel=1e-4)
    expected = rec / 16 + 5 * similarity + 7 * undecided
    assert losses.players[AUTOENCODER].item() == pytest.approx(expected, rel=1e-4)
    assert losses.players[SCENES].item() == pytest.approx(-log_probability, rel=1e-5)


def test_gradients_are_those_of_the_authors_program() -> None:
    """Similarity to constant content, and a target of 1/2 for C; but similarity is measured before tanh."""
    stream = Stream.of(5)
    content, pose = (
        torch.from_numpy(stream.child(name).normal(4, size)).float()[None].requires_grad_()
        for name, size in (("content", 3), ("pose", 2))
    )
    scenes = Discriminator([stream], 4, 8, 1)
    losses = DrNet(frames=2, alpha=1.0, beta=0.5, content=3).losses(
        own_step(0, 60, draws(0))(Batch(torch.zeros(1, 4, *SHAPE)), networks_of(Model(content, pose), scenes))
    )
    terms = losses.terms["similarity"] + 0.5 * losses.terms["adversarial"]
    actual = torch.autograd.grad(terms.sum(), (content, pose))

    c, p = normalised(content), torch.tanh(normalised(pose))
    other = torch.tensor([1, 0, 3, 2])
    logits = scenes(torch.cat([p, p[other].detach()], dim=-1)[None])[0]
    probability = torch.softmax(logits, dim=-1)[:, 0]
    objective = nn.MSELoss()(c, c[other].detach())
    objective = objective + 0.5 * nn.BCELoss()(probability, torch.full((4,), 0.5))
    torch.testing.assert_close(actual, torch.autograd.grad(objective, (content, pose)), rtol=1e-3, atol=1e-6)


@pytest.mark.parametrize("rare", [False, True])
def test_content_gains_nothing_by_shrinking(rare: bool) -> None:
    """Neither small outputs nor rare large ones make content more similar; sign and size are random."""
    noise = Stream.of(1).child("noise").normal(400, 2)
    shrunk = noise**5 if rare else 1e-4 * noise
    similarities = []
    for outputs in (noise, shrunk):
        content = torch.from_numpy(outputs).float()[None]
        networks = networks_of(Model(content, content), Scenes([0.0] * 400, [0.0] * 400))
        at_step = own_step(0, 60, draws(0), "gaussian")
        losses = DrNet(frames=2).losses(at_step(Batch(torch.zeros(1, 400, *SHAPE)), networks))
        similarities.append(losses.terms["similarity"].item())
    assert similarities[0] == pytest.approx(2, rel=0.1)
    assert similarities[1] == pytest.approx(2, rel=0.1)


def test_codes_of_images_are_normalised_by_moving_averages() -> None:
    """After one update the averages are those of the batch, and its codes those it was trained with."""
    one = RunSpec(DrNet(frames=2, content_factors=1), data="tiny", batch=8, latents=4, gradient_clip=1e-3)
    source = HostBatches(TINY, torch.device("cpu"))
    population = Population([one], TINY.shape, torch.device("cpu"))
    networks = population.groups[0].networks
    batch = source.draw(population.draws, 0, "batch", 8, one.method.sampling)
    model, statistics = networks[AUTOENCODER], networks[STATISTICS]
    assert isinstance(model, TwoPartAutoencoder)
    assert isinstance(statistics, CodeStatistics)
    expected = model.encode(batch.images).mean.detach()[0]
    Update(population, source, len(TINY)).run(1)
    torch.testing.assert_close(statistics.mean[0], expected.mean(0))
    torch.testing.assert_close(statistics.variance[0], expected.var(0, correction=0))
    with torch.no_grad():
        torch.testing.assert_close(
            statistics(expected[None])[0], torch.tanh(normalised(expected[None])), rtol=1e-3, atol=1e-3
        )


def test_the_pose_loss_is_smallest_for_an_undecided_discriminator() -> None:
    pose = torch.zeros(1, 4, 1)
    for logit in (-3.0, 0.0, 3.0):
        scenes = Scenes([logit] * 4, [0.0] * 4)
        networks = networks_of(Model(pose, pose), scenes)
        at_step = own_step(0, 60, draws(0), "bernoulli")
        losses = DrNet(frames=2).losses(at_step(Batch(torch.zeros(1, 4, *SHAPE)), networks))
        value = losses.terms["adversarial"].item()
        assert value == pytest.approx(math.log(2)) if logit == 0 else value > 1.5


def test_content_survives_and_pose_does_not_know_it() -> None:
    """The paper's effect with default weights; if codes had no fixed scale, content would become constant."""
    one = RunSpec(DrNet(content_factors=1), data="tiny", seed=0, batch=8, latents=4, learning_rate=1e-3)
    population = Population([one], TINY.shape, torch.device("cpu"))
    Update(population, HostBatches(TINY, torch.device("cpu")), len(TINY)).run(100)
    factors = np.stack(np.unravel_index(np.arange(len(TINY)), TINY.sizes), axis=1)
    images = torch.from_numpy(TINY.observe(factors))[None]
    with torch.no_grad():
        codes = one.method.encode(population.groups[0].networks, images).mean[0].numpy()
    content, pose = codes[:, :2], codes[:, 2:]
    assert content.std(0).min() > 0.2
    assert neighbour_accuracy(content, factors[:, 0]) > 0.9
    assert neighbour_accuracy(pose, factors[:, 0]) < 0.6
    for place in (1, 2):
        assert neighbour_accuracy(pose, factors[:, place]) > 0.7
        assert neighbour_accuracy(content, factors[:, place]) < 0.6


def neighbour_accuracy(codes: np.ndarray, labels: np.ndarray) -> float:
    """How often three nearest neighbours, five-fold cross-validated, find the label."""
    found = cross_val_predict(KNeighborsClassifier(3), codes, labels, cv=5)
    return float((found == labels).mean())


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
    raw, statistics = model.encode(images).mean, networks[STATISTICS]
    torch.testing.assert_close(raw[..., :3], model.first(images).mean)
    torch.testing.assert_close(posterior.mean, statistics(raw))
    torch.testing.assert_close(posterior.log_var, torch.full((1, 5, 4), CERTAIN_LOG_VAR))
    assert method.decode(networks, posterior.mean).shape == (1, 5, *TINY.shape)
    assert not method.stochastic
    assert (method.content_dimensions(4), DrNet().content_dimensions(9)) == (3, 4)


def test_skip_connections_come_from_the_other_frame() -> None:
    case = Played.of(DrNet(frames=2, skip=True), images=3)
    model = case.networks[AUTOENCODER]
    assert isinstance(model, SkipAutoencoder)
    used: list[tuple[Tensor, ...]] = []
    decode_with = model.decode_with
    model.decode_with = lambda codes, maps: used.append((codes, *maps)) or decode_with(codes, maps)  # type: ignore[func-returns-value, method-assign]
    case.losses()
    _, maps = model.encode_with_maps(case.batch.images)
    other = torch.tensor([1, 0, 3, 2, 5, 4])
    assert [tuple(m.shape[2:]) for m in maps] == map_shapes(TINY.shape)
    for encoder_map, decoder_map in zip(maps, used[0][1:], strict=True):
        torch.testing.assert_close(decoder_map, encoder_map[:, other])
    reconstruction = case.losses().terms["reconstruction"].sum()
    gradients = torch.autograd.grad(reconstruction, list(model.convolutions.parameters()))
    assert all(gradient.abs().sum() > 0 for gradient in gradients)


def test_codes_are_decoded_with_average_feature_maps() -> None:
    specs = [
        RunSpec(DrNet(frames=2, skip=True), data="tiny", seed=seed, batch=3, latents=4) for seed in (0, 1)
    ]
    source = HostBatches(TINY, torch.device("cpu"))
    population = Population(specs, TINY.shape, torch.device("cpu"))
    first = source.draw(population.draws, 0, "batch", 3, specs[0].method.sampling)
    networks = population.groups[0].networks
    model, statistics = networks[AUTOENCODER], networks[STATISTICS]
    assert isinstance(model, SkipAutoencoder)
    assert isinstance(statistics, CodeStatistics)
    averages = [m.detach().mean(1) for m in model.encode_with_maps(first.images)[1]]
    update = Update(population, source, len(TINY))
    update.run(1)
    for actual, expected in zip(statistics.maps, averages, strict=True):
        torch.testing.assert_close(actual.detach(), expected)
    codes = torch.ones(2, 3, 4)
    with torch.no_grad():
        expected = model.decode_with(codes, statistics.average_maps(3))
        torch.testing.assert_close(specs[0].method.decode(networks, codes), expected)
        population.select([1])
        alone = specs[0].method.decode(population.groups[0].networks, codes[:1])
    torch.testing.assert_close(alone, expected[1:])
    update.run(1)
    with pytest.raises(UnweaveError, match="autoencoder with skip connections must have height and width"):
        map_shapes((1, 28, 28))


def test_what_stays_and_what_moves() -> None:
    assert DrNet().sampling == Sequences(4, 0, None)
    assert DrNet(content_factors="size, x", frames=3, speed=1).sampling == Sequences(3, ("size", "x"), 1)
    source = HostBatches(TINY, torch.device("cpu"))
    batch = source.draw(draws(0), 0, "batch", 30, DrNet(content_factors=1).sampling)
    sizes = (batch.images[0] > 0).flatten(1).sum(-1).view(30, 4)  # white pixels: the square's size
    assert (sizes == sizes[:, :1]).all()
    assert len(sizes[:, 0].unique()) == 3
    moved = (batch.images[0].view(30, 4, -1).float().diff(dim=1).abs().sum(-1) > 0).any(1)
    assert moved.all()


def test_poses_do_not_tell_which_scene_they_are_from() -> None:
    """A judge that sees the true poses of two frames cannot know whether they are of one sequence."""
    sampling = DrNet(content_factors=1, frames=2).sampling
    frames = host_factors(TINY, 4000, Stream.of(0), sampling).reshape(-1, 2, 3)
    assert (frames[:, 0, 0] == frames[:, 1, 0]).all()
    for place, size in ((1, 4), (2, 5)):
        joint = np.zeros((size, size))
        np.add.at(joint, (frames[:, 0, place], frames[:, 1, place]), 1 / len(frames))
        assert np.abs(joint - 1 / size**2).max() < 0.02


@pytest.mark.parametrize(
    ("setting", "text"),
    [
        ({"frames": 1}, "frames of drnet must be at least 2; got 1"),
        ({"speed": 0}, "speed of drnet must be at least 1; got 0"),
        ({"speed": "slow"}, "speed of drnet must be a whole number >= 0 or 'independent'; got 'slow'"),
        ({"content_factors": -1}, "content_factors of drnet must be a whole number >= 0 or a text; got -1"),
    ],
)
def test_bad_settings_are_refused(setting: dict[str, Any], text: str) -> None:
    with pytest.raises(UnweaveError, match=text):
        DrNet(**setting)


def test_too_much_content_is_refused() -> None:
    source = HostBatches(TINY, torch.device("cpu"))
    with pytest.raises(UnweaveError, match="tiny has 3 factors, of which a sequence cannot hold 4"):
        source.draw(draws(0), 0, "batch", 2, DrNet(content_factors=4).sampling)
    with pytest.raises(UnweaveError, match="nothing of tiny can move"):
        source.draw(draws(0), 0, "batch", 2, DrNet(content_factors=3).sampling)
