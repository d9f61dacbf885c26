"""Triton kernels of the random streams, for CUDA: one launch for all runs of a population."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

MOST_KEYS = 65_535  # of a launch: the largest number of blocks in the second direction of a grid


@triton.jit(do_not_specialize=["first"])
def _random_kernel(
    keys, step, out, rows, columns, blocks, first,
    NORMAL: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    run = tl.program_id(1)
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    row, block = i // blocks, i % blocks
    key = tl.load(keys + run)
    zero = (i * 0).to(tl.uint32)
    now = zero + tl.load(step).to(tl.uint32)
    w0, w1, w2, w3 = tl.philox(key, block.to(tl.uint32), (first + row).to(tl.uint32), zero, now)
    at = out + (run.to(tl.int64) * rows + row) * columns + 4 * block
    here = row < rows
    if NORMAL:
        # (w >> 9) + 0.5 needs 24 bits: exact in float32.
        r0 = tl.sqrt(-2.0 * tl.log(((w0 >> 9).to(tl.float32) + 0.5) * 1.1920928955078125e-07))
        r1 = tl.sqrt(-2.0 * tl.log(((w2 >> 9).to(tl.float32) + 0.5) * 1.1920928955078125e-07))
        a0 = 6.283185307179586 * (((w1 >> 9).to(tl.float32) + 0.5) * 1.1920928955078125e-07)
        a1 = 6.283185307179586 * (((w3 >> 9).to(tl.float32) + 0.5) * 1.1920928955078125e-07)
        tl.store(at, r0 * tl.cos(a0), here & (4 * block < columns))
        tl.store(at + 1, r0 * tl.sin(a0), here & (4 * block + 1 < columns))
        tl.store(at + 2, r1 * tl.cos(a1), here & (4 * block + 2 < columns))
        tl.store(at + 3, r1 * tl.sin(a1), here & (4 * block + 3 < columns))
    else:
        tl.store(at, w0.to(tl.int64), here & (4 * block < columns))
        tl.store(at + 1, w1.to(tl.int64), here & (4 * block + 1 < columns))
        tl.store(at + 2, w2.to(tl.int64), here & (4 * block + 2 < columns))
        tl.store(at + 3, w3.to(tl.int64), here & (4 * block + 3 < columns))


def random_bits(keys: Tensor, step: Tensor, rows: int, columns: int, first: int = 0) -> Tensor:
    """(P, rows, columns) int64 words of 32 random bits, from row `first` of the streams on."""
    return _launch(keys, step, (first, rows), columns, torch.int64)


def random_normal(keys: Tensor, step: Tensor, rows: int, columns: int, first: int = 0) -> Tensor:
    """(P, rows, columns) float32 standard normal numbers, from row `first` of the streams on."""
    return _launch(keys, step, (first, rows), columns, torch.float32)


def _launch(
    keys: Tensor, step: Tensor, first_and_rows: tuple[int, int], columns: int, dtype: torch.dtype
) -> Tensor:
    first, rows = first_and_rows
    out = torch.empty(len(keys), rows, columns, dtype=dtype, device=keys.device)
    blocks = triton.cdiv(columns, 4)
    for some, drawn in zip(keys.split(MOST_KEYS), out.split(MOST_KEYS), strict=True):
        grid = (triton.cdiv(rows * blocks, 256), len(some))
        _random_kernel[grid](some, step, drawn, rows, columns, blocks, first, dtype == torch.float32, 256)
    return out
