"""The package: its metadata, its wheel, and what works without torch."""

import ast
import re
import subprocess
import sys
import sysconfig
import tomllib
import zipfile
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml
from packaging.requirements import Requirement

from project.wheel_session import COMMANDS, build, install, run_session

ROOT = Path(__file__).parents[2]
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
INSTALL_PAGE = (ROOT / "docs" / "install.md").read_text()
CONDA_NAMES = {"torch": "pytorch", "matplotlib": "matplotlib-base"}
ADDRESS = "https://example.org/team/unweave"


@pytest.fixture(scope="module")
def build_script() -> ModuleType:
    """hatch_build.py."""
    spec = spec_from_file_location("hatch_build", ROOT / "hatch_build.py")
    assert spec
    assert spec.loader
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("dist"))


def versions_by_name() -> dict[str, str]:
    """The core dependencies."""
    found = map(Requirement, PROJECT["dependencies"])
    return {requirement.name: str(requirement.specifier) for requirement in found}


def test_dependencies_have_lower_bounds_only() -> None:
    """An upper bound would make unweave impossible to install next to newer packages."""
    assert versions_by_name()["torch"] == ">=2.6"
    for extra, packages in {"core": PROJECT["dependencies"], **PROJECT["optional-dependencies"]}.items():
        assert packages, f"the extra {extra} is empty"
        for requirement in map(Requirement, packages):
            assert re.fullmatch(r"(>=[\d.]+)?", str(requirement.specifier)), requirement


def test_constraints_name_an_allowed_version_of_a_dependency() -> None:
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    for constraint in map(Requirement, (line for line in lines if not line.startswith("#"))):
        [version] = (part.version for part in constraint.specifier)
        allowed = {requirement.name: requirement for requirement in map(Requirement, PROJECT["dependencies"])}
        assert version in allowed[constraint.name].specifier


def test_classifiers_exist_and_name_the_tested_pythons() -> None:
    known = pytest.importorskip("trove_classifiers").classifiers
    assert set(PROJECT["classifiers"]) <= known
    named = re.findall(r"Python :: (3\.\d+)", "\n".join(PROJECT["classifiers"]))
    tests = yaml.safe_load((ROOT / ".github/workflows/tests.yml").read_text())
    assert named == tests["jobs"]["readme-command"]["strategy"]["matrix"]["python"]
    assert PROJECT["requires-python"] == f">={named[0]}"


def test_the_install_page_names_all_dependencies_and_extras() -> None:
    command = re.search(r"--no-deps \.\n.*pip install (.+)", INSTALL_PAGE)
    assert command
    assert set(command[1].split()) == set(versions_by_name()) - {"torch"}
    extras = re.findall(r"`(\w+)`", " ".join(re.findall(r"(?m)^\| (`\w+`(?:, `\w+`)*) \|", INSTALL_PAGE)))
    assert sorted(extras) == sorted(PROJECT["optional-dependencies"])


def test_the_conda_recipe_has_the_same_version_and_dependencies() -> None:
    recipe = yaml.safe_load((ROOT / "conda" / "recipe.yaml").read_text())
    assert recipe["context"]["version"] == PROJECT["version"]
    conda = dict(line.split() for line in recipe["requirements"]["run"])
    own = {CONDA_NAMES.get(name, name): bound for name, bound in versions_by_name().items()}
    assert conda == {"python": PROJECT["requires-python"], **own}


def test_modules_import_nothing_that_windows_does_not_have() -> None:
    """Names that only other systems have are imported inside functions, behind a check of the system."""
    missing = {"fcntl", "grp", "pwd", "resource", "termios", "tty", "ForkServerContext"}
    for path in sorted((ROOT / "src").rglob("*.py")):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.Import | ast.ImportFrom):
                names = {getattr(node, "module", None), *(alias.name for alias in node.names)}
                assert not names & missing, f"{path} imports {names & missing}"


