"""SmallNORB: the binary matrix format byte by byte, the order of images, and the hidden instance."""

from __future__ import annotations

import gzip
import struct
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from PIL import Image

from unweave.data.grid import Factor
from unweave.data.sets import smallnorb
from unweave.data.sets.smallnorb import Part, grid_images, grid_positions, matrix_chunks, read_labels
from unweave.errors import ChecksumError, MissingFileError, UnweaveError
from unweave.streams import Stream

BYTES, INTS = 0x1E3D4C55, 0x1E3D4C54
SIZES = (2, 3, 2, 3, 2)  # category, instance, elevation, azimuth, lighting
N = 72


def matrix(magic: int, shape: tuple[int, ...], data: bytes) -> bytes:
    """A NORB matrix written number by number: vectors and tables fill up to three sizes with ones."""
    sizes = [*shape, 1, 1, 1][: max(3, len(shape))]
    return b"".join(struct.pack("<I", number) for number in [magic, len(shape), *sizes]) + data


def values(images: NDArray[np.int64]) -> NDArray[np.int64]:
    """The grey value that shows the image's place in the grid."""
    return images * 3 + 20


def write_part(folder: Path, name: str, places: NDArray[np.int64], packed: bool = False) -> Part:
    """Write images (left camera: grey of their place; right: white) and labels of some places of the grid."""
    folder.mkdir(parents=True, exist_ok=True)
    labels = np.stack(np.unravel_index(places, SIZES), axis=1)
    stereo = np.full((len(places), 2, 96, 96), 255, np.uint8)
    stereo[:, 0] = values(places)[:, None, None]
    info = labels[:, 1:] * np.array([1, 1, 2, 1])
    contents = {
        "dat": matrix(BYTES, stereo.shape, stereo.tobytes()),
        "cat": matrix(INTS, (len(places),), labels[:, 0].astype("<i4").tobytes()),
        "info": matrix(INTS, (len(places), 4), info.astype("<i4").tobytes()),
    }
    paths = []
    for kind, content in contents.items():
        path = folder / f"{name}-{kind}.mat{'.gz' if packed else ''}"
        path.write_bytes(gzip.compress(content, 1) if packed else content)
        paths.append(path)
    return Part(*paths)


def write_all(folder: Path, packed: bool = False) -> list[Part]:
    """Both parts, their images in an order that is not that of the grid."""
    order = np.arange(N) * 31 % N
    return [
        write_part(folder, smallnorb.PARTS[0], order[:40], packed),
        write_part(folder, smallnorb.PARTS[1], order[40:], packed),
    ]


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = zip(smallnorb.FACTORS, SIZES[:1] + SIZES[2:], strict=True)
    monkeypatch.setattr(smallnorb, "FACTORS", tuple(Factor(f.name, size, f.kind) for f, size in shown))
    monkeypatch.setattr(smallnorb, "INSTANCE", Factor("instance", SIZES[1], "categorical"))


def test_factors_and_files_are_the_published_ones() -> None:
    assert [(f.name, f.size) for f in smallnorb.FACTORS] == [
        ("category", 5),
        ("elevation", 9),
        ("azimuth", 18),
        ("lighting", 6),
    ]
    assert smallnorb.FACTORS[2].kind == "circular"
    assert smallnorb.INSTANCE.size == 10
    assert [file.name for file in smallnorb.FILES] == [
        f"smallnorb-5x{part}-{kind}.mat.gz"
        for part in ("46789x9x18x6x2x96x96-training", "01235x9x18x6x2x96x96-testing")
        for kind in ("dat", "cat", "info")
    ]
    assert all(file.urls[0].endswith(f"norb-v1.0-small/{file.name}") for file in smallnorb.FILES)


