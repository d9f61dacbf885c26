"""The two layers next to the image as one kernel each way, for CUDA, in bfloat16.

These layers hold most of the activations: 32 features of 32 x 32 pixels each. The kernels of image_ends.cu
keep them in shared memory, so neither they nor their gradients are ever written to memory:

    start           bytes of an image -> convolution, ReLU -> convolution, ReLU
    start_gradient  the gradients of both layers; the first layer is computed again
    end             transposed convolution, ReLU -> transposed convolution -> likelihood, and all gradients

They serve 64 x 64 images of one or three channels and layers of 32 features, as in the published networks.
All others use convolution.py and edge.py. The kernels are CUDA C++, compiled at run time by torch.

Set the environment variable UNWEAVE_FUSED_LAYERS to 0 to switch them off.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from threading import Lock
from typing import Any

import torch
from torch import Tensor

SWITCH = "UNWEAVE_FUSED_LAYERS"
FEATURES, SIDE, TAPS, THREADS = 32, 64, 16, 256
CHANNELS = (1, 3)
LIKELIHOODS = ("bernoulli", "gaussian")
# How many images' time a block needs to load weights and store gradients.
FIXED_ROUNDS = 0.5
_compiling = Lock()
SOURCES = tuple(Path(__file__).parent / name for name in ("image_products.cu", "image_ends.cu"))


@dataclass(frozen=True)
class Kernel:
    """A compiled kernel, with the shared memory that it needs."""

    launch: Any
    shared: int

    def run(self, blocks: tuple[int, int], *arguments: Tensor | int) -> None:
        """Launch so many blocks of each run, and runs."""
        self.launch((*blocks, 1), (THREADS, 1, 1), list(arguments), self.shared)


def fits(image: Tensor, edge: Tensor, inner: Tensor) -> bool:
    """Whether there are kernels for images (P, B, H, W, C) and the layers' weights (P, k, k, big, small)."""
    channels = image.shape[4]
    shapes = (tuple(edge.shape[1:]), tuple(inner.shape[1:]))
    return (
        os.environ.get(SWITCH, "1") != "0"
        and image.is_cuda
        and image.dtype == torch.uint8
        and image.shape[2:4] == (SIDE, SIDE)
        and channels in CHANNELS
        and edge.dtype == inner.dtype == torch.bfloat16
        and shapes == ((4, 4, channels, FEATURES), (4, 4, FEATURES, FEATURES))
        and _can_run(image.device, channels)
    )


