"""Shapes3D: the .h5 file is read in place, in any order of rows, and only if its labels are the grid."""

from __future__ import annotations

import math
import os
import pickle
import subprocess
import sys
from pathlib import Path

import h5py
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from unweave.data.sets import shapes3d
from unweave.data.sets.shapes3d import StoredImages, check_labels, read_rows
from unweave.errors import ChecksumError, MissingFileError, UnweaveError
from unweave.streams import Stream

SMALL = (2, 3, 2, 2, 2, 3)
N = 144
STREAM = Stream.of(0)
# Values as published: hue in [0, 1), scale in [0.75, 1.25], shape, azimuth in [-30, 30] degrees.
RANGES = ((0, 0.9), (0, 0.9), (0, 0.9), (0.75, 1.25), (0, 3), (-30, 30))


def labels_of(sizes: tuple[int, ...]) -> NDArray[np.float64]:
    axes = [np.linspace(*ends, size) for ends, size in zip(RANGES, sizes, strict=True)]
    return np.stack([axis.ravel() for axis in np.meshgrid(*axes, indexing="ij")], axis=1)


def pictures(rows: NDArray[np.int64]) -> NDArray[np.uint8]:
    """(n, 64, 64, 3) images; two pixels spell the row, two more show that height comes before width."""
    out = np.zeros((len(rows), 64, 64, 3), np.uint8)
    out[:, 0, 0, 0], out[:, 0, 0, 1] = rows // 256, rows % 256
    out[:, 63, 0], out[:, 0, 63, 2] = 10, 20
    return out


def write_small(path: Path, **options: object) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with h5py.File(path, "w") as file:
        file.create_dataset("images", data=pictures(np.arange(N)), **options)
        file.create_dataset("labels", data=labels_of(SMALL))
    return path


