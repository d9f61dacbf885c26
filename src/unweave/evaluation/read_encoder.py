"""An encoder whose codes are read along fitted directions: images -> codes (n, d) -> codes (n, k)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from unweave.data import Collection, GroundTruth
from unweave.evaluation.posteriors import EncodeImages, Posterior


class ReadOut(Protocol):
    """What was fitted to the codes of an encoder; see `unweave.directions`."""

    @property
    def word(self) -> str:
        """What protocols say about it: how it was fitted, on how many codes, with which seed."""

    @property
    def note(self) -> str:
        """The same in words."""

    @property
    def code_names(self) -> tuple[str, ...]:
        """The names of the codes that are read; empty if they have none."""

    def codes(self, codes: Any) -> NDArray[Any]:
        """Codes (n, d) of the encoder -> codes (n, k)."""


Directions = TypeVar("Directions", bound=ReadOut, covariant=True)


@dataclass(frozen=True, eq=False)
class ReadEncoder(Generic[Directions]):
    """Images -> codes (n, k), which `unweave.evaluate` and `unweave.explore` take as an encoder.

    `decode` turns codes (n, k) into images; None without a decoder. `data` is what it is measured on unless
    other data are given.
    """

    directions: Directions
    encoder: EncodeImages
    decode: Callable[[NDArray[Any]], Any] | None = None
    data: GroundTruth | Collection | None = None
    name: str = "directions"

    def posterior(self, images: NDArray[np.uint8]) -> Posterior:
        """The codes of uint8 images; they have no log variances."""
        codes = self.encoder(images).mean
        return Posterior(
            self.directions.codes(codes).astype(np.promote_types(codes.dtype, np.float32), copy=False), None
        )

    def encode(self, images: NDArray[Any]) -> NDArray[Any]:
        """The codes (n, k) of images (n, c, h, w), uint8 or numbers in [0, 1]."""
        pixels = images if images.dtype == np.uint8 else np.rint(images * 255).astype(np.uint8)
        return self.posterior(pixels).mean

    @property
    def notes(self) -> tuple[str, ...]:
        """How the directions were fitted, and what the encoder notes."""
        return (self.directions.note, *getattr(self.encoder, "notes", ()))
