"""Cars3D: .mat files as MATLAB writes them, read in the right order of axes and of cars."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image
from scipy.io import savemat

from unweave.data.grid import Factor
from unweave.data.sets import cars3d
from unweave.errors import MissingFileError, UnweaveError

ELEVATIONS, AZIMUTHS = 2, 3
# Written in this order; sorted, "car_002" comes first.
CARS = {"car_010_mesh": 30, "car_002_mesh": 10, "car_100_mesh": 60, "car_003_mesh": 20}


def views(car: int, elevations: int = ELEVATIONS, azimuths: int = AZIMUTHS) -> NDArray[np.uint8]:
    """All views of a car as they lie in the file; each plain colour names car, azimuth and elevation."""
    out = np.empty((128, 128, 3, azimuths, elevations), np.uint8)
    out[:, :, 0] = car
    out[:, :, 1] = np.arange(azimuths)[:, None] * 40
    out[:, :, 2] = np.arange(elevations) * 90
    return out


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the data set 2 elevations, 3 azimuths, 4 cars."""
    sizes = (ELEVATIONS, AZIMUTHS, len(CARS))
    factors = tuple(Factor(f.name, size, f.kind) for f, size in zip(cars3d.FACTORS, sizes, strict=True))
    monkeypatch.setattr(cars3d, "FACTORS", factors)


def write_cars(folder: Path) -> None:
    folder.mkdir(parents=True)
    for i, (name, car) in enumerate(CARS.items()):
        mask = np.zeros((128, 128, AZIMUTHS, ELEVATIONS), np.uint8)
        savemat(folder / f"{name}.mat", {"im": views(car), "mask": mask}, do_compression=i % 2 == 0)
    (folder / "list.txt").write_text("\n".join(CARS))
    (folder / "._car_001_mesh.mat").write_bytes(b"left behind by an operating system")


def test_sizes_are_the_published_ones() -> None:
    assert [(f.name, f.size, f.kind) for f in cars3d.FACTORS] == [
        ("elevation", 4, "ordinal"),
        ("azimuth", 24, "circular"),
        ("object", 183, "categorical"),
    ]
    assert 4 * 24 * 183 == 17_568


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("folder", ["cars3d", "cars", "."])
def test_each_image_shows_its_own_factors(tmp_path: Path, folder: str) -> None:
    write_cars(tmp_path / "root" / folder)
    truth = cars3d.load(tmp_path / "root")
    assert len(truth) == 24
    for (elevation, azimuth, car), image in zip(
        np.ndindex(*truth.sizes), truth.observe(truth.factors_at(np.arange(24))), strict=True
    ):
        colour = [[10, 20, 30, 60][car], 40 * azimuth, 90 * elevation]
        assert (image == np.array(colour)[:, None, None]).all()


@pytest.mark.usefixtures("small")
def test_images_are_decoded_once_and_not_taken_from_other_files(tmp_path: Path) -> None:
    write_cars(tmp_path / "cars3d")
    reports: list[tuple[int, int]] = []

    def progress(done: int, total: int, _what: str = "") -> None:
        reports.append((done, total))

    first = cars3d.load(tmp_path, progress=progress)
    assert reports == [(6, 24), (12, 24), (18, 24), (24, 24)]
    again = cars3d.load(tmp_path, progress=progress)
    assert len(reports) == 4
    assert again.source == first.source
    assert "4 .mat files (sha256 of names and checksums " in first.source
    assert first.card.citation.startswith("@inproceedings{reed2015deep")

    savemat(tmp_path / "cars3d" / "car_002_mesh.mat", {"im": views(77)})
    changed = cars3d.load(tmp_path, check=False)
    assert changed.source.endswith(", unverified")
    assert changed.observe([[0, 0, 0]])[0, 0, 0, 0] == 77
    assert first.observe([[0, 0, 0]])[0, 0, 0, 0] == 10


def test_views_are_shrunk_by_lanczos(tmp_path: Path) -> None:
    noise = (np.arange(128 * 128 * 3 * 2, dtype=np.uint64) * 2654435761 >> 7).astype(np.uint8)
    stored = noise.reshape(128, 128, 3, 2, 1)
    savemat(tmp_path / "car.mat", {"im": stored})
    # The expected image is upright: rows of the file are rows of the picture.
    picture = Image.frombytes("RGB", (128, 128), np.ascontiguousarray(stored[..., 1, 0]).tobytes())
    expected = np.asarray(picture.resize((64, 64), Image.Resampling.LANCZOS))
    images = cars3d.read_views(tmp_path / "car.mat", 1, 2)
    assert images.shape == (1, 2, 3, 64, 64)
    np.testing.assert_array_equal(images[0, 1].transpose(1, 2, 0), expected)


def test_nothing_there(tmp_path: Path) -> None:
    with pytest.raises(MissingFileError, match=r"cars3d needs the file .*mat.*unweave data fetch cars3d"):
        cars3d.load(tmp_path)


@pytest.mark.usefixtures("small")
def test_half_unpacked(tmp_path: Path) -> None:
    write_cars(tmp_path / "cars3d")
    (tmp_path / "cars3d" / "nips2015-analogy-data.tar.gz.unpacking").mkdir()
    with pytest.raises(MissingFileError, match="only in part unpacked"):
        cars3d.load(tmp_path)


def test_wrong_number_of_cars(tmp_path: Path) -> None:
    write_cars(tmp_path / "cars")
    with pytest.raises(UnweaveError, match=r"needs 183 .mat files, one a car; .*cars has 4"):
        cars3d.load(tmp_path)


@pytest.mark.usefixtures("small")
def test_a_damaged_car_leaves_no_table(tmp_path: Path) -> None:
    write_cars(tmp_path / "cars")
    path = tmp_path / "cars" / "car_010_mesh.mat"
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(UnweaveError, match=r"cannot read .*car_010_mesh.mat as a MATLAB file"):
        cars3d.load(tmp_path)
    assert not list((tmp_path / "cache").rglob("*.npy"))
    path.write_bytes(whole)
    assert len(cars3d.load(tmp_path)) == 24


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"mask": np.zeros((2, 2))}, 'should hold a variable "im"; it has none'),
        ({"im": views(1)[:, :, :, :, :1]}, r"should be \(128, 128, 3, 3, 2\).*got \(128, 128, 3, 3, 1\)"),
        ({"im": np.swapaxes(views(1), 3, 4)}, r"got \(128, 128, 3, 2, 3\) in uint8"),
        ({"im": views(1) / 255}, "in float64"),
    ],
)
def test_wrong_content(tmp_path: Path, content: dict[str, NDArray[np.float64]], message: str) -> None:
    savemat(tmp_path / "car.mat", content, do_compression=True)
    with pytest.raises(UnweaveError, match=message):
        cars3d.read_views(tmp_path / "car.mat", ELEVATIONS, AZIMUTHS)


@pytest.mark.parametrize("content", [b"", b"no MATLAB file at all" * 20, b"MATLAB 7.3 MAT-file" + bytes(505)])
def test_not_a_matlab_file(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "car.mat").write_bytes(content)
    with pytest.raises(UnweaveError, match="as a MATLAB file"):
        cars3d.read_views(tmp_path / "car.mat", ELEVATIONS, AZIMUTHS)
