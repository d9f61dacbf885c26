"""SmallNORB: 48,600 grey images of 50 toys in 5 categories, under 9 heights, 18 sides and 6 lightings.

LeCun, Huang, Bottou: "Learning methods for generic object recognition with invariance to pose and
lighting" (CVPR 2004).

As in the published study the training and the test part are put together, the left camera is taken, and
which of the ten toys of a category is shown is hidden: it is drawn at random for each image. Images are
shrunk from 96 to 64 pixels as bytes, so that they stay within 0 .. 255 (the predecessor's left that range).
"""

from __future__ import annotations

import gzip
import math
import struct
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, cast

import numpy as np
from numpy.typing import NDArray

from unweave.data.cache import Table, cached_table, fingerprint, table_render
from unweave.data.entry import Entry
from unweave.data.files import OfficialFile, describe, locate
from unweave.data.grid import Card, Factor, GroundTruth
from unweave.data.variants import hide
from unweave.errors import UnweaveError
from unweave.progress import Progress

NAME = "smallnorb"
SIDE = 64
STORED_SIDE = 96
SHAPE = (1, SIDE, SIDE)
CHUNK = 512
MAGIC = {"<u1": 0x1E3D4C55, "<i4": 0x1E3D4C54}
FACTORS = (
    Factor("category", 5, "categorical", ("four-legged animal", "human figure", "airplane", "truck", "car")),
    Factor("elevation", 9, "ordinal"),
    Factor("azimuth", 18, "circular"),
    Factor("lighting", 6, "categorical"),
)
INSTANCE = Factor("instance", 10, "categorical")

FOLDERS = ("smallnorb", "small_norb")
PARTS = ("smallnorb-5x46789x9x18x6x2x96x96-training", "smallnorb-5x01235x9x18x6x2x96x96-testing")
ADDRESS = "https://cs.nyu.edu/~ylclab/data/norb-v1.0-small/"


# (size, sha256) of the images (dat), categories (cat) and other labels (info) of each part.
PUBLISHED = {
    f"{PARTS[0]}-dat": (131_896_188, "5ffd6272a07d32695ee1082a26a41a93a37aab8c28da047f8c34ed348d214873"),
    f"{PARTS[0]}-cat": (348, "2784e542c1922060691090952b6cd6278879a216c90f81476f0f00256d42cdaa"),
    f"{PARTS[0]}-info": (71_052, "de7eb932ebe7a4ee16217fead60660d0eb3d23632c2f4d1c51f88c501c17bf32"),
    f"{PARTS[1]}-dat": (130_799_817, "cf7104eed3e51174d2f65b66d1e5878b9da233b886f161b0d88f4510ba2c7474"),
    f"{PARTS[1]}-cat": (347, "ecaf6d5bb8c3bc5eab9cf0258f6d2198dd474e016e374836fc097f2e5ff509ff"),
    f"{PARTS[1]}-info": (10_428, "16adf314226327ee006d1a44db8cfef52773c06c829951d5653a9f6f310248a2"),
}
FILES = tuple(
    OfficialFile(f"{name}.mat.gz", f"sha256:{sha256}", size, (f"{ADDRESS}{name}.mat.gz",))
    for name, (size, sha256) in PUBLISHED.items()
)
CARD = Card(
    title="SmallNORB",
    licence="research only; it may not be sold",
    homepage=ADDRESS,
    citation="""@inproceedings{lecun2004learning,
  author = {LeCun, Yann and Huang, Fu Jie and Bottou, L{\\'e}on},
  title = {Learning Methods for Generic Object Recognition with Invariance to Pose and Lighting},
  booktitle = {IEEE Conference on Computer Vision and Pattern Recognition},
  volume = {2},
  pages = {97--104},
  year = {2004}
}""",
    note="Which of the ten toys of a category is shown is hidden and drawn at random for each image.",
)


@dataclass(frozen=True)
class Part:
    """The three files of one part of the data: images, categories, other labels."""

    images: Path
    categories: Path
    labels: Path


def load(root: Path, *, check: bool = True, progress: Progress | None = None) -> GroundTruth:
    """SmallNORB from its six files under root (.mat.gz or .mat), the instance hidden."""
    return hide(load_with_instance(root, check=check, progress=progress), [INSTANCE.name], NAME)


ENTRY = Entry(
    NAME,
    FACTORS,
    1,
    CARD,
    load,
    FILES,
    FOLDERS,
    wanted=(FILES[0].name, FILES[0].name.removesuffix(".gz")),
    looks=INSTANCE.size,
)


def load_with_instance(root: Path, *, check: bool = True, progress: Progress | None = None) -> GroundTruth:
    """The same images with the instance as a factor, so that nothing is drawn at random.

    They are shrunk once into a table (199 MB) in the cache.
    """
    paths = [locate(NAME, root, FOLDERS, [file.name, file.name.removesuffix(".gz")]) for file in FILES]
    source = "; ".join(_source(path, file, check) for path, file in zip(paths, FILES, strict=True))
    factors = (FACTORS[0], INSTANCE, *FACTORS[1:])
    sizes = tuple(factor.size for factor in factors)

    def chunks() -> Iterator[Table]:
        # All images are made before the first is written: the files are not in the order of the grid.
        yield grid_images([Part(*paths[:3]), Part(*paths[3:])], sizes, progress)

    table = cached_table(f"{NAME}-{fingerprint(source)}", (math.prod(sizes), *SHAPE), chunks)
    render = table_render(table, sizes, SHAPE, packed=False)
    return GroundTruth(f"{NAME}_instance", factors, SHAPE, render, CARD, source)


