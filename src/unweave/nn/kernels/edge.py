"""Triton kernels of the layers next to the image, where the big image has one to four channels, for CUDA.

The first convolution and the last transposed one, kernel 4, stride 2, padding 1, weights (P, 4, 4, channels,
features). A window is the part of the image under the kernel at one position of the small image: 4 rows
of 4 x channels numbers. Images are bytes of 0 to 255, or numbers. Where windows are read, images of three
channels have a fourth of zeros, so that a pixel is one load.

The last layer's products, features times weights, belong to 16 pixels each; they are stored and then
summed pixel by pixel, together with the likelihood and its gradient.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
import triton
import triton.language as tl
from torch import Tensor

from unweave.errors import UnweaveError
from unweave.nn.kernels.convolution import in_parts, summed

LIKELIHOODS = ("bernoulli", "gaussian")  # those of `_last_sum_kernel`


@triton.jit
def _windows(
    image, r, positions,
    HEIGHT: tl.constexpr, WIDTH: tl.constexpr, BYTES: tl.constexpr, CHANNELS: tl.constexpr,
):  # fmt: skip
    # (positions, 16 CHANNELS): the windows at the positions r of the small images.
    SMALL_H: tl.constexpr = HEIGHT // 2
    SMALL_W: tl.constexpr = WIDTH // 2
    t = tl.arange(0, 16 * CHANNELS)
    tap, channel = t // CHANNELS, t % CHANNELS
    number, y, x = r // (SMALL_H * SMALL_W), (r // SMALL_W) % SMALL_H, r % SMALL_W
    row, column = 2 * y[:, None] - 1 + (tap // 4)[None, :], 2 * x[:, None] - 1 + (tap % 4)[None, :]
    inside = (row >= 0) & (row < HEIGHT) & (column >= 0) & (column < WIDTH) & (r < positions)[:, None]
    pixel = ((number * HEIGHT)[:, None] + row) * WIDTH + column
    values = tl.load(image + pixel * CHANNELS + channel[None, :], inside, 0)
    if BYTES:
        return values.to(tl.float32) * 0.00392156862745098
    return values.to(tl.float32)


@triton.jit
def _first_kernel(
    image, w, bias, out, images, positions_each,
    HEIGHT: tl.constexpr, WIDTH: tl.constexpr, BYTES: tl.constexpr, CHANNELS: tl.constexpr,
    FEATURES: tl.constexpr, FORWARD: tl.constexpr, PRECISION: tl.constexpr, BM: tl.constexpr,
):  # fmt: skip
    # If FORWARD, with bias and ReLU, as in the kernels of the other layers.
    run = tl.program_id(1).to(tl.int64)
    positions = images * (HEIGHT // 2) * (WIDTH // 2)
    n, t = tl.arange(0, FEATURES), tl.arange(0, 16 * CHANNELS)
    image += run * images * HEIGHT * WIDTH * CHANNELS
    weights = tl.load(w + run * 16 * CHANNELS * FEATURES + t[:, None] * FEATURES + n[None, :])
    if FORWARD:
        each_bias = tl.load(bias + run * FEATURES + n)[None, :]
    out += run * positions * FEATURES
    first = tl.program_id(0) * positions_each
    for start in range(first, first + positions_each, BM):
        r = start + tl.arange(0, BM)
        windows = _windows(image, r, positions, HEIGHT, WIDTH, BYTES, CHANNELS).to(weights.dtype)
        total = tl.dot(windows, weights, input_precision=PRECISION)
        if FORWARD:
            total = tl.maximum(total + each_bias, 0.0)
        tl.store(out + r[:, None] * FEATURES + n[None, :], total, (r < positions)[:, None])


@triton.jit
def _last_products_kernel(
    features, w, out, positions,
    CHANNELS: tl.constexpr, ROW: tl.constexpr, FEATURES: tl.constexpr, PRECISION: tl.constexpr,
    BM: tl.constexpr,
):  # fmt: skip
    run = tl.program_id(1).to(tl.int64)
    r = tl.program_id(0) * BM + tl.arange(0, BM)
    n, t = tl.arange(0, FEATURES), tl.arange(0, 4 * ROW)
    ky, j = t // ROW, t % ROW
    here = (r < positions)[:, None]
    values = tl.load(features + run * positions * FEATURES + r[:, None] * FEATURES + n[None, :], here, 0.0)
    w += run * 16 * CHANNELS * FEATURES
    weights = tl.load(
        w + ((ky * 4 * CHANNELS + j) * FEATURES)[None, :] + n[:, None], (j < 4 * CHANNELS)[None, :], 0.0
    )
    total = tl.dot(values, weights, input_precision=PRECISION)
    at = r[:, None] * 16 * CHANNELS + (ky * 4 * CHANNELS + j)[None, :]
    tl.store(out + run * positions * 16 * CHANNELS + at, total, here & (j < 4 * CHANNELS)[None, :])


@triton.jit
def _last_sum_kernel(
    products, bias, image, out, losses, bias_sums, images,
    HEIGHT: tl.constexpr, WIDTH: tl.constexpr, BYTES: tl.constexpr, CHANNELS: tl.constexpr,
    PADDED: tl.constexpr, LIKELIHOOD: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    # HEIGHT, WIDTH are those of the big images. Without a likelihood the result is the logits; with one it
    # is the loss's gradient with respect to them, whose pixels have PADDED channels.
    run = tl.program_id(1).to(tl.int64)
    SMALL_H: tl.constexpr = HEIGHT // 2
    SMALL_W: tl.constexpr = WIDTH // 2
    p = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    number, row, column = p // (HEIGHT * WIDTH), (p // WIDTH) % HEIGHT, p % WIDTH
    here = number < images
    products += run * images * SMALL_H * SMALL_W * 16 * CHANNELS
    image += run * images * HEIGHT * WIDTH * CHANNELS
    out += run * images * HEIGHT * WIDTH * PADDED
    part = run * tl.num_programs(0) + tl.program_id(0)
    loss = tl.zeros((BLOCK,), tl.float32)
    for c in tl.static_range(CHANNELS):
        logit = tl.zeros((BLOCK,), tl.float32) + tl.load(bias + run * CHANNELS + c)
        for a in tl.static_range(2):
            # & and >>, not % and //: with the latter Triton 3.6 gives wrong numbers for three
            # channels and a width of 12, where LLVM computes remainders of small numbers in packed bytes.
            ky = ((row + 1) & 1) + 2 * a
            y = (row + 1 - ky) >> 1
            for b in tl.static_range(2):
                kx = ((column + 1) & 1) + 2 * b
                x = (column + 1 - kx) >> 1
                inside = here & (row + 1 >= ky) & (y < SMALL_H) & (column + 1 >= kx) & (x < SMALL_W)
                at = ((number * SMALL_H + y) * SMALL_W + x) * 16 * CHANNELS + (ky * 4 + kx) * CHANNELS + c
                logit += tl.load(products + at, inside, 0.0).to(tl.float32)
        if LIKELIHOOD == "none":
            tl.store(out + p * PADDED + c, logit, here)
        else:
            target = tl.load(image + p * CHANNELS + c, here, 0).to(tl.float32)
            if BYTES:
                target *= 0.00392156862745098
            small = tl.exp(-tl.abs(logit))
            likely = tl.where(logit >= 0, 1.0, small) / (1.0 + small)
            if LIKELIHOOD == "bernoulli":
                loss += tl.where(here, tl.maximum(logit, 0.0) + tl.log(1.0 + small) - target * logit, 0.0)
                slope = likely - target
            else:
                loss += tl.where(here, (likely - target) * (likely - target), 0.0)
                slope = 2.0 * (likely - target) * likely * (1.0 - likely)
            slope = tl.where(here, slope, 0.0)
            tl.store(out + p * PADDED + c, slope, here)
            tl.store(bias_sums + part * CHANNELS + c, tl.sum(slope, axis=0))
    for c in tl.static_range(CHANNELS, PADDED):
        tl.store(out + p * PADDED + c, tl.zeros((BLOCK,), tl.float32), here)
    if LIKELIHOOD != "none":
        tl.store(losses + part, tl.sum(loss, axis=0))


@triton.jit
def _edge_backward_kernel(
    image, small, w, scale, to_small, to_w, sums, images, positions_each,
    HEIGHT: tl.constexpr, WIDTH: tl.constexpr, BYTES: tl.constexpr, CHANNELS: tl.constexpr,
    FEATURES: tl.constexpr, SCALED: tl.constexpr, UP: tl.constexpr, MASKED: tl.constexpr,
    PRECISION: tl.constexpr, BM: tl.constexpr,
):  # fmt: skip
    # Gradients of both layers. For a convolution, the image is its input and `small` the gradient of its
    # result: only the gradient of the weights is computed. If UP, for a transposed convolution, the image is
    # the gradient of its result and `small` its input.
    run = tl.program_id(1).to(tl.int64)
    positions = images * (HEIGHT // 2) * (WIDTH // 2)
    n, t = tl.arange(0, FEATURES), tl.arange(0, 16 * CHANNELS)
    image += run * images * HEIGHT * WIDTH * CHANNELS
    small += run * positions * FEATURES
    to_small += run * positions * FEATURES
    at_w = t[:, None] * FEATURES + n[None, :]
    factor = 1.0
    if SCALED:
        factor = tl.load(scale + run)
    total, column_sums = tl.zeros((16 * CHANNELS, FEATURES), tl.float32), tl.zeros((FEATURES,), tl.float32)
    if UP:
        weights = tl.load(w + run * 16 * CHANNELS * FEATURES + at_w)
    first = tl.program_id(0) * positions_each
    for start in range(first, first + positions_each, BM):
        r = start + tl.arange(0, BM)
        at, here = r[:, None] * FEATURES + n[None, :], (r < positions)[:, None]
        values = tl.load(small + at, here, 0.0)
        windows = _windows(image, r, positions, HEIGHT, WIDTH, BYTES, CHANNELS).to(values.dtype)
        total = tl.dot(tl.trans(windows), values, total, input_precision=PRECISION)
        if UP:
            gradient = tl.dot(windows, weights, input_precision=PRECISION) * factor
            if MASKED:
                gradient = tl.where(values > 0, gradient, 0.0)
            column_sums += tl.sum(gradient, axis=0)
            tl.store(to_small + at, gradient, here)
    part = run * tl.num_programs(0) + tl.program_id(0)
    tl.store(to_w + part * 16 * CHANNELS * FEATURES + at_w, total * factor)
    if UP:
        tl.store(sums + part * FEATURES + n, column_sums)


# Sizes of tiles and numbers of programs that were fastest on an H200, P = 64, bfloat16.
FIRST_ROWS, FIRST_EACH, LAST_ROWS, LAST_PIXELS = 64, 512, 256, 256
BACKWARD_ROWS, BACKWARD_PROGRAMS, BACKWARD_WARPS, BACKWARD_STAGES = 128, 4096, 4, 1


def padded(image: Tensor) -> Tensor:
    """(..., 3) as (..., 4), the fourth zero; others as they are."""
    return F.pad(image, (0, 1)) if image.shape[-1] == 3 else image


def first(image: Tensor, w: Tensor, bias: Tensor | None, precision: str) -> Tensor:
    """The first convolution: (P, B, H, W, channels), padded -> (P, B, H/2, W/2, features).

    With a bias (P, features), its ReLU.
    """
    runs, images, height, width, channels = image.shape
    features, positions = w.shape[4], images * (height // 2) * (width // 2)
    out = w.new_empty(runs, images, height // 2, width // 2, features)
    _first_kernel[(triton.cdiv(positions, FIRST_EACH), runs)](
        image, _padded_weights(w), w if bias is None else bias, out, images, FIRST_EACH, height, width,
        image.dtype == torch.uint8, channels, features, bias is not None, precision, FIRST_ROWS, num_warps=4,
        num_stages=1,
    )  # fmt: skip
    return out


def first_gradient(image: Tensor, gradient: Tensor, channels: int, precision: str) -> Tensor:
    """(P, 4, 4, channels, features), float32: gradient of the first convolution's weights; padded image."""
    return _backward(image, gradient, None, None, False, precision)[1][:, :, :, :channels]


