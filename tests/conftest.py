"""What all tests share."""

import gc
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

# The workers of a test run share the cores already. Libraries of linear algebra read the variable when they
# are loaded, so torch and NumPy are imported later; commands that tests start inherit it.
os.environ["OMP_NUM_THREADS"] = "1"
# Workers of a study use several threads in spite of it. Idle threads sleep then; by default they spin, which
# takes the cores from other processes and doubles the time of a study.
os.environ["OMP_WAIT_POLICY"] = "passive"

ROOT = Path(__file__).parents[1]
# Their tests wait for processes and browsers, some for half a minute.
WAITING = tuple(ROOT / "tests" / name for name in ("study", "project", "terminal", "explore"))


def pytest_configure(config: pytest.Config) -> None:
    """Give torch one thread, and turn garbage collection off while tests are collected.

    It would take a quarter of that time. The process that only hands tests to workers needs neither.
    """
    if hasattr(config, "workerinput") or not config.getoption("numprocesses", None):
        import torch

        torch.set_num_threads(1)
        gc.disable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run tests that wait first: others use the cores meanwhile, and a run does not end with a long test."""
    items.sort(key=lambda item: item.path.parent not in WAITING)


def pytest_collection_finish() -> None:
    """Leave modules and collected tests out of later garbage collections."""
    gc.freeze()
    gc.enable()


def pytest_unconfigure() -> None:
    """Let the modules be freed at exit; some libraries report leaks otherwise."""
    gc.unfreeze()


@pytest.fixture(autouse=True, scope="session")
def unsynced_files() -> Iterator[None]:
    """Do not wait until files are on the disk: it takes 10 ms a file, and matters in a power cut only."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda _file: None)
        yield


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give each test a cache folder of its own, so that no test sees the user's files or another's."""
    monkeypatch.setenv("UNWEAVE_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("UNWEAVE_DATA", raising=False)
    return tmp_path / "cache"


@pytest.fixture(scope="module")
def quick_fonts() -> Iterator[None]:
    """Write fonts of PDF files as Type 3: subsets of TrueType fonts take half of the time of a report."""
    from unweave.report.style import SETTINGS

    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(SETTINGS, "pdf.fonttype", 3)
        yield


@pytest.fixture(scope="session")
def reference() -> Path:
    """Folder of reference data that is not part of the repository."""
    folder = ROOT.parent / "shared"
    if not folder.is_dir():
        pytest.skip("the shared folder is not available")
    return folder
