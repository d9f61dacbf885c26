"""Own data from the first command to the last, as a user with a folder of pictures meets it."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pytest

import unweave
from data.own_pictures import write_pictures
from unweave.cli import main
from unweave.data import Collection, from_arrays, from_folder
from unweave.errors import UnweaveError
from unweave.study.folder import StudyFolder

Command: TypeAlias = Callable[..., str]
FEW = ("--steps", "3", "--batch", "4", "--latents", "3", "--device", "cpu")
POINTS = ("--points", "60", "30", "--device", "cpu")


@pytest.fixture
def command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    """Run `unweave ...` in the test's folder; returns its output, or its error if it must be refused."""
    monkeypatch.chdir(tmp_path)

    def run(*words: object, refused: bool = False) -> str:
        monkeypatch.setattr(sys, "argv", ["unweave", *map(str, words)])
        try:
            main()
            status = 0
        except SystemExit as ended:
            status = int(ended.code or 0)
        output, error = capsys.readouterr()
        assert status == (2 if refused else 0), error
        return error if refused else output

    return run


def only_run(folder: str = "runs") -> Path:
    [path] = [spec.parent for spec in Path(folder).glob("*/spec.json")]
    return path


@pytest.mark.parametrize(("height", "width", "sizing"), [(28, 28, "32 x 32"), (30, 50, "32 x 64")])
def test_a_folder_from_training_to_a_new_place(
    command: Command, height: int, width: int, sizing: str
) -> None:
    toys = write_pictures(Path("toys"), height, width)
    size = f"{height} x {width}"
    assert f"{size} padded to {sizing}" in command("data", "inspect", "toys")
    command("data", "show", "toys/", "-o", "sheet.png")
    messages = command("train", "vae", "--data", "toys", *FEW, "--no-scores")
    assert f"toys: 12 images of 1 x {sizing}. Image size: {size} padded to {sizing}." in messages
    run = only_run()
    assert json.loads((run / "spec.json").read_text())["data_reference"]["path"] == str(toys.resolve())
    assert "mig" in command("evaluate", run, "--metrics", "mig", *POINTS)
    command("explore", run, "--export", "page.html")
    assert "No true images" not in Path("page.html").read_text()
    Path("elsewhere").mkdir()
    shutil.move("toys", "elsewhere/toys")
    lost = command("evaluate", run, "--metrics", "sap", *POINTS, refused=True)
    assert "which is not there any more. Name its new place: --data FOLDER" in lost
    assert lost.count("\n") == 1
    assert "sap" in command("evaluate", run, "--metrics", "sap", "--data", "elsewhere/toys", *POINTS)
    command("explore", run, "--export", "page.html", "--data", "elsewhere/toys")
    assert "already done" in command("train", "vae", "--data", "elsewhere/toys", *FEW, "--no-scores")


def test_python_and_the_command_line_train_the_same_run(command: Command) -> None:
    write_pictures(Path("toys"), 32, 32)
    command("train", "vae", "--data", "toys", *FEW, "--no-scores", "--no-pictures")
    method = unweave.methods.VAE()
    fields: dict[str, Any] = {"steps": 3, "batch": 4, "latents": 3, "device": "cpu", "progress": False}
    by_path = unweave.train(method, data="toys", **fields)
    by_object = unweave.train(method, data=from_folder("toys", size=32), **fields)
    assert by_path.path == by_object.path == only_run()
    again = unweave.load(by_path.path)
    assert again.data.source == by_object.data.source
    assert unweave.load(by_path.path, data=Path("toys")).data.name == "toys"
    other = from_arrays(np.zeros((3, 32, 32), np.uint8))
    with pytest.raises(UnweaveError, match="trained on another toys"):
        unweave.load(by_path.path, data=other)


def test_images_without_factors(command: Command) -> None:
    images = np.arange(20 * 28 * 28, dtype=np.uint8).reshape(20, 28, 28)
    np.savez("images.npz", images=images)
    messages = command("train", "vae", "--data", "images.npz", *FEW)
    assert "were left out: images has no factors" in messages
    run = only_run()
    assert (run / "pictures" / "traversals.gif").exists()
    command("explore", run, "--export", "page.html")
    assert isinstance(unweave.load(run).data, Collection)
    again = command("train", "vae", "--data", "images.npz", *FEW, "--seeds", "1-2", "--out", "more")
    assert "results.parquet" in again