@pytest.fixture(scope="module")
def full(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a file of the full size, of which only a few images were ever written."""
    path = tmp_path_factory.mktemp("root") / "3dshapes" / "3dshapes.h5"
    path.parent.mkdir()
    with h5py.File(path, "w") as file:
        images = file.create_dataset("images", (480_000, 64, 64, 3), np.uint8, chunks=(32, 64, 64, 3))
        for row in (0, 1, 47_999, 300_000, 479_999):
            images[row] = np.full((64, 64, 3), row % 250 + 1)
        file.create_dataset("labels", data=labels_of(shapes3d.SIZES))
    return path


def test_factors_are_the_published_ones() -> None:
    assert [(f.name, f.size, f.kind) for f in shapes3d.FACTORS] == [
        ("floor_hue", 10, "circular"),
        ("wall_hue", 10, "circular"),
        ("object_hue", 10, "circular"),
        ("scale", 8, "ordinal"),
        ("shape", 4, "categorical"),
        ("azimuth", 15, "ordinal"),
    ]
    assert math.prod(shapes3d.SIZES) == 480_000


def test_load_a_file_of_the_full_size(full: Path) -> None:
    truth = shapes3d.load(full.parents[1], check=False)
    assert (len(truth), truth.shape, truth.name) == (480_000, (3, 64, 64), "shapes3d")
    assert truth.source.startswith("3dshapes.h5 (sha256:")
    assert truth.source.endswith(", unverified")
    # Row = ((((floor 10 + wall) 10 + object) 8 + scale) 4 + shape) 15 + azimuth.
    factors = [
        [9, 9, 9, 7, 3, 14],
        [0, 0, 0, 0, 0, 1],
        [6, 2, 5, 0, 0, 0],
        [0, 9, 9, 7, 3, 14],
        [6, 2, 5, 0, 0, 1],
    ]
    rows = [479_999, 1, 300_000, 47_999, 300_001]
    assert truth.index(factors).tolist() == rows
    expected = [row % 250 + 1 for row in rows[:4]] + [0]
    assert truth.observe(factors).max(axis=(1, 2, 3)).tolist() == expected


def test_load_checks_the_file(full: Path, tmp_path: Path) -> None:
    with pytest.raises(ChecksumError, match=r"3dshapes.h5 is cut short"):
        shapes3d.load(full.parents[1])
    with pytest.raises(MissingFileError, match=r"shapes3d needs the file 3dshapes.h5"):
        shapes3d.load(tmp_path)


@pytest.mark.parametrize("chunks", [None, (1, 64, 64, 3), (7, 64, 64, 3), (50, 16, 8, 1)])
def test_any_rows_in_any_order(tmp_path: Path, chunks: tuple[int, ...] | None) -> None:
    options = {} if chunks is None else {"chunks": chunks, "compression": "gzip"}
    path = write_small(tmp_path / "a.h5", **options)

    @settings(deadline=None, max_examples=25)
    @given(st.lists(st.integers(0, N - 1), max_size=12))
    def check(rows: list[int]) -> None:
        got = read_rows(images, np.array(rows, np.int64))
        np.testing.assert_array_equal(got, pictures(np.array(rows, np.int64)))

    with h5py.File(path) as file:
        images = file["images"]
        check()
        np.testing.assert_array_equal(read_rows(images, np.arange(N)[::-1]), pictures(np.arange(N)[::-1]))


class Recorder:
    """Stands in for an h5py data set and notes what is read."""

    shape = (1000, 1)

    def __init__(self, chunk: int | None) -> None:
        self.chunks = None if chunk is None else (chunk, 1)
        self.read: list[tuple[int, int]] = []

    def __getitem__(self, rows: slice) -> NDArray[np.uint8]:
        self.read.append((rows.start, rows.stop))
        return (np.arange(rows.start, rows.stop) % 256).astype(np.uint8)[:, None]


@pytest.mark.parametrize(
    ("chunk", "read"),
    [
        (100, [(3, 100), (100, 102), (999, 1000)]),  # each chunk once, and never beyond what is needed
        (1, [(3, 5), (98, 102), (999, 1000)]),  # neighbours together
        (None, [(3, 5), (98, 102), (999, 1000)]),
    ],
)
def test_only_what_is_needed_is_read(chunk: int | None, read: list[tuple[int, int]]) -> None:
    images = Recorder(chunk)
    rows = [101, 4, 999, 98, 3, 99, 100, 4]
    assert read_rows(images, np.array(rows))[:, 0].tolist() == [row % 256 for row in rows]
    assert images.read == read


def test_images_have_channels_first(tmp_path: Path) -> None:
    render = StoredImages(write_small(tmp_path / "a.h5"), SMALL)
    render.check_file()
    factors = np.stack(np.unravel_index(np.array([5, 143, 5]), SMALL), axis=1)
    images = render(factors, STREAM)
    assert images.shape == (3, 3, 64, 64)
    assert images.dtype == np.uint8
    assert images.flags.c_contiguous
    assert images[:, 1, 0, 0].tolist() == [5, 143, 5]
    assert images[0, :, 63, 0].tolist() == [10, 10, 10]
    assert images[0, :, 0, 63].tolist() == [0, 0, 20]
    assert render(factors[:0], STREAM).shape == (0, 3, 64, 64)


def test_the_order_of_the_grid_is_checked() -> None:
    labels = labels_of(SMALL)
    check_labels(labels, SMALL)
    check_labels(labels + 1e-9, SMALL)
    swapped = labels[[0, 2, 1, *range(3, N)]]
    with pytest.raises(UnweaveError, match=r"2 of 144 rows do not, the first is row 1 with .*30.0\]"):
        check_labels(swapped, SMALL)
    doubled = labels.copy()
    doubled[100] = doubled[99]
    with pytest.raises(UnweaveError, match="1 of 144 rows do not, the first is row 100"):
        check_labels(doubled, SMALL)
    with pytest.raises(UnweaveError, match="144 of 144 rows do not"):
        check_labels(labels[::-1], SMALL)


@pytest.mark.parametrize(("value", "count"), [(np.nan, 4), (0.123, 4), (0.0, 3)])
def test_the_number_of_values_is_checked(value: float, count: int) -> None:
    labels = labels_of(SMALL)
    labels[100, 1] = value
    message = f"column 1 of .* should have 3 different values; got {count}"
    with pytest.raises(UnweaveError, match=message if count == 4 else "1 of 144 rows do not"):
        check_labels(labels, SMALL)
    labels[:, 1] = value
    with pytest.raises(UnweaveError, match="should have 3 different values; got 1"):
        check_labels(labels, SMALL)


def test_another_order_of_factors_is_refused(tmp_path: Path) -> None:
    path = write_small(tmp_path / "a.h5")
    with h5py.File(path, "r+") as file:
        # The first factor runs fastest.
        file["labels"][:] = labels_of(SMALL).reshape(*SMALL, 6).transpose(5, 4, 3, 2, 1, 0, 6).reshape(N, 6)
    with pytest.raises(UnweaveError, match=r"should run through the whole grid .* the last factor fastest"):
        StoredImages(path, SMALL).check_file()
    # The right file, fetched while the wrong one is open, is seen.
    write_small(tmp_path / "b.h5").replace(path)
    StoredImages(path, SMALL).check_file()


@pytest.mark.parametrize(
    ("name", "array", "message"),
    [
        ("images", None, r'array "images" of shape \(144, 64, 64, 3\) in uint8; got none'),
        ("images", np.zeros((144, 3, 64, 64), np.uint8), r"got \(144, 3, 64, 64\) in uint8"),
        ("images", np.zeros((143, 64, 64, 3), np.uint8), r"got \(143, 64, 64, 3\) in uint8"),
        ("images", np.zeros((144, 64, 64, 3), np.float32), "in float32"),
        ("labels", None, 'array "labels" .* got none'),
        ("labels", np.zeros((144, 5)), r"\(144, 6\) in float64; got \(144, 5\)"),
    ],
)
def test_wrong_content(tmp_path: Path, name: str, array: NDArray[np.generic] | None, message: str) -> None:
    path = write_small(tmp_path / "a.h5")
    with h5py.File(path, "r+") as file:
        del file[name]
        if array is None:
            file.create_group(name)
        else:
            file[name] = array
    with pytest.raises(UnweaveError, match=message):
        StoredImages(path, SMALL).check_file()


def test_damaged_files(tmp_path: Path) -> None:
    path = write_small(tmp_path / "a.h5", chunks=(16, 64, 64, 3), compression="gzip")
    whole = path.read_bytes()
    for content in (whole[: len(whole) // 2], b"", b"no HDF5 file" * 100):
        path.write_bytes(content)
        with pytest.raises(UnweaveError, match=r"cannot read .*a.h5 as an HDF5 file"):
            StoredImages(path, SMALL).check_file()


def test_damaged_pixels(tmp_path: Path) -> None:
    path = write_small(tmp_path / "a.h5", chunks=(16, 64, 64, 3), compression="gzip")
    with h5py.File(path) as file:
        chunk = file["images"].id.get_chunk_info(0)
    content = bytearray(path.read_bytes())
    content[chunk.byte_offset : chunk.byte_offset + chunk.size] = bytes(chunk.size)
    path.write_bytes(bytes(content))
    render = StoredImages(path, SMALL)
    render.check_file()
    with pytest.raises(UnweaveError, match="as an HDF5 file"):
        render(np.zeros((1, 6), np.int64), STREAM)


def test_it_can_be_pickled(tmp_path: Path) -> None:
    render = StoredImages(write_small(tmp_path / "a.h5"), SMALL)
    factors = np.array([[1, 2, 1, 1, 1, 2]])
    render(factors, STREAM)
    copy = pickle.loads(pickle.dumps(render))  # noqa: S301
    assert copy(factors, STREAM)[:, 1, 0, 0].tolist() == [143]


def test_a_file_is_opened_once_in_each_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    render = StoredImages(write_small(tmp_path / "a.h5"), SMALL)
    factors = np.array([[1, 2, 1, 1, 1, 2]])
    opened: list[h5py.File] = []
    genuine = h5py.File

    def count(path: Path, mode: str, **options: object) -> h5py.File:
        opened.append(genuine(path, mode, **options))
        return opened[-1]

    monkeypatch.setattr(h5py, "File", count)
    images = [render(factors, STREAM) for _ in range(3)]
    assert len(opened) == 1
    monkeypatch.setattr(os, "getpid", lambda: -1)  # what a forked child sees
    images.append(render(factors, STREAM))
    assert [bool(file) for file in opened] == [False, True]
    assert (np.concatenate(images)[:, 1, 0, 0] == 143).all()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_parent_and_forked_children_read_side_by_side(tmp_path: Path) -> None:
    path = write_small(tmp_path / "a.h5", chunks=(1, 64, 64, 3))
    script = f"""
import os, pathlib
import numpy as np
from unweave.data.sets.shapes3d import StoredImages
render = StoredImages(pathlib.Path({str(path)!r}), {SMALL})
def right():
    rows = np.arange({N})[::-1]
    factors = np.stack(np.unravel_index(rows, {SMALL}), axis=1)
    return all((render(factors, None)[:, 1, 0, 0] == rows).all() for _ in range(20))
before = right()
child = os.fork()
if not child:
    os._exit(0 if right() else 1)
after = right()
status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
raise SystemExit(0 if before and after and status == 0 else 1)
"""
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0
