"""The fused layers next to the image against torch's layers in float64.

On a GPU the kernels run as they are. Elsewhere their CUDA source is compiled for the CPU, with the threads of
a block as fibers (tests/nn/cuda/emulation.h), so that indices, layouts and barriers are tested, too.
"""

import ctypes
import shutil
import subprocess
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from nn.triton_device import CUDA, DEVICE, distance, numbers, poison  # noqa: F401

from unweave.nn.kernels import image_ends  # isort: skip

RUNS, IMAGES = 2, 3
EXACT, ROUNDED = 1e-5, 5e-3  # of sums of rounded numbers; of results or factors that are rounded
COMPILER = shutil.which("g++")
pytestmark = pytest.mark.skipif(not CUDA and COMPILER is None, reason="neither a GPU nor g++ is here")


class Emulated(NamedTuple):
    """A kernel in a library for the CPU."""

    launch: Any
    shared: int

    def run(self, blocks: tuple[int, int], *arguments: Tensor | int) -> None:
        values = [
            ctypes.c_void_p(x.data_ptr()) if isinstance(x, Tensor) else ctypes.c_int(x) for x in arguments
        ]
        pointers = [ctypes.cast(ctypes.byref(value), ctypes.c_void_p) for value in values]
        kept = self.launch(*blocks, self.shared, (ctypes.c_void_p * len(pointers))(*pointers))
        assert kept, "the kernel writes beyond its shared memory"


