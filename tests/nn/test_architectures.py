"""Architectures: image sizes, outputs for likelihoods, and residual networks."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

import unweave
from training.stopping import check_resumed, largest_difference
from training.tiny import TINY
from unweave.errors import UnweaveError
from unweave.explore.program import program_of
from unweave.explore.run_view import view_of
from unweave.methods import (
    METHODS,
    VDVAE,
    VLAE,
    BetaVAE,
    EncDiff,
    Glow,
    LadderVAE,
    Method,
    StyleGAN2,
)
from unweave.methods.method import Blueprint
from unweave.nn.distributions.likelihood import LIKELIHOODS
from unweave.nn.layers import SameConv2d, convolution, set_precision
from unweave.nn.networks.architectures import (
    ARCHITECTURES,
    architecture_named,
    build_decoder,
    build_encoder,
)
from unweave.runs.spec import RunSpec
from unweave.runs.store import RunFolder
from unweave.streams import Stream
from unweave.training.trainer import Plan, train_runs

RUNS = [Stream.of(0), Stream.of(1)]
SMALL: dict[str, Any] = {"steps": 3, "batch": 4, "latents": 3, "device": "cpu", "architecture": "resnet"}


def images(*shape: int) -> Tensor:
    numbers = Stream.of(7).uniform(1, int(np.prod(shape))).reshape(shape)
    return torch.from_numpy(numbers).float()


@pytest.mark.parametrize(
    "shape", [(1, 28, 28), (3, 32, 32), (1, 64, 64), (1, 128, 128), (2, 48, 21), (1, 16, 17)]
)
def test_resnet_takes_images_of_any_size(shape: tuple[int, int, int]) -> None:
    encoder, decoder = build_encoder(RUNS, shape, 4, "resnet"), build_decoder(RUNS, shape, 4, "resnet")
    x = images(2, 1, *shape).requires_grad_()
    posterior = encoder(x)
    assert posterior.mean.shape == posterior.log_var.shape == (2, 1, 4)
    posterior.mean.sum().backward()
    assert x.grad is not None
    corners = x.grad[..., [0, 0, -1, -1], [0, -1, 0, -1]]
    assert bool((corners != 0).all()), "all pixels are seen"
    codes = torch.ones(2, 1, 4, requires_grad=True)
    output = decoder(codes)
    assert output.shape == (2, 1, *shape)
    assert bool((output[..., [0, -1], [0, -1]] != 0).all()), "no pixel is padding"


@pytest.mark.parametrize("architecture", ["released", "table2"])
def test_published_networks_take_128_pixels(architecture: str) -> None:
    shape = (3, 128, 128)
    posterior = build_encoder(RUNS, shape, 4, architecture)(images(2, 1, *shape))
    assert build_decoder(RUNS, shape, 4, architecture)(posterior.mean).shape == (2, 1, *shape)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_decoders_make_what_a_likelihood_needs(architecture: str) -> None:
    shape, codes = (3, 32, 32), torch.ones(2, 2, 4)
    x = images(2, 2, *shape)
    for name, likelihood in LIKELIHOODS.items():
        decoder = build_decoder(RUNS, shape, 4, architecture, name)
        output = decoder(codes)
        assert output.shape == (2, 2, 3 * likelihood.outputs, 32, 32), name
        assert likelihood.mean(output).shape == x.shape, name
        torch.testing.assert_close(decoder.reconstruction(codes, x, name), likelihood.loss(output, x))


def test_a_residual_network_starts_from_the_streams_of_its_run() -> None:
    shape = (1, 20, 24)
    alone, together = (build_decoder(streams, shape, 3, "resnet") for streams in (RUNS[1:], RUNS))
    for own, both in zip(alone.parameters(), together.parameters(), strict=True):
        assert torch.equal(own[0], both[1])
        assert own.ndim == 2 or not torch.equal(both[0], both[1])
    codes = images(2, 5, 3)
    torch.testing.assert_close(alone(codes[1:]), together(codes)[1:])


@pytest.mark.parametrize("precision", ["float32", "bf16"])
def test_a_convolution_of_stride_1_is_that_of_torch(precision: Any) -> None:
    layer, x = SameConv2d(RUNS, "conv", 3, 5, activation="relu"), images(2, 4, 3, 7, 9)
    set_precision(layer, precision)
    layer.bias.data = images(2, 5) - 0.5
    expected = F.relu(F.conv2d(x[1], layer.weight[1], layer.bias[1], padding=1))
    assert layer(x).shape == (2, 4, 5, 7, 9)
    tolerance = 0.05 if precision == "bf16" else 1e-6
    torch.testing.assert_close(layer(x)[1].float(), expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("way", ["together", "one by one", "matrix product"])
def test_a_kernel_of_1_mixes_channels(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a GPU computes it, and as a CPU does; the gradient can be differentiated in turn."""
    layer, x = SameConv2d(RUNS, "conv", 3, 5, kernel=1), images(2, 4, 3, 7, 9)
    layer.bias.data = images(2, 5) - 0.5
    monkeypatch.setattr(convolution, "_runs_together", lambda *_: way == "together")
    own = convolution._mixed_channels if way == "matrix product" else layer.compute
    y, expected = (
        own(x, layer.weight, layer.bias),
        F.conv2d(x.flatten(0, 1), layer.weight[1], layer.bias[1]).unflatten(0, (2, 4)),
    )
    torch.testing.assert_close(y[1], expected[1])
    cubes = own(x.requires_grad_(), layer.weight, layer.bias).pow(3)
    (gradient,) = torch.autograd.grad(cubes.sum(), x, create_graph=True)
    back = torch.einsum("pbohw,poi->pbihw", 3 * y.square(), layer.weight[..., 0, 0])
    torch.testing.assert_close(gradient, back)
    assert torch.autograd.grad(gradient.sum(), layer.weight)[0].isfinite().all()


