"""Lint, format and types, as part of the tests: what is green here is green everywhere."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    "command",
    [["ruff", "check", "."], ["ruff", "format", "--check", "."], ["mypy"]],
    ids=["lint", "format", "types"],
)
def test_code_is_clean(command: list[str]) -> None:
    done = subprocess.run(
        [sys.executable, "-m", *command], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_scripts_of_the_pages_are_clean() -> None:
    """Lint and format of the explorer's JavaScript; `npm install` puts the linter into node_modules."""
    biome = shutil.which("biome", path=ROOT / "node_modules" / ".bin") or shutil.which("biome")
    if biome is None:
        pytest.skip("biome is not installed; npm install installs the version of package.json")
    done = subprocess.run(
        [biome, "check", "--error-on-warnings"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_versions_agree() -> None:
    version = re.search(r'^version = "(.*)"', (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
    code = re.search(r'^__version__ = "(.*)"', (ROOT / "src/unweave/__init__.py").read_text(), re.MULTILINE)
    citation = re.search(r"^version: (.*)$", (ROOT / "CITATION.cff").read_text(), re.MULTILINE)
    assert version
    assert code
    assert citation
    assert version[1] == code[1] == citation[1]
    assert f"## {version[1]}" in (ROOT / "CHANGELOG.md").read_text()


def test_ci_runs_the_readme_command() -> None:
    """The script takes the command out of README.md, so this only checks that it is there to be taken."""
    readme = (ROOT / "README.md").read_text()
    commands = re.findall(r"<!-- (run|test) -->\n```bash\n(.+)\n```", readme)
    assert [name for name, _ in commands] == ["run", "test"]
    assert "<!-- test -->" in (ROOT / ".ci/run").read_text()