@pytest.fixture
def kernels(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernels on the device of the tests. Without a GPU, two blocks of each run work at once."""
    if CUDA:
        return

    def compiled(name: str, channels: int, likelihood: str, _device: torch.device) -> Emulated:
        library = _library(channels, likelihood, tmp_path_factory.getbasetemp())
        launch = library[f"launch_{name}"]
        launch.restype = ctypes.c_bool
        return Emulated(launch, image_ends.shared_bytes(name, channels))

    monkeypatch.setattr(image_ends, "_compiled", compiled)
    monkeypatch.setattr(image_ends, "_blocks", lambda *_: 2 * RUNS)


@cache
def _library(channels: int, likelihood: str, folder: Path) -> ctypes.CDLL:
    assert COMPILER is not None
    path = folder / f"image_ends_{channels}_{likelihood}.so"
    names = [f"-D{name}=1" for name in ("IMAGE_START", "IMAGE_START_GRADIENT", "IMAGE_END", "ADD_PARTS")]
    chosen = [f"-DCHANNELS={channels}", f"-DGAUSSIAN={int(likelihood == 'gaussian')}"]
    source = Path(__file__).with_name("cuda") / "launch.cpp"
    sources = f"-I{image_ends.SOURCES[0].parent}"
    command = [COMPILER, "-std=c++17", "-O1", "-shared", "-fPIC", "-w", sources, *chosen, *names]
    subprocess.run([*command, "-o", str(path), str(source)], check=True)
    return ctypes.CDLL(str(path))


class Case(NamedTuple):
    """Images, and weights and biases of the layer next to them and of the inner one."""

    image: Tensor
    edge: Tensor
    edge_bias: Tensor
    inner: Tensor
    bias: Tensor


def case(channels: int) -> Case:
    generator = torch.Generator().manual_seed(channels)
    image = torch.randint(0, 256, (RUNS, IMAGES, 64, 64, channels), generator=generator).to(torch.uint8)
    edge, inner = 0.25 * numbers(1, RUNS, 4, 4, channels, 32), 0.0625 * numbers(2, RUNS, 4, 4, 32, 32)
    return Case(
        image.to(DEVICE),
        edge.bfloat16().to(DEVICE),
        0.1 * numbers(3, RUNS, 32).float().to(DEVICE),
        inner.bfloat16().to(DEVICE),
        0.1 * numbers(4, RUNS, 32).float().to(DEVICE),
    )


def exact(x: Tensor) -> Tensor:
    return x.detach().double().cpu().requires_grad_()


def down(x: Tensor, w: Tensor, bias: Tensor) -> Tensor:
    """A convolution of stride 2 of all runs; images (P, B, H, W, c), weights (P, 4, 4, big, small)."""
    return _by_run(F.conv2d, x, w, bias)


def up(x: Tensor, w: Tensor, bias: Tensor) -> Tensor:
    """The same, transposed."""
    return _by_run(F.conv_transpose2d, x, w, bias)


def _by_run(convolve: Callable[..., Tensor], x: Tensor, w: Tensor, bias: Tensor) -> Tensor:
    results = [
        convolve(x[run].permute(0, 3, 1, 2), w[run].permute(3, 2, 0, 1), bias[run], stride=2, padding=1)
        for run in range(len(x))
    ]
    return torch.stack(results).permute(0, 1, 3, 4, 2)


def rounded(x: Tensor) -> Tensor:
    """To bfloat16, as the kernels keep the larger map; the gradient passes."""
    return x + (x.detach().float().bfloat16().double() - x.detach())


@pytest.mark.parametrize("channels", image_ends.CHANNELS)
def test_start(kernels: None, channels: int) -> None:
    image, edge, edge_bias, inner, bias = case(channels)
    got = image_ends.start(image, edge, edge_bias, inner, bias)
    pixels = (image.cpu().float() / 255).bfloat16().double()
    parameters = [exact(x) for x in (edge, edge_bias, inner)]
    sums = down(rounded(down(pixels, *parameters[:2]).relu()), parameters[2], exact(bias))
    assert distance(got, sums.relu().detach()) < ROUNDED
    gradient = numbers(5, *sums.shape) * (sums > 0)
    to_edge, to_edge_bias, to_inner = torch.autograd.grad(sums, parameters, gradient)
    mine = image_ends.start_gradient(image, gradient.bfloat16().to(DEVICE), edge, edge_bias, inner)
    assert distance(mine[0], to_inner) < ROUNDED
    assert distance(mine[1], to_edge) < ROUNDED
    assert distance(mine[2], to_edge_bias) < EXACT


@pytest.mark.parametrize(("channels", "likelihood"), [(1, "bernoulli"), (3, "bernoulli"), (1, "gaussian")])
def test_end(kernels: None, channels: int, likelihood: str) -> None:
    image, edge, _, inner, bias = case(channels)
    sums = numbers(6, RUNS, IMAGES, 16, 16, 32)  # before the ReLU of the layer before
    features = sums.relu().bfloat16().to(DEVICE)
    edge_bias = 0.2 * numbers(7, RUNS, channels).float().to(DEVICE)
    got = image_ends.end(features, inner, bias, edge, edge_bias, image, likelihood)
    parameters = [exact(x) for x in (inner, bias, edge, edge_bias, sums)]
    logits = up(rounded(up(parameters[4].relu(), *parameters[:2]).relu()), *parameters[2:4])
    targets = image.cpu().double() / 255
    if likelihood == "bernoulli":
        losses = F.binary_cross_entropy_with_logits(logits, targets, reduction="none")
    else:
        losses = (logits.sigmoid() - targets).square()
    expected = losses.flatten(1).sum(1)
    torch.testing.assert_close(got.loss.double().cpu(), expected.detach(), rtol=1e-5, atol=0)
    scale = torch.tensor([0.5, 2.0])
    to_inner, to_bias, to_edge, to_edge_bias, to_sums = torch.autograd.grad(
        (expected * scale).sum(), parameters
    )
    mine = image_ends.end_gradients(got.parts, scale.to(DEVICE), channels)
    scaled = got.to_features.double().cpu() * scale.view(-1, 1, 1, 1, 1)
    assert distance(scaled, to_sums) < ROUNDED
    assert distance(mine.sums, to_sums.sum(dim=(1, 2, 3))) < ROUNDED
    assert distance(mine.inner, to_inner) < ROUNDED
    assert distance(mine.bias, to_bias) < ROUNDED
    assert distance(mine.edge, to_edge) < ROUNDED
    assert distance(mine.edge_bias, to_edge_bias) < EXACT


def test_results_do_not_depend_on_the_other_runs(kernels: None) -> None:
    """A run's sums have the same order, whatever the number of runs, if as many blocks share it."""
    whole = case(1)
    one = Case(*(tensor[:1].contiguous() for tensor in whole))
    assert torch.equal(image_ends.start(*one), image_ends.start(*whole)[:1])


@pytest.mark.parametrize("images", [1, 3, 64])
@pytest.mark.parametrize("runs", [1, 2, 10, 100, 128, 200])
def test_blocks_share_all_images(runs: int, images: int) -> None:
    each, splits = image_ends.shares(runs, images, 132)
    assert each * (splits - 1) < images <= each * splits
    busy = runs * splits / (-(-runs * splits // 132) * 132)
    assert images == 1 or splits == images or busy > 0.5


def test_one_block_a_run_fills_the_gpu_without_parts() -> None:
    assert image_ends.shares(128, 64, 132) == (64, 1)
    assert image_ends.shares(1, 64, 132) == (1, 64)


@pytest.mark.parametrize("channels", image_ends.CHANNELS)
def test_blocks_fit_into_the_memory_of_a_multiprocessor(channels: int) -> None:
    of_an_h200 = 227 * 1024
    assert image_ends.shared_bytes("image_end", channels) <= of_an_h200


def test_other_shapes_are_left_to_the_general_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    image, edge, _, inner, _ = case(1)
    assert image_ends.fits(image, edge, inner) == CUDA
    assert not image_ends.fits(image[:, :, :32, :32], edge, inner)
    assert not image_ends.fits(image.float(), edge, inner)
    assert not image_ends.fits(image, edge, inner[..., :16])
    monkeypatch.setenv(image_ends.SWITCH, "0")
    assert not image_ends.fits(image, edge, inner), "they can be switched off"


@pytest.mark.skipif(not CUDA, reason="needs a GPU")
def test_kernels_compile_where_the_headers_of_cuda_are_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on machines that have the driver and torch only."""
    from torch.utils import cpp_extension

    monkeypatch.setattr(cpp_extension, "CUDA_HOME", None)
    image_ends._compiled.cache_clear()
    assert image_ends._compiled("image_start", 1, "bernoulli", torch.device("cuda")).shared > 0
    assert cpp_extension.CUDA_HOME is None
