"""Scripts of the pages: all are served, and several become one that means the same."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from unweave.errors import UnweaveError
from unweave.explore import scripts
from unweave.explore.scripts import bundle, pages, script_names
from unweave.explore.server import PAGES

A = """let runs = 0;
runs += 1;
export const one = () => runs;
const hidden = 5;
"""
B = """import {
  one,
} from "./lib/a.js";
const hidden = 7;
export function two() {
  return one() + hidden;
}
"""
MAIN = """import { two } from "./b.js";
import { one } from "./lib/a.js";
console.log(await two(), one());
"""


def test_every_import_is_a_page() -> None:
    for name in script_names():
        text = pages().joinpath(name).read_text(encoding="utf-8")
        for place in re.findall(r'(?:from |import\()"([^"]+)"', text):
            assert "/" + scripts._resolved(name, place) in PAGES, f"{name} imports {place}"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(scripts, "pages", lambda: tmp_path)
    (tmp_path / "lib").mkdir()
    return tmp_path


def test_a_bundle_means_the_same(folder: Path) -> None:
    """Names of modules do not collide, an import may span lines, and each module runs once."""
    if shutil.which("node") is None:
        pytest.skip("node is not installed")
    (folder / "lib" / "a.js").write_text(A)
    (folder / "b.js").write_text(B)
    (folder / "main.js").write_text(MAIN)
    (folder / "bundle.mjs").write_text(bundle("main.js"))
    done = subprocess.run(["node", folder / "bundle.mjs"], capture_output=True, text=True, check=True)
    assert done.stdout == "8 1\n"


@pytest.mark.parametrize("line", ['import x from "./a.js";', "export default 3;", "export { x };"])
def test_what_cannot_be_bundled_is_refused(folder: Path, line: str) -> None:
    (folder / "main.js").write_text(line + "\n")
    with pytest.raises(UnweaveError, match=r"main\.js has an import or export that cannot be bundled"):
        bundle("main.js")
