"""What all tests share."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

# The workers of a test run share the cores already. Libraries of linear algebra read the variable when they
# are loaded, so it is set before torch and NumPy are imported; commands that tests start inherit it.
os.environ["OMP_NUM_THREADS"] = "1"
import torch

from unweave.report.style import SETTINGS

torch.set_num_threads(1)

ROOT = Path(__file__).parents[1]


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give each test a cache folder of its own, so that no test sees the user's files or another's."""
    monkeypatch.setenv("UNWEAVE_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("UNWEAVE_DATA", raising=False)
    return tmp_path / "cache"


@pytest.fixture(scope="module")
def quick_fonts() -> Iterator[None]:
    """Write fonts of PDF files as Type 3: subsets of TrueType fonts take half of the time of a report."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(SETTINGS, "pdf.fonttype", 3)
        yield


@pytest.fixture(scope="session")
def reference() -> Path:
    """Folder of reference data that is not part of the repository."""
    folder = ROOT.parent / "shared"
    if not folder.is_dir():
        pytest.skip("the reference data beside the repository are not here")
    return folder
