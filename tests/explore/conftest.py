"""A small trained run, a server around it, and a browser."""

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pytest

import unweave
from explore.browser import Browser
from unweave.explore import run_view
from unweave.explore.export import export_page
from unweave.explore.server import ExploreServer
from unweave.explore.subject import Subject, subject_at
from unweave.methods import BetaVAE

Serve = Callable[..., AbstractContextManager[ExploreServer]]


@pytest.fixture(autouse=True)
def few_points(monkeypatch: pytest.MonkeyPatch) -> None:
    """Estimate from few images: these tests are not about the estimates."""
    monkeypatch.setattr(run_view, "POINTS", 200)


@pytest.fixture(scope="session")
def run_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run that has learned a little: its latents change its images."""
    folder = tmp_path_factory.mktemp("runs")
    settings: dict[str, Any] = {"steps": 60, "batch": 16, "latents": 4, "learning_rate": 2e-3}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("UNWEAVE_CACHE", str(folder / "cache"))
        return unweave.train(BetaVAE(1.0), "dsprites", out=folder, device="cpu", **settings).path


@pytest.fixture(scope="session")
def exported_page(run_folder: Path) -> Path:
    """The page of this run as one file; torch records its decoder, which takes some seconds."""
    page = run_folder.parent / "page.html"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(run_view, "POINTS", 200)
        export_page(run_view.open_run(run_folder), page)
    return page


@contextmanager
def _serve(path: Path | Subject, host: str = "127.0.0.1") -> Iterator[ExploreServer]:
    subject = path if isinstance(path, Subject) else subject_at(path)
    with ExploreServer(subject, host) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture
def serve() -> Serve:
    """Serve a folder, or a subject, while the test needs it."""
    return _serve


@pytest.fixture(scope="session")
def started_browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """A headless browser for all tests."""
    with Browser(tmp_path_factory.mktemp("browser")) as opened:
        yield opened


@pytest.fixture
def browser(started_browser: Browser) -> Browser:
    """A headless browser with a new page."""
    started_browser.new_page()
    return started_browser
