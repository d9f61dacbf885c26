"""Tiles of rows of features, for the Triton kernels that work on them.

Tensors are (P, rows, F), with contiguous features; a row is a code, or a pixel of an image.
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
    """The features of this program, and a mask of those that exist."""
    n = tl.program_id(2) * BN + tl.arange(0, BN)
    return n, n < FEATURES


@triton.jit
def places(start, rows, n, known, FEATURES: tl.constexpr, BM: tl.constexpr):
    """Offsets within a run of the tile that starts at a row, and a mask of those that exist."""
    m = start + tl.arange(0, BM)
    return m[:, None] * FEATURES + n[None, :], (m < rows)[:, None] & known[None, :]


def tiles(x: Tensor) -> tuple[int, int, int]:
    """The grid of programs, one per tile."""
    runs, rows, features = x.shape
    return triton.cdiv(rows, ROWS), runs, triton.cdiv(features, COLUMNS)


def parts(x: Tensor, sums: int) -> tuple[Tensor, int, tuple[int, int, int]]:
    """For sums over rows: a buffer for partial sums (P, parts, sums, F), rows per part, and the grid."""
    runs, rows, features = x.shape
    blocks = triton.cdiv(features, COLUMNS)
    rows_each, count = in_parts(rows, PROGRAMS, runs * blocks, least=ROWS, step=ROWS)
    return torch.empty(runs, count, sums, features, device=x.device), rows_each, (count, runs, blocks)
