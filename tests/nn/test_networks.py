from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import cast

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from unweave.errors import UnweaveError
from unweave.nn.layers import Layer, num_runs, select_runs, set_precision
from unweave.nn.layers.precision import PRECISIONS, Precision
from unweave.nn.networks.architectures import ARCHITECTURES, build_decoder, build_encoder
from unweave.nn.networks.published import PublishedDecoder, PublishedEncoder
from unweave.nn.networks.vae import Discriminator
from unweave.streams import Stream

REFERENCE = Path(__file__).parents[3] / "shared" / "reference" / "losses.npz"


def runs(*seeds: int) -> list[Stream]:
    return [Stream.of(seed) for seed in seeds]


def images(*shape: int) -> Tensor:
    count = int(np.prod(shape))
    return torch.from_numpy(Stream.of(0).child("images").uniform(1, count).reshape(shape)).float()


def parameters(network: nn.Module) -> int:
    return sum(parameter[0].numel() for parameter in network.parameters())


@pytest.mark.parametrize(
    ("architecture", "channels", "expected"),
    [
        ("released", 1, 690_517),  # the predecessor's, counted from its TensorFlow graph
        ("released", 3, 692_567),
        ("mlp", 1, 6_381_620 + 7_814_896),
        # table2: the third and fourth kernels have 16 taps and not 4.
        ("table2", 1, 690_517 + 12 * (32 * 64 + 64 * 64)),
    ],
)
def test_numbers_of_parameters(architecture: str, channels: int, expected: int) -> None:
    shape = (channels, 64, 64)
    encoder, decoder = (build(runs(0), shape, 10, architecture) for build in (build_encoder, build_decoder))
    assert parameters(encoder) + parameters(decoder) == expected
    if architecture == "mlp":
        assert parameters(encoder) == 6_381_620


def test_number_of_parameters_of_the_discriminator() -> None:
    assert parameters(Discriminator(runs(0), 10)) == 5_018_002


