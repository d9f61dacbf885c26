"""Directions by the weights of a generator: the definition of SeFa, and what moving along them does."""

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.utils import parametrizations

from methods.played import Played
from training.tiny import TINY
from unweave.directions import first_weights, sefa
from unweave.directions.weights import weights_of_run
from unweave.errors import UnweaveError
from unweave.methods import AdversarialSplit, ElasticInfoGAN, EncDiff, InfoGAN, LadderVAE, Tripod
from unweave.methods.method import Method
from unweave.nn.layers import Conv2d, Linear
from unweave.runs.modules import modules_of
from unweave.streams import Stream

WEIGHTS = Stream.of(0).normal(20, 4) @ Stream.of(1).normal(4, 4)


def test_directions_are_the_eigenvectors_of_the_weights() -> None:
    found = sefa(WEIGHTS, 2)
    _, values, vectors = np.linalg.svd(WEIGHTS)
    assert np.abs(found.directions @ vectors[:2].T) == pytest.approx(np.eye(2), abs=1e-9)
    assert found.explained == pytest.approx((values**2 / (values**2).sum())[:2])
    assert found.word == "read:sefa2"


def test_normalised_weights_are_those_of_the_authors_code() -> None:
    rows = WEIGHTS.T / np.linalg.norm(WEIGHTS.T, axis=0, keepdims=True)  # theirs are (d, m)
    values, vectors = np.linalg.eig(rows @ rows.T)
    first = vectors[:, values.argmax()]
    assert abs(sefa(WEIGHTS, normalise=True).directions[0] @ first) == pytest.approx(1)
    assert abs(sefa(WEIGHTS).directions[0] @ first) < 0.999


def test_the_first_direction_changes_what_a_generator_makes_most() -> None:
    first, last = nn.Linear(4, 20), nn.Linear(20, 30)
    generator = nn.Sequential(first, nn.Tanh(), last)
    with torch.no_grad():
        first.weight.copy_(torch.from_numpy(WEIGHTS) * 0.05)
        last.weight.copy_(torch.from_numpy(np.linalg.qr(Stream.of(2).normal(30, 20))[0]))
    found = sefa(first_weights(generator, 4))
    latents = Stream.of(3).normal(200, 4).astype(np.float32)

    def change(direction: np.ndarray[tuple[int, ...], np.dtype[np.float64]]) -> float:
        with torch.no_grad():
            before = generator(torch.from_numpy(latents))
            after = generator(torch.from_numpy((latents + 0.5 * direction).astype(np.float32)))
        return float((after - before).square().sum())

    others = Stream.of(4).normal(50, 4)
    others /= np.linalg.norm(others, axis=1, keepdims=True)
    changes = [change(direction) for direction in found.directions]
    assert changes == sorted(changes, reverse=True)
    assert changes[0] > max(map(change, others))
    assert changes[-1] < min(map(change, others))


def test_several_layers_count_like_one() -> None:
    together = sefa([WEIGHTS[:5], WEIGHTS[5:]])
    assert together.directions == pytest.approx(sefa(WEIGHTS).directions)


def test_first_weights_of_layers() -> None:
    dense = nn.Sequential(nn.Linear(3, 7), nn.ReLU(), nn.Linear(7, 2))
    assert first_weights(dense, 3).shape == (7, 3)
    turned = nn.ConvTranspose2d(3, 5, 4)
    weights = first_weights(turned, 3)
    assert weights.shape == (5 * 16, 3)
    with torch.no_grad():
        image = turned(torch.ones(1, 3, 1, 1)) - turned(torch.zeros(1, 3, 1, 1))
    assert weights @ np.ones(3) == pytest.approx(image.flatten().numpy(), abs=1e-6)
    with pytest.raises(
        UnweaveError, match=r'first layer must take 4 latents; "0.weight" has the shape \(7, 3'
    ):
        first_weights(dense, 4)
    for images in (nn.Conv2d(5, 3, 2), Conv2d([Stream.of(0)], "own", 1, 3)):
        with pytest.raises(UnweaveError, match=r'first layer must take 3 latents; "0\.weight" has the shape'):
            first_weights(nn.Sequential(images), 3)  # its first axis are outputs
    with pytest.raises(UnweaveError, match=r"ReLU has no layer with weights\."):
        first_weights(nn.ReLU(), 4)
    with pytest.raises(UnweaveError, match=r"first_weights takes a torch module; got ndarray\."):
        first_weights(WEIGHTS, 4)


