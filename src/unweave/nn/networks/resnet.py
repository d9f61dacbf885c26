"""A residual encoder and decoder, for images of any height and width from 16 to 256.

Images are padded with zeros to multiples of 16 on the way in and cropped on the way out. The encoder halves
them four times; after each halving, and before each doubling of the decoder, there is a residual block
x + conv(relu(conv(relu(x)))) of 3 x 3 convolutions [1]. There is no batch normalisation: the features of an
image do not depend on the batch it is in.

[1] He, Zhang, Ren, Sun: Identity mappings in deep residual networks, ECCV 2016.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch.nn.functional as F
from torch import Tensor, nn

from unweave.nn.layers import Conv2d, ConvTranspose2d, Linear, SameConv2d, as_numbers, heads
from unweave.nn.networks.sizes import Sizes
from unweave.nn.networks.vae import Decoder, Encoder, dense_layers
from unweave.streams import Stream

CHANNELS = (32, 32, 64, 64)  # after each halving
MULTIPLE = 2 ** len(CHANNELS)
SIZES = Sizes(least=16, most=256)
WIDTH = 256  # of the dense layer


class ResidualBlock(nn.Module):
    """x + conv(relu(conv(relu(x)))), (P, B, C, H, W) -> the same shape."""

    def __init__(self, streams: Sequence[Stream], name: str, channels: int) -> None:
        super().__init__()
        self.first = SameConv2d(streams, f"{name}.conv1", channels, channels, activation="relu")
        self.second = SameConv2d(streams, f"{name}.conv2", channels, channels)

    def forward(self, x: Tensor) -> Tensor:
        """The sum."""
        change: Tensor = self.second(self.first(F.relu(x)))
        return x + change


class ResNetEncoder(Encoder):
    """Four halvings, each followed by a residual block, and a dense layer."""

    def __init__(self, streams: Sequence[Stream], shape: tuple[int, int, int], latents: int) -> None:
        super().__init__(shape)
        self.padding = _padding(shape)
        self.convolutions, self.blocks = nn.ModuleList(), nn.ModuleList()
        channels = shape[0]
        for number, outputs in enumerate(CHANNELS, 1):
            self.convolutions.append(Conv2d(streams, f"encoder.conv{number}", channels, outputs))
            self.blocks.append(ResidualBlock(streams, f"encoder.block{number}", outputs))
            channels = outputs
        inputs = channels * math.prod(_smallest(shape))
        self.dense = dense_layers(streams, "encoder", (inputs, WIDTH), "relu")
        self.heads = heads(streams, ("encoder.mean", "encoder.log_var"), WIDTH, latents, last=True)

    def features(self, images: Tensor) -> Tensor:
        """The output of the dense layer."""
        x = F.pad(as_numbers(images), self.padding)
        for convolution, block in zip(self.convolutions, self.blocks, strict=True):
            x = block(convolution(x))
        features: Tensor = self.dense(F.relu(x).permute(0, 1, 3, 4, 2).flatten(2))
        return features


class ResNetDecoder(Decoder):
    """Dense layers, and four residual blocks, each followed by a doubling."""

    def __init__(self, streams: Sequence[Stream], shape: tuple[int, int, int], latents: int) -> None:
        super().__init__(latents)
        inputs, outputs = CHANNELS[::-1], (*CHANNELS[-2::-1], shape[0])
        left, _, top, _ = _padding(shape)
        self.first_image = (*_smallest(shape), inputs[0])
        self.rows, self.columns = slice(top, top + shape[1]), slice(left, left + shape[2])
        self.dense = dense_layers(streams, "decoder", (latents, WIDTH), "relu")
        self.to_image = Linear(streams, "decoder.image", WIDTH, math.prod(self.first_image))
        self.blocks, self.convolutions = nn.ModuleList(), nn.ModuleList()
        for number, (before, after) in enumerate(zip(inputs, outputs, strict=True), 1):
            self.blocks.append(ResidualBlock(streams, f"decoder.block{number}", before))
            self.convolutions.append(ConvTranspose2d(streams, f"decoder.deconv{number}", before, after))

    def output(self, z: Tensor) -> Tensor:
        """Through all layers."""
        x: Tensor = self.to_image(self.dense(z)).unflatten(2, self.first_image).permute(0, 1, 4, 2, 3)
        for block, convolution in zip(self.blocks, self.convolutions, strict=True):
            x = convolution(F.relu(block(x)))
        return x[..., self.rows, self.columns]


def _padding(shape: tuple[int, int, int]) -> tuple[int, int, int, int]:
    """Left, right, top, bottom: rows and columns of zeros, as `torch.nn.functional.pad` takes them."""
    missing_rows, missing_columns = (-side % MULTIPLE for side in shape[1:])
    left, top = missing_columns // 2, missing_rows // 2
    return left, missing_columns - left, top, missing_rows - top


def _smallest(shape: tuple[int, int, int]) -> tuple[int, int]:
    """Height and width of the padded image after all halvings."""
    height, width = (-(-side // MULTIPLE) for side in shape[1:])
    return height, width