def last(features: Tensor, w: Tensor, bias: Tensor | None, precision: str) -> Tensor:
    """(P, B, H, W, features) -> logits (P, B, 2H, 2W, channels) in float32."""
    bias = torch.zeros(len(w), w.shape[3], device=w.device) if bias is None else bias
    return _last(features, w, bias, None, "none", precision)[0]


def last_likelihood(
    features: Tensor, w: Tensor, bias: Tensor, image: Tensor, likelihood: str, precision: str
) -> tuple[Tensor, Tensor, Tensor]:
    """The loss (P,), summed over everything, its gradient to the logits, padded, and to the bias."""
    if likelihood not in LIKELIHOODS:
        raise UnweaveError(
            f"the kernel of the last layer computes the likelihoods {' and '.join(LIKELIHOODS)}; got "
            f'"{likelihood}". Compute this likelihood from the logits.'
        )
    return _last(features, w, bias, image, likelihood, precision)


def last_gradient(
    slopes: Tensor, features: Tensor, w: Tensor, scale: Tensor | None, masked: bool, precision: str
) -> tuple[Tensor, Tensor, Tensor]:
    """Gradients of the features (masked where these are 0) and weights, and sums (P, features) of the first.

    Slopes are the logits' gradient, padded, and still to be multiplied by the scale (P,).
    """
    to_features, to_w, sums = _backward(slopes, features, w, scale, masked, precision)
    return to_features, to_w[:, :, :, : w.shape[3]], sums


