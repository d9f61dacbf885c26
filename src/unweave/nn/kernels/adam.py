"""Adam's update as Triton kernels, for CUDA: each number is read and written once.

One launch updates up to 64 parameters of a player whose tensors have the same types. It is a list of pieces:
those of the first parameter, then those of the second, and so on. A program finds its parameter by comparing
its number with the first piece of each, and updates a piece block by block.

Moments may be bfloat16. They are then rounded up or down at random, with the probability that makes the
rounded number right on average; otherwise changes below the rounding error would be lost. The random bits
are a hash of the update and of the number's place in its run.
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
MOST_BLOCKS = 8  # of a program; finding its parameter is then a small part of its work
PROGRAMS = 4096  # enough for the whole GPU
COUNTED_IN_64_BITS = 2**31 - MOST_BLOCKS * BLOCK  # parameters with so many numbers, of all runs
MOST_PARAMETERS = 64  # of a launch: arguments of a kernel have at most 32 kB, 56 bytes for each parameter


@dataclass(frozen=True)
class Updated:
    """Tensors of one parameter, (P, ...) each, with the same strides and without gaps.

    Their addresses are multiples of 16, as those of tensors with memory of their own.

    `used` is the master itself, or a rounded copy. The moments are float32 or bfloat16. `decay`, (P,), may
    be missing.
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
        return self.gradient.dtype, self.first.dtype, self.decay is not None


@triton.jit
def _address(pointers, number):
    # The address of the parameter with that number.
    address = pointers[0].to(tl.int64)
    for i in tl.static_range(1, len(pointers)):
        address = tl.where(number >= i, pointers[i].to(tl.int64), address)
    return address


