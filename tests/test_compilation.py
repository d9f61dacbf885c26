"""Compiled functions are announced once, and need no folder to write to."""

import subprocess
import sys
from pathlib import Path

import numba
import numpy as np
import pytest

from unweave.compilation import announced

NO_FOLDER = """
import numba.core.caching as caching
def refuse(self):
    raise PermissionError(13, "Permission denied")
for locator in (caching.InTreeCacheLocator, caching.UserWideCacheLocator):
    locator.ensure_cache_path = refuse
import unweave
print(unweave.Stream.of(0).integers(1, [10]))
"""


def test_compilation_is_announced_once_to_someone_who_waits(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def double(x):  # type: ignore[no-untyped-def]
        return 2 * x

    double.__module__ = "unweave.metrics.double"
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    function = numba.njit(double)  # not kept, so that it is compiled in every run of the tests
    with announced():
        assert function(np.float32(1)) == function(1) == 2
    assert capsys.readouterr().err == "unweave: compiling metrics for this machine, once (up to 15 s)\n"
    with announced():
        function(1)
    assert not capsys.readouterr().err, "it is compiled already"


def test_nothing_is_announced_to_a_file(capsys: pytest.CaptureFixture[str]) -> None:
    def triple(x):  # type: ignore[no-untyped-def]
        return 3 * x

    triple.__module__ = "unweave.metrics.triple"
    with announced():
        assert numba.njit(triple)(1) == 3
    assert not capsys.readouterr().err


@pytest.mark.parametrize("writable", [True, False])
def test_a_package_that_cannot_be_written_to_works(tmp_path: Path, writable: bool) -> None:
    """Compiled code is kept in unweave's own cache folder, or not at all."""
    folder = tmp_path / "cache"
    if not writable:
        folder.write_text("a file where the folder should be")
    done = subprocess.run(
        [sys.executable, "-c", NO_FOLDER],
        env={"UNWEAVE_CACHE": str(folder), "PATH": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert any((folder / "compiled").rglob("*.nbi")) == writable