def _last(
    features: Tensor, w: Tensor, bias: Tensor, image: Tensor | None, likelihood: str, precision: str
) -> tuple[Tensor, Tensor, Tensor]:
    runs, images, height, width, inputs = features.shape
    channels, positions = w.shape[3], images * height * width
    products = features.new_empty(runs, positions, 16 * channels)
    row = triton.next_power_of_2(4 * channels)
    _last_products_kernel[(triton.cdiv(positions, LAST_ROWS), runs)](
        features, w, products, positions, channels, row, inputs, precision, LAST_ROWS, num_warps=4
    )
    pixels = (runs, images, 2 * height, 2 * width)
    if image is None:
        out = torch.empty(*pixels, channels, device=w.device)
    else:
        out = features.new_empty(*pixels, 4 if channels == 3 else channels)
    parts = triton.cdiv(4 * positions, LAST_PIXELS)
    losses = torch.empty(runs, parts, device=w.device)
    bias_sums = torch.empty(runs, parts, channels, device=w.device)
    _last_sum_kernel[(parts, runs)](
        products, bias, products if image is None else image, out, losses, bias_sums, images,
        2 * height, 2 * width, image is not None and image.dtype == torch.uint8, channels, out.shape[4],
        likelihood, LAST_PIXELS, num_warps=4,
    )  # fmt: skip
    if image is None:
        return out, losses, bias_sums
    return summed(losses[..., None])[:, 0], out, summed(bias_sums)


