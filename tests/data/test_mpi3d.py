"""MPI3D: which edition a file is, and images read from it without loading it whole."""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from unweave.data.grid import Factor
from unweave.data.npz import Member
from unweave.data.sets import mpi3d
from unweave.errors import ChecksumError, MissingFileError, UnweaveError
from unweave.streams import Stream

SIZES = {"challenge": (2, 2, 2, 3, 3, 2, 2), "full": (3, 3, 2, 3, 3, 2, 2)}
COUNT = {"challenge": 288, "full": 648}


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make both editions small."""

    def shrink(factors: tuple[Factor, ...], sizes: tuple[int, ...]) -> tuple[Factor, ...]:
        return tuple(Factor(f.name, size, f.kind) for f, size in zip(factors, sizes, strict=True))

    full, challenge = mpi3d.EDITIONS
    monkeypatch.setattr(
        mpi3d, "EDITIONS", (shrink(full, SIZES["full"]), shrink(challenge, SIZES["challenge"]))
    )


def pictures(n: int) -> NDArray[np.uint8]:
    """(n, 64, 64, 3) images; two pixels spell the row, two more show that height comes before width."""
    out = np.zeros((n, 64, 64, 3), np.uint8)
    out[:, 0, 0, 0], out[:, 0, 0, 1] = np.arange(n) // 256, np.arange(n) % 256
    out[:, 63, 0], out[:, 0, 63, 2] = 10, 20
    return out


def write(path: Path, packed: bool = False, **arrays: NDArray[np.generic]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    save: Callable[..., None] = np.savez_compressed if packed else np.savez
    save(path, **arrays)
    return path


def write_headers(path: Path, shape: tuple[int, ...]) -> Path:
    """An .npz file of any size that takes no room: the images are a hole in the file.

    Beyond 4 GiB the sizes stand in extra fields (zip64), as in the real files.
    """
    npy = f"{{'descr': '|u1', 'fortran_order': False, 'shape': {shape}, }}".ljust(117) + "\n"
    array_start = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(npy)) + npy.encode()
    size = len(array_start) + int(np.prod(shape))
    name, extra = b"images.npy", struct.pack("<HHQQ", 1, 16, size, size)
    entry = struct.pack("<5H3I2H", 45, 0, 0, 0, 0, 0, 2**32 - 1, 2**32 - 1, len(name), len(extra))
    local = b"PK\x03\x04" + entry + name + extra
    start = len(local) + size
    central = (
        b"PK\x01\x02" + struct.pack("<H", 45) + entry + struct.pack("<3H2I", 0, 0, 0, 0, 0) + name + extra
    )
    record = struct.pack("<4sQ2H2I4Q", b"PK\x06\x06", 44, 45, 45, 0, 0, 1, 1, len(central), start)
    locator = struct.pack("<4sIQI", b"PK\x06\x07", 0, start + len(central), 1)
    end = struct.pack("<4s4H2IH", b"PK\x05\x06", 0, 0, 1, 1, len(central), 2**32 - 1, 0)
    with path.open("wb") as file:
        file.write(local + array_start)
        file.seek(start)
        file.write(central + record + locator + end)
    return path


def test_files_are_the_published_ones() -> None:
    assert {name: (file.name, file.checksum[:12]) for name, file in mpi3d.FILES.items()} == {
        "mpi3d_toy": ("mpi3d_toy.npz", "md5:55889cb7"),
        "mpi3d_realistic": ("mpi3d_realistic.npz", "md5:59a6225b"),
        "mpi3d_real": ("mpi3d_real.npz", "md5:0f33f609"),
    }


@pytest.mark.parametrize(("n", "first"), [(460_800, 4), (1_036_800, 6)])
def test_editions_of_the_full_size(tmp_path: Path, n: int, first: int) -> None:
    sizes = (first, first, 2, 3, 3, 40, 40)
    path = write_headers(tmp_path / "a.npz", (n, 64, 64, 3))
    assert path.stat().st_size > n * 64 * 64 * 3
    with path.open("r+b") as file:
        # Channel 1 of row 0, column 2, of the third image from the end, behind the headers of the zip file
        # (30 bytes, name 10, extra field 20) and of the array (128).
        file.seek(30 + 10 + 20 + 128 + (n - 3) * 64 * 64 * 3 + 2 * 3 + 1)
        file.write(b"\x4d")
    member = Member(path, "images")
    factors = mpi3d.edition(member)
    assert tuple(factor.size for factor in factors) == sizes
    assert [factor.name for factor in factors] == [
        "object_colour",
        "object_shape",
        "object_size",
        "camera_height",
        "background_colour",
        "horizontal_axis",
        "vertical_axis",
    ]
    render = mpi3d.render_from(mpi3d.open_images(member, "unused"), factors)
    images = render(np.array([[first - 1, first - 1, 1, 2, 2, 39, 37]]), Stream.of(0))
    assert np.argwhere(images).tolist() == [[0, 1, 0, 2]]
    assert images.max() == 0x4D
    assert mpi3d.edition(Member(write_headers(tmp_path / "b.npz", (*sizes, 64, 64, 3)), "images")) == factors


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("edition", ["challenge", "full"])
@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("axes", [False, True])
@pytest.mark.parametrize(("name", "folder"), [("mpi3d_toy", "mpi3d_toy"), ("mpi3d_real", "mpi3d")])
def test_each_image_shows_its_own_factors(
    tmp_path: Path, edition: str, packed: bool, axes: bool, name: str, folder: str
) -> None:
    n, sizes = COUNT[edition], SIZES[edition]
    images = pictures(n)
    stored = images.reshape(*sizes, 64, 64, 3) if axes else images
    write(tmp_path / folder / f"{name}.npz", packed, other=np.arange(3), images=stored)
    truth = mpi3d.load(name, tmp_path, check=False)
    assert (truth.name, truth.sizes, truth.shape) == (name, sizes, (3, 64, 64))
    assert truth.source.startswith(f"{name}.npz (sha256:")
    assert truth.source.endswith(", unverified")
    factors = truth.factors_at(np.arange(n))
    np.testing.assert_array_equal(truth.observe(factors), images.transpose(0, 3, 1, 2))
    shown = truth.observe(factors[[n - 1, 5, 5]])
    assert shown.flags.c_contiguous
    assert shown[:, 1, 0, 0].tolist() == [(n - 1) % 256, 5, 5]


@pytest.mark.usefixtures("small")
def test_plain_files_are_mapped_and_packed_ones_unpacked_once(tmp_path: Path) -> None:
    tables = tmp_path / "cache" / "tables"
    reports: list[tuple[int, int]] = []

    def load() -> None:
        mpi3d.load("mpi3d_toy", tmp_path, check=False, progress=lambda *done: reports.append(done))

    write(tmp_path / "mpi3d_toy.npz", images=pictures(288))
    load()
    assert reports == []
    assert not tables.exists()
    write(tmp_path / "mpi3d_toy.npz", packed=True, images=pictures(288))
    load()
    load()
    assert reports == [(288, 288)]
    assert len(list(tables.glob("*.npy"))) == 1
    write(tmp_path / "mpi3d_toy.npz", packed=True, images=255 - pictures(288))
    load()
    assert len(list(tables.glob("*.npy"))) == 2


def test_missing_file_wrong_checksum_unknown_name(tmp_path: Path) -> None:
    with pytest.raises(MissingFileError, match=r"mpi3d_real needs the file mpi3d_real.npz"):
        mpi3d.load("mpi3d_real", tmp_path)
    write(tmp_path / "mpi3d_toy.npz", images=pictures(288))
    with pytest.raises(ChecksumError, match="is not the published file: expected md5:55889cb7"):
        mpi3d.load("mpi3d_toy", tmp_path)
    with pytest.raises(UnweaveError, match=r'no data set "mpi3d_reel" .* Did you mean "mpi3d_real"'):
        mpi3d.load("mpi3d_reel", tmp_path)


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"imgs": pictures(2)}, 'should hold an array "images"; it holds imgs'),
        (
            {"images": pictures(288)},
            r"should be \(460800, .* or \(1036800, .*got \(288, 64, 64, 3\) in uint8",
        ),
        ({"images": pictures(288).astype(np.float32)}, "in float32"),
        ({"images": np.array(5)}, r"got \(\) in int64"),
        ({"images": np.array([{}, None])}, "pickled objects, which are never loaded"),
        ({"images": np.asfortranarray(pictures(288))}, "column-major"),
    ],
)
@pytest.mark.parametrize("packed", [False, True])
def test_wrong_content(
    tmp_path: Path, arrays: dict[str, NDArray[np.generic]], message: str, packed: bool
) -> None:
    write(tmp_path / "mpi3d_toy.npz", packed, **arrays)
    with pytest.raises(UnweaveError, match=message):
        mpi3d.load("mpi3d_toy", tmp_path, check=False)


@pytest.mark.usefixtures("small")
def test_channels_first_and_other_types_are_refused(tmp_path: Path) -> None:
    for images in (pictures(288).transpose(0, 3, 1, 2).copy(), pictures(288).astype(np.int16)):
        write(tmp_path / "mpi3d_toy.npz", images=images)
        with pytest.raises(UnweaveError, match=r"got \(288, "):
            mpi3d.load("mpi3d_toy", tmp_path, check=False)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("packed", [False, True])
def test_truncated_file(tmp_path: Path, packed: bool) -> None:
    path = write(tmp_path / "mpi3d_toy.npz", packed, images=pictures(288))
    whole = path.read_bytes()
    for length in (0, 100, len(whole) // 2, len(whole) - 30):
        path.write_bytes(whole[:length])
        with pytest.raises(UnweaveError, match=r"is not a whole .npz file"):
            mpi3d.load("mpi3d_toy", tmp_path, check=False)


@pytest.mark.usefixtures("small")
def test_damage_inside_a_packed_file_leaves_no_table(tmp_path: Path) -> None:
    path = write(tmp_path / "mpi3d_toy.npz", packed=True, images=pictures(288))
    content = bytearray(path.read_bytes())
    content[len(content) // 2 : len(content) // 2 + 200] = bytes(200)
    path.write_bytes(bytes(content))
    with pytest.raises(UnweaveError, match=r"is not a whole .npz file"):
        mpi3d.load("mpi3d_toy", tmp_path, check=False)
    assert not list((tmp_path / "cache").rglob("*.npy"))
