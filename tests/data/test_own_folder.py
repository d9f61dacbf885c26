"""Folders of real picture files, written by Pillow, with tables next to them."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import PIL.Image
import pytest
from numpy.typing import NDArray

from unweave.data.grid import Factor, GroundTruth
from unweave.data.own.construct import Collection, Continuous, from_folder
from unweave.errors import MissingFileError, UnweaveError
from unweave.streams import Stream


def grey(level: int, size: int = 64) -> PIL.Image.Image:
    return PIL.Image.new("L", (size, size), level)


def noise(channels: int, size: int = 64) -> NDArray[np.uint8]:
    pixels = Stream.of(0).bytes(size * size, channels).reshape(size, size, channels)
    return pixels[..., 0] if channels == 1 else pixels


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Six grey pictures, 10 x their number, in two sub-folders."""
    folder = tmp_path / "my pictures"
    for i in range(6):
        path = folder / f"part {i % 2}" / f"{i}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        grey(10 * i).save(path)
    return folder


def level(images: NDArray[np.uint8]) -> list[int]:
    return [int(image[0, 0, 0]) for image in images]


def write_table(folder: Path, name: str = "factors.csv", **columns: Any) -> Path:
    files = [f"part {i % 2}/{i}.png" for i in range(6)]
    frame = pd.DataFrame({"file": files, **columns})
    path = folder / name
    if name.endswith(".parquet"):
        frame.to_parquet(path)
    else:
        frame.to_csv(path, sep="\t" if name.endswith(".tsv") else ",", index=False)
    return path


def test_pictures_come_in_sorted_order(folder: Path) -> None:
    (folder / ".hidden.png").write_bytes(b"not a picture")
    (folder / "notes.txt").write_text("not a picture")
    data = from_folder(folder)
    assert isinstance(data, Collection)
    assert (data.name, data.shape, len(data), data.factors) == ("my-pictures", (1, 64, 64), 6, ())
    assert level(data.images_at(range(6))) == [0, 20, 40, 10, 30, 50]


@pytest.mark.parametrize("table", ["factors.csv", "factors.tsv", "factors.parquet", "other.csv"])
def test_a_table_that_covers_a_grid_gives_a_ground_truth(folder: Path, table: str) -> None:
    path = write_table(folder, table, shape=["disc", "box"] * 3, size=[0, 0, 1, 1, 2, 2])
    data = from_folder(folder, path if table == "other.csv" else None)
    assert isinstance(data, GroundTruth)
    assert data.factors == (Factor("shape", 2, "categorical", ("box", "disc")), Factor("size", 3, "ordinal"))
    # File i has shape disc, box, disc, ... and size i // 2, so level 10 i.
    assert level(data.observe([[1, 0], [0, 0], [1, 1], [0, 1], [1, 2], [0, 2]])) == [0, 10, 20, 30, 40, 50]


def test_gaps_continuous_factors_and_options_of_the_table(folder: Path) -> None:
    write_table(folder, x=[0.1, None, 0.3, 0.4, 0.5, 0.6], shape=["a", "b", "", "a", "b", "a"], row=range(6))
    data = from_folder(folder, names=["shape", "x"])
    assert isinstance(data, Collection)
    assert data.factors == (Factor("shape", 2, "categorical", ("a", "b")), Continuous("x", 0.1, 0.6))
    nan = np.nan
    # In the order of the files: 0, 2, 4, 1, 3, 5.
    np.testing.assert_array_equal(data.values, [[0, 0.1], [nan, 0.3], [1, 0.5], [1, nan], [0, 0.4], [0, 0.6]])
    again = from_folder(folder, names=["row"], kinds={"row": "continuous"})
    assert again.factors == (Continuous("row", 0.0, 5.0),)


@pytest.mark.parametrize("column", ["filename", "path", "image", "File"])
def test_other_names_of_the_file_column_and_other_spellings_of_paths(folder: Path, column: str) -> None:
    frame = pd.DataFrame({column: [f".\\part {i % 2}\\{i}.png" for i in range(6)], "x": range(6)})
    frame.to_csv(folder / "factors.csv")  # with row numbers in a column without a name
    for table in (None, frame, {column: list(frame[column]), "x": range(6)}):
        data = from_folder(folder, table)
        assert isinstance(data, GroundTruth)
        assert data.factors == (Factor("x", 6, "ordinal"),)
        assert level(data.observe([[3], [0]])) == [30, 0]


def test_names_of_files_stay_text(tmp_path: Path) -> None:
    grey(0).save(tmp_path / "007.png")
    (tmp_path / "factors.csv").write_text("file,x\n007,1\n")
    with pytest.raises(UnweaveError, match=r"the first is 007\."):
        from_folder(tmp_path)


