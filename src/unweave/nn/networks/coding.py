"""Networks that encode images and decode codes: every method has one network of each kind, or one of both."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from torch import Tensor

from unweave.nn.distributions.gaussian import Gaussian


@runtime_checkable
class Encodes(Protocol):
    """A network with an encoder."""

    def encode(self, images: Tensor) -> Gaussian:
        """q(z|x) of images (P, B, c, h, w), (P, B, D)."""


@runtime_checkable
class Decodes(Protocol):
    """A network with a decoder."""

    def decode(self, codes: Tensor) -> Tensor:
        """Output of the decoder, (P, B, k c, h, w), for codes (P, B, D)."""


@runtime_checkable
class TakesCodes(Protocol):
    """A network whose codes enter the first layer of one of its parts, before any other numbers.

    They may be shifted and rounded, and scaled by one number that all codes share.
    """

    def takes_codes(self) -> str:
        """The name of this part; empty for the network itself."""


@runtime_checkable
class Generates(Protocol):
    """A generator that is trained on other numbers than codes."""

    @property
    def drawn(self) -> int:
        """How many numbers are drawn for an image."""

    def from_normal(self, numbers: Tensor) -> Tensor:
        """Its output for standard normal numbers (P, B, drawn), turned into those that it is trained on."""