@pytest.mark.parametrize(
    ("content", "shape", "expected"),
    [
        # Two whole numbers: magic 54 4C 3D 1E, one dimension, sizes 2 1 1, then 7 and -1.
        (
            "544c3d1e 01000000 02000000 01000000 01000000 07000000 ffffffff",
            (None,),
            [7, -1],
        ),
        (
            "544c3d1e 02000000 02000000 02000000 01000000 01000000 02000000 03000000 04010000",
            (2, 2),
            [[1, 2], [3, 260]],
        ),
    ],
)
def test_known_bytes_of_numbers(
    tmp_path: Path, content: str, shape: tuple[int | None, ...], expected: list[int]
) -> None:
    (tmp_path / "a.mat").write_bytes(bytes.fromhex(content))
    (tmp_path / "a.mat.gz").write_bytes(gzip.compress(bytes.fromhex(content)))
    for name in ("a.mat", "a.mat.gz"):
        [rows] = matrix_chunks(tmp_path / name, "<i4", shape)
        assert rows.tolist() == expected


def test_known_bytes_of_pixels(tmp_path: Path) -> None:
    # Four dimensions: all four sizes are stored. Bytes above 127 stay what they are.
    content = "554c3d1e 04000000 02000000 01000000 01000000 02000000 00 80 ff 7f"
    (tmp_path / "a.mat").write_bytes(bytes.fromhex(content))
    [rows] = matrix_chunks(tmp_path / "a.mat", "<u1", (2, 1, 1, 2))
    assert rows.tolist() == [[[[0, 128]]], [[[255, 127]]]]


def test_long_matrices_come_in_chunks(tmp_path: Path) -> None:
    count = 2 * smallnorb.CHUNK + 3
    numbers = np.arange(count, dtype="<i4")
    (tmp_path / "a.mat").write_bytes(matrix(INTS, (count,), numbers.tobytes()))
    chunks = list(matrix_chunks(tmp_path / "a.mat", "<i4", (None,)))
    assert [len(chunk) for chunk in chunks] == [smallnorb.CHUNK, smallnorb.CHUNK, 3]
    np.testing.assert_array_equal(np.concatenate(chunks), numbers)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "it ends early"),
        (matrix(INTS, (3,), bytes(11)), "it ends early"),
        (matrix(INTS, (3,), bytes(13)), "bytes after its end"),
        (matrix(BYTES, (3,), bytes(3)), "should start with 0x1e3d4c54, .*int32; got 0x1e3d4c55"),
        (matrix(0x1E3D4C51, (3,), bytes(12)), "got 0x1e3d4c51. Is it another file"),
        (matrix(0x544C3D1E, (3,), bytes(12)), "got 0x544c3d1e"),
        (matrix(INTS, (3, 4), bytes(48)), r"shape \(n\); its header says 2 dimensions of sizes \(3, 4\)"),
        (matrix(INTS, (0xFFFFFFFF,), b""), r"its header says 1 dimensions of sizes \(-1,\)"),
        (matrix(INTS, (0,), b""), r"of sizes \(0,\)"),
        (struct.pack("<5I", INTS, 0xFFFFFFFF, 1, 1, 1), "its header says -1 dimensions"),
    ],
)
def test_wrong_matrices(tmp_path: Path, content: bytes, message: str) -> None:
    (tmp_path / "a.mat").write_bytes(content)
    with pytest.raises(UnweaveError, match=message):
        list(matrix_chunks(tmp_path / "a.mat", "<i4", (None,)))


def test_damaged_gzip(tmp_path: Path) -> None:
    path = tmp_path / "a.mat.gz"
    whole = gzip.compress(matrix(INTS, (1000,), np.arange(1000, dtype="<i4").tobytes()))
    flipped = bytearray(whole)
    flipped[100:300] = bytes(200)
    for content in (whole[:-20], matrix(INTS, (3,), bytes(12)), bytes(flipped)):
        path.write_bytes(content)
        with pytest.raises(UnweaveError, match=r"cannot read .*a.mat.gz: .*Fetch smallnorb again"):
            list(matrix_chunks(path, "<i4", (None,)))
    with pytest.raises(UnweaveError, match="cannot read"):
        list(matrix_chunks(tmp_path / "none.mat", "<i4", (None,)))


