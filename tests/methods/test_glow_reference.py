"""Glow against its authors' program, written again layer by layer for one model and without loops over runs.

From github.com/openai/glow: tfops.py (actnorm, conv2d, conv2d_zeros, squeeze2d) and model.py (revnet2d_step,
split2d, prior, f_loss). There, shifts and scales alternate among the outputs of a coupling.
"""

from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from unweave.methods.glow import Glow, continuous
from unweave.nn.networks.flow import Flow
from unweave.streams import Stream

LEVELS, DEPTH = 2, 2


class Program:
    """The program's model with the weights of one run of a flow."""

    def __init__(self, flow: Flow, run: int) -> None:
        self.weights = {name: value[run].detach() for name, value in flow.named_parameters()}
        self.orders = {name: value for name, value in flow.named_buffers() if name.endswith("order")}

    def bits(self, images: Tensor, noise: Tensor, n_bits: int) -> Tensor:
        """Bits per dimension of bytes (B, C, H, W), with noise in [0, 1]; `_f_loss`."""
        n_bins, sizes = 2.0**n_bits, math.prod(images.shape[1:])
        z = torch.floor(images.double() / 2 ** (8 - n_bits)) / n_bins - 0.5 + noise / n_bins
        objective = torch.full((len(z),), -math.log(n_bins) * sizes, dtype=torch.float64)
        for level in range(LEVELS):
            z = squeeze(z)
            for step in range(DEPTH):
                z, change = self.step(f"levels.{level}.steps.{step}", z)
                objective = objective + change
            kept, leaving = z.chunk(2, dim=1)
            if level == LEVELS - 1:  # all leave; the top prior is a convolution of zeros, of no channels here
                kept, leaving = z[:, :0], z
            mean, logs = self.conv2d_zeros(f"levels.{level}.prior.convolution", kept).chunk(2, dim=1)
            square = (leaving - mean) ** 2 / torch.exp(2 * logs)
            objective = objective - 0.5 * (math.log(2 * math.pi) + 2 * logs + square).sum((1, 2, 3))
            z = kept
        return -objective / (math.log(2) * sizes)

    def step(self, name: str, z: Tensor) -> tuple[Tensor, Tensor]:
        """`revnet2d_step` with 1 x 1 convolutions and affine couplings: the result and log |det|."""
        pixels = z.shape[2] * z.shape[3]
        shift, logs = self.weights[f"{name}.norm.shift"], 3 * self.weights[f"{name}.norm.log_scale"]
        z = (z + channels(shift)) * torch.exp(channels(logs))
        lower, upper = (self.weights[f"{name}.mixing.{part}"] for part in ("lower", "upper"))
        diagonal = self.weights[f"{name}.mixing.log_diagonal"].exp()
        product = (lower.tril(-1) + torch.eye(len(lower))) @ (upper.triu(1) + torch.diag(diagonal))
        w = product[self.orders[f"{name}.mixing.order"]]
        z = torch.einsum("dc,bchw->bdhw", w, z)
        change = pixels * (logs.sum() + torch.linalg.slogdet(w).logabsdet)
        z1, z2 = z.chunk(2, dim=1)
        h = F.relu(self.conv2d(f"{name}.coupling.first", z1))
        h = F.relu(self.conv2d(f"{name}.coupling.second", h, padded=False))
        shift, scale = self.conv2d_zeros(f"{name}.coupling.last", h).chunk(2, dim=1)
        scale = torch.sigmoid(scale + 2.0)
        return torch.cat([z1, (z2 + shift) * scale], dim=1), change + torch.log(scale).sum((1, 2, 3))

    def conv2d(self, name: str, x: Tensor, padded: bool = True) -> Tensor:
        """A convolution and `actnorm`."""
        weight, bias = (self.weights[f"{name}.convolution.{part}"] for part in ("weight", "bias"))
        if padded:
            # The program marks the padding and not the image: 1 - mark, which moves weights to the bias.
            bias = bias + weight[:, -1].sum((1, 2))
            inside = x.new_zeros(len(x), 1, *x.shape[2:])
            marks = F.pad(inside, (1, 1, 1, 1), value=1.0)
            x = torch.cat([F.pad(x, (1, 1, 1, 1)), marks], dim=1)
            weight = torch.cat([weight[:, :-1], -weight[:, -1:]], dim=1)
        return (F.conv2d(x, weight) + channels(bias)) * torch.exp(
            3 * channels(self.weights[f"{name}.log_scale"])
        )

    conv2d_zeros = conv2d  # of other initial weights


def channels(numbers: Tensor) -> Tensor:
    return numbers[None, :, None, None]


def squeeze(x: Tensor) -> Tensor:
    """`squeeze2d`: channel 4 c + 2 i + j has pixel (i, j) of each block of channel c."""
    parts = [x[:, c, i::2, j::2] for c in range(x.shape[1]) for i in (0, 1) for j in (0, 1)]
    return torch.stack(parts, dim=1)


@torch.no_grad()
@pytest.mark.parametrize("n_bits", [8, 5, 1])
def test_bits_per_dimension_are_those_of_the_program(n_bits: int) -> None:
    flow = Flow([Stream.of(0), Stream.of(1)], (3, 8, 8), LEVELS, DEPTH, width=5).double()
    drawn = Stream.of(2)
    images = torch.from_numpy(drawn.child("images").integers(6, [256] * 192)).view(2, 3, 3, 8, 8)
    noise = torch.from_numpy(drawn.child("noise").uniform(6, 192)).view(images.shape)
    flow.fit(continuous(images.byte(), n_bits, noise))
    for number, parameter in enumerate(flow.parameters()):
        flat = drawn.child("weights", number).normal(1, parameter.numel())
        parameter.data += 0.1 * torch.from_numpy(flat).view(parameter.shape)
    x = continuous(images / 255, n_bits, noise)
    found = Glow(n_bits_x=n_bits).bits_per_dimension(flow(x).log_density, x)
    for run in range(2):
        torch.testing.assert_close(found[run], Program(flow, run).bits(images[run], noise[run], n_bits))