def test_own_data_in_a_study(command: Command, tmp_path: Path) -> None:
    write_pictures(Path("data/toys"))
    write_pictures(Path("data/more"), 40, 32)
    (tmp_path / "data" / "study.toml").write_text(
        'name = "own"\nmetrics = ["mig"]\nrepresentations = ["mean"]\npoints = [40, 20]\n'
        '[shared]\ndata = ["toys/", "more"]\nsteps = 2\nbatch = 4\nlatents = 2\n[[methods]]\nname = "vae"\n'
    )
    options = ("--device", "cpu", "--workers", "1", "-o", "study")
    command("study", "run", "data/study.toml", *options)
    study = StudyFolder(Path("study"))
    assert {run.data for run in study.spec.runs} == {"toys", "more"}
    assert [reference.path for reference in study.spec.references] == [
        str(tmp_path / "data" / name) for name in ("toys", "more")
    ]
    assert all((study.run_folder(run).result or {})["outcome"] == "finished" for run in study.runs)
    shutil.move("data", "moved")
    lost = command("study", "run", "study", "--device", "cpu", refused=True)
    assert "Name its new place where you named the old one" in lost
    command("study", "run", "moved/study.toml", *options)
    assert StudyFolder(Path("study")).spec.references[0].path == str(tmp_path / "moved" / "toys")
    shutil.copy("moved/toys/large-0-0.png", "moved/toys/small-0-0.png")
    other = command("study", "run", "moved/study.toml", *options, refused=True)
    assert 'a study cannot have two different data sets of one name, "toys"' in other


def test_a_sweep_and_a_selection(command: Command) -> None:
    write_pictures(Path("toys"))
    command("train", "vae", "--data", "toys", *FEW, "--seeds", "0-1", "--no-pictures")
    shutil.move("toys", "moved")
    lost = command("select", "runs", "--images", "100", "--device", "cpu", refused=True)
    assert "Name its new place: --data" in lost
    assert "UDR" in command("select", "runs", "--images", "100", "--device", "cpu", "--data", "moved")


def test_groups_from_pictures_that_are_no_full_grid(command: Command) -> None:
    toys = write_pictures(Path("toys"))
    (toys / "large-0-0.png").unlink()
    table = (toys / "factors.csv").read_text()
    (toys / "factors.csv").write_text(table.replace("large-0-0.png,large,0,0\n", ""))
    quick = (*FEW, "--no-scores", "--no-pictures")
    assert "finished" in command("train", "ml_vae", "--data", "toys", "--shared", "size", *quick)


def test_own_factors_as_codes(command: Command) -> None:
    toys = write_pictures(Path("toys"))
    messages = command("impossibility", "toys", "--metrics", "mig", "--points", "60", "30")
    assert "the factors of toys as codes" in messages
    (toys / "large-0-0.png").unlink()
    (toys / "factors.csv").unlink()
    refused = command("impossibility", "toys", "--metrics", "mig", "--points", "60", "30", refused=True)
    assert "toys is not a full grid of factors" in refused


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("train", "vae", "--data", "nowhere/", *FEW), "there is no folder or file nowhere/"),
        (("train", "vae", "--data", "toyz", *FEW), 'there is no data set "toyz". Known: dsprites'),
        (("train", "vae", "--data", "dsprites", "--image-size", "32", *FEW), "are for your own data"),
        (
            ("train", "vae", "--data", "toys", "--image-size", "big", *FEW),
            "an image size is a number of pixels",
        ),
        (("train", "ada_gvae", "--data", "holes", *FEW), "from which no pairs can be drawn"),
        (("data", "show", "notes.txt"), "notes.txt is not data that can be opened"),
        (("data", "inspect", "toys", "--table", "gone.csv"), "there is no table gone.csv"),
    ],
)
def test_mistakes_are_one_sentence(command: Command, words: tuple[str, ...], message: str) -> None:
    write_pictures(Path("toys"))
    holes = write_pictures(Path("holes"), table=None)
    files = sorted(path.name for path in holes.glob("*.png"))
    rows = [f"{file},{min(i, 10)},{i % 2}" for i, file in enumerate(files)]
    (holes / "factors.csv").write_text("\n".join(["file,a,b", *rows]))
    Path("notes.txt").write_text("hello")
    error = command(*words, refused=True)
    assert message in error
    assert "Traceback" not in error
    assert not list(Path().glob("runs/*/spec.json"))
