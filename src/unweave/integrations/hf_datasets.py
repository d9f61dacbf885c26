"""Data sets of unweave as data sets of the library `datasets`, and the other way round."""

from __future__ import annotations

import importlib
import io
from typing import Any

import numpy as np
from PIL import Image

from unweave.data import Collection, GroundTruth, from_arrays
from unweave.data.collection import Continuous
from unweave.data.grid import Factor
from unweave.data.own.sizing import Fit, Size
from unweave.errors import UnweaveError, did_you_mean
from unweave.integrations.torch_data import TorchDataset

CHUNK = 1024  # images that are made at once
IMAGE_COLUMN = "image"
MODES = {1: "L", 3: "RGB"}


def to_hf_dataset(data: GroundTruth | Collection, *, points: int | None = None, seed: int = 0) -> Any:
    """A `datasets.Dataset` with a column of images and one for each factor.

    Categorical factors with labels become ClassLabel columns. Without `points` the data set has every row of
    the grid or collection, with `points` as many independent draws. Images are kept in memory as PNG files.
    """
    library = _library()
    rows = TorchDataset(data, points=points, seed=seed, scale=False)
    columns: dict[str, list[Any]] = {name: [] for name in (IMAGE_COLUMN, *(f.name for f in data.factors))}
    for start in range(0, len(rows), CHUNK):
        items = rows.__getitems__(range(start, min(start + CHUNK, len(rows))))
        for image, values in items:
            columns[IMAGE_COLUMN].append({"bytes": _png(image.numpy()), "path": None})
            for factor, value in zip(data.factors, values.tolist(), strict=True):
                columns[factor.name].append(_plain(factor, value))
    features = {IMAGE_COLUMN: library.Image()} | {f.name: _feature(library, f) for f in data.factors}
    return library.Dataset.from_dict(columns, features=library.Features(features))


def from_hf_dataset(
    dataset: Any,
    *,
    image: str = IMAGE_COLUMN,
    factors: list[str] | None = None,
    name: str = "own",
    size: Size | None = None,
    fit: Fit | None = None,
) -> GroundTruth | Collection:
    """A data set of unweave from a split of a `datasets.Dataset`: `load_dataset(..., split="train")`.

    `image` is the column of images, which must all have one size. `factors` are the columns to use as
    factors. Default: all columns of numbers, words and class labels. `name`, `size` and `fit` are those of
    `unweave.data.from_arrays`.
    """
    known = list(dataset.features)
    for column in (image, *(factors or ())):
        if column not in known:
            raise UnweaveError(f'the data set has no column "{column}". {did_you_mean(column, known)}')
    chosen = factors if factors is not None else [c for c in known if c != image and _is_factor(dataset, c)]
    pictures = [np.asarray(_with_channels(picture)) for picture in dataset[image]]
    if len(shapes := {picture.shape for picture in pictures}) > 1:
        raise UnweaveError(
            f"all images must have one size and mode; got {sorted(shapes)}. Resize them first."
        )
    table = {column: _values(dataset, column) for column in chosen}
    return from_arrays(np.stack(pictures), table or None, name=name, size=size, fit=fit)


def _library() -> Any:
    try:
        return importlib.import_module("datasets")
    except ImportError:
        raise UnweaveError('this needs the library datasets. Run: pip install "unweave[hub]"') from None


def _png(image: Any) -> bytes:
    """An image (c, h, w) of bytes as a PNG file."""
    channels = len(image)
    pixels = image[0] if channels == 1 else image.transpose(1, 2, 0)
    if channels not in MODES:
        raise UnweaveError(f"images must have 1 or 3 channels; got {channels}.")
    file = io.BytesIO()
    Image.fromarray(np.ascontiguousarray(pixels), MODES[channels]).save(file, "PNG")
    return file.getvalue()


def _with_channels(picture: Any) -> Any:
    return picture if picture.mode in ("L", "RGB") else picture.convert("RGB")


def _feature(library: Any, factor: Factor | Continuous) -> Any:
    if isinstance(factor, Continuous):
        return library.Value("float32")
    if factor.kind == "categorical" and factor.labels is not None:
        return library.ClassLabel(names=list(factor.labels))
    return library.Value("int64")


def _plain(factor: Factor | Continuous, value: float) -> float | int | None:
    """A value as Python writes it; None where it is not known."""
    if value != value:  # NaN
        return None
    return value if isinstance(factor, Continuous) else int(value)


def _is_factor(dataset: Any, column: str) -> bool:
    """Whether a column has one number, word or label in each row."""
    feature = dataset.features[column]
    return hasattr(feature, "names") or getattr(feature, "dtype", "") not in ("", "dict", "list")


def _values(dataset: Any, column: str) -> list[Any]:
    """The values of a column; class labels as words."""
    feature, values = dataset.features[column], list(dataset[column])
    if not hasattr(feature, "names"):
        return values
    return [None if value is None else feature.int2str(value) for value in values]
