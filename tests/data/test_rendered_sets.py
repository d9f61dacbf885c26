"""3D Chairs, 3D Faces, Falcor3D, Isaac3D, 3DIdent and Causal3DIdent: small files in the official layout."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from data.faces import save_colour
from unweave.data import Collection, load, open_data
from unweave.data.grid import Factor
from unweave.data.npy import read_npy
from unweave.data.sets import chairs3d, faces3d, falcor3d, three_d_ident
from unweave.errors import MissingFileError, UnweaveError

CHAIRS = ("1a2b", "9f00", "b663")


def smaller(factors: tuple[Factor, ...], sizes: tuple[int, ...]) -> tuple[Factor, ...]:
    return tuple(Factor(f.name, size, f.kind) for f, size in zip(factors, sizes, strict=True))


@pytest.fixture
def few_chairs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make 3D Chairs 3 chairs, 2 heights, 2 sides."""
    monkeypatch.setattr(chairs3d, "AZIMUTHS", (0, 348))
    monkeypatch.setattr(chairs3d, "FACTORS", smaller(chairs3d.FACTORS, (3, 2, 2)))


def write_chairs(folder: Path) -> None:
    for chair, name in enumerate(CHAIRS):
        for number, (height, side) in enumerate([(20, 0), (20, 348), (30, 0), (30, 348)]):
            # Numbers of pictures start again for each height in the archive; only the names count.
            file = f"image_{0 if side == 0 and height == 20 else number:03}_p{height:03}_t{side:03}_r096.png"
            save_colour(folder / name / "renders" / file, (chair * 80, height, side // 2))


@pytest.mark.usefixtures("few_chairs")
@pytest.mark.parametrize("folder", ["chairs3d/rendered_chairs", "rendered_chairs"])
def test_chairs_show_their_factors(tmp_path: Path, folder: str) -> None:
    write_chairs(tmp_path / folder)
    truth = load("chairs3d", tmp_path)
    assert truth.sizes == (3, 2, 2)
    images = truth.observe(truth.factors_at(np.arange(12)))
    for (chair, height, side), image in zip(np.ndindex(3, 2, 2), images, strict=True):
        assert image[:, 5, 5].tolist() == [80 * chair, (20, 30)[height], (0, 174)[side]]


@pytest.mark.usefixtures("few_chairs")
def test_chairs_that_are_not_complete(tmp_path: Path) -> None:
    write_chairs(tmp_path / "chairs3d")
    (tmp_path / "chairs3d/9f00/renders/image_003_p030_t348_r096.png").unlink()
    with pytest.raises(UnweaveError, match=r"4 pictures, .* has 3, and image_..._p030_t348_r096.png is miss"):
        load("chairs3d", tmp_path)
    write_chairs(tmp_path / "chairs3d")
    save_colour(tmp_path / "chairs3d/9f00/renders/image_070_p040_t000_r096.png", (1, 1, 1))
    with pytest.raises(UnweaveError, match=r"it has 5, and image_070_p040_t000_r096.png is another view"):
        load("chairs3d", tmp_path)
    (tmp_path / "chairs3d/another/renders").mkdir(parents=True)
    with pytest.raises(UnweaveError, match=r"needs 3 folders of chairs.* has 4"):
        load("chairs3d", tmp_path)


def test_published_sizes() -> None:
    entries = (chairs3d.ENTRY, faces3d.ENTRY, falcor3d.LIVING_ROOM, falcor3d.KITCHEN)
    assert [entry.images for entry in entries] == [86_366, 127_050, 233_280, 737_280]
    # The numbers of Isaac3D's pictures: object_shape * 245760 + ... + wall_colour.
    sizes = [factor.size for factor in falcor3d.KITCHEN.grid_factors]
    strides = [math.prod(sizes[j + 1 :]) for j in range(9)]
    assert strides == [245_760, 30_720, 6_144, 1_536, 384, 96, 16, 4, 1]


@pytest.fixture
def few_rooms(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make Falcor3D two values of three factors."""
    factors = smaller(falcor3d.FACTORS["falcor3d"], (2, 1, 2, 1, 1, 2, 1))
    monkeypatch.setitem(falcor3d.FACTORS, "falcor3d", factors)


def write_rooms(folder: Path) -> np.ndarray:
    labels = np.array(list(np.ndindex(2, 1, 2, 1, 1, 2, 1)), np.float64)
    for number, (first, _, second, _, _, third, _) in enumerate(labels.astype(int).tolist()):
        save_colour(folder / "images" / f"{number:06}.png", (first * 90, second * 90, third * 90), (16, 16))
    return labels


@pytest.mark.usefixtures("few_rooms")
def test_rooms_show_their_factors(tmp_path: Path) -> None:
    labels = write_rooms(tmp_path / "Falcor3D_down128")
    with (tmp_path / "Falcor3D_down128/train-rec.labels").open("wb") as file:
        np.save(file, labels)
    truth = load("falcor3d", tmp_path)
    images = truth.observe(labels.astype(int))
    np.testing.assert_array_equal(images[:, :, 3, 3], 90 * labels[:, [0, 2, 5]])


@pytest.mark.usefixtures("few_rooms")
def test_rooms_in_another_order_or_not_complete(tmp_path: Path) -> None:
    labels = write_rooms(tmp_path / "falcor3d")
    path = tmp_path / "falcor3d/train-rec.labels"
    for wrong, message in (
        (labels[::-1], "labels of falcor3d should run through the whole grid"),
        (labels[1:], r"should hold an array of shape \(8, 7\); got \(7, 7\)"),
    ):
        with path.open("wb") as file:
            np.save(file, wrong)
        with pytest.raises(UnweaveError, match=message):
            load("falcor3d", tmp_path)
    path.write_bytes(b"no array")
    with pytest.raises(UnweaveError, match="as a NumPy file"):
        load("falcor3d", tmp_path)
    path.unlink()
    (tmp_path / "falcor3d/images/000004.png").unlink()
    with pytest.raises(MissingFileError, match=r"1 are missing, the first is images/000004.png"):
        load("falcor3d", tmp_path)
    (tmp_path / "falcor3d/images/000004.png").write_bytes(b"no picture")
    with pytest.raises(UnweaveError, match=r"cannot read the picture .*000004.png"):
        load("falcor3d", tmp_path)


@pytest.fixture
def few_faces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make 3D Faces 2 faces, 3 sides, 1 height, 2 lights."""
    monkeypatch.setattr(faces3d, "FACTORS", smaller(faces3d.FACTORS, (2, 3, 1, 2)))


@pytest.mark.usefixtures("few_faces")
@pytest.mark.parametrize("shape", [(12, 64, 64), (12, 1, 64, 64), (2, 3, 1, 2, 64, 64)])
def test_faces_show_their_factors(tmp_path: Path, shape: tuple[int, ...]) -> None:
    renders = np.repeat(np.arange(12, dtype=np.uint8) * 20, 64 * 64).reshape(shape)
    np.save(tmp_path / "basel_face_renders.npy", renders)
    truth = load("faces3d", tmp_path)
    assert truth.observe([[1, 2, 0, 1], [0, 1, 0, 0]])[:, 0, 9, 9].tolist() == [220, 40]
    assert "basel_face_renders.npy (sha256:" in truth.source


def test_renders_of_another_form(tmp_path: Path) -> None:
    path = tmp_path / "basel_face_renders.npy"
    np.save(path, np.zeros((3, 64, 64), np.uint8))
    with pytest.raises(UnweaveError, match=r"\(127050, 64, 64\) or \(50, 21, 11, 11, 64, 64\) in uint8; got"):
        load("faces3d", tmp_path)
    path.write_bytes(b"PK no array")
    with pytest.raises(UnweaveError, match=r"as a NumPy file: .* Save it with numpy.save"):
        load("faces3d", tmp_path)


def write_ident(folder: Path, count: int, suffix: str = "", red: int = 0) -> np.ndarray:
    latents = np.linspace(-1, 1, count * 10).reshape(10, count).T.astype(np.float32)
    folder.mkdir(parents=True, exist_ok=True)
    np.save(folder / f"raw_latents{suffix}.npy", latents)
    digits = math.ceil(math.log10(count))
    for number in range(count):
        save_colour(folder / f"images{suffix}" / f"{str(number).zfill(digits)}.png", (red, 10 * number, 0))
    return latents


def test_3dident_has_continuous_factors(tmp_path: Path) -> None:
    latents = write_ident(tmp_path / "3dident/train", 12)
    data = open_data("three_d_ident", tmp_path)
    assert isinstance(data, Collection)
    np.testing.assert_allclose(data.values, latents)
    assert data.images_at([11, 3])[:, 1, 0, 0].tolist() == [110, 30]
    assert [factor.name for factor in data.factors][:3] == ["object_x", "object_y", "object_z"]
    assert "raw_latents.npy (sha256:" in data.source


def test_causal3dident_has_seven_objects(tmp_path: Path) -> None:
    latents = [write_ident(tmp_path / "trainset", 2 + i, f"_{i}", 20 * i) for i in range(7)]
    data = open_data("causal3dident", tmp_path / "trainset")
    assert isinstance(data, Collection)
    np.testing.assert_allclose(data.values[:, 1:], np.concatenate(latents))
    counts = np.bincount(data.values[:, 0].astype(int))
    assert counts.tolist() == [2, 3, 4, 5, 6, 7, 8]
    images = data.images_at(np.arange(len(data)))
    np.testing.assert_array_equal(images[:, 0, 0, 0], 20 * data.values[:, 0])


def test_fewer_latents_than_pictures(tmp_path: Path) -> None:
    latents = write_ident(tmp_path / "three_d_ident", 12)
    np.save(tmp_path / "three_d_ident/raw_latents.npy", latents[:11])
    with pytest.raises(UnweaveError, match=r"factors of 11 pictures, and there are more: images/11.png\. Un"):
        open_data("three_d_ident", tmp_path)
    for i in range(7):
        write_ident(tmp_path / "trainset", 2 + i, f"_{i}")
    np.save(tmp_path / "trainset/raw_latents_6.npy", latents[:7])
    with pytest.raises(UnweaveError, match=r"raw_latents_6.npy has factors of 7 .* more: images_6/7.png"):
        open_data("causal3dident", tmp_path / "trainset")


@pytest.mark.parametrize("mapped", [False, True])
def test_numpy_files_hold_arrays_of_numbers(tmp_path: Path, mapped: bool) -> None:
    """Files that are something else end in one sentence, which never advises to unpickle them."""
    path = tmp_path / "array"
    for content, message in (
        (np.array([{"a": 1}], dtype=object), "as a NumPy file"),
        (np.array([["a"] * 10]), r"an array of real numbers; got <U1\. Get it again"),
        (np.ones((4, 10)) + 1j, "real numbers; got complex128"),
    ):
        with path.open("wb") as file:
            np.save(file, content)
        with pytest.raises(UnweaveError, match=message):
            read_npy(path, "Get it again.", mapped=mapped)
    with path.open("wb") as file:
        np.savez(file, a=np.ones(3))
    with pytest.raises(UnweaveError, match=r"should start with .*NUMPY'; got b'PK.*\. Get it again\.$"):
        read_npy(path, "Get it again.", mapped=mapped)
    path.write_bytes(b"\0NUMPY no array")
    with pytest.raises(UnweaveError, match=r"got b'.x00NUMPY'\. Get it again\.$"):
        read_npy(path, "Get it again.", mapped=mapped)
    path.write_bytes(b"")
    with pytest.raises(UnweaveError, match="got 'an empty file'"):
        read_npy(path, "Get it again.", mapped=mapped)
    with path.open("wb") as file:
        np.save(file, np.arange(12.0).reshape(3, 4))
    assert read_npy(path, "", mapped=mapped).tolist() == np.arange(12.0).reshape(3, 4).tolist()
    path.write_bytes(path.read_bytes()[:-3])
    with pytest.raises(UnweaveError, match=r"as a NumPy file \(.*\)\. Get it again\.$"):
        read_npy(path, "Get it again.", mapped=mapped)


def test_damaged_latents(tmp_path: Path) -> None:
    path = tmp_path / "raw_latents.npy"
    for array, message in (
        (np.zeros((4, 11)), r"shape \(n, 10\), a row for each picture; got \(4, 11\)"),
        (np.full((4, 10), 3.0), "numbers from -1 to 1; got 3 to 3"),
        (np.full((4, 10), np.nan), "numbers from -1 to 1"),
    ):
        np.save(path, array)
        with pytest.raises(UnweaveError, match=message):
            three_d_ident.read_latents(path)
    np.save(path, np.zeros((4, 10)))
    with pytest.raises(
        MissingFileError, match=r"needs 4 pictures .* 4 are missing, the first is images/0.png"
    ):
        open_data("three_d_ident", tmp_path)