def _backward(
    image: Tensor, small: Tensor, w: Tensor | None, scale: Tensor | None, masked: bool, precision: str
) -> tuple[Tensor, Tensor, Tensor]:
    runs, images, height, width, channels = image.shape
    features, positions = small.shape[4], images * (height // 2) * (width // 2)
    positions_each, splits = in_parts(
        positions, BACKWARD_PROGRAMS, runs, least=BACKWARD_ROWS, step=BACKWARD_ROWS
    )
    to_small = small if w is None else torch.empty_like(small)
    to_w = torch.empty(runs, splits, 4, 4, channels, features, device=small.device)
    sums = torch.empty(runs, splits, features, device=small.device)
    _edge_backward_kernel[(splits, runs)](
        image, small, small if w is None else _padded_weights(w), sums if scale is None else scale, to_small,
        to_w, sums, images, positions_each, height, width, image.dtype == torch.uint8, channels, features,
        scale is not None, w is not None, masked, precision, BACKWARD_ROWS, num_warps=BACKWARD_WARPS,
        num_stages=BACKWARD_STAGES,
    )  # fmt: skip
    return to_small, summed(to_w), sums if w is None else summed(sums)


def _padded_weights(w: Tensor) -> Tensor:
    """Weights (P, 4, 4, channels, features) with the zeros that belong to padded images."""
    return F.pad(w, (0, 0, 0, 1)) if w.shape[3] == 3 else w