@pytest.mark.parametrize("suffix", ["png", "bmp", "tif", "webp", "PNG"])
@pytest.mark.parametrize("channels", [1, 3])
def test_lossless_files_keep_every_pixel(tmp_path: Path, suffix: str, channels: int) -> None:
    pixels = noise(channels)
    options: dict[str, Any] = {"lossless": True} if suffix == "webp" else {}
    PIL.Image.fromarray(pixels).save(tmp_path / f"a.{suffix}", **options)
    # WebP files know colour only, so grey must be asked for.
    data = from_folder(tmp_path, channels=channels if suffix == "webp" else None)
    assert isinstance(data, Collection)
    np.testing.assert_array_equal(data.images_at(0), pixels.reshape(64, 64, channels).transpose(2, 0, 1))


def test_jpeg_is_close(tmp_path: Path) -> None:
    ramp = np.broadcast_to(np.arange(64, dtype=np.uint8) * 4, (64, 64))
    for suffix in ("jpg", "jpeg"):
        PIL.Image.fromarray(ramp).save(tmp_path / f"a.{suffix}", quality=95)
    data = from_folder(tmp_path)
    assert isinstance(data, Collection)
    assert len(data) == 2
    assert np.abs(data.images_at([0, 1])[:, 0].astype(int) - ramp).max() <= 3


def test_a_gif_gives_its_first_frame(tmp_path: Path) -> None:
    grey(80).save(tmp_path / "a.gif", save_all=True, append_images=[grey(200)])
    assert level(read(tmp_path, channels=1)) == [80]


def test_one_picture_with_colour_makes_all_of_them_rgb(tmp_path: Path) -> None:
    grey(80).save(tmp_path / "a.png")
    PIL.Image.new("RGB", (64, 64), (200, 100, 50)).save(tmp_path / "b.png")
    np.testing.assert_array_equal(read(tmp_path)[:, :, 0, 0], [[80, 80, 80], [200, 100, 50]])
    # 0.299 R + 0.587 G + 0.114 B = 124.2
    np.testing.assert_array_equal(read(tmp_path, channels=1)[:, :, 0, 0], [[80], [124]])


def test_other_sizes_are_resized_with_lanczos(tmp_path: Path) -> None:
    pixels = noise(3, 96)
    PIL.Image.fromarray(pixels).save(tmp_path / "a.png")
    smaller = PIL.Image.fromarray(pixels).resize((32, 32), PIL.Image.Resampling.LANCZOS)
    np.testing.assert_array_equal(read(tmp_path, size=32)[0], np.asarray(smaller).transpose(2, 0, 1))


def test_sixteen_bits_become_eight(tmp_path: Path) -> None:
    wide = np.full((64, 64), 257 * 100, np.uint16)
    wide[0, 0] = 65535
    PIL.Image.fromarray(wide).save(tmp_path / "a.png")
    images = read(tmp_path)
    assert (images[0, 0, 0, 0], images[0, 0, 5, 5]) == (255, 100)


def test_transparent_parts_lie_on_black(tmp_path: Path) -> None:
    pixels = np.full((64, 64, 4), 200, np.uint8)
    pixels[..., 3] = 255
    pixels[0, 0, 3] = 0
    PIL.Image.fromarray(pixels).save(tmp_path / "a.png")
    images = read(tmp_path)
    assert images.shape[1] == 3
    assert (images[0, 0, 0, 0], images[0, 0, 5, 5]) == (0, 200)


def test_pictures_stand_upright(tmp_path: Path) -> None:
    picture = grey(0)
    picture.putpixel((63, 0), 255)  # top right
    exif = PIL.Image.Exif()
    exif[0x0112] = 6  # to be shown turned a quarter to the right: top right comes to bottom right
    picture.save(tmp_path / "a.png", exif=exif)
    images = read(tmp_path)
    assert [tuple(spot) for spot in np.argwhere(images[0, 0])] == [(63, 63)]


