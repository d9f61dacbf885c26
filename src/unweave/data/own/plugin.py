"""Data sets from outside the package: an `Entry`, a ground truth, or a function that makes one."""

from __future__ import annotations

import hashlib
import inspect
from dataclasses import replace
from pathlib import Path

import numpy as np

from unweave.data.entry import Entry
from unweave.data.grid import Factors, GroundTruth, Images
from unweave.data.own.reference import Reference
from unweave.errors import UnweaveError
from unweave.plugins.loading import error_text, load_reference
from unweave.progress import Progress
from unweave.streams import Stream

IMAGES = 64  # that a fingerprint is made of


def entry_at(place: str) -> Entry:
    """The data set that a reference names; what it loads records the reference and a fingerprint."""
    part = load_reference(place, "data")
    if inspect.isfunction(part):
        try:
            part = part()
        except UnweaveError:
            raise
        except Exception as error:
            raise UnweaveError(
                f"the data set {place} failed: {error_text(error)}. Fix its function."
            ) from error
    if isinstance(part, GroundTruth):
        part = _entry_of(part)
    if not isinstance(part, Entry):
        raise UnweaveError(
            f"{place} is not a data set. A data set is an Entry of unweave.data.entry, a GroundTruth of "
            "unweave.data, or a function without arguments that returns one of them."
        )
    return replace(part, load=_Recorded(part, place))


def _entry_of(truth: GroundTruth) -> Entry:
    def load(root: Path, *, check: bool = True, progress: Progress | None = None) -> GroundTruth:  # noqa: ARG001
        return truth

    return Entry(truth.name, truth.factors, truth.shape[0], truth.card, load)


def fingerprint(truth: GroundTruth) -> str:
    """A short hash of the factors and of some images, which tells whether a data set has changed."""
    index = np.linspace(0, len(truth) - 1, IMAGES).astype(np.int64)
    images = np.ascontiguousarray(truth.observe(truth.factors_at(index), 0))
    digest = hashlib.blake2b(images.tobytes(), digest_size=8)
    digest.update(repr([(factor.name, factor.size) for factor in truth.factors]).encode())
    return digest.hexdigest()


class _Checked:
    """Renders images of a data set of a plug-in, and refuses what are no images."""

    def __init__(self, truth: GroundTruth, place: str) -> None:
        self.render, self.shape, self.place = truth.render, truth.shape, place

    def __call__(self, factors: Factors, stream: Stream) -> Images:
        """Images (n, c, h, w) of factors."""
        try:
            images = self.render(factors, stream)
        except UnweaveError:
            raise
        except Exception as error:
            raise UnweaveError(
                f"the data set {self.place} failed to render images: {error_text(error)}. It is called "
                "with factors (n, k) and a stream."
            ) from error
        expected = (len(factors), *self.shape)
        if not isinstance(images, np.ndarray) or images.shape != expected or images.dtype != np.uint8:
            got = (
                f"{images.dtype} of shape {images.shape}"
                if isinstance(images, np.ndarray)
                else type(images).__name__
            )
            raise UnweaveError(
                f"the data set {self.place} must render uint8 images of shape {expected}; it rendered {got}."
            )
        return images


class _Recorded:
    """Opens a data set of a plug-in, and notes how to open it again."""

    def __init__(self, entry: Entry, place: str) -> None:
        self.entry, self.place = entry, place

    def __call__(self, root: Path, *, check: bool = True, progress: Progress | None = None) -> GroundTruth:
        """Open it."""
        truth = self.entry.load_grid(root, check=check, progress=progress)
        if truth.name != self.entry.name:
            raise UnweaveError(
                f'{self.place} is listed as "{self.entry.name}" and opens as "{truth.name}". Give both the '
                "same name."
            )
        if not truth.factors:
            raise UnweaveError(f"the data set {self.place} must have at least one factor; it has none.")
        truth = replace(truth, render=_Checked(truth, self.place))
        source = f"{truth.source}; plug-in, images {fingerprint(truth)}"
        channels, height, width = truth.shape
        reference = Reference("plugin", self.place, truth.name, (height, width), "pad", channels, source)
        return replace(truth, source=source, reference=reference)
