"""Codes and images in arrays, without the model that made them: codes are looked up, nothing is computed."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unweave.data import Collection, GroundTruth, from_arrays
from unweave.data.grid import Images
from unweave.data.own.pixels import checked_pixels, to_bytes
from unweave.errors import UnweaveError
from unweave.evaluation.files import load_arrays
from unweave.evaluation.posteriors import EncoderError, Posterior, as_posterior
from unweave.explore.model import ModelCard, own_card

CHUNK = 1024  # images that are read at once
KNOWN = ("codes", "images", "factors", "names", "log_var")
HOW = "numpy.savez('codes.npz', codes=codes, images=images, factors=factors)"


@dataclass(frozen=True, eq=False)
class CodeTable:
    """The codes of known images. Two equal images have the code of the first of them."""

    card: ModelCard
    shape: tuple[int, int, int]
    scores: Mapping[str, float]
    _codes: Posterior = field(repr=False)
    _rows: Mapping[bytes, int] = field(repr=False)  # by a hash of the image
    content: int = 0
    has_decoder: bool = False

    @property
    def latents(self) -> int:
        """The number of latents."""
        return int(self._codes.mean.shape[1])

    @property
    def has_prior(self) -> bool:
        """Whether there are log variances, and so a KL divergence from a prior."""
        return self._codes.log_var is not None

    def posterior(self, images: Images) -> Posterior:
        """The codes of images that are in the table."""
        rows = [self._rows[_hash(image)] for image in images]
        log_var = self._codes.log_var
        return Posterior(self._codes.mean[rows], None if log_var is None else log_var[rows])

    def decode(self, codes: NDArray[np.float32]) -> Images:
        """Refused: arrays have no decoder."""
        raise UnweaveError(f"{self.card.name} has {len(codes)} codes to decode, and no decoder.")


def code_table(
    codes: Any,
    images: Any,
    factors: Any = None,
    *,
    names: Any = None,
    log_var: Any = None,
    name: str = "codes",
    scores: Mapping[str, float] | None = None,
) -> tuple[CodeTable, GroundTruth | Collection]:
    """Codes (n, d) of images as a model, and the images with their factors (n, k) as a data set.

    The data set is a grid only if each combination of factors has one image: with several, a change of one
    factor would change the hidden ones too.
    """
    pixels = checked_pixels(images)
    n = len(pixels)
    try:
        posterior = as_posterior(codes if log_var is None else (codes, log_var), n)
    except EncoderError as error:
        raise UnweaveError(f"codes must be (n, d), one row for each of the {n} images: {error}") from None
    data = from_arrays(images, factors, names=_words(names), name=name)
    if isinstance(data, GroundTruth) and data.stochastic:
        data = from_arrays(images, factors, names=_words(names), name=name, grid=False)
    rows: dict[bytes, int] = {}
    for start in range(0, n, CHUNK):
        for row, image in enumerate(to_bytes(pixels[start : start + CHUNK]), start):
            rows.setdefault(_hash(image), row)
    return CodeTable(own_card(name, f"{n:,} images"), data.shape, dict(scores or {}), posterior, rows), data


def read_code_table(path: Path) -> tuple[CodeTable, GroundTruth | Collection]:
    """The arrays `codes` and `images`, and perhaps `factors`, `names` and `log_var`, of an .npz file."""
    arrays = load_arrays(path)
    if not {"codes", "images"} <= arrays.keys() or not arrays.keys() <= set(KNOWN):
        raise UnweaveError(
            f"{path} must hold codes (n, d) and images (n, c, h, w), and may hold factors (n, k), their "
            f"names, and log_var (n, d); it holds {', '.join(arrays) or 'nothing'}. Write it by {HOW}."
        )
    return code_table(
        arrays["codes"],
        arrays["images"],
        arrays.get("factors"),
        names=arrays.get("names"),
        log_var=arrays.get("log_var"),
        name=path.stem,
    )


def _words(names: Any) -> list[str] | None:
    return None if names is None else [str(name) for name in np.asarray(names).ravel()]


def _hash(image: NDArray[np.uint8]) -> bytes:
    return hashlib.blake2b(np.ascontiguousarray(image).tobytes(), digest_size=16).digest()
