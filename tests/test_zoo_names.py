"""Models of the zoo by name: zoo:NAME stands for a checked copy of the model's folder."""

import hashlib
import json
from pathlib import Path
from shutil import copytree

import pytest

import unweave
from command_line import run_here
from unweave.errors import ChecksumError, UnweaveError
from unweave.explore.session import explore
from unweave.explore.subject import subject_at
from unweave.zoo import CHECKSUMS_FILE, run_path, zoo_folder

ZOO = Path(__file__).parents[1] / "zoo"
NAME = "zoo:beta_tcvae-10"
OTHER = "zoo:beta_vae-16"
needs_zoo = pytest.mark.skipif(
    not (ZOO / CHECKSUMS_FILE).is_file(), reason="zoo/ is not part of this copy of the source"
)


@pytest.fixture
def small_zoo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A zoo of one model with three files, which $UNWEAVE_ZOO names."""
    folder = tmp_path / "small"
    files = {"spec.json": b"{}", "scores.json": b"[]", "pictures/sheet.png": b"picture"}
    for name, content in files.items():
        path = folder / "model-1" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    lines = [f"{hashlib.sha256(content).hexdigest()}  model-1/{name}" for name, content in files.items()]
    (folder / CHECKSUMS_FILE).write_text("\n".join(lines) + "\n")
    monkeypatch.setenv("UNWEAVE_ZOO", str(folder))
    return folder


def test_a_name_is_a_copy_and_any_other_path_is_itself(small_zoo: Path, own_cache: Path) -> None:
    copy = run_path("zoo:model-1")
    assert copy.is_relative_to(own_cache)
    assert copy.name == "model-1"
    assert (copy / "pictures" / "sheet.png").read_bytes() == b"picture"
    assert run_path("runs/model-1") == Path("runs/model-1")
    assert run_path("~/run") == Path.home() / "run"


def test_added_scores_stay_and_damaged_copies_are_replaced(small_zoo: Path) -> None:
    copy = run_path("zoo:model-1")
    (copy / "scores.json").write_text("[1]")
    (copy / "spec.json").write_text("damaged")
    assert run_path(Path("zoo:model-1")) == copy
    assert (copy / "scores.json").read_text() == "[1]"
    assert (copy / "spec.json").read_text() == "{}"
    assert (small_zoo / "model-1" / "scores.json").read_text() == "[]"


def test_a_file_that_differs_from_its_checksum_is_refused(small_zoo: Path) -> None:
    (small_zoo / "model-1" / "spec.json").write_text("{ }")
    with pytest.raises(ChecksumError, match=r"spec\.json is not the file .* Restore the file"):
        run_path("zoo:model-1")
    listed = run_here("zoo", "list")
    assert listed.returncode == 2
    assert "spec.json is not the file" in listed.stderr
    (small_zoo / "model-1" / "spec.json").unlink()
    with pytest.raises(UnweaveError, match=r"the zoo lacks .*spec\.json"):
        run_path("zoo:model-1")


def test_unknown_names_and_wrong_lists_are_refused(small_zoo: Path) -> None:
    with pytest.raises(UnweaveError, match=r'no model "modle-1" in the zoo. Did you mean "model-1"'):
        run_path("zoo:modle-1")
    for wrong in ("no checksum", "0  /etc/passwd", "0  model-1/../../secret", "0  ../secret", ""):
        (small_zoo / CHECKSUMS_FILE).write_text(wrong + "\n")
        with pytest.raises(UnweaveError, match="must have lines such as"):
            run_path("zoo:model-1")


def test_without_the_folder_the_error_says_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("UNWEAVE_ZOO", raising=False)
    monkeypatch.setattr("unweave.zoo.REPOSITORY", tmp_path / "site-packages")
    for words in (("zoo", "list"), ("explore", "zoo:model-1"), ("evaluate", "zoo:model-1")):
        ended = run_here(*words, cwd=tmp_path)
        assert ended.returncode == 2
        assert "Clone the repository of unweave" in ended.stderr
        assert "UNWEAVE_ZOO" in ended.stderr
    monkeypatch.setenv("UNWEAVE_ZOO", str(tmp_path))
    with pytest.raises(UnweaveError, match=r"must name the folder zoo/"):
        zoo_folder()


@needs_zoo
def test_the_list_has_all_models_and_their_scores() -> None:
    ended = run_here("zoo", "list")
    assert ended.returncode == 0, ended.stderr
    for folder in sorted(path.parent for path in ZOO.glob("*/spec.json")):
        [line] = [line for line in ended.stdout.splitlines() if f" zoo:{folder.name} " in line]
        [record] = json.loads((folder / "scores.json").read_text())["evaluations"]
        [mig] = [score["value"] for score in record["scores"] if score["name"] == "mig"]
        assert f"{mig:.3f}" in line


@needs_zoo
def test_names_work_wherever_a_run_is_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    zoo = tmp_path / "zoo"
    copytree(ZOO, zoo)
    before = {path: path.read_bytes() for path in zoo.rglob("*") if path.is_file()}
    monkeypatch.setenv("UNWEAVE_ZOO", str(zoo))
    assert unweave.load(NAME).spec.method.name == "beta_tcvae"
    assert unweave.evaluate(NAME, metrics="mig", points=(60, 30))["mig"] >= 0
    assert subject_at(Path(NAME)).describe()["kind"] == "run"
    small = ("--metrics", "mig", "--points", "60", "30")
    for words in (
        ("evaluate", NAME, *small),
        ("compare", NAME, OTHER, *small, "--repeats", "2"),
        ("impossibility", NAME, *small, "-o", tmp_path / "sheet.png"),
    ):
        ended = run_here(*words)
        assert ended.returncode == 0, ended.stderr
    explorer = explore(NAME, open_page=False, wait=False)
    explorer.close()
    assert {path: path.read_bytes() for path in zoo.rglob("*") if path.is_file()} == before


@needs_zoo
def test_a_forgotten_setting_in_a_name_is_no_reference_to_a_module() -> None:
    with pytest.raises(UnweaveError, match='Did you mean "beta_vae-16"'):
        unweave.load("zoo:beta_vae")
    with pytest.raises(UnweaveError, match='Did you mean "beta_vae-16"'):
        explore("zoo:beta_vae", open_page=False, wait=False)
    ended = run_here("explore", "zoo:beta_vae", "--no-open")
    assert 'Did you mean "beta_vae-16"' in ended.stderr