def grid_images(parts: Sequence[Part], sizes: tuple[int, ...], progress: Progress | None = None) -> Table:
    """(n, 1, 64, 64) images of the left camera, by category, instance, elevation, azimuth, lighting."""
    from PIL import Image

    labels = [read_labels(part) for part in parts]
    positions = grid_positions(np.concatenate(labels), sizes)
    out = np.empty((len(positions), *SHAPE), np.uint8)
    done = 0
    for part, part_labels in zip(parts, labels, strict=True):
        for chunk in matrix_chunks(part.images, "<u1", (len(part_labels), 2, STORED_SIDE, STORED_SIDE)):
            for left in chunk[:, 0]:
                small = Image.fromarray(left).resize((SIDE, SIDE), Image.Resampling.LANCZOS)
                out[positions[done], 0] = np.asarray(small)
                done += 1
            if progress is not None:
                progress(done, len(out))
    return out


def read_labels(part: Part) -> NDArray[np.int64]:
    """(n, 5) labels of one part: category, instance, elevation, azimuth, lighting, each counted from 0."""
    categories = np.concatenate(list(matrix_chunks(part.categories, "<i4", (None,))))
    others = np.concatenate(list(matrix_chunks(part.labels, "<i4", (len(categories), 4))))
    labels = np.column_stack([categories, others]).astype(np.int64)
    if (labels[:, 3] % 2).any():
        raise UnweaveError(f"azimuths in {part.labels} should be even numbers (0, 2, .. 34); some are odd.")
    labels[:, 3] //= 2
    return labels


def grid_positions(labels: NDArray[np.int64], sizes: tuple[int, ...]) -> NDArray[np.int64]:
    """(n,) place in the grid of each labelled image; every place must be taken exactly once."""
    outside = ((labels < 0) | (labels >= np.asarray(sizes))).any(axis=1)
    if outside.any():
        raise UnweaveError(
            f"smallnorb's labels should lie below {sizes} (category, instance, elevation, azimuth, "
            f"lighting); {int(outside.sum())} images have others, the first {labels[outside][0].tolist()}."
        )
    positions = np.asarray(np.ravel_multi_index(tuple(labels.T), sizes), np.int64)
    count = np.bincount(positions, minlength=math.prod(sizes))
    if (count != 1).any():
        raise UnweaveError(
            f"smallnorb's images should cover each of {len(count)} combinations of labels once; "
            f"{int((count == 0).sum())} are missing and {int((count > 1).sum())} are there more than once."
        )
    return positions


def matrix_chunks(path: Path, dtype: str, shape: tuple[int | None, ...]) -> Iterator[NDArray[Any]]:
    """The rows of a matrix in NORB's binary format, some at a time; a name in .gz is unpacked on the way.

    The format: magic number, number of dimensions d, then max(3, d) sizes, of which the first d count, all
    little-endian 32-bit, then the numbers in row-major order. A size of None in shape may be any.
    """
    opener = cast(Callable[..., IO[bytes]], gzip.open if path.suffix == ".gz" else open)
    try:
        with opener(path, "rb") as file:
            rows, *row = _read_header(file, path, dtype, shape)
            row_bytes = math.prod(row) * np.dtype(dtype).itemsize
            for start in range(0, rows, CHUNK):
                count = min(CHUNK, rows - start)
                data = file.read(count * row_bytes)
                if len(data) != count * row_bytes:
                    raise EOFError("it ends early")
                yield np.frombuffer(data, dtype).reshape(count, *row)
            if file.read(1):
                raise EOFError("there are bytes after its end")
    except (OSError, EOFError, zlib.error) as error:
        raise UnweaveError(f"cannot read {path}: {error}. Fetch smallnorb again.") from error


def _read_header(file: IO[bytes], path: Path, dtype: str, shape: tuple[int | None, ...]) -> tuple[int, ...]:
    header = file.read(8 + 4 * max(3, len(shape)))
    if len(header) < 8 + 4 * max(3, len(shape)):
        raise EOFError("it ends early")
    magic, dimensions, *sizes = struct.unpack(f"<{len(header) // 4}i", header)
    if magic != MAGIC[dtype]:
        raise UnweaveError(
            f"{path} should start with {MAGIC[dtype]:#010x}, the mark of a NORB matrix of "
            f"{np.dtype(dtype).name}; got {magic & 0xFFFFFFFF:#010x}. Is it another file under this name?"
        )
    actual = tuple(sizes[:dimensions])
    fits = all(size > 0 and size == (want or size) for size, want in zip(actual, shape, strict=False))
    if dimensions != len(shape) or not fits:
        expected = ", ".join("n" if want is None else str(want) for want in shape)
        raise UnweaveError(
            f"{path} should hold an array of shape ({expected}); its header says {dimensions} dimensions "
            f"of sizes {actual}."
        )
    return actual


def _source(path: Path, file: OfficialFile, check: bool) -> str:
    # No checksum is published for the unpacked files.
    return describe(path, file, check and path.name == file.name)