@pytest.mark.parametrize(
    ("architecture", "size", "message"),
    [
        ("resnet", (15, 64), "of at least 16 and at most 256; got 15 x 64. Resize them, or use"),
        ("resnet", (64, 257), 'at most 256; got 64 x 257. Resize them, or use architecture "mlp".'),
        ("released", (28, 28), 'got 28 x 28. Resize them, or use architecture "mlp" or "resnet".'),
    ],
)
def test_sizes_that_do_not_fit_are_refused(architecture: str, size: tuple[int, int], message: str) -> None:
    for build in (build_encoder, build_decoder):
        with pytest.raises(UnweaveError) as caught:
            build(RUNS, (1, *size), 3, architecture)
        assert message in str(caught.value)


@pytest.mark.parametrize("name", ["resnt", None, ["mlp"]])
def test_unknown_architectures_are_refused(name: str) -> None:
    with pytest.raises(UnweaveError, match="there is no architecture"):
        architecture_named(name)


GANS = [kind for kind in METHODS if "info_gan" in kind.__module__]


# The methods on the shared autoencoder have the same networks: one of them stands for all.
# Those with networks of their own refuse others; see their tests.
OTHERS = (*GANS, VLAE, Glow, VDVAE, StyleGAN2, EncDiff)
AUTOENCODERS = [BetaVAE, *(kind for kind in METHODS if kind.own_networks and kind not in OTHERS)]


@pytest.mark.parametrize("kind", AUTOENCODERS, ids=lambda kind: kind.name)
def test_every_autoencoder_takes_all_architectures_and_likelihoods(kind: type[Method]) -> None:
    plan = Blueprint(RUNS[:1], (1, 28, 28), 8, "resnet", (3,), "gaussian_learned")
    networks = kind().networks(plan)
    posterior = kind().encode(networks, images(1, 2, 1, 28, 28))
    assert kind().decode(networks, posterior.mean).shape == (1, 2, 2, 28, 28)


@pytest.mark.parametrize("kind", GANS, ids=lambda kind: kind.name)
@pytest.mark.parametrize(
    ("size", "architecture", "likelihood", "message"),
    [
        (
            28,
            "released",
            "bernoulli",
            "Images for a GAN must have .* in multiples of 16; got 28 x 28. Resize",
        ),
        (32, "resnet", "bernoulli", 'InfoGAN has networks of its own and no architecture "resnet"'),
        (32, "released", "gaussian_learned", 'InfoGAN .* has no likelihood "gaussian_learned". Leave'),
    ],
)
def test_gans_refuse_what_they_do_not_have(
    kind: type[Method], size: int, architecture: str, likelihood: str, message: str
) -> None:
    with pytest.raises(UnweaveError, match=message):
        kind().networks(Blueprint(RUNS[:1], (1, size, size), 8, architecture, (), likelihood))


def train(folder: Path, specs: list[RunSpec]) -> list[RunFolder]:
    plan = Plan(device="cpu", log_every=2, checkpoint_every=1000)
    return train_runs(specs, TINY, [folder / spec.id for spec in specs], plan)


def test_training_resumes_and_runs_do_not_depend_on_each_other(tmp_path: Path) -> None:
    shared: dict[str, Any] = {"data": "tiny", "steps": 5, "batch": 4, "latents": 3}
    shared |= {"architecture": "resnet", "likelihood": "continuous_bernoulli"}
    specs = [RunSpec(BetaVAE(4.0), seed=seed, **shared) for seed in (0, 1)]
    check_resumed(train, tmp_path, specs, 3)
    [alone] = train(tmp_path / "alone", specs[1:])
    assert largest_difference(alone, RunFolder(tmp_path / "whole" / specs[1].id)) < 2e-5


@pytest.mark.parametrize("likelihood", LIKELIHOODS)
def test_runs_decode_by_the_mean_of_their_likelihood(likelihood: str, tmp_path: Path) -> None:
    method = LadderVAE() if likelihood == "gaussian_learned" else BetaVAE()
    run = unweave.train(method, TINY, out=tmp_path, likelihood=likelihood, **SMALL)
    codes = np.zeros((2, 3), np.float32)
    output = torch.from_numpy(run.logits(codes))
    decoded = run.decode(codes)
    assert decoded.shape == (2, 1, 32, 32)
    np.testing.assert_array_equal(decoded, LIKELIHOODS[likelihood].mean(output))
    targets = np.zeros((2, 1, 32, 32), np.float32)
    expected = LIKELIHOODS[likelihood].negative_log(output, torch.from_numpy(targets)).sum((1, 2, 3))
    np.testing.assert_allclose(run.losses(targets, codes), expected, rtol=1e-5)


@pytest.mark.parametrize("likelihood", ["laplace", "gaussian_learned", "continuous_bernoulli"])
def test_pages_and_views_show_the_mean_image(likelihood: str, tmp_path: Path) -> None:
    run = unweave.train(BetaVAE(), TINY, out=tmp_path, likelihood=likelihood, **SMALL)
    code = np.ones((1, 3), np.float32)
    shown = view_of(run).decode(code)
    assert np.abs(shown / 255 - run.decode(code)).max() <= 0.5 / 255 + 1e-6
    assert program_of(run).steps, "a page can compute all that the decoder does"
