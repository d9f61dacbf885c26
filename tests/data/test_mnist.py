"""MNIST and Fashion-MNIST: IDX files as they are published, packed or not, whole or damaged."""

from __future__ import annotations

import gzip
import struct
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from unweave.commands.data import Files, fetch, render
from unweave.data import Collection, load, open_data
from unweave.data.idx import read_idx
from unweave.data.sets import mnist
from unweave.errors import ChecksumError, MissingFileError, UnweaveError


def idx(array: NDArray[np.uint8]) -> bytes:
    """The bytes of an IDX file, written by its specification."""
    return struct.pack(f">BBBB{array.ndim}I", 0, 0, 8, array.ndim, *array.shape) + array.tobytes()


def images(first: int, count: int) -> NDArray[np.uint8]:
    """Images whose pixels name their number, row and column."""
    numbers = first + np.arange(count)[:, None, None]
    return (3 * numbers + np.arange(28)[:, None] + 2 * np.arange(28)).astype(np.uint8)


def write(folder: Path, *, packed: bool = True, train: int = 5, test: int = 3) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    contents = (
        images(0, train),
        np.arange(train, dtype=np.uint8),
        images(train, test),
        np.full(test, 9, np.uint8),
    )
    for name, array in zip(mnist.NAMES, contents, strict=True):
        data = gzip.compress(idx(array)) if packed else idx(array)
        (folder / (name if packed else name.removesuffix(".gz"))).write_bytes(data)


@pytest.mark.parametrize(
    ("name", "folder", "packed"), [("mnist", "mnist", True), ("fashion_mnist", "FashionMNIST/raw", False)]
)
def test_images_and_classes_of_both_parts(tmp_path: Path, name: str, folder: str, packed: bool) -> None:
    write(tmp_path / folder, packed=packed)
    data = open_data(name, tmp_path, check=False)
    assert isinstance(data, Collection)
    assert (data.name, len(data), data.shape) == (name, 8, (1, 32, 32))
    assert data.values[:, 0].tolist() == [0, 1, 2, 3, 4, 9, 9, 9]
    expected = np.pad(images(0, 8), ((0, 0), (2, 2), (2, 2)))
    np.testing.assert_array_equal(data.images_at(np.arange(8))[:, 0], expected)
    assert "unverified" in data.source
    labels = mnist.FACTORS[name].labels or ()
    assert labels[9] == ("9" if name == "mnist" else "ankle boot")


def test_fetching_says_where_files_are_found(tmp_path: Path) -> None:
    files = Files(data_root=tmp_path)
    with pytest.raises(
        UnweaveError, match=r"of yale_b cannot be downloaded. Get them from http://vision.*yale_b so"
    ):
        fetch("yale_b", files=files)
    with pytest.raises(UnweaveError, match=r"from https://mmlab.* list_attr_celeba.txt and img_align"):
        fetch("celeba", files=files)
    with pytest.raises(UnweaveError, match="mnist is a collection of images without a full grid"):
        render("mnist", files=files)


def test_what_is_published() -> None:
    assert [mnist.DIGITS.images, mnist.ARTICLES.images, mnist.DIGITS.side] == [70_000, 70_000, 32]
    assert [file.urls[0] for file in mnist.DIGITS.files][:1] == [
        "https://ossci-datasets.s3.amazonaws.com/mnist/train-images-idx3-ubyte.gz"
    ]


def test_other_files_than_the_published_ones_are_refused(tmp_path: Path) -> None:
    write(tmp_path / "mnist")
    with pytest.raises(ChecksumError, match=r"train-images-idx3-ubyte.gz is cut short"):
        open_data("mnist", tmp_path)
    with pytest.raises(MissingFileError, match="unweave data fetch fashion_mnist"):
        open_data("fashion_mnist", tmp_path / "mnist" / "..")


def test_a_collection_is_not_loaded_as_a_grid(tmp_path: Path) -> None:
    with pytest.raises(UnweaveError, match=r'without a full grid.*open_data\("mnist"\)'):
        load("mnist", tmp_path)
    with pytest.raises(UnweaveError, match="without a full grid"):
        open_data("mnist:hold(digit=3)", tmp_path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "00 00 08 03.*got an empty file"),
        (idx(np.zeros((2, 3), np.uint8)), "should start with 00 00 08 03.*got 00 00 08 02"),
        (b"\0\0\x0d\x03" + idx(images(0, 1))[4:], "got 00 00 0d 03"),
        (idx(images(0, 2))[:-1], "1,568 bytes of data.*has 1,567"),
        (idx(images(0, 2)) + b"x", "it has 1,569"),
        (idx(images(0, 2))[:10], "header of 16 bytes; it is cut short and has 10. Fetch"),
    ],
)
def test_damaged_files(tmp_path: Path, content: bytes, message: str) -> None:
    (tmp_path / "images").write_bytes(content)
    with pytest.raises(UnweaveError, match=message):
        read_idx(tmp_path / "images", 3)


def test_a_packed_file_that_is_cut(tmp_path: Path) -> None:
    (tmp_path / "images.gz").write_bytes(gzip.compress(idx(images(0, 2)))[:-9])
    with pytest.raises(UnweaveError, match=r"cannot read .*images.gz"):
        read_idx(tmp_path / "images.gz", 3)


def test_files_are_unpacked_by_what_they_hold(tmp_path: Path) -> None:
    """Browsers unpack files and keep their names, and files are renamed without being unpacked."""
    write(tmp_path / "mnist")
    seen = open_data("mnist", tmp_path, check=False)
    path = tmp_path / "mnist" / mnist.NAMES[0]
    path.write_bytes(gzip.decompress(path.read_bytes()))
    path = tmp_path / "mnist" / mnist.NAMES[1]
    path.rename(path.with_suffix(""))
    again = open_data("mnist", tmp_path, check=False)
    assert isinstance(seen, Collection)
    assert isinstance(again, Collection)
    rows = np.arange(len(seen))
    np.testing.assert_array_equal(again.images_at(rows), seen.images_at(rows))
    np.testing.assert_array_equal(again.values, seen.values)


def test_labels_of_no_image(tmp_path: Path) -> None:
    (tmp_path / "labels").write_bytes(idx(np.zeros(0, np.uint8)))
    with pytest.raises(UnweaveError, match=r"a class for each image; it holds none\. Fetch"):
        mnist.read_labels(tmp_path / "labels")


def test_files_that_do_not_belong_together(tmp_path: Path) -> None:
    write(tmp_path / "mnist")
    (tmp_path / "mnist" / mnist.NAMES[1]).write_bytes(gzip.compress(idx(np.zeros(4, np.uint8))))
    with pytest.raises(UnweaveError, match=r"\(4, 28, 28\), an image for each label; got \(5, 28, 28\)"):
        open_data("mnist", tmp_path, check=False)
    (tmp_path / "mnist" / mnist.NAMES[1]).write_bytes(gzip.compress(idx(np.full(5, 10, np.uint8))))
    with pytest.raises(UnweaveError, match="classes 0 to 9; got 10"):
        open_data("mnist", tmp_path, check=False)
