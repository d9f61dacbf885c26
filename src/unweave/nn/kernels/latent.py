"""Triton kernels for CUDA of the codes of a VAE: samples and their KL divergence, and both gradients.

    z = mean + exp(log_var / 2) noise scale
    KL = mean over the batch of the sum over dimensions of (mean^2 + exp(log_var) - log_var - 1) / 2

A program computes one run. mean and log_var may be parts of one tensor.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

BLOCK = 1024


@triton.jit
def _excess(v):
    # exp(v) - 1 - v. Close to 0 the difference would lose its digits: there it is a polynomial.
    near = 1.0 + v / 3.0 * (1.0 + v / 4.0 * (1.0 + v / 5.0 * (1.0 + v / 6.0 * (1.0 + v / 7.0))))
    return tl.where(tl.abs(v) < 0.3, 0.5 * v * v * near, tl.exp(v) - 1.0 - v)


@triton.jit
def _forward_kernel(
    mean, log_var, noise, scale, sample, divergence, images, run_step, row_step,
    CODES: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    run = tl.program_id(0).to(tl.int64)
    factor = tl.load(scale + run)
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, images * CODES, BLOCK):
        i = start + tl.arange(0, BLOCK)
        here, at = i < images * CODES, run * run_step + i // CODES * row_step + i % CODES
        m, v = tl.load(mean + at, here, 0.0), tl.load(log_var + at, here, 0.0)
        e = tl.load(noise + run * images * CODES + i, here, 0.0) * factor
        tl.store(sample + run * images * CODES + i, m + tl.exp(0.5 * v) * e, here)
        total += 0.5 * (m * m + _excess(v))
    tl.store(divergence + run, tl.sum(total, axis=0) / images)


@triton.jit
def _backward_kernel(
    mean, log_var, noise, scale, to_sample, to_divergence, to_mean, to_log_var, images, run_step, row_step,
    CODES: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    run = tl.program_id(1).to(tl.int64)
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    here, at = i < images * CODES, run * run_step + i // CODES * row_step + i % CODES
    own = run * images * CODES + i
    m, v = tl.load(mean + at, here, 0.0), tl.load(log_var + at, here, 0.0)
    e = tl.load(noise + own, here, 0.0) * tl.load(scale + run)
    g, share = tl.load(to_sample + own, here, 0.0), tl.load(to_divergence + run) / images
    tl.store(to_mean + own, g + share * m, here)
    tl.store(to_log_var + own, 0.5 * (g * tl.exp(0.5 * v) * e + share * (_excess(v) + v)), here)


class _SampleAndDivergence(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, mean: Tensor, log_var: Tensor, noise: Tensor, scale: Tensor
    ) -> tuple[Tensor, Tensor]:
        runs, images, codes = mean.shape
        sample, divergence = torch.empty_like(noise), mean.new_empty(runs)
        _forward_kernel[(runs,)](
            mean, log_var, noise, scale, sample, divergence, images, *mean.stride()[:2], codes, BLOCK
        )
        ctx.save_for_backward(mean, log_var, noise, scale)
        return sample, divergence

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        mean, log_var, noise, scale = ctx.saved_tensors
        runs, images, codes = mean.shape
        to_sample, to_divergence = (gradient.contiguous() for gradient in gradients)
        to_mean, to_log_var = torch.empty_like(noise), torch.empty_like(noise)
        _backward_kernel[(triton.cdiv(images * codes, BLOCK), runs)](
            mean, log_var, noise, scale, to_sample, to_divergence, to_mean, to_log_var, images,
            *mean.stride()[:2], codes, BLOCK,
        )  # fmt: skip
        return to_mean, to_log_var, None, None


def sample_and_divergence(
    mean: Tensor, log_var: Tensor, noise: Tensor, scale: Tensor
) -> tuple[Tensor, Tensor]:
    """Codes (P, B, D) and their mean divergence (P,); the noise is multiplied by scale, (P, 1, 1)."""
    if mean.stride() != log_var.stride() or mean.stride(2) != 1:
        mean, log_var = mean.contiguous(), log_var.contiguous()
    sample, divergence = _SampleAndDivergence.apply(mean, log_var, noise.contiguous(), scale.contiguous())
    return sample, divergence