def start(
    image: Tensor,
    edge: Tensor,
    edge_bias: Tensor,
    inner: Tensor,
    bias: Tensor,
    at_once: int | None = None,
) -> Tensor:
    """(P, B, 64, 64, C) -> (P, B, 16, 16, 32), after both convolutions.

    `at_once` is how many blocks share the images of all runs; by default as many as the GPU runs at once.
    """
    runs, images, channels = len(image), image.shape[1], image.shape[4]
    out = inner.new_empty(runs, images, SIDE // 4, SIDE // 4, FEATURES)
    each, splits = shares(runs, images, at_once or _blocks(image.device))
    kernel = _compiled("image_start", channels, "bernoulli", image.device)
    kernel.run((splits, runs), image, edge, edge_bias, inner, bias, out, images, each)
    return out


def start_gradient(
    image: Tensor,
    gradient: Tensor,
    edge: Tensor,
    edge_bias: Tensor,
    inner: Tensor,
    at_once: int | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Gradients of the inner weights, the edge weights and the edge bias, float32.

    `gradient`, (P, B, 16, 16, 32), is that of the second convolution before its ReLU.
    """
    runs, images, channels = len(image), image.shape[1], image.shape[4]
    sizes = inner[0].numel(), edge[0].numel(), FEATURES
    each, splits = shares(runs, images, at_once or _blocks(image.device))
    parts = torch.empty(runs, splits, sum(sizes), device=image.device)
    kernel = _compiled("image_start_gradient", channels, "bernoulli", image.device)
    kernel.run((splits, runs), image, gradient, edge, edge_bias, inner, parts, images, each)
    to_inner, to_edge, to_bias = added(parts, sizes, None)
    return to_inner.view(inner.shape), to_edge.view(edge.shape), to_bias


@dataclass(frozen=True)
class End:
    """The loss (P,), summed over images, and its gradients: of the features, and of everything else in parts.

    The gradient of the features is that before the ReLU which made them.
    """

    loss: Tensor
    to_features: Tensor
    parts: Tensor


@dataclass(frozen=True)
class EndGradients:
    """Gradients of weights and biases, float32, and the sums (P, 32) of the features' gradient."""

    inner: Tensor
    bias: Tensor
    edge: Tensor
    edge_bias: Tensor
    sums: Tensor


def end(
    features: Tensor,
    inner: Tensor,
    bias: Tensor,
    edge: Tensor,
    edge_bias: Tensor,
    image: Tensor,
    likelihood: str,
    at_once: int | None = None,
) -> End:
    """(P, B, 16, 16, 32), the result of a ReLU, through both transposed convolutions to the likelihood."""
    runs, images, channels = len(image), image.shape[1], image.shape[4]
    each, splits = shares(runs, images, at_once or _blocks(image.device))
    parts = torch.empty(runs, splits, sum(end_sizes(channels)), device=image.device)
    losses = torch.empty(runs, splits, device=image.device)
    to_features = torch.empty_like(features)
    _compiled("image_end", channels, likelihood, image.device).run(
        (splits, runs),
        features,
        inner,
        bias,
        edge,
        edge_bias,
        image,
        to_features,
        parts,
        losses,
        images,
        each,
    )
    return End(losses.sum(dim=1), to_features, parts)


def end_gradients(parts: Tensor, scale: Tensor, channels: int) -> EndGradients:
    """The parts of `end`, summed and multiplied by the scale (P,)."""
    runs = len(parts)
    inner, edge, bias, sums, edge_bias = added(parts, end_sizes(channels), scale)
    return EndGradients(
        inner=inner.view(runs, 4, 4, FEATURES, FEATURES),
        bias=bias,
        edge=edge.view(runs, 4, 4, channels, FEATURES),
        edge_bias=edge_bias,
        sums=sums,
    )


def end_sizes(channels: int) -> tuple[int, ...]:
    """How many numbers of each kind a part of `end` has for a run."""
    return TAPS * FEATURES * FEATURES, TAPS * channels * FEATURES, FEATURES, FEATURES, channels


def added(parts: Tensor, sizes: Sequence[int], scale: Tensor | None) -> list[Tensor]:
    """(P, splits, numbers) as the sums over the splits, one tensor (P, size) for each size."""
    runs, splits, numbers = parts.shape
    out = torch.empty(runs * numbers, device=parts.device)
    padded = [*sizes, *[0] * (5 - len(sizes))]
    _compiled("add_parts", 1, "bernoulli", parts.device).run(
        (-(-numbers // THREADS), runs),
        parts, parts if scale is None else scale, out, splits, int(scale is not None), *padded,
    )  # fmt: skip
    return [piece.view(runs, -1) for piece in out.split([runs * size for size in sizes])]


@cache
def shares(runs: int, images: int, at_once: int) -> tuple[int, int]:
    """How many images a block takes, and how many blocks share a run, if so many blocks run at once."""

    def rounds(each: int) -> float:
        blocks = runs * -(-images // each)
        return -(-blocks // at_once) * (each + FIXED_ROUNDS)

    each = min(range(1, images + 1), key=rounds)
    return each, -(-images // each)


def shared_bytes(name: str, channels: int) -> int:
    """How much shared memory a block of the kernel uses; the same sums as in image_ends.cu."""
    big, small, weights, edge = 32 * 32 * 64, 16 * 16 * 64, TAPS * FEATURES * 64, TAPS * channels * 64
    planes = -(-channels * 66 * 82 * 2 // 128) * 128
    rows = 32 if channels == 1 else 16
    products = TAPS * ((rows + 2) * 32 + 4) * 4
    always = big + weights + edge + planes + 16
    return {
        "image_start": always,
        "image_start_gradient": always + 2 * small,
        "image_end": always + 2 * small + 2 * SIDE * SIDE * channels + products,
        "add_parts": 0,
    }[name]


@cache
def _can_run(device: torch.device, channels: int) -> bool:
    """Whether torch has a compiler, and the GPU the instructions and the shared memory."""
    properties = torch.cuda.get_device_properties(device)
    room = getattr(properties, "shared_memory_per_block_optin", 0)
    enough = (properties.major, properties.minor) >= (8, 0) and room >= shared_bytes("image_end", channels)
    return enough and hasattr(torch.cuda, "_compile_kernel") and torch.version.hip is None


@cache
def _compiled(name: str, channels: int, likelihood: str, device: torch.device) -> Kernel:
    """The kernel of that name, for the device."""
    chosen = {"CHANNELS": channels, "GAUSSIAN": int(likelihood == "gaussian"), name.upper(): 1}
    lines = [f"#define {word} {value}\n" for word, value in chosen.items()]
    source = "".join(lines + [path.read_text(encoding="utf-8") for path in SOURCES])
    shared = shared_bytes(name, channels)
    with torch.cuda.device(device), _headers_not_needed():
        kernel = torch.cuda._compile_kernel(source, name)
        kernel.set_shared_memory_config(shared)
    return Kernel(kernel, shared)


@contextmanager
def _headers_not_needed() -> Iterator[None]:
    """Let torch compile where CUDA's headers are not installed: the kernels include none of them.

    torch asks for their folder all the same. Its compiler comes with torch.
    """
    from torch.utils import cpp_extension

    with _compiling:
        before = cpp_extension.CUDA_HOME
        cpp_extension.CUDA_HOME = before or str(Path(__file__).parent)
        try:
            yield
        finally:
            cpp_extension.CUDA_HOME = before


@cache
def _blocks(device: torch.device) -> int:
    """How many blocks run at once: their registers leave room for one on each multiprocessor."""
    return int(torch.cuda.get_device_properties(device).multi_processor_count)
