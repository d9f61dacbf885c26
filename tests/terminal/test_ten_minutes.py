"""Three first sessions. A newcomer types only what README, help texts and earlier output show."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from command_line import run_here
from conftest import ROOT
from data.own_pictures import write_pictures

SMALL = {
    "train": "--steps 3 --batch 4 --device cpu",
    "evaluate": "--points 60 30 --device cpu",
    "compare": "--points 60 30 --metrics mig --repeats 3 --device cpu",
}


class Newcomer:
    """Someone who knows what was read so far, has some files, and types commands in a folder."""

    def __init__(self, folder: Path, *files: str) -> None:
        self.folder, self.files = folder, files
        self.read = (ROOT / "README.md").read_text()

    def open_page(self, path: str) -> str:
        """Read a page that README links to."""
        assert f"]({path}" in self.read, f"README.md has no link to {path}"
        text = (ROOT / path).read_text()
        self.read += text
        return text

    def types(self, command: str) -> str:
        """Run a command, with options that make it small, and read what it prints."""
        words = shlex.split(command)
        for word in words:
            known = word in self.read or word in self.files or word == "--help"
            assert known, f"{word!r} of {command!r} is in no text that was read"
        small = shlex.split(SMALL.get(words[0], "")) if "--help" not in words else []
        done = run_here(*words, *small, cwd=self.folder)
        assert done.returncode == 0, done.stderr
        self.read += done.stdout + done.stderr
        return done.stdout + done.stderr

    def shown(self, pattern: str) -> list[str]:
        """What was read of a kind, such as folders of runs; the latest last."""
        return list(dict.fromkeys(re.findall(pattern, self.read)))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a session. Help texts are as wide as a terminal, so that no word is cut."""
    monkeypatch.setenv("COLUMNS", "200")
    (tmp_path / "session").mkdir()
    return tmp_path / "session"


def test_from_codes_to_scores_and_a_picture(folder: Path) -> None:
    draws = np.random.default_rng(0)
    factors = draws.integers(0, 4, (300, 2))
    np.savez(folder / "mine.npz", codes=factors + 0.1 * draws.normal(size=(300, 2)), factors=factors)
    newcomer = Newcomer(folder, "mine.npz", "matrix.png")
    newcomer.types("--help")
    newcomer.types("evaluate --help")
    scores = newcomer.types("evaluate mine.npz --metrics quick --plot matrix.png")
    mig = re.search(r"mig\W+([\d.]+)", scores)
    assert mig
    assert float(mig[1]) > 0.7  # each code is one factor with little noise
    with Image.open(folder / "matrix.png") as picture:
        assert min(picture.size) > 100


def test_from_a_folder_of_images_to_a_model_and_its_page(folder: Path) -> None:
    write_pictures(folder / "my_pictures")
    newcomer = Newcomer(folder, "page.html")
    assert "12" in newcomer.types("data inspect my_pictures/")
    newcomer.types("train beta_vae --data my_pictures/ --preset quick")
    run = newcomer.shown(r"runs/beta_vae-\w+-seed0-\w{16}")[-1]
    assert (folder / run / "pictures" / "traversals.png").exists()
    newcomer.types("explore --help")
    newcomer.types(f"explore {run} --export page.html")
    assert "my_pictures" in (folder / "page.html").read_text()


def test_from_a_method_to_a_comparison_with_beta_vae(folder: Path) -> None:
    write_pictures(folder / "my_pictures")
    newcomer = Newcomer(folder)
    page = newcomer.open_page("docs/plugins.md")
    method = re.search(r"```python\n(.*?class MyVAE.*?)```", page, re.DOTALL)
    assert method
    (folder / "mine.py").write_text(method[1])
    newcomer.types("train mine.py:MyVAE --data my_pictures/ --preset quick")
    newcomer.types("train beta_vae --data my_pictures/ --preset quick")
    newcomer.types("--help")
    ours, theirs = (newcomer.shown(rf"runs/{name}-\w+-seed0-\w{{16}}")[-1] for name in ("my_vae", "beta_vae"))
    verdict = newcomer.types(f"compare {ours} {theirs}")
    assert "mig" in verdict
    assert re.search(r"better|cannot tell", verdict)
