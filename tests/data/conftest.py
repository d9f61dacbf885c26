"""A site to download from, a folder to download to, and an empty cache."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from data.download_site import Site, serving


@pytest.fixture
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cache of this test only, and no proxy in front of the site."""
    monkeypatch.setenv("UNWEAVE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("no_proxy", "127.0.0.1")


@pytest.fixture
def site() -> Iterator[Site]:
    """A web site on this computer."""
    with serving() as served:
        yield served


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The folder of a data set that is not downloaded yet."""
    return tmp_path / "data" / "toy"