def test_workflows_name_files_that_exist() -> None:
    configurations = [*(ROOT / ".github").rglob("*.yml"), ROOT / ".readthedocs.yaml"]
    assert len(configurations) > 6
    text = "\n".join(path.read_text() for path in configurations)
    for path in configurations:
        assert yaml.safe_load(path.read_text())
    named = re.findall(r"(?<![\w/])(?:tests|docs)/[\w/.]*\w|constraints\.txt|\.ci/run", text)
    assert [name for name in named if "_build" not in name and not (ROOT / name).exists()] == []


def test_links_of_the_readme_work_on_other_pages(build_script: ModuleType) -> None:
    readme = (ROOT / "README.md").read_text()
    page = build_script.with_absolute_links(readme, ADDRESS, "1.2.0")
    assert not re.search(r"\]\((?!https?:|#)", page)
    assert not re.search(r'(?:src|href)="(?!https?:|#)', page)
    pictures = re.findall(rf"{ADDRESS}/raw/v1\.2\.0/([^)\s\"]+)", page)
    files = re.findall(rf"{ADDRESS}/blob/v1\.2\.0/([^)\s\"]+)", page)
    assert pictures
    assert files
    missing = [name for name in pictures + files if not (ROOT / name.partition("#")[0]).exists()]
    assert missing == []
    html = build_script.with_absolute_links('<img src="a.png"> <a href="b.md">b</a> [c](#c)', ADDRESS, "1")
    assert html == f'<img src="{ADDRESS}/raw/v1/a.png"> <a href="{ADDRESS}/blob/v1/b.md">b</a> [c](#c)'


def test_the_address_is_read_from_the_citation_file(build_script: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("[page](docs/page.md)")

    def metadata(citation: str) -> dict[str, Any]:
        (tmp_path / "CITATION.cff").write_text(citation)
        found: dict[str, Any] = {"version": "1.0.0"}
        build_script.PackageLinks(str(tmp_path), {}).update(found)
        return found

    with_address = metadata(f"title: x\nrepository-code: {ADDRESS}\n")
    assert with_address["urls"]["Repository"] == ADDRESS
    assert with_address["readme"]["text"] == f"[page]({ADDRESS}/blob/v1.0.0/docs/page.md)"
    without = metadata("title: x\n")
    assert without["urls"] == {}
    assert without["readme"]["text"] == "[page](docs/page.md)"


def test_the_wheel_has_all_files_of_the_package(wheel: Path) -> None:
    """Pages, scripts, styles and tables too."""
    source = ROOT / "src"
    files = [path for path in source.rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    assert {path.relative_to(source).as_posix() for path in files} - names == set()
    assert "unweave/CITATION.cff" in names
    assert {name.split("/")[0] for name in names} == {"unweave", f"unweave-{PROJECT['version']}.dist-info"}


def test_a_session_with_the_wheel(wheel: Path, tmp_path: Path) -> None:
    """Packages come from the environment of the tests: installing torch again would take minutes."""
    commands = install(wheel, tmp_path / "environment", ["--no-deps", "--no-index", "--no-compile"])
    [packages] = (tmp_path / "environment").rglob("site-packages")
    (packages / "borrowed.pth").write_text(sysconfig.get_path("purelib"))
    (tmp_path / "work").mkdir()
    run_session(commands, tmp_path / "work")


def test_a_missing_torch_is_said_in_one_line() -> None:
    code = COMMANDS.replace("assert unweave.__file__", "# ")
    command = [sys.executable, "-c", code, "without_torch", "methods list"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "unweave: this needs torch, which is not installed. Install it with `pip" in done.stderr
    code = code.replace("from unweave.cli import main", "unweave.train")
    done = subprocess.run([*command[:2], code, *command[3:]], capture_output=True, text=True, check=False)
    assert "ImportError: unweave.runs.train: this needs torch" in done.stderr
