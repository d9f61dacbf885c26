"""The documentation builds, is complete, agrees with the code, and its examples are true."""

import doctest
import re
import subprocess
import sys
from pathlib import Path

import pytest

from unweave.data import CATALOGUE
from unweave.data.entry import Entry
from unweave.data.files import OfficialFile

DOCS = Path(__file__).parents[2] / "docs"
HEADINGS = ["What it shows", "Factors", "Get it", "In unweave", "Differences", "Licence and citation"]
LARGEST_PICTURE = 250_000
FILES = list(dict.fromkeys(file for entry in CATALOGUE for file in entry.files))

with_each_data_set = pytest.mark.parametrize("entry", CATALOGUE, ids=lambda entry: entry.name)


def page_of(entry: Entry) -> str:
    """The page that the row of a data set in the overview links to."""
    link = re.search(rf"\[`{entry.name}`\]\((\w+\.md)\)", (DOCS / "data/index.md").read_text())
    assert link, f"docs/data/index.md has no link to the page of {entry.name}"
    return (DOCS / "data" / link[1]).read_text()


def test_pages_build_without_a_warning(tmp_path: Path) -> None:
    sphinx = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-b", "html"]
    done = subprocess.run([*sphinx, DOCS, tmp_path], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "data" / "dsprites.html").exists()


@pytest.mark.parametrize(
    "page",
    sorted(path for path in DOCS.rglob("*.md") if ">>> " in path.read_text()),
    ids=lambda path: str(path.relative_to(DOCS)),
)
def test_examples_are_true(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert doctest.testfile(str(page), module_relative=False, encoding="utf-8").failed == 0


@with_each_data_set
def test_each_data_set_has_a_page(entry: Entry) -> None:
    page = page_of(entry)
    key = re.match(r"@\w+\{(\w+),", entry.card.citation)
    assert key
    assert f"`{entry.name}`" in page or f'load("{entry.name}")' in page
    assert f"{{{key[1]}," in page
    assert re.findall(r"^## (.+)$", page, re.MULTILINE) == HEADINGS
    if not entry.wanted:
        assert ">>> " in page, "what needs no file is shown by examples that are run"


@with_each_data_set
def test_pages_say_what_the_code_says(entry: Entry) -> None:
    page, overview = page_of(entry), (DOCS / "data/index.md").read_text()
    row = next(line for line in overview.splitlines() if f"[`{entry.name}`]" in line)
    assert f"{entry.images:,}" in row
    assert f"{entry.channels} x 64 x 64" in row
    assert row.endswith(" no |") == (not entry.wanted)
    for factor in entry.factors:
        assert f"| `{factor.name}` | {factor.size} | {factor.kind} |" in page


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_pages_name_the_official_files(file: OfficialFile) -> None:
    pages = "".join(path.read_text() for path in sorted((DOCS / "data").glob("*.md")))
    assert file.name in pages
    assert file.checksum.partition(":")[2] in pages
    assert file.size is None or f"| {file.size:,} |" in pages
    for url in file.urls:  # the address of a folder may stand for those of its files
        assert f"<{url}>" in pages or f"<{url.removesuffix(file.name)}>" in pages


def test_pictures_are_small_and_used() -> None:
    pages = "".join(path.read_text() for path in DOCS.rglob("*.md"))
    for picture in (DOCS / "pictures").iterdir():
        assert picture.stat().st_size <= LARGEST_PICTURE
        assert f"pictures/{picture.name}" in pages
