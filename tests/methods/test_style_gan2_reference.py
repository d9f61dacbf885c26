"""StyleGAN2 against its authors' program, written again layer by layer for one image at a time.

From github.com/NVlabs/stylegan2-ada-pytorch: training/networks.py and torch_utils/ops/upfirdn2d.py.
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from unweave.methods import StyleGAN2
from unweave.methods.method import Adam
from unweave.methods.style_gan2 import DISCRIMINATOR, GENERATOR
from unweave.nn.networks.style_gan import StyleDiscriminator, StyleGenerator, Widths
from unweave.streams import Stream

SIDES, LATENTS, MAPPING = (4, 8, 16), 5, 2
WIDTHS = Widths(64, 9)  # 9, 8 and 4 channels
DRAWN = Stream.of(7)
RUNS = [Stream.of(0), Stream.of(1)]


def moved(network: nn.Module) -> None:
    """Other weights, so that no strength of noise and no bias is zero."""
    for number, parameter in enumerate(network.parameters()):
        flat = DRAWN.child("weights", number).normal(1, parameter.numel())
        parameter.data += 0.3 * torch.from_numpy(flat).float().view(parameter.shape)


def numbers(name: str, *shape: int) -> Tensor:
    flat = DRAWN.child(name).normal(1, math.prod(shape))
    return torch.from_numpy(flat).float().view(shape)


def filtered(x: Tensor, before: int, after: int, gain: float = 1.0) -> Tensor:
    """The filter [1, 3, 3, 1] in both directions, with zeros around images (1, C, H, W)."""
    taps = torch.tensor([1.0, 3.0, 3.0, 1.0]) / 8
    kernel = (gain * torch.outer(taps, taps)).expand(x.shape[1], 1, 4, 4)
    return F.conv2d(F.pad(x, (before, after, before, after)), kernel, groups=x.shape[1])


def doubled(image: Tensor) -> Tensor:
    """`upsample2d`: zeros between pixels, and the filter with a gain of 4."""
    wide = image.new_zeros(*image.shape[:2], 2 * image.shape[2], 2 * image.shape[3])
    wide[..., ::2, ::2] = image
    return filtered(wide, 2, 1, gain=4.0)


def rectified(x: Tensor) -> Tensor:
    return F.leaky_relu(x, 0.2) * math.sqrt(2)


class Program:
    """The program's networks with the weights of one run."""

    def __init__(self, network: nn.Module, run: int) -> None:
        self.weights = {name: value[run].detach() for name, value in network.named_parameters()}

    def dense(self, name: str, x: Tensor, rate: float = 1.0) -> Tensor:
        """`FullyConnectedLayer` without activation."""
        weight, bias = self.weights[f"{name}.weight"], self.weights[f"{name}.bias"]
        return x @ weight * (rate / math.sqrt(len(weight))) + bias * rate

    def mapping(self, z: Tensor) -> Tensor:
        x = z * (z.square().mean() + 1e-8).rsqrt()
        for number in range(MAPPING):
            x = rectified(self.dense(f"mapping.{number}", x, rate=0.01))
        return x

    def layer(self, name: str, x: Tensor, w: Tensor, noise: Tensor, up: bool) -> Tensor:
        """`SynthesisLayer`, with weights that are modulated and demodulated."""
        style = self.dense(f"{name}.convolution.affine", w)
        weight = self.weights[f"{name}.convolution.weight"] * style[None, :, None, None]
        weight = weight * (weight.square().sum((1, 2, 3), keepdim=True) + 1e-8).rsqrt()
        if up:
            x = filtered(F.conv_transpose2d(x, weight.transpose(0, 1), stride=2), 1, 1, gain=4.0)
        else:
            x = F.conv2d(x, weight, padding=1)
        x = x + noise * self.weights[f"{name}.strength"]
        return rectified(x + self.weights[f"{name}.bias"][None, :, None, None])

    def synthesis(self, ws: Tensor, noise: Tensor) -> Tensor:
        """An image of w of each layer; `torgb` of a resolution shares w with the next convolution."""
        maps = iter(noise.split([side**2 for side in (4, 8, 8, 16, 16)]))
        x, place = self.weights["synthesis.constant"][None], 0
        image: Tensor | None = None
        for block, side in enumerate(SIDES):
            name = f"synthesis.blocks.{block}"
            for number in range(1 if block == 0 else 2):
                up = block > 0 and number == 0
                x = self.layer(f"{name}.convolutions.{number}", x, ws[place], next(maps).view(side, side), up)
                place += 1
            style = self.dense(f"{name}.to_image.affine", ws[place]) / math.sqrt(x.shape[1])
            part = F.conv2d(x, self.weights[f"{name}.to_image.weight"] * style[None, :, None, None])
            part = part + self.weights[f"{name}.image_bias"][None, :, None, None]
            image = part if image is None else doubled(image) + part
        assert image is not None
        return image

    def convolution(self, name: str, x: Tensor, gain: float = 1.0) -> Tensor:
        """`Conv2dLayer`: equalised weights, and, with a bias, a rectifier."""
        weight = self.weights[f"{name}.weight"]
        kernel, inputs = weight.shape[-1], weight.shape[1]
        weight = weight / math.sqrt(inputs * kernel**2)
        if name.endswith("halve"):
            x = F.conv2d(filtered(x, 2, 2), weight, stride=2)
        elif name.endswith("skip"):
            x = F.conv2d(filtered(x, 1, 1)[..., ::2, ::2], weight)
        else:
            x = F.conv2d(x, weight, padding=kernel // 2)
        bias = self.weights.get(f"{name}.bias")
        return gain * (x if bias is None else rectified(x + bias[None, :, None, None]))

    def discriminator(self, images: Tensor) -> Tensor:
        """Logits of a group of images, which are compared with one another."""
        x = self.convolution("trunk.from_image", images)
        for block in range(len(SIDES) - 1):
            name, half = f"trunk.blocks.{block}", math.sqrt(0.5)
            skip = self.convolution(f"{name}.skip", x, half)
            x = skip + self.convolution(f"{name}.halve", self.convolution(f"{name}.keep", x), half)
        deviation = ((x - x.mean(0)).square().mean(0) + 1e-8).sqrt().mean()
        x = torch.cat([x, deviation.expand(len(x), 1, 4, 4)], dim=1)
        x = rectified(self.dense("dense", self.convolution("last", x).flatten(1)))
        return self.dense("verdict", x).squeeze(-1)


@torch.no_grad()
def test_images_are_those_of_the_program() -> None:
    generator = StyleGenerator(RUNS, (3, 16, 16), LATENTS, WIDTHS, MAPPING)
    moved(generator)
    z, ws = numbers("z", 2, 3, LATENTS), numbers("w", 2, 3, 6, LATENTS)
    noise = numbers("noise", 2, 3, 16 + 2 * 64 + 2 * 256)
    styles, images = generator.styles(z), generator(ws, noise)
    for run in range(2):
        program = Program(generator, run)
        for image in range(3):
            torch.testing.assert_close(styles[run, image], program.mapping(z[run, image]))
            expected = program.synthesis(ws[run, image], noise[run, image])[0]
            torch.testing.assert_close(images[run, image], expected, rtol=1e-4, atol=1e-4)


@torch.no_grad()
def test_logits_are_those_of_the_program() -> None:
    discriminator = StyleDiscriminator(RUNS, (3, 16, 16), WIDTHS)
    moved(discriminator)
    images = numbers("images", 2, 8, 3, 16, 16)
    logits = discriminator(images, 4)
    for run in range(2):
        program = Program(discriminator, run)
        expected = torch.cat([program.discriminator(group) for group in images[run].split(4)])
        torch.testing.assert_close(logits[run], expected, rtol=1e-4, atol=1e-5)


def test_optimisers_are_those_of_the_program() -> None:
    """`auto` below 1,024 pixels, without the corrections for its separate penalties; train.py."""
    players = {player.name: player for player in StyleGAN2().players}
    for name in (GENERATOR, DISCRIMINATOR):
        assert players[name].optimiser == Adam(learning_rate=2.5e-3, beta1=0.0, beta2=0.99)
