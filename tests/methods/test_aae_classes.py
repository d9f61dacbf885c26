"""Adversarial autoencoders with classes: their objectives worked out apart, and classes as codes."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from methods.played import Played
from methods.trained import Trained, cheap_adversaries
from training.tiny import TINY
from unweave.errors import UnweaveError
from unweave.methods import AAEClusters, AAEHeads, AAELabels, AAESupervised
from unweave.methods.aae import REGULARISER
from unweave.methods.aae_classes import CLASSES, LABELS, STYLE
from unweave.methods.method import AUTOENCODER, Adam, Blueprint, Method
from unweave.methods.sampling import Labels
from unweave.nn.distributions.likelihood import reconstruction_loss
from unweave.nn.networks.classes import ClassAutoencoder, class_place, heads_crowding, nearest_class, one_hot
from unweave.streams import Stream

__all__ = ["cheap_adversaries"]

FORMS: list[Method] = [
    AAELabels(factor="y"),
    AAEClusters(clusters=6, class_noise=0.3),
    AAEHeads(heads_weight=0.5, eta=2.0, clusters=6),
]
every_form = pytest.mark.parametrize("method", FORMS, ids=lambda method: method.name)


def network_of(case: Played) -> ClassAutoencoder:
    network = case.networks[AUTOENCODER]
    assert isinstance(network, ClassAutoencoder)
    return network


def probability_of_code(case: Played, discriminator: str, points: Tensor) -> Tensor:
    logits: Tensor = case.networks[discriminator](points)
    return logits.softmax(-1)[..., 0].double()


@every_form
@torch.no_grad()
def test_each_phase_has_its_objective(method: Method) -> None:
    """From probabilities and one-hot draws as the paper has them, but for the noise of classes."""
    case = Played.of(method, images=50)
    network, draws, losses = network_of(case), case.step.draws, case.losses()
    found_in = network.encoder(case.batch.images).mean
    z, y = found_in[..., : network.style], found_in[..., network.style :].softmax(-1)
    assert network.classes == {"aae_labels": 5}.get(method.name, 6)
    assert network.style == (4 if isinstance(method, AAEHeads) else 3)
    code = z + torch.einsum("pbk,pkd->pbd", y, network.heads) if network.heads is not None else None
    logits = network.decoder(torch.cat([z, y], -1) if code is None else code)
    rec = reconstruction_loss(logits, case.batch.images / 255, "bernoulli")
    prior_z = draws.normal("style prior", 50, network.style)
    prior_y = F.one_hot(draws.integers("class prior", 50, [network.classes])[..., 0], network.classes).float()
    noise = 0.3 if isinstance(method, AAEClusters) else 0.5
    shaken_y = y + noise * draws.normal("class noise", 50, network.classes)
    shaken_prior = prior_y + noise * draws.normal("class prior noise", 50, network.classes)
    exposure = torch.zeros(2).double()
    for name, codes, prior in ((STYLE, z, prior_z), (CLASSES, shaken_y, shaken_prior)):
        of_codes, of_prior = (probability_of_code(case, name, points) for points in (codes, prior))
        loss = -0.5 * (of_codes.log().mean(-1) + (1 - of_prior).log().mean(-1))
        torch.testing.assert_close(losses.players[name].double(), loss, rtol=1e-4, atol=1e-5)
        exposure -= (1 - of_codes).log().mean(-1)
        accuracy = 0.5 * ((of_codes > 0.5).double().mean(-1) + (of_prior < 0.5).double().mean(-1))
        term = {STYLE: "style_accuracy", CLASSES: "class_accuracy"}[name]
        torch.testing.assert_close(losses.terms[term].double(), accuracy)
    torch.testing.assert_close(losses.players[REGULARISER].double(), exposure, rtol=1e-4, atol=1e-5)
    if isinstance(method, AAELabels):
        torch.testing.assert_close(losses.players[LABELS], losses.terms["cross_entropy"])
    crowding = 0.5 * losses.terms["crowding"] if isinstance(method, AAEHeads) else 0.0
    torch.testing.assert_close(losses.players[AUTOENCODER], rec + crowding, rtol=1e-4, atol=1e-3)
    against = method.losses(replace(case.step, turn=method.turns[1])).players
    torch.testing.assert_close(against, {REGULARISER: losses.players[REGULARISER]})
    torch.testing.assert_close(losses.terms["reconstruction"], rec, rtol=1e-4, atol=1e-3)
    share = y.double().mean(1)
    torch.testing.assert_close(losses.terms["class_entropy"].double(), -(share * share.log()).sum(-1))


@torch.no_grad()
def test_labels_are_those_of_the_factor_and_judged_by_cross_entropy() -> None:
    case = Played.of(AAELabels(factor="x"), images=40)
    assert case.method.sampling.points == 1000  # type: ignore[union-attr]
    labelled, labels = case.step.labelled.images, case.step.labelled.labels
    assert labels.shape == (2, 40, 1)
    left = (labelled[:, :, 0].amax(2) > 0).float().argmax(-1)  # a square further right has a larger x
    centres = left + (labelled[:, :, 0].amax(2) > 0).sum(-1) // 2
    assert torch.equal(labels[..., 0], (centres - 6) // 6)
    losses = case.losses()
    logits = network_of(case).encoder(labelled).mean[..., 3:]
    for run in range(2):
        entropy = F.cross_entropy(logits[run], labels[run, :, 0])
        assert float(losses.terms["cross_entropy"][run]) == pytest.approx(float(entropy), rel=1e-4)
        right = (logits[run].argmax(-1) == labels[run, :, 0]).float().mean()
        assert float(losses.terms["label_accuracy"][run]) == pytest.approx(float(right))


def test_the_labelled_images_are_a_fixed_few() -> None:
    method = AAELabels(labelled=3)
    assert isinstance(method.sampling, Labels)
    images = [Played.of(method, step=step, images=30).step.labelled.images for step in (0, 1)]
    distinct = [{bytes(image.numpy().tobytes()) for image in step[0]} for step in images]
    assert len(distinct[0] | distinct[1]) <= 3


@torch.no_grad()
def test_the_likeliest_class_is_encoded_and_decoded() -> None:
    for method in (AAELabels(factor="x"), AAEClusters(clusters=4)):
        case = Played.of(method, images=5)
        network = network_of(case)
        codes = case.method.encode(case.networks, case.batch.images).mean
        predicted = network.encoder(case.batch.images).mean[..., 3:].argmax(-1)
        places = np.array([-1.5, -0.5, 0.5, 1.5]) / math.sqrt(1.25)
        np.testing.assert_allclose(codes[..., 3], places[predicted.numpy()], rtol=1e-5)
        torch.testing.assert_close(codes[..., :3], network.encoder(case.batch.images).mean[..., :3])
        logits = case.method.decode(case.networks, codes)
        torch.testing.assert_close(
            logits, network.decoder(torch.cat([codes[..., :3], F.one_hot(predicted, 4).float()], -1))
        )
        far = codes.clone()
        far[..., 3] = 50.0
        last = F.one_hot(torch.full_like(predicted, 3), 4).float()
        torch.testing.assert_close(
            case.method.decode(case.networks, far), network.decoder(torch.cat([codes[..., :3], last], -1))
        )


@torch.no_grad()
def test_a_code_with_heads_is_the_only_input_of_the_decoder() -> None:
    case = Played.of(AAEHeads(clusters=3), images=5)
    network = network_of(case)
    assert network.heads is not None
    actual = network.encoder(case.batch.images).mean
    assert actual.shape[-1] == 4 + 3
    y = actual[..., 4:].softmax(-1)
    expected = actual[..., :4] + sum(y[..., k, None] * network.heads[:, None, k] for k in range(3))
    codes = case.method.encode(case.networks, case.batch.images).mean
    torch.testing.assert_close(codes, expected)
    torch.testing.assert_close(case.method.decode(case.networks, codes), network.decoder(expected))


@settings(deadline=None, max_examples=30)
@given(st.integers(2, 60), st.floats(-0.49, 0.49))
def test_places_of_classes_have_mean_0_and_variance_1_and_lead_back(count: int, off: float) -> None:
    classes = torch.arange(count).double()
    places = class_place(classes, count)
    assert float(places.mean()) == pytest.approx(0, abs=1e-12)
    assert float(places.var(correction=0)) == pytest.approx(1)
    step = float(places[1] - places[0])
    assert torch.equal(nearest_class(places + off * step, count), classes)
    assert torch.equal(nearest_class(torch.tensor([-1e6, 1e6]), count), torch.tensor([0.0, count - 1.0]))


def test_one_hot_is_torchs() -> None:
    classes = torch.tensor([[[2], [0]], [[1], [2]]])
    assert torch.equal(one_hot(classes, 3, torch.float32), F.one_hot(classes[..., 0], 3).float())


@settings(deadline=None, max_examples=20)
@given(st.integers(0, 1000), st.integers(2, 6), st.floats(0, 5))
def test_crowding_is_the_sum_over_pairs(seed: int, count: int, eta: float) -> None:
    heads = Stream.of(seed).normal(count, 3)
    expected = sum(
        max(0.0, eta - float(np.linalg.norm(heads[i] - heads[j])))
        for i in range(count)
        for j in range(i + 1, count)
    )
    assert float(heads_crowding(torch.from_numpy(heads), eta)) == pytest.approx(expected, rel=1e-6, abs=1e-9)


def test_close_heads_are_pushed_apart_evenly_and_distant_ones_left_alone() -> None:
    heads = torch.tensor([[[0.0, 0.0], [3.0, 4.0], [100.0, 0.0]]] * 2, requires_grad=True)
    crowding = heads_crowding(heads, torch.tensor([6.0, 4.0]))  # the first two are 5 apart
    assert crowding.tolist() == pytest.approx([1.0, 0.0])
    [gradient] = torch.autograd.grad(crowding.sum(), heads)
    torch.testing.assert_close(gradient[0], torch.tensor([[0.6, 0.8], [-0.6, -0.8], [0.0, 0.0]]))
    assert (gradient[1] == 0).all()


def test_heads_that_are_one_have_a_finite_gradient() -> None:
    heads = torch.zeros(1, 3, 2, requires_grad=True)
    [gradient] = torch.autograd.grad(heads_crowding(heads, 6.0).sum(), heads)
    assert gradient.isfinite().all()


@every_form
def test_the_discriminators_are_two_with_weights_of_their_own(method: Method) -> None:
    autoencoder, style, classes = method.players
    matching = method.phases[0]
    slower = Adam(learning_rate=1e-4, beta1=0.5, beta2=0.9, epsilon=1e-8)
    assert (matching.trains, matching.optimiser) == ("autoencoder.encoder", slower)
    assert autoencoder.optimiser is None
    assert (
        style.optimiser == classes.optimiser == Adam(learning_rate=3e-4, beta1=0.5, beta2=0.9, epsilon=1e-8)
    )
    plan = Blueprint([Stream.of(0)], TINY.shape, 4, label_sizes=(5,))
    one, other = (dict(player.build(plan).named_parameters()) for player in (style, classes))
    assert not torch.equal(one["dense.1.weight"], other["dense.1.weight"])
    assert not method.stochastic


@pytest.mark.usefixtures("cheap_adversaries")
def test_classes_become_labels_also_of_images_without_one() -> None:
    """Of 60 images of a square, 25 are drawn with labels; the classes of all are then their places."""
    run = Trained.of(AAELabels(factor="x", labelled=25), steps=150)
    classes, places = nearest_class(run.codes()[:, 2], 4).numpy(), run.factors[:, 1]
    assert (classes == places).mean() > 0.8
    assert run.terms["label_accuracy"] > 0.95
    assert run.terms["class_entropy"] > 0.9 * math.log(4)


@pytest.mark.usefixtures("cheap_adversaries")
def test_all_clusters_stay_in_use() -> None:
    """Without noise, or with one optimiser for a sum of the objectives, all images are in one cluster."""
    run = Trained.of(AAEClusters(clusters=4), steps=250)
    clusters = nearest_class(run.codes()[:, 2], 4).long()
    share = torch.bincount(clusters, minlength=4) / len(TINY)
    assert float(-torch.xlogy(share, share).sum()) > 0.75 * math.log(4)
    assert run.terms["class_accuracy"] < 0.75
    assert run.terms["reconstruction"] < 150


@pytest.mark.usefixtures("cheap_adversaries")
def test_the_style_of_a_supervised_run_does_not_need_the_label() -> None:
    """The decoder draws the square where the label says, and elsewhere with another label."""
    run = Trained.of(AAESupervised(factor="y", labelled=60), steps=100, architecture="released")
    (group,) = run.population.groups
    codes = run.codes()[None].repeat(5, 1, 1)
    codes[..., 2] = class_place(torch.arange(5.0), 5)[:, None]
    with torch.no_grad():
        images = group.method.decode(group.networks, codes.reshape(1, -1, 3)).sigmoid()
    rows = images.reshape(5, 60, 32, 32).sum(-1)
    centres = (rows * torch.arange(32)).sum(-1) / rows.sum(-1)
    expected = 5 + 5 * torch.arange(5)[:, None]  # of the label, in pixels
    # In this short training a few styles still ignore the label; if all did, the median would be 5 or 10.
    assert (centres - expected).abs().median() < 2


@torch.no_grad()
def test_objectives_of_the_supervised_form() -> None:
    case = Played.of(AAESupervised(factor="y"), images=40)
    network, images = network_of(case), case.step.labelled.images
    labels, losses = case.step.labelled.labels, case.losses()
    z, logits = network.encoder(images).mean.split([3, 5], -1)
    made = network.decoder(torch.cat([z, F.one_hot(labels[..., 0], 5).float()], -1))
    rec = reconstruction_loss(made, images / 255, "bernoulli")
    torch.testing.assert_close(losses.players[AUTOENCODER], rec, rtol=1e-4, atol=1e-3)
    for run in range(2):
        entropy = F.cross_entropy(logits[run], labels[run, :, 0])
        assert float(losses.players[LABELS][run]) == pytest.approx(float(entropy), rel=1e-4)
    exposure = -(1 - probability_of_code(case, STYLE, z)).log().mean(-1)
    torch.testing.assert_close(losses.players[REGULARISER].double(), exposure, rtol=1e-4, atol=1e-5)
    assert set(losses.players) == {AUTOENCODER, STYLE, LABELS, REGULARISER}


def test_heads_start_at_a_distance_of_6() -> None:
    heads = network_of(Played.of(AAEHeads(clusters=200), latents=3)).heads
    assert heads is not None
    distances = torch.cdist(heads.detach(), heads.detach())[:, *torch.triu_indices(200, 200, 1)]
    assert float(distances.square().mean().sqrt()) == pytest.approx(6, rel=0.05)


BAD: list[tuple[type[Method], dict[str, Any], str]] = [
    (AAELabels, {"labelled": 0}, "labelled of aae_labels must be at least 1; got 0"),
    (AAEClusters, {"clusters": 1}, "clusters of aae_clusters must be at least 2; got 1"),
    (AAEHeads, {"clusters": 0}, "clusters of aae_heads must be at least 2; got 0"),
]


@pytest.mark.parametrize(("method", "given_settings", "text"), BAD)
def test_bad_settings_are_refused(method: type[Method], given_settings: dict[str, Any], text: str) -> None:
    with pytest.raises(UnweaveError, match=text):
        method(**given_settings)


def test_one_factor_must_be_labelled() -> None:
    with pytest.raises(
        UnweaveError, match=r"factor of aae_labels must name one factor with.*have \[3, 4, 5\]"
    ):
        Played.of(AAELabels(factor="all"))
    with pytest.raises(UnweaveError, match='tiny has no factor "colour"'):
        Played.of(AAELabels(factor="colour"))


def test_a_code_of_style_and_class_has_two_dimensions_at_least() -> None:
    for method in (AAELabels(), AAEClusters()):
        with pytest.raises(UnweaveError, match=r"at least 2 latents; got 1\. Take more"):
            Played.of(method, latents=1)
    Played.of(AAEHeads(), latents=1).losses()