def read(folder: Path, **options: Any) -> NDArray[np.uint8]:
    data = from_folder(folder, **options)
    assert isinstance(data, Collection)
    return data.images_at(range(len(data)))


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of all pictures that Pillow opens."""
    names: list[str] = []
    really_open: Callable[..., Any] = PIL.Image.open

    def spy(path: Path, *rest: Any, **options: Any) -> Any:
        names.append(Path(path).name)
        return really_open(path, *rest, **options)

    monkeypatch.setattr(PIL.Image, "open", spy)
    return names


def test_pictures_are_decoded_once(folder: Path, opened: list[str]) -> None:
    first = read(folder)
    assert set(opened) == {f"{i}.png" for i in range(6)}
    opened.clear()
    np.testing.assert_array_equal(read(folder), first)
    write_table(folder, x=range(6))
    assert isinstance(from_folder(folder), GroundTruth)
    assert opened == []


def test_a_changed_picture_is_decoded_again(folder: Path, opened: list[str]) -> None:
    before = from_folder(folder)
    changed = folder / "part 0" / "2.png"
    grey(99).save(changed)
    os.utime(changed, ns=(1, 1))
    opened.clear()
    after = from_folder(folder)
    assert isinstance(after, Collection)
    assert "2.png" in opened
    assert level(after.images_at(range(6))) == [0, 99, 40, 10, 30, 50]
    assert after.source != before.source


def test_size_and_channels_have_tables_of_their_own(folder: Path) -> None:
    assert from_folder(folder, size=16).shape == (1, 16, 16)
    assert from_folder(folder, size=16, channels=3).shape == (3, 16, 16)
    assert from_folder(folder).shape == (1, 64, 64)


def test_progress_counts_pictures(folder: Path) -> None:
    reports: list[tuple[int, int]] = []
    from_folder(folder, progress=lambda done, total, _="": reports.append((done, total)))
    assert reports[-1] == (6, 6)


def test_bad_folders(tmp_path: Path) -> None:
    with pytest.raises(MissingFileError, match=r"there is no folder .*nowhere"):
        from_folder(tmp_path / "nowhere")
    (tmp_path / "notes.txt").write_text("hello")
    with pytest.raises(MissingFileError, match=r"no picture found in .*looked for \.png, \.jpg"):
        from_folder(tmp_path)
    grey(0).save(tmp_path / "a.png")
    with pytest.raises(
        UnweaveError, match=r'size must be a whole number of pixels, 4 or more, .* or "auto"; got 2\.'
    ):
        from_folder(tmp_path, size=2)
    with pytest.raises(UnweaveError, match="channels = 4"):
        from_folder(tmp_path, channels=4)


def test_an_unreadable_picture_is_named_and_leaves_no_table(folder: Path, own_cache: Path) -> None:
    path = folder / "part 1" / "3.png"
    whole = path.read_bytes()
    for damaged in (b"not a picture", whole[: len(whole) // 2]):
        path.write_bytes(damaged)
        with pytest.raises(UnweaveError, match=r"cannot read the picture .*3\.png"):
            from_folder(folder)
    assert not list(own_cache.rglob("*x64x64.npy"))
    path.unlink()
    path.symlink_to(folder / "gone.png")
    with pytest.raises(UnweaveError, match=r"cannot read the picture .*3\.png: No such file"):
        from_folder(folder)


def test_pictures_of_floats_are_refused(tmp_path: Path) -> None:
    PIL.Image.fromarray(np.zeros((8, 8), np.float32)).save(tmp_path / "a.tif")
    with pytest.raises(UnweaveError, match=r"a\.tif: its pixels are not of 8 or 16 bits"):
        from_folder(tmp_path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("file,x\na.png,1\n", r"1 picture\(s\) have no row in factors\.csv; the first is b\.png"),
        (
            "file,x\na.png,1\nb.png,1\nc.png,2\nd.png,2\n",
            r"2 row\(s\) of factors\.csv name a file that is not there; the first is c\.png\. Write paths",
        ),
        ("file;x\na.png;1\nb.png;2\n", r"its columns are file;x\. Separate columns by commas\."),
        (
            "file,x\na.png,1\nb.png,1\na.png,2\n",
            r"1 row\(s\) of factors\.csv name a file that has a row already; the first is a\.png",
        ),
        ("file,x\na.png,1\n,2\n", r"row 1 of factors\.csv names no file"),
        ("name,x\na.png,1\n", r"one column with the files' paths.*its columns are name, x\."),
        ("file,path\na.png,b.png\n", "its columns are file, path"),
        ("file,x\na.png,1,2,3\nb.png\n,,,,,\n", r"cannot read the table .*factors\.csv"),
        ("", r"cannot read the table .*factors\.csv: No columns"),
        ("file,x\na.png,1\nb.png,inf\n", "infinite in row 1"),
    ],
)
def test_bad_tables(tmp_path: Path, text: str, message: str) -> None:
    for name in ("a.png", "b.png"):
        grey(0).save(tmp_path / name)
    (tmp_path / "factors.csv").write_text(text)
    with pytest.raises(UnweaveError, match=message):
        from_folder(tmp_path)


def test_bad_table_files(folder: Path) -> None:
    with pytest.raises(MissingFileError, match=r"there is no table .*gone\.csv"):
        from_folder(folder, "gone.csv")
    for name, content, message in [
        ("table.xlsx", b"", r"\.csv, \.tsv, \.parquet or \.jsonl file; got table\.xlsx"),
        ("table.csv", b"file\xff,\n", "cannot read the table"),
        ("table.parquet", b"no parquet", "cannot read the table"),
    ]:
        (folder / name).write_bytes(content)
        with pytest.raises(UnweaveError, match=message):
            from_folder(folder, folder / name)
    with pytest.raises(UnweaveError, match="same number of rows"):
        from_folder(folder, {"file": ["a.png"], "x": [1, 2]})
    write_table(folder, size=range(6))
    with pytest.raises(UnweaveError, match=r'no column "sise"\. Did you mean "size"'):
        from_folder(folder, names=["sise"])
