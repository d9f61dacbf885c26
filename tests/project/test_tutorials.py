"""The tutorials run from the first cell to the last, with small settings, and print what their pages show.

`python tests/project/test_tutorials.py [PAGE ...]` runs them with their own settings and writes the pictures.
"""

from __future__ import annotations

import ast
import contextlib
import doctest
import io
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import pytest

FOLDER = Path(__file__).parents[2] / "docs" / "tutorials"
PAGES = sorted(FOLDER.glob("*.md"))
LARGEST_PICTURE = 60_000
# Settings of the test. Those that decide what a page prints stay as they are.
SMALL = "STEPS, BATCH = 2, 4"
SMALL_POINTS = {"3_study": "POINTS = (60, 30)", "4_write_a_method": "POINTS = (60, 30)"}

CELL = re.compile(
    r"^```\{code-cell\}\n(?P<options>(?::[^\n]*\n)*)\n?(?P<code>.*?)^```\n(?:\n```text\n(?P<output>.*?)^```$)?",
    re.MULTILINE | re.DOTALL,
)
WRITE_FILE = re.compile(r"%%writefile (\S+)\n")
PICTURE = re.compile(r"!\[([^\]]+)\]\(pictures/([\w.]+)\)")


@dataclass(frozen=True)
class Cell:
    """A cell of a page: its code, its tags and the text that the page shows below it."""

    code: str
    options: str
    output: str | None

    def run(self, names: dict[str, Any]) -> None:
        """Run the code as a notebook does and compare what it prints with the page."""
        if file := WRITE_FILE.match(self.code):
            Path(file[1]).write_text(self.code[file.end() :])
            return
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            show(self.code, names)
        if self.output is not None:
            same = doctest.OutputChecker().check_output(self.output, printed.getvalue(), doctest.ELLIPSIS)
            assert same, f"{self.code}\nprinted:\n{printed.getvalue()}\nthe page shows:\n{self.output}"


def show(code: str, names: dict[str, Any]) -> None:
    """Run code, and make the HTML of the last value if a notebook would show it."""
    *body, last = ast.parse(code).body
    if not isinstance(last, ast.Expr):
        body.append(last)
    exec(compile(ast.Module(body, []), "cell", "exec"), names)  # noqa: S102
    if isinstance(last, ast.Expr):
        value = eval(compile(ast.Expression(last.value), "cell", "eval"), names)  # noqa: S307
        if hasattr(value, "_repr_html_"):
            value._repr_html_()


def cells_of(page: Path) -> list[Cell]:
    """The cells of a page in their order."""
    found = CELL.finditer(page.read_text())
    return [Cell(match["code"], match["options"], match["output"]) for match in found]


@contextlib.contextmanager
def working_folder(folder: Path) -> Iterator[None]:
    """Work in a folder whose modules can be imported, as a notebook in it does."""
    known = set(sys.modules)
    sys.path.insert(0, str(folder))
    with contextlib.chdir(folder):
        yield
    sys.path.remove(str(folder))
    for name in set(sys.modules) - known:
        if str(getattr(sys.modules[name], "__file__", "")).startswith(str(folder)):
            del sys.modules[name]


def run_page(page: Path, settings: str = "") -> None:
    """Run all cells of a page in the current folder; settings replace those of its parameters."""
    names: dict[str, Any] = {"__name__": "__main__"}
    for cell in cells_of(page):
        cell.run(names)
        if "parameters" in cell.options:
            exec(settings, names)  # noqa: S102


@pytest.mark.usefixtures("quick_fonts")
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_tutorials_run(page: Path, tmp_path: Path) -> None:
    plt.switch_backend("agg")
    with working_folder(tmp_path):
        run_page(page, f"{SMALL}\n{SMALL_POINTS.get(page.stem, '')}")
    plt.close("all")
    made = {path.name for path in tmp_path.glob("*.png")}
    assert made == {name for _, name in PICTURE.findall(page.read_text())}


def test_pages_have_the_parts_of_a_tutorial() -> None:
    assert len(PAGES) == 6
    for page in PAGES:
        text = page.read_text()
        assert text.startswith("---\nfile_format: mystnb\n"), page.name
        assert "**Question:**" in text, page.name
        assert "At the end you" in text, page.name
        assert "## Where to go next" in text, page.name
        assert sum("parameters" in cell.options for cell in cells_of(page)) == 1, page.name
        assert text.count("{code-cell}") == len(cells_of(page)), page.name


def test_pictures_are_small_and_used() -> None:
    shown = {name for page in PAGES for _, name in PICTURE.findall(page.read_text())}
    files = list((FOLDER / "pictures").iterdir())
    assert {path.name for path in files} == shown
    assert all(path.stat().st_size <= LARGEST_PICTURE for path in files)


def write_pictures(pages: list[Path]) -> None:
    """Run pages with their own settings and keep the pictures that they draw."""
    for page in pages:
        with tempfile.TemporaryDirectory() as folder, working_folder(Path(folder)):
            run_page(page)
            for picture in Path(folder).glob("*.png"):
                shutil.copy(picture, FOLDER / "pictures")


if __name__ == "__main__":
    write_pictures([FOLDER / f"{name}.md" for name in sys.argv[1:]] or PAGES)