def test_azimuth_is_halved(tmp_path: Path) -> None:
    (tmp_path / "cat").write_bytes(matrix(INTS, (2,), struct.pack("<2i", 4, 0)))
    (tmp_path / "info").write_bytes(matrix(INTS, (2, 4), struct.pack("<8i", 9, 8, 34, 5, 0, 1, 2, 3)))
    part = Part(tmp_path / "dat", tmp_path / "cat", tmp_path / "info")
    assert read_labels(part).tolist() == [[4, 9, 8, 17, 5], [0, 0, 1, 1, 3]]

    (tmp_path / "info").write_bytes(matrix(INTS, (2, 4), struct.pack("<8i", 9, 8, 33, 5, 0, 1, 2, 3)))
    with pytest.raises(UnweaveError, match="should be even numbers"):
        read_labels(part)
    (tmp_path / "info").write_bytes(matrix(INTS, (1, 4), struct.pack("<4i", 9, 8, 34, 5)))
    with pytest.raises(UnweaveError, match=r"shape \(2, 4\); .*sizes \(1, 4\)"):
        read_labels(part)


def test_images_go_to_their_place(tmp_path: Path) -> None:
    reports: list[tuple[int, int]] = []
    parts = write_all(tmp_path)
    images = grid_images(parts, SIZES, lambda done, total, _="": reports.append((done, total)))
    assert images.shape == (N, 1, 64, 64)
    assert (images == values(np.arange(N))[:, None, None, None]).all()
    assert reports == [(40, N), (N, N)]


def test_hard_edges_stay_bytes(tmp_path: Path) -> None:
    # Lanczos overshoots at a hard edge. On bytes it is cut off at 0 and 255; on whole numbers of another
    # kind it would wrap round, or leave the range, as it did in the predecessor.
    stereo = np.zeros((1, 2, 96, 96), np.uint8)
    stereo[0, 0, :, 48:] = 255
    stereo[0, 0, :50] //= 2
    (tmp_path / "dat").write_bytes(matrix(BYTES, stereo.shape, stereo.tobytes()))
    (tmp_path / "cat").write_bytes(matrix(INTS, (1,), bytes(4)))
    (tmp_path / "info").write_bytes(matrix(INTS, (1, 4), bytes(16)))
    images = grid_images([Part(tmp_path / "dat", tmp_path / "cat", tmp_path / "info")], (1, 1, 1, 1, 1))
    picture = Image.frombytes("L", (96, 96), stereo[0, 0].tobytes())
    expected = np.asarray(picture.resize((64, 64), Image.Resampling.LANCZOS))
    np.testing.assert_array_equal(images[0, 0], expected)
    assert (images[0, 0, 40:, :28] == 0).all()
    assert (images[0, 0, 40:, 36:] == 255).all()


@settings(deadline=None, max_examples=30)
@given(st.permutations(range(N)), st.integers(0, N - 1), st.integers(0, N - 1))
def test_index_covers_the_grid(order: list[int], lost: int, result: int) -> None:
    places = np.array(order)
    labels = np.stack(np.unravel_index(places, SIZES), axis=1)
    np.testing.assert_array_equal(grid_positions(labels, SIZES), places)
    labels[lost] = labels[result]
    if lost != result:
        with pytest.raises(UnweaveError, match=r"72 combinations .* 1 are missing and 1 are there more"):
            grid_positions(labels, SIZES)


def test_labels_outside_the_grid() -> None:
    labels = np.array([[0, 0, 0, 0, 0], [0, 3, 0, 0, 0], [0, 0, -1, 0, 0]])
    with pytest.raises(UnweaveError, match=r"below \(2, 3, 2, 3, 2\).*; 2 images .*first \[0, 3, 0, 0, 0\]"):
        grid_positions(labels, SIZES)


def test_number_of_images_must_fit_the_labels(tmp_path: Path) -> None:
    [first, second] = write_all(tmp_path)
    with pytest.raises(UnweaveError, match=r"shape \(40, 2, 96, 96\); .*\(32, 2, 96, 96\)"):
        grid_images([Part(second.images, first.categories, first.labels), second], SIZES)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize(("folder", "packed"), [("smallnorb", True), ("small_norb", False), (".", True)])
