"""Data is opened by name or path, remembered, and recognised by its content."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from data.own_pictures import write_pictures
from unweave.data import Collection, GroundTruth, binned, from_arrays, from_file, from_folder, open_data
from unweave.data.opening import is_place, open_reference, reopen
from unweave.data.own.reference import Reference
from unweave.data.supervision import hold_out
from unweave.data.variants import colour
from unweave.errors import MissingFileError, UnweaveError
from unweave.streams import Stream

IMAGES = Stream.of(0).bytes(12, 28 * 28).reshape(12, 28, 28)
SHAPE, X = np.array(["a", "b"] * 6), np.arange(12) // 2


@pytest.fixture
def toys(tmp_path: Path) -> Path:
    return write_pictures(tmp_path / "toys")


def reference_of(data: GroundTruth | Collection) -> Reference:
    assert data.reference is not None
    return data.reference


def same(one: GroundTruth | Collection, other: GroundTruth | Collection) -> bool:
    return (one.source, one.shape, one.factors, type(one)) == (
        other.source,
        other.shape,
        other.factors,
        type(other),
    )


def test_a_name_a_folder_and_a_file(toys: Path, tmp_path: Path) -> None:
    assert open_data("dsprites").name == "dsprites"
    assert open_data("dsprites").reference is None
    data = open_data(toys)
    assert isinstance(data, GroundTruth)
    assert (data.name, data.sizes, data.shape) == ("toys", (2, 3, 2), (1, 32, 32))
    assert same(open_data(f"{toys}/"), data)
    np.savez(tmp_path / "more.npz", images=IMAGES, shape=SHAPE, x=X)
    more = open_data(tmp_path / "more.npz")
    assert isinstance(more, GroundTruth)
    assert (more.name, more.sizes, more.shape) == ("more", (2, 6), (1, 32, 32))


def test_a_name_of_the_catalogue_stands_before_a_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_pictures(tmp_path / "dsprites")
    monkeypatch.chdir(tmp_path)
    assert open_data("dsprites").reference is None
    own = open_data("./dsprites")
    assert (own.name, len(own)) == ("own-dsprites", 12)
    assert is_place("./dsprites")
    assert is_place(Path("dsprites"))
    assert not is_place("dsprites")
    assert not is_place("nothing")


@pytest.mark.parametrize("table", ["labels.csv", "labels.jsonl"])
def test_a_table_that_names_pictures(tmp_path: Path, table: str) -> None:
    folder = write_pictures(tmp_path / "toys", table=table)
    data = open_data(folder / table)
    assert isinstance(data, GroundTruth)
    assert (data.name, data.sizes) == ("toys", (2, 3, 2))
    assert data.factors[0].labels == ("large", "small")
    assert reference_of(data).table == table
    assert same(open_reference(reference_of(data)), data)
    assert same(open_data(folder, table=folder / table), data)


def test_json_lines_with_gaps(tmp_path: Path) -> None:
    folder = write_pictures(tmp_path / "toys", table=None)
    lines = [{"file": path.name, "x": i / 7} for i, path in enumerate(sorted(folder.glob("*.png")))]
    del lines[3]["x"]
    (folder / "factors.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    data = from_folder(folder)
    assert isinstance(data, Collection)
    assert np.isnan(data.values[:, 0]).tolist() == [i == 3 for i in range(12)]
    (folder / "factors.jsonl").write_text("{not json}\n")
    with pytest.raises(UnweaveError, match=r"cannot read the table .*factors\.jsonl"):
        from_folder(folder)


@pytest.mark.parametrize(
    ("arrays", "sizes"),
    [
        ({"images": IMAGES, "factors": np.column_stack([X, X % 2])[::2].repeat(2, axis=0)}, None),
        ({"imgs": IMAGES, "latents_values": np.column_stack([SHAPE == "a", X])}, (2, 6)),
        ({"images": IMAGES, "shape": SHAPE, "x": X}, (2, 6)),
        ({"images": IMAGES}, None),
    ],
)
def test_arrays_in_a_file(tmp_path: Path, arrays: dict[str, Any], sizes: tuple[int, ...] | None) -> None:
    np.savez(tmp_path / "data.npz", **arrays)
    data = from_file(tmp_path / "data.npz")
    assert getattr(data, "sizes", None) == sizes
    assert data.shape == (1, 28, 28)


def test_names_of_factors_in_a_file(tmp_path: Path) -> None:
    factors = np.column_stack([X, SHAPE == "a"]).astype(int)
    np.savez_compressed(tmp_path / "data.npz", images=IMAGES, factors=factors, names=["x", "is a"])
    data = from_file(tmp_path / "data.npz")
    assert [factor.name for factor in data.factors] == ["x", "is a"]
    assert same(open_reference(reference_of(data)), data)


def test_a_file_and_the_same_arrays_are_the_same_data(tmp_path: Path) -> None:
    np.savez(tmp_path / "data.npz", images=IMAGES, shape=SHAPE, x=X)
    in_memory = from_arrays(IMAGES, {"shape": SHAPE, "x": X}, size="auto")
    assert same(open_data(tmp_path / "data.npz"), in_memory)
    assert in_memory.reference is None
    np.save(tmp_path / "images.npy", IMAGES)
    assert same(from_file(tmp_path / "images.npy"), from_arrays(IMAGES))


@pytest.mark.parametrize(
    ("name", "arrays", "message"),
    [
        (
            "no.npz",
            {"pictures": IMAGES},
            "must hold the images as an array images or imgs; it holds pictures",
        ),
        (
            "object.npz",
            {"images": IMAGES, "shape": SHAPE.astype(object)},
            '"shape" in .* holds Python objects',
        ),
        ("wide.npz", {"images": IMAGES, "shape": np.zeros((12, 2))}, r'"shape" must be of shape \(12,\)'),
        ("short.npz", {"images": IMAGES, "factors": X[:5]}, "one row for each of the 12 images"),
    ],
)
def test_bad_files(tmp_path: Path, name: str, arrays: dict[str, Any], message: str) -> None:
    np.savez(tmp_path / name, **arrays)
    with pytest.raises(UnweaveError, match=message):
        open_data(tmp_path / name)


def test_files_that_are_no_arrays(tmp_path: Path) -> None:
    for name, content in (("a.npz", b"PK\x03\x04 cut short"), ("b.npz", b"words"), ("c.npy", b"")):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(UnweaveError, match=r"cannot read .* as arrays saved by numpy"):
            open_data(tmp_path / name)
    np.save(tmp_path / "objects.npy", np.array([{}], object), allow_pickle=True)
    with pytest.raises(UnweaveError, match=r"cannot read .*objects\.npy"):
        open_data(tmp_path / "objects.npy")


@pytest.mark.parametrize(
    ("named", "options", "message"),
    [
        (
            "dsprits",
            {},
            r'no data set "dsprits"\. Did you mean "dsprites"\? For your own data, name a folder',
        ),
        ("nowhere/", {}, "there is no folder or file nowhere/. Name a folder of pictures, an .npz"),
        ("gone.npz", {}, "there is no folder or file gone.npz"),
        ("notes.txt", {}, "notes.txt is not data that can be opened. Name a folder of pictures"),
        ("dsprites", {"table": "a.csv"}, "dsprites has its own factors and image size"),
        ("dsprites", {"size": 32}, "Table, size and fit are for your own data"),
        ("toys.npz", {"table": "a.csv"}, "a table is for a folder of pictures; toys.npz is a file"),
    ],
)
def test_what_cannot_be_opened(
    named: str, options: dict[str, Any], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("notes.txt").write_text("hello")
    np.savez("toys.npz", images=IMAGES)
    with pytest.raises(UnweaveError, match=message):
        open_data(named, **options)


def test_a_folder_is_recognised_by_its_content(toys: Path, tmp_path: Path) -> None:
    before = from_folder(toys)
    os.utime(toys / "large-0-0.png", ns=(1, 1))
    assert from_folder(toys).source == before.source
    copied = Path(shutil.copytree(toys, tmp_path / "elsewhere" / "other name"))
    assert from_folder(copied).source == before.source
    frame = pd.read_csv(copied / "factors.csv")
    frame.loc[0, "size"] = "small"
    frame.to_csv(copied / "factors.csv", index=False)
    assert from_folder(copied).source != before.source


def test_a_reference_survives_json(toys: Path) -> None:
    options: dict[str, Any] = {
        "size": (32, 48),
        "fit": "crop",
        "channels": 3,
        "name": "mine",
        "names": ["x", "size"],
        "kinds": {"x": "circular"},
        "grid": False,
    }
    data = from_folder(toys, toys / "factors.csv", **options)
    reference = reference_of(data)
    again = Reference.from_dict(json.loads(json.dumps(reference.to_dict())))
    assert again == reference
    assert again.shape == (3, 32, 48)
    assert same(open_reference(again), data)
    in_order = from_folder(toys, kinds=["categorical", "circular", "ordinal"])
    assert same(open_reference(reference_of(in_order)), in_order)


def test_a_reference_that_nobody_can_read() -> None:
    for plain in ({"kind": "folder"}, {"new": 1, "size": [1, 2]}, {"size": 3}):
        with pytest.raises(UnweaveError, match="this record of a data set cannot be read"):
            Reference.from_dict(plain)


def test_what_is_made_from_data_has_no_reference(toys: Path) -> None:
    data = from_folder(toys)
    assert isinstance(data, GroundTruth)
    assert colour(data, "coloured").reference is None
    assert hold_out(data, [{"x": 1}]).reference is None
    kept = from_folder(toys, kinds={"x": "continuous"})
    assert isinstance(kept, Collection)
    assert binned(kept, "x", 3).reference is None
    table = {"file": sorted(path.name for path in toys.glob("*.png")), "x": X}
    assert from_folder(toys, table).reference is None


def record_of(data: GroundTruth | Collection) -> dict[str, Any]:
    reference = None if data.reference is None else data.reference.to_dict()
    return {"data_source": data.source, "data_drawn": "uniformly", "data_reference": reference}


def test_recorded_data_is_opened_where_it_lies(toys: Path, tmp_path: Path) -> None:
    data = open_data(toys)
    record = record_of(data)
    assert same(reopen("toys", record), data)
    moved = shutil.move(toys, tmp_path / "moved")
    with pytest.raises(
        MissingFileError, match=r"toys, which is not there any more\. Name its new place: --data"
    ):
        reopen("toys", record)
    assert same(reopen("toys", record, place=moved), data)
    other = write_pictures(tmp_path / "other", 30, 30)
    with pytest.raises(UnweaveError, match=r'other does not hold the data set "toys" that was recorded'):
        reopen("toys", record, place=other)
    with pytest.raises(UnweaveError, match="there is no folder or file"):
        reopen("toys", record, place=tmp_path / "nowhere")


def test_recorded_data_that_has_changed(toys: Path) -> None:
    record = record_of(open_data(toys))
    shutil.copy(toys / "large-0-0.png", toys / "small-0-0.png")
    with pytest.raises(
        UnweaveError, match=r"toys does not hold the data set .* Restore its images and factors"
    ):
        reopen("toys", record)


def test_recorded_data_of_earlier_versions() -> None:
    truth = open_data("dsprites")
    record = record_of(truth)
    del record["data_reference"]
    assert reopen("dsprites", record).source == truth.source
    with pytest.raises(UnweaveError, match="given as an object"):
        reopen("mine", record)
    with pytest.raises(UnweaveError, match="trained on another dsprites"):
        reopen("dsprites", record | {"data_source": "other"})
