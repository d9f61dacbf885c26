"""An autoencoder whose codes are rounded to a fixed grid of evenly spaced numbers [1, 2].

[1] Mentzer, Minnen, Agustsson, Tschannen: Finite scalar quantization: VQ-VAE made simple, ICLR 2024.
[2] Hsu, Hamid, Burns, Finn, Wu: Tripod: three complementary inductive biases for disentangled representation
learning, ICML 2024.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from unweave.nn.distributions.gaussian import Gaussian, certain
from unweave.nn.networks.architectures import build_encoder
from unweave.nn.networks.style_blocks import StyleDecoder
from unweave.streams import Stream

SPAN = 2.0  # the codes of a trained run are -2 to 2, as those of other quantised autoencoders


class GridAutoencoder(nn.Module):
    """The architecture's encoder, a grid of `size` values, and a decoder with smooth hidden features.

    The encoder's log_var is not used.
    """

    def __init__(
        self,
        streams: Sequence[Stream],
        shape: tuple[int, int, int],
        latents: int,
        architecture: str,
        size: int,
        likelihood: str = "bernoulli",
    ) -> None:
        super().__init__()
        self.encoder = build_encoder(streams, shape, latents, architecture)
        self.decoder = StyleDecoder(streams, shape, latents, likelihood)
        self.size = size

    def bounded(self, images: Tensor) -> Tensor:
        """(P, B, D): the encoder's means, between -1 and 1 by the hyperbolic tangent."""
        return torch.tanh(self.encoder(images).mean)

    def quantise(self, z: Tensor) -> Tensor:
        """The nearest of the values -1, ..., 1, for numbers in [-1, 1]."""
        steps = (self.size - 1) / 2
        return torch.round((z + 1) * steps) / steps - 1

    def encode(self, images: Tensor) -> Gaussian:
        """The values, scaled so that the grid spans -2 to 2."""
        return certain(SPAN * self.quantise(self.bounded(images)))

    def decode(self, codes: Tensor) -> Tensor:
        """Decoder output for the nearest values; the decoder is trained on no others."""
        return self.decoder.decode(self.quantise((codes / SPAN).clamp(-1, 1)))

    def takes_codes(self) -> str:
        """The decoder."""
        return "decoder"


def straight_through(values: Tensor, z: Tensor) -> Tensor:
    """The values, whose gradient goes to z unchanged."""
    return values.detach() + (z - z.detach())
