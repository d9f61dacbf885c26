"""Adam's update as Triton kernels, for CUDA: each number is read and written once.

One launch updates up to 64 parameters of a player whose tensors have the same types. It is a list of blocks:
those of the first parameter, then those of the second, and so on. A block finds its parameter by comparing
its number with the first block of each.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
import triton
import triton.language as tl
from torch import Tensor

BLOCK = 1024
COUNTED_IN_64_BITS = 2**31 - BLOCK  # parameters with so many numbers, of all runs
MOST_PARAMETERS = 64  # of a launch: arguments of a kernel have at most 32 kB, 56 bytes for each parameter


@dataclass(frozen=True)
class Updated:
    """Tensors of one parameter, (P, ...) each, with the same strides and without gaps.

    `used` is the master, or the master rounded. `decay`, (P,), may be missing.
    """

    master: Tensor
    used: Tensor
    first: Tensor
    second: Tensor
    gradient: Tensor
    decay: Tensor | None = None

    @property
    def kind(self) -> tuple[torch.dtype, torch.dtype, bool]:
        """Parameters of one kind share a launch."""
        return self.gradient.dtype, self.used.dtype, self.decay is not None


@triton.jit
def _address(pointers, number):
    # The address of the parameter with that number.
    address = pointers[0].to(tl.int64)
    for i in tl.static_range(1, len(pointers)):
        address = tl.where(number >= i, pointers[i].to(tl.int64), address)
    return address


@triton.jit(do_not_specialize=["runs"])
def _adam_kernel(
    masters, used, firsts, seconds, gradients, decays, counts, sizes, runs,
    share1, keep2, share2, epsilon,
    GRADIENT: tl.constexpr, USED: tl.constexpr, ROUNDED: tl.constexpr, DECAYS: tl.constexpr,
    LONG: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    # The number of the block's parameter, its count of numbers and its first block.
    block = tl.program_id(0)
    if LONG:  # a parameter of all runs has more numbers than 32 bits can count
        block, runs = block.to(tl.int64), runs.to(tl.int64)
    number, count, start = block * 0, counts[0] + block * 0, block * 0
    first_block = block * 0
    for k in tl.static_range(1, len(counts)):
        first_block += tl.cdiv(runs * counts[k - 1], BLOCK)
        is_later = block >= first_block
        number = tl.where(is_later, k, number)
        count = tl.where(is_later, counts[k], count)
        start = tl.where(is_later, first_block, start)
    i = (block - start) * BLOCK + tl.arange(0, BLOCK)
    here, run = i < runs * count, i // count
    master = tl.multiple_of(_address(masters, number).to(tl.pointer_type(tl.float32)), 16)
    first = tl.multiple_of(_address(firsts, number).to(tl.pointer_type(tl.float32)), 16)
    second = tl.multiple_of(_address(seconds, number).to(tl.pointer_type(tl.float32)), 16)
    gradient = tl.multiple_of(_address(gradients, number).to(tl.pointer_type(GRADIENT)), 16)
    g = tl.load(gradient + i, here, 0.0).to(tl.float32)
    m, v = tl.load(first + i, here, 0.0), tl.load(second + i, here, 0.0)
    m += (g - m) * share1
    v = v * keep2 + g * g * share2
    p = tl.load(master + i, here, 0.0)
    change = tl.load(sizes + run, here, 0.0) * (m / (tl.sqrt(v) + epsilon))
    if DECAYS:
        decay = _address(decays, number).to(tl.pointer_type(tl.float32))
        change -= tl.load(decay + run, here, 0.0) * p
    p += change
    tl.store(first + i, m, here)
    tl.store(second + i, v, here)
    tl.store(master + i, p, here)
    if ROUNDED:
        rounded = tl.multiple_of(_address(used, number).to(tl.pointer_type(USED)), 16)
        tl.store(rounded + i, p, here)


@triton.jit
def _sizes_kernel(
    step, rates, out, runs, log_beta1, log_beta2, EACH: tl.constexpr, BLOCK: tl.constexpr
):  # fmt: skip
    run = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    here = run < runs
    t = (tl.load(step + run * EACH, here, 0) + 1).to(tl.float64)
    # float64: after few steps beta2^t is close to 1.
    second = 1.0 - tl.exp(t * log_beta2)
    first = 1.0 - tl.exp(t * log_beta1)
    size = -tl.load(rates + run, here, 0.0).to(tl.float64) * tl.sqrt(second) / first
    tl.store(out + run, size.to(tl.float32), here)


TYPES = {torch.float32: tl.float32, torch.bfloat16: tl.bfloat16, torch.float16: tl.float16}


def adam(parameters: Sequence[Updated], sizes: Tensor, beta1: float, beta2: float, epsilon: float) -> None:
    """p <- p + size m / (sqrt(v) + epsilon) - decay p in place, for all parameters; sizes are (P,)."""
    for kind in dict.fromkeys(parameter.kind for parameter in parameters):
        alike = [p for p in parameters if p.kind == kind]
        for start in range(0, len(alike), MOST_PARAMETERS):
            _launch(alike[start : start + MOST_PARAMETERS], sizes, beta1, beta2, epsilon)


def step_sizes(step: Tensor, rates: Tensor, beta1: float, beta2: float) -> Tensor:
    """(P,): -rate sqrt(1 - beta2^t) / (1 - beta1^t), t = step + 1; step is () or (P,)."""
    sizes = torch.empty_like(rates)
    block = triton.next_power_of_2(len(rates))
    logarithms = [math.log(beta) if beta > 0 else -math.inf for beta in (beta1, beta2)]
    _sizes_kernel[(1,)](step, rates, sizes, len(rates), *logarithms, step.dim(), block, num_warps=1)
    return sizes


def _launch(parameters: Sequence[Updated], sizes: Tensor, beta1: float, beta2: float, epsilon: float) -> None:
    one, runs = parameters[0], len(sizes)
    counts = tuple(p.master[0].numel() for p in parameters)
    blocks = sum(triton.cdiv(runs * count, BLOCK) for count in counts)
    columns = zip(*((p.master, p.used, p.first, p.second, p.gradient) for p in parameters), strict=True)
    decays = tuple(sizes if p.decay is None else p.decay for p in parameters)
    _adam_kernel[(blocks,)](
        *columns, decays, counts, sizes, runs, 1 - beta1, beta2, 1 - beta2, epsilon,
        TYPES[one.gradient.dtype], TYPES[one.used.dtype], one.used.dtype != one.master.dtype,
        one.decay is not None, runs * max(counts) >= COUNTED_IN_64_BITS, BLOCK,
    )  # fmt: skip
