"""What Triton's kernels of rows of features have in common: how they cut them into tiles.

Tensors are (P, rows, F), with features beside each other; a row is a code, or a pixel of an image.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from unweave.nn.kernels.convolution import PROGRAMS, in_parts

ROWS, COLUMNS = 64, 32  # of a tile


@triton.jit
def columns(FEATURES: tl.constexpr, BN: tl.constexpr):
    """The features of this program, and which of them there are."""
    n = tl.program_id(2) * BN + tl.arange(0, BN)
    return n, n < FEATURES


@triton.jit
def places(start, rows, n, known, FEATURES: tl.constexpr, BM: tl.constexpr):
    """Where a tile that begins with a row is in its run, and what of it there is."""
    m = start + tl.arange(0, BM)
    return m[:, None] * FEATURES + n[None, :], (m < rows)[:, None] & known[None, :]


def tiles(x: Tensor) -> tuple[int, int, int]:
    """Programs that make a tile each."""
    runs, rows, features = x.shape
    return triton.cdiv(rows, ROWS), runs, triton.cdiv(features, COLUMNS)


def parts(x: Tensor, sums: int) -> tuple[Tensor, int, tuple[int, int, int]]:
    """For sums over rows: room for their parts (P, parts, sums, F), rows in each, and programs to fill it."""
    runs, rows, features = x.shape
    blocks = triton.cdiv(features, COLUMNS)
    each, count = in_parts(rows, PROGRAMS, runs * blocks, least=ROWS, step=ROWS)
    return torch.empty(runs, count, sums, features, device=x.device), each, (count, runs, blocks)