@pytest.mark.filterwarnings("ignore:.*weight_norm:FutureWarning")
def test_first_weights_of_normalised_layers() -> None:
    """GANs often have spectral or weight normalisation; the second layer here would fit, too."""
    for normalised in (
        parametrizations.spectral_norm,
        parametrizations.weight_norm,
        nn.utils.spectral_norm,
        nn.utils.weight_norm,
    ):
        first, trained = (normalised(nn.Linear(4, 4)).eval() for _ in range(2))
        first.load_state_dict(trained.state_dict())
        generator = nn.Sequential(first, nn.Linear(4, 4)).eval()
        weights = first_weights(generator, 4)
        with torch.no_grad():
            changes = first(torch.eye(4)) - first(torch.zeros(1, 4))
        np.testing.assert_allclose(weights.T, changes.numpy(), atol=1e-6)


def test_wrong_weights_are_refused() -> None:
    for weights, options, message in (
        ([WEIGHTS, WEIGHTS[:, :2]], {}, "a list of matrices with the same d; got (20, 4), (20, 2)."),
        (np.zeros((3, 2)), {}, "weights must not all be 0."),
        (np.ones((3, 2, 2)), {}, "weights must be a matrix (m, d)"),
        (np.ones((3, 2)), {"k": 2}, "because the weights use 1 of 2 directions; got 2."),
        (WEIGHTS, {"mean": np.zeros(3)}, "mean must have the shape (4,); got (3,)."),
    ):
        with pytest.raises(UnweaveError) as caught:
            sefa(weights, **options)
        assert message in str(caught.value)


@pytest.mark.parametrize(
    ("method", "unit", "rounding"),
    [
        (InfoGAN(), np.sqrt(3), 0.0),  # uniform numbers in [-1, 1] have this variance in codes
        (Tripod(), 2.0, 1 / 11),  # half the distance of 12 values from -1 to 1
        (AdversarialSplit(), 1.0, 0.0),
    ],
    ids=["info_gan", "tripod", "adversarial_split"],
)
def test_weights_of_a_run_are_those_that_its_codes_meet(method: Method, unit: float, rounding: float) -> None:
    """The dense layer with these weights gets the codes, before noise, and the decoder of no encoder."""
    networks = Played.of(method, seeds=(0,)).networks
    decoder = modules_of(method, networks, TINY.shape, 4, "bernoulli").decoder
    weights = weights_of_run(decoder, 4, method.name)
    inputs: list[torch.Tensor] = []
    for layer in decoder.modules():
        if isinstance(layer, Linear):
            matrix = layer.weight[0].detach().T.numpy()
            if matrix.shape[0] == len(weights) and (matrix[:, :4] == weights).all():
                layer.register_forward_pre_hook(lambda _, given: inputs.append(given[0]))
    codes = torch.from_numpy(Stream.of(0).uniform(8, 4) - 0.5).float()
    with torch.no_grad():
        decoder(codes)
    assert inputs
    [got] = inputs[0].numpy()[:1, :8]
    np.testing.assert_allclose(got[:, :4], codes.numpy() / unit, atol=rounding + 1e-6)
    assert (got[:, 4:] == 0).all(), "noise"


def test_codes_that_enter_no_first_layer_are_refused() -> None:
    for method, message in (
        (EncDiff(), r"those of enc_diff do not\. Use by=\"pca\" or by=\"ica\""),
        (LadderVAE(), "those of ladder_vae do not"),
        (ElasticInfoGAN(), "the first code is a category, along which there is no direction"),
    ):
        networks = Played.of(method, seeds=(0,)).networks
        decoder = modules_of(method, networks, TINY.shape, 4, "bernoulli").decoder
        with pytest.raises(UnweaveError, match=message):
            weights_of_run(decoder, 4, method.name)