@triton.jit
def _of_each_run(values, i, start, here, runs, count, BLOCK: tl.constexpr):
    # values[run of i], and the place of i in its run. A block has numbers of at most two runs, or of small
    # ones.
    if count >= BLOCK:
        run = start // count
        next_run = (run + 1) * count
        is_next = i >= next_run
        value = tl.where(is_next, tl.load(values + tl.minimum(run + 1, runs - 1)), tl.load(values + run))
        place = i - tl.where(is_next, next_run, run * count)
    else:
        value, place = tl.load(values + i // count, here, 0), i % count
    return value, place.to(tl.int32)


@triton.jit
def _hash(number):
    # 32 random bits: the finaliser of MurmurHash3.
    bits = number.to(tl.uint32, bitcast=True)
    bits = (bits ^ (bits >> 16)) * 0x85EBCA6B
    bits = (bits ^ (bits >> 13)) * 0xC2B2AE35
    return bits ^ (bits >> 16)


@triton.jit
def _moment(pointer, i, here, COMPACT: tl.constexpr):
    # A moment as float32. bfloat16 is the upper half of float32; it is read as a whole number.
    stored = tl.load(pointer + i, here, 0)
    return (stored.to(tl.int32) << 16).to(tl.float32, bitcast=True) if COMPACT else stored


@triton.jit
def _store_moment(pointer, i, here, value, noise, COMPACT: tl.constexpr):
    # `noise` are 16 random bits: their carry rounds up.
    if COMPACT:
        tl.store(pointer + i, ((value.to(tl.uint32, bitcast=True) + noise) >> 16).to(tl.int16), here)
    else:
        tl.store(pointer + i, value, here)


@triton.jit
def _update_block(
    start, total, count, runs, master, used, first, second, gradient, decays, sizes, steps,
    share1, keep2, share2, epsilon,
    ROUNDED: tl.constexpr, DECAYS: tl.constexpr, COMPACT: tl.constexpr, EACH: tl.constexpr,
    WHOLE: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    i = start + tl.arange(0, BLOCK)
    # In whole blocks the condition is known to hold, so that 16 bytes are read at a time.
    here = tl.full((BLOCK,), True, tl.int1) if WHOLE else i < total
    g = tl.load(gradient + i, here, 0.0).to(tl.float32)
    m, v = _moment(first, i, here, COMPACT), _moment(second, i, here, COMPACT)
    p = tl.load(master + i, here, 0.0)
    m += (g - m) * share1
    v = v * keep2 + g * g * share2
    size, place = _of_each_run(sizes, i, start, here, runs, count, BLOCK)
    change = size * (m / (tl.sqrt(v) + epsilon))
    if DECAYS:
        change -= _of_each_run(decays, i, start, here, runs, count, BLOCK)[0] * p
    p += change
    tl.store(master + i, p, here)
    if ROUNDED:  # noqa: SIM102 -- one is known when the kernel is compiled, the other is not
        if used.to(tl.int64) != master.to(tl.int64):
            tl.store(used + i, p, here)
    noise = place.to(tl.uint32, bitcast=True)
    if COMPACT:
        step = tl.load(steps).to(tl.int32)
        if EACH:  # in runs that started later, the same updates have the same noise
            step = _of_each_run(steps, i, start, here, runs, count, BLOCK)[0].to(tl.int32)
        noise = _hash(place ^ _hash(step).to(tl.int32, bitcast=True))
    _store_moment(first, i, here, m, noise & 0xFFFF, COMPACT)
    _store_moment(second, i, here, v, noise >> 16, COMPACT)


@triton.jit(do_not_specialize=["runs"])
def _adam_kernel(
    masters, used, firsts, seconds, gradients, decays, counts, sizes, steps, runs,
    share1, keep2, share2, epsilon,
    GRADIENT: tl.constexpr, USED: tl.constexpr, MOMENT: tl.constexpr,
    ROUNDED: tl.constexpr, DECAYS: tl.constexpr, EACH: tl.constexpr, LONG: tl.constexpr,
    BLOCKS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    # The number of the piece's parameter, its count of numbers and its first piece.
    piece = tl.program_id(0)
    if LONG:  # a parameter of all runs has more numbers than 32 bits can count
        piece, runs = piece.to(tl.int64), runs.to(tl.int64)
    number, count, first_of_own = piece * 0, counts[0] + piece * 0, piece * 0
    first_piece = piece * 0
    for k in tl.static_range(1, len(counts)):
        first_piece += tl.cdiv(runs * counts[k - 1], BLOCKS * BLOCK)
        is_later = piece >= first_piece
        number = tl.where(is_later, k, number)
        count = tl.where(is_later, counts[k], count)
        first_of_own = tl.where(is_later, first_piece, first_of_own)
    master = tl.multiple_of(_address(masters, number).to(tl.pointer_type(tl.float32)), 16)
    first = tl.multiple_of(_address(firsts, number).to(tl.pointer_type(MOMENT)), 16)
    second = tl.multiple_of(_address(seconds, number).to(tl.pointer_type(MOMENT)), 16)
    gradient = tl.multiple_of(_address(gradients, number).to(tl.pointer_type(GRADIENT)), 16)
    rounded = tl.multiple_of(_address(used, number).to(tl.pointer_type(USED)), 16)
    decay = _address(decays, number).to(tl.pointer_type(tl.float32))
    total = runs * count
    start = (piece - first_of_own) * (BLOCKS * BLOCK)
    COMPACT: tl.constexpr = tl.int16 == MOMENT
    for block_start in range(start, tl.minimum(start + BLOCKS * BLOCK, total), BLOCK):
        if block_start + BLOCK <= total:
            _update_block(
                block_start, total, count, runs, master, rounded, first, second, gradient, decay, sizes,
                steps, share1, keep2, share2, epsilon, ROUNDED, DECAYS, COMPACT, EACH, True, BLOCK,
            )  # fmt: skip
        else:
            _update_block(
                block_start, total, count, runs, master, rounded, first, second, gradient, decay, sizes,
                steps, share1, keep2, share2, epsilon, ROUNDED, DECAYS, COMPACT, EACH, False, BLOCK,
            )  # fmt: skip


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


def adam(
    parameters: Sequence[Updated], step: Tensor, rates: Tensor, beta1: float, beta2: float, epsilon: float
) -> None:
    """p <- p + size m / (sqrt(v) + epsilon) - decay p in place, for all parameters.

    The size of each run's step is that of `step_sizes`; `step` counts from 0, () or (P,), and rates are (P,).
    """
    sizes = step_sizes(step, rates, beta1, beta2)
    for kind in dict.fromkeys(parameter.kind for parameter in parameters):
        alike = [p for p in parameters if p.kind == kind]
        for start in range(0, len(alike), MOST_PARAMETERS):
            _launch(alike[start : start + MOST_PARAMETERS], step, sizes, beta1, beta2, epsilon)


def step_sizes(step: Tensor, rates: Tensor, beta1: float, beta2: float) -> Tensor:
    """(P,): -rate sqrt(1 - beta2^t) / (1 - beta1^t), t = step + 1; step is () or (P,)."""
    sizes = torch.empty_like(rates)
    block = triton.next_power_of_2(len(rates))
    logarithms = [math.log(beta) if beta > 0 else -math.inf for beta in (beta1, beta2)]
    _sizes_kernel[(1,)](step, rates, sizes, len(rates), *logarithms, step.dim(), block, num_warps=1)
    return sizes


def _launch(
    parameters: Sequence[Updated], step: Tensor, sizes: Tensor, beta1: float, beta2: float, epsilon: float
) -> None:
    one, runs = parameters[0], len(sizes)
    rounded = next((p.used.dtype for p in parameters if p.used.dtype != torch.float32), torch.float32)
    counts = tuple(p.master[0].numel() for p in parameters)
    blocks = min(MOST_BLOCKS, int(triton.next_power_of_2(triton.cdiv(runs * sum(counts), PROGRAMS * BLOCK))))
    pieces = sum(triton.cdiv(runs * count, blocks * BLOCK) for count in counts)
    tensors = ((p.master, p.used, _bits(p.first), _bits(p.second), p.gradient) for p in parameters)
    decays = tuple(sizes if p.decay is None else p.decay for p in parameters)
    moment = tl.int16 if one.first.dtype == torch.bfloat16 else tl.float32
    _adam_kernel[(pieces,)](
        *zip(*tensors, strict=True), decays, counts, sizes, step, runs, 1 - beta1, beta2, 1 - beta2, epsilon,
        TYPES[one.gradient.dtype], TYPES[rounded], moment, rounded != torch.float32,
        one.decay is not None, step.dim() == 1, runs * max(counts) >= COUNTED_IN_64_BITS, blocks, BLOCK,
    )  # fmt: skip


def _bits(moment: Tensor) -> Tensor:
    """A bfloat16 tensor as whole numbers, others as they are."""
    return moment.view(torch.int16) if moment.dtype == torch.bfloat16 else moment