@pytest.mark.parametrize("channels", [1, 3])
def test_released_networks_give_what_tensorflow_gives(channels: int) -> None:
    if not REFERENCE.exists():
        pytest.skip("the reference values of the TensorFlow networks are not here")
    with np.load(REFERENCE) as cases:
        case = {
            name.split("/", 1)[1]: cases[name]
            for name in cases.files
            if name.startswith(f"arch_conv_c{channels}/")
        }
    encoder = build_encoder(runs(0, 1), (channels, 64, 64), 10, "released")
    decoder = build_decoder(runs(0, 1), (channels, 64, 64), 10, "released")
    load_tensorflow(cast(PublishedEncoder, encoder), cast(PublishedDecoder, decoder), case, run=1)

    x = torch.from_numpy(case["x"]).permute(0, 3, 1, 2)
    posterior = encoder(torch.stack([torch.zeros_like(x), x]))
    z = torch.from_numpy(case["z"])
    logits = decoder(torch.stack([torch.zeros_like(z), z]))
    np.testing.assert_allclose(posterior.mean[1].detach(), case["means"], rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(posterior.log_var[1].detach(), case["logvar"], rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(logits[1].detach().permute(0, 2, 3, 1), case["decoded"], rtol=1e-4, atol=1e-4)


def load_tensorflow(
    encoder: PublishedEncoder, decoder: PublishedDecoder, case: dict[str, NDArray[np.float32]], run: int
) -> None:
    """Put TensorFlow's kernels, (H, W, in, out), or transposed (H, W, out, in), or (in, out), into a run."""
    both = [
        np.concatenate([case[f"w/encoder/{head}/{part}:0"] for head in ("means", "log_var")], axis=-1)
        for part in ("kernel", "bias")
    ]
    put(encoder.heads, run, *both)
    names = itertools.chain(
        zip([*encoder.convolutions, *encoder.dense], [f"encoder/e{n}" for n in (1, 2, 3, 4, 5)], strict=True),
        zip([*decoder.dense, decoder.to_image], ["decoder/dense", "decoder/dense_1"], strict=True),
        zip(
            decoder.convolutions,
            ["decoder/conv2d_transpose" + end for end in ("", "_1", "_2", "_3")],
            strict=True,
        ),
    )
    for layer, name in names:
        put(cast(Layer, layer), run, case[f"w/{name}/kernel:0"], case[f"w/{name}/bias:0"])


def put(layer: Layer, run: int, kernel: NDArray[np.float32], bias: NDArray[np.float32]) -> None:
    with torch.no_grad():
        # For both kinds of convolution torch's order is: the last axis, the one before it, height, width.
        layer.weight[run] = torch.from_numpy(kernel.transpose(3, 2, 0, 1) if kernel.ndim == 4 else kernel)
        layer.bias[run] = torch.from_numpy(bias)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_shapes(architecture: str) -> None:
    latents, small, large = 3, [(1, 32, 32), (2, 48, 32)], [(3, 64, 64), (1, 128, 128)]
    for shape in small if architecture == "mlp" else small + large:
        encoder = build_encoder(runs(0, 1), shape, latents, architecture)
        decoder = build_decoder(runs(0, 1), shape, latents, architecture)
        posterior = encoder(images(2, 1, *shape))
        assert posterior.mean.shape == posterior.log_var.shape == (2, 1, latents)
        assert decoder(posterior.mean).shape == (2, 1, *shape)


def test_mlp_takes_any_size_and_flattens_height_width_channels() -> None:
    shape = (2, 5, 7)
    encoder = cast(PublishedEncoder, build_encoder(runs(0), shape, 1, "mlp"))
    decoder = cast(PublishedDecoder, build_decoder(runs(0), shape, 1, "mlp"))
    pixel = torch.zeros(1, 1, *shape)
    pixel[..., 1, 3, 4] = 1
    first = cast(Layer, encoder.dense[0])
    with torch.no_grad():
        first.bias.zero_()
    row = (3 * 7 + 4) * 2 + 1
    torch.testing.assert_close(
        first(pixel.permute(0, 1, 3, 4, 2).flatten(2))[0, 0], first.weight[0, row].relu()
    )
    with torch.no_grad():
        decoder.to_image.bias[0, row] = 100
    logits = decoder(torch.zeros(1, 1, 1))
    torch.testing.assert_close(logits, 100 * pixel)
    assert encoder(pixel).mean.shape == (1, 1, 1)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_a_run_computes_the_same_alone_and_in_a_population(architecture: str) -> None:
    shape, latents = (1, 32, 32), 4
    together = nn.ModuleList(
        [
            build_encoder(runs(3, 1, 2), shape, latents, architecture),
            build_decoder(runs(3, 1, 2), shape, latents, architecture),
        ]
    )
    alone = nn.ModuleList(
        [
            build_encoder(runs(1), shape, latents, architecture),
            build_decoder(runs(1), shape, latents, architecture),
        ]
    )
    x = images(3, 2, *shape)
    loss, own_loss = reconstruction_error(together, x), reconstruction_error(alone, x[1:2])
    torch.testing.assert_close(loss[1:2], own_loss)
    torch.autograd.backward([loss.sum(), own_loss.sum()])
    for parameter, own in zip(together.parameters(), alone.parameters(), strict=True):
        assert torch.equal(parameter[1:2], own)
        torch.testing.assert_close(cast(Tensor, parameter.grad)[1:2], own.grad)


def reconstruction_error(networks: nn.ModuleList, x: Tensor) -> Tensor:
    encoder, decoder = networks
    posterior = encoder(x)
    logits = decoder(posterior.sample(torch.ones_like(posterior.mean)))
    return cast(Tensor, (logits - x).square().sum(dim=(2, 3, 4)).mean(-1))


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_bf16_is_close_to_float32_and_gives_float32(architecture: str) -> None:
    shape = (3, 32, 32)
    encoder, decoder = (
        build_encoder(runs(0, 1), shape, 4, architecture),
        build_decoder(runs(0, 1), shape, 4, architecture),
    )
    x = images(2, 3, *shape)
    exact, exact_logits = encoder(x), decoder(10 * encoder(x).mean)
    for network in (encoder, decoder):
        set_precision(network, "bf16")
    rounded, rounded_logits = encoder(x), decoder(10 * exact.mean)
    for value, expected in (
        (rounded.mean, exact.mean),
        (rounded.log_var, exact.log_var),
        (rounded_logits, exact_logits),
    ):
        assert value.dtype == torch.float32
        assert 0 < (value - expected).norm() < 0.03 * expected.norm()


def test_discriminator_is_leaky_and_can_be_smaller() -> None:
    discriminator = Discriminator(runs(0, 1), 3, width=5, depth=2)
    z = images(2, 4, 3) - 0.5
    h = z[1]
    for layer in discriminator.dense:
        y = h @ cast(Layer, layer).weight[1]
        h = torch.where(y > 0, y, 0.2 * y)
    expected = h @ discriminator.logits.weight[1]
    torch.testing.assert_close(discriminator(z)[1], expected)
    assert len(discriminator.dense) == 2


def test_networks_start_from_different_weights() -> None:
    shape = (1, 32, 32)
    layers = [
        layer.weight[0].detach().flatten()[:100]
        for network in (
            build_encoder(runs(0), shape, 2),
            build_decoder(runs(0), shape, 2),
            Discriminator(runs(0), 2, 50),
        )
        for layer in network.modules()
        if isinstance(layer, Layer)
    ]
    signs = {tuple((first > 0).tolist()) for first in layers}
    assert len(signs) == len(layers) == 6 + 6 + 7


def test_select_runs_of_a_network() -> None:
    shape = (1, 32, 32)
    encoder = build_encoder(runs(0, 1, 2), shape, 2)
    x = images(3, 2, *shape)
    before = encoder(x)
    select_runs(encoder, [2, 0])
    assert num_runs(encoder) == 2
    torch.testing.assert_close(encoder(x[[2, 0]]).mean, before.mean[[2, 0]])


@pytest.mark.parametrize("build", [build_encoder, build_decoder])
@pytest.mark.parametrize(
    ("shape", "latents", "architecture", "message"),
    [
        ((1, 64, 64), 10, "release", 'there is no architecture "release". Did you mean "released"'),
        ((1, 64, 64), 0, "released", "latents must be a whole number >= 1; got 0"),
        ((1, 64, 64), 2.5, "mlp", "latents must be a whole number >= 1; got 2.5"),
        (
            (1, 63, 64),
            10,
            "released",
            'in multiples of 16; got 63 x 64. Resize them, or use architecture "mlp" or "resnet"',
        ),
        ((1, 16, 64), 10, "table2", "at least 32, in multiples of 16; got 16 x 64"),
        ((0, 64, 64), 10, "released", r"all >= 1; got \(0, 64, 64\)"),
        ((64, 64), 10, "mlp", r"\(channels, height, width\), all >= 1; got \(64, 64\)"),
    ],
)
def test_what_cannot_be_built(
    build: Callable[..., nn.Module],
    shape: tuple[int, int, int],
    latents: int,
    architecture: str,
    message: str,
) -> None:
    with pytest.raises(UnweaveError, match=message):
        build(runs(0), shape, latents, architecture)


@pytest.mark.parametrize(("width", "depth"), [(0, 6), (10, 0)])
def test_discriminator_needs_layers(width: int, depth: int) -> None:
    with pytest.raises(UnweaveError, match=r"(width|depth) must be a whole number >= 1; got 0"):
        Discriminator(runs(0), 10, width, depth)


def test_inputs_of_another_shape_are_refused() -> None:
    encoder, decoder = build_encoder(runs(0, 1), (1, 32, 32), 2), build_decoder(runs(0, 1), (1, 32, 32), 2)
    with pytest.raises(
        UnweaveError, match=r"encoder takes tensors of shape \(2, batch, 1, 32, 32\); got \(5, 1, 32"
    ):
        encoder(torch.zeros(5, 1, 32, 32))
    with pytest.raises(
        UnweaveError, match=r"decoder takes tensors of shape \(2, batch, 2\); got \(1, 5, 2\)"
    ):
        decoder(torch.zeros(1, 5, 2))


@pytest.mark.parametrize("precision", PRECISIONS)
def test_what_networks_give_is_float32(precision: Precision) -> None:
    streams, codes = [Stream.of(0), Stream.of(1)], torch.zeros(2, 3, 4)
    encoder, decoder = (kind(streams, (1, 32, 32), 4) for kind in (build_encoder, build_decoder))
    discriminator = Discriminator(streams, 4, width=8, depth=2)
    for network in (encoder, decoder, discriminator):
        set_precision(network, precision)
    posterior = encoder(torch.zeros(2, 3, 1, 32, 32))
    outputs = (posterior.mean, posterior.log_var, decoder(codes), discriminator(codes))
    assert {tensor.dtype for tensor in outputs} == {torch.float32}
