"""A table of images on a device, and how rows of it are drawn and painted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from torch import Tensor

from unweave.nn.draws import Purpose, path_of

Paint: TypeAlias = Literal["none", "colour", "noise", "scream"]

# The streams that a paint draws from.
PAINT_STREAMS: dict[Paint, tuple[str, ...]] = {
    "none": (),
    "colour": ("colour",),
    "noise": ("noise",),
    "scream": ("offset", "shift"),
}
PAINTED_CHANNELS = 3


@dataclass(frozen=True, eq=False)
class ImageTable:
    """Images on a device, and how rows of them are drawn and painted.

    The number of a row is the sum over all streams and columns of stride times a whole number below size.
    Unused columns have size 0; the number of columns is a multiple of four, the words of one Philox call. The
    first stream draws the factors of an image; the others draw hidden factors.
    """

    images: Tensor  # (n, c, h, w) bytes, or (n, c h w / 8) packed bits, the first pixel in the highest
    shape: tuple[int, int, int]  # (c, h, w) of an image in the table
    streams: tuple[tuple[str, ...], ...]  # children of a batch's stream
    sizes: Tensor  # (streams, columns) int64
    strides: Tensor  # (streams, columns) int64
    paint: Paint = "none"
    picture: Tensor | None = None  # (H, W, 3) bytes, behind the sprites of scream

    @property
    def packed(self) -> bool:
        """Whether the table holds bits."""
        return self.images.ndim == 2

    @property
    def channels(self) -> int:
        """Channels of the painted images."""
        return self.shape[0] if self.paint == "none" else PAINTED_CHANNELS

    def purposes(self, purpose: Purpose) -> tuple[Purpose, ...]:
        """The streams of a batch: those of the rows, then those of the paint."""
        path = path_of(purpose)
        rows = [(*path, *stream) for stream in self.streams]
        return *rows, *((*path, "observe", name) for name in PAINT_STREAMS[self.paint])