def test_load(tmp_path: Path, folder: str, packed: bool) -> None:
    root = tmp_path / "root"
    write_all(root / folder, packed)
    truth = smallnorb.load_with_instance(root, check=False)
    assert (truth.name, truth.stochastic, truth.sizes) == ("smallnorb_instance", False, SIZES)
    assert truth.source.count("unverified") == 6
    everything = truth.factors_at(np.arange(N))
    assert truth.observe(everything)[:, 0, 0, 0].tolist() == values(np.arange(N)).tolist()

    hidden = smallnorb.load(root, check=False)
    assert (hidden.name, hidden.stochastic, hidden.sizes) == ("smallnorb", True, (2, 2, 3, 2))
    assert [factor.name for factor in hidden.factors] == ["category", "elevation", "azimuth", "lighting"]


@pytest.mark.usefixtures("small")
def test_the_instance_is_drawn_anew_and_does_not_depend_on_batches(tmp_path: Path) -> None:
    write_all(tmp_path / "smallnorb")
    truth = smallnorb.load(tmp_path, check=False)
    factors = truth.sample_factors(3000, 1)
    stream = Stream.of(7)
    images = truth.observe(factors, stream)
    shown = np.stack(np.unravel_index((images[:, 0, 0, 0].astype(np.int64) - 20) // 3, SIZES), axis=1)
    np.testing.assert_array_equal(np.delete(shown, 1, axis=1), factors)
    # Each of three instances: 1000 of 3000, standard deviation 26.
    assert np.abs(np.bincount(shown[:, 1], minlength=3) - 1000).max() < 130

    np.testing.assert_array_equal(truth.observe(factors[1234:], stream.skip(1234)), images[1234:])
    np.testing.assert_array_equal(truth.observe(factors, stream), images)
    assert (truth.observe(factors, Stream.of(8)) != images).any()
    with pytest.raises(UnweaveError, match="needs a seed"):
        truth.observe(factors)


@pytest.mark.usefixtures("small")
def test_files_are_checked(tmp_path: Path) -> None:
    write_all(tmp_path / "smallnorb", packed=True)
    with pytest.raises(ChecksumError, match=r"training-dat.mat.gz is cut short"):
        smallnorb.load(tmp_path)
    (tmp_path / "smallnorb" / f"{smallnorb.PARTS[1]}-info.mat.gz").unlink()
    with pytest.raises(
        MissingFileError, match=r"needs the file .*testing-info.mat.gz or .*testing-info.mat,"
    ):
        smallnorb.load(tmp_path)


@pytest.mark.usefixtures("small")
def test_unpacked_files_have_no_published_checksum(tmp_path: Path) -> None:
    write_all(tmp_path / "smallnorb")
    assert smallnorb.load(tmp_path).source.count("unverified") == 6


@pytest.mark.usefixtures("small")
def test_other_files_never_get_stale_images(tmp_path: Path) -> None:
    write_all(tmp_path / "smallnorb")
    first = smallnorb.load_with_instance(tmp_path, check=False)
    path = tmp_path / "smallnorb" / f"{smallnorb.PARTS[0]}-dat.mat"
    content = bytearray(path.read_bytes())
    content[24 : 24 + 96 * 96] = bytes([250]) * (96 * 96)  # the first image stored is the grid's first
    path.write_bytes(bytes(content))
    second = smallnorb.load_with_instance(tmp_path, check=False)
    assert first.observe([[0, 0, 0, 0, 0]]).max() == 20
    assert second.observe([[0, 0, 0, 0, 0]]).min() == 250


@pytest.mark.usefixtures("small")
def test_a_grid_that_does_not_cover_leaves_no_table(tmp_path: Path) -> None:
    write_part(tmp_path, smallnorb.PARTS[0], np.arange(40))
    write_part(tmp_path, smallnorb.PARTS[1], np.arange(38, 70))
    with pytest.raises(UnweaveError, match="2 are missing and 2 are there more than once"):
        smallnorb.load(tmp_path, check=False)
    assert not list((tmp_path / "cache").rglob("*.npy"))
