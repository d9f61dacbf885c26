"""Where the kernels can be used: on CUDA with Triton, for the shapes that they were written for."""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec

import torch
from torch import Tensor

EDGE_CHANNELS = 4  # images with at most this many channels have special kernels
KERNEL_CHANNELS = (16, 32, 64, 128)


@cache
def has_triton() -> bool:
    """Whether Triton is installed."""
    return find_spec("triton") is not None


def is_on_kernels(x: Tensor, weight: Tensor, padding: int) -> bool:
    """Whether there is a kernel for a single convolution, of either direction and with any activation."""
    fits = x.is_cuda and has_triton() and are_powers_of_two(x) and min(x.shape[-2:]) >= 2
    return fits and has_kernel(weight, padding)


def are_powers_of_two(images: Tensor) -> bool:
    """Whether height and width are powers of two."""
    return all(size & (size - 1) == 0 for size in images.shape[-2:])


def has_kernel(weight: Tensor, padding: int) -> bool:
    """Whether there is a kernel for a convolution of that weight, (P, small, big, k, k)."""
    small, big, kernel = weight.shape[1], weight.shape[2], weight.shape[-1]
    if big <= EDGE_CHANNELS:
        usual = (kernel, padding) == (4, 1)
    else:
        usual = (kernel, padding) in ((4, 1), (2, 0)) and big in KERNEL_CHANNELS
    return usual and small in KERNEL_CHANNELS and weight.dtype == torch.float32
