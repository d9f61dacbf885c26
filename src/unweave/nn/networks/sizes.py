"""Heights and widths of images that networks take."""

from __future__ import annotations

from dataclasses import dataclass

from unweave.errors import UnweaveError


@dataclass(frozen=True)
class Sizes:
    """Heights and widths from `least` to `most`, in multiples of `multiple`."""

    least: int = 1
    multiple: int = 1
    most: int | None = None

    def accepts(self, shape: tuple[int, int, int]) -> bool:
        """Whether images of shape (channels, height, width) fit."""
        return all(
            side >= self.least and side % self.multiple == 0 and (self.most is None or side <= self.most)
            for side in shape[1:]
        )

    def check(self, shape: tuple[int, int, int], networks: str, advice: str = "Resize them.") -> None:
        """Refuse other images; `networks` names the networks in the error message."""
        if not self.accepts(shape):
            raise UnweaveError(
                f"Images for {networks} must have height and width {self}; got {shape[1]} x {shape[2]}. "
                f"{advice}"
            )

    def __str__(self) -> str:
        steps = f", in multiples of {self.multiple}" if self.multiple > 1 else ""
        return f"of at least {self.least}{'' if self.most is None else f' and at most {self.most}'}{steps}"


def check_shape(shape: tuple[int, ...]) -> None:
    """Refuse a shape that is not that of an image."""
    if len(shape) != 3 or min(shape) < 1:
        raise UnweaveError(f"The shape of an image must be (channels, height, width), all >= 1; got {shape}.")
