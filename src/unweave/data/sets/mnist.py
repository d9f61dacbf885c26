"""MNIST and Fashion-MNIST: 70,000 grey images of ten classes each.

LeCun, Bottou, Bengio, Haffner: "Gradient-based learning applied to document recognition" (Proc. IEEE 1998).
Xiao, Rasul, Vollgraf: "Fashion-MNIST: a novel image dataset" (arXiv 1708.07747, 2017).

The training part (60,000 images) comes first, then the test part (10,000). Images of 28 x 28 pixels get a
border of two black pixels, so that the convolutional networks take them. Only the class is known, and classes
are not equally frequent in MNIST, so each data set is a collection.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from unweave.data.cache import Table, cached_table, fingerprint
from unweave.data.collection import Collection
from unweave.data.entry import Entry
from unweave.data.files import OfficialFile, describe, locate
from unweave.data.grid import Card, Factor
from unweave.data.idx import read_idx
from unweave.data.own.sizing import padded
from unweave.data.picture_rows import Decoded, collection_of
from unweave.errors import UnweaveError
from unweave.progress import Progress

MNIST, FASHION = "mnist", "fashion_mnist"
SIDE, STORED_SIDE = 32, 28
IMAGES = 70_000
CLASSES = 10

FACTORS = {
    MNIST: Factor("digit", CLASSES, "categorical", tuple("0123456789")),
    FASHION: Factor(
        "article",
        CLASSES,
        "categorical",
        (
            "T-shirt/top",
            "trouser",
            "pullover",
            "dress",
            "coat",
            "sandal",
            "shirt",
            "sneaker",
            "bag",
            "ankle boot",
        ),
    ),
}
FOLDERS = {
    MNIST: ("mnist", "mnist/raw", "MNIST/raw"),
    FASHION: ("fashion_mnist", "fashion_mnist/raw", "FashionMNIST/raw"),
}
ADDRESSES = {
    MNIST: (
        "https://ossci-datasets.s3.amazonaws.com/mnist/",
        "https://storage.googleapis.com/cvdf-datasets/mnist/",
    ),
    FASHION: (
        "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",
        "https://raw.githubusercontent.com/zalandoresearch/fashion-mnist/master/data/fashion/",
    ),
}
NAMES = (
    "train-images-idx3-ubyte.gz",
    "train-labels-idx1-ubyte.gz",
    "t10k-images-idx3-ubyte.gz",
    "t10k-labels-idx1-ubyte.gz",
)
# (size, md5), in the order of the names.
PUBLISHED: Mapping[str, tuple[tuple[int, str], ...]] = {
    MNIST: (
        (9_912_422, "f68b3c2dcbeaaa9fbdd348bbdeb94873"),
        (28_881, "d53e105ee54ea40749a09fcbcd1e9432"),
        (1_648_877, "9fb629c4189551a2d022fa330f9573f3"),
        (4_542, "ec29112dd5afa0611ce80d1b7f02629c"),
    ),
    FASHION: (
        (26_421_880, "8d4fb7e6c68d591d4c3dfef9ec88bf0d"),
        (29_515, "25c81989df183df01b3e8a0aad5dffbe"),
        (4_422_102, "bef4ecab320f06d8554ea6380940ec79"),
        (5_148, "bb300cfdad3c16e7a12a480ee83cd310"),
    ),
}
FILES = {
    data_set: tuple(
        OfficialFile(name, f"md5:{md5}", size, tuple(f"{address}{name}" for address in ADDRESSES[data_set]))
        for name, (size, md5) in zip(NAMES, published, strict=True)
    )
    for data_set, published in PUBLISHED.items()
}
CARDS = {
    MNIST: Card(
        title="MNIST",
        licence="CC BY-SA 3.0",
        homepage="http://yann.lecun.com/exdb/mnist/",
        citation="""@article{lecun1998gradient,
  author = {LeCun, Yann and Bottou, L{\\'e}on and Bengio, Yoshua and Haffner, Patrick},
  title = {Gradient-Based Learning Applied to Document Recognition},
  journal = {Proceedings of the IEEE},
  volume = {86},
  number = {11},
  pages = {2278--2324},
  year = {1998}
}""",
        note="Images are padded from 28 x 28 to 32 x 32 pixels. Training part first, then the test part.",
    ),
    FASHION: Card(
        title="Fashion-MNIST",
        licence="MIT",
        homepage="https://github.com/zalandoresearch/fashion-mnist",
        citation="""@article{xiao2017fashion,
  author = {Xiao, Han and Rasul, Kashif and Vollgraf, Roland},
  title = {Fashion-{MNIST}: a Novel Image Dataset for Benchmarking Machine Learning Algorithms},
  journal = {arXiv preprint arXiv:1708.07747},
  year = {2017}
}""",
        note="Images are padded from 28 x 28 to 32 x 32 pixels. Training part first, then the test part.",
    ),
}


def load(name: str, root: Path, *, check: bool = True, progress: Progress | None = None) -> Collection:
    """MNIST or Fashion-MNIST from its four IDX files under root, packed (.gz) or not."""
    files, folders = FILES[name], FOLDERS[name]
    paths = [locate(name, root, folders, [file.name, file.name.removesuffix(".gz")]) for file in files]
    source = "; ".join(
        # The published checksums are those of the packed files.
        describe(path, file, check and path.name == file.name)
        for path, file in zip(paths, files, strict=True)
    )
    parts = [read_labels(paths[1]), read_labels(paths[3])]
    labels = np.concatenate(parts)

    def chunks() -> Iterator[Table]:
        for path, part in zip((paths[0], paths[2]), parts, strict=True):
            yield padded(read_images(path, len(part)), (SIDE, SIDE))

    table = cached_table(f"{name}-{fingerprint(source)}", (len(labels), 1, SIDE, SIDE), chunks, progress)
    values = labels[:, None].astype(np.float64)
    return collection_of(name, (FACTORS[name],), Decoded(table, source), values, CARDS[name])


def read_images(path: Path, count: int) -> NDArray[np.uint8]:
    """(n, 1, 28, 28) images of one part, which has `count` labels."""
    images = read_idx(path, 3)
    expected = (count, STORED_SIDE, STORED_SIDE)
    if images.shape != expected:
        raise UnweaveError(
            f"{path} should hold an array of shape {expected}, an image for each label; got {images.shape}. "
            "Put the images and labels of the same part side by side."
        )
    return images[:, None]


def read_labels(path: Path) -> NDArray[np.uint8]:
    """(n,) classes of one part."""
    labels = read_idx(path, 1)
    if not len(labels):
        raise UnweaveError(f"{path} should hold a class for each image; it holds none. Fetch it again.")
    if labels.max(initial=0) >= CLASSES:
        raise UnweaveError(
            f"{path} should hold classes 0 to {CLASSES - 1}; got {labels.max()}. Fetch the file again."
        )
    return labels


def _entry(name: str) -> Entry:
    file = NAMES[0]
    return Entry(
        name,
        (FACTORS[name],),
        1,
        CARDS[name],
        partial(load, name),
        FILES[name],
        FOLDERS[name],
        wanted=(file, file.removesuffix(".gz")),
        rows=IMAGES,
        side=SIDE,
    )


DIGITS, ARTICLES = _entry(MNIST), _entry(FASHION)
