"""All pages as axe-core sees them, in light and dark and on a phone; none is wider than the phone."""

import json
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

import pytest

from explore.axe import violations
from explore.browser import Browser
from explore.compared import permuted_copy, write_scores
from explore.conftest import Serve
from explore.live_folders import end_run, locked, spec_of, write_run
from explore.live_folders import write_study as write_plan
from explore.test_run_page import READY
from explore.test_study_page import STATUS, write_study
from report.made_up import SIX, settings, table
from unweave.explore.compared import comparison_at
from unweave.report.page import write_report

PHONE, DESKTOP = 390, 1280
Check = Callable[[str, str], None]


@pytest.fixture
def check(browser: Browser) -> Check:
    """A function of an address and of an expression that is true when the page is complete."""

    def check(url: str, ready: str) -> None:
        browser.prefer("light")
        browser.resize(PHONE, 800)
        browser.open(url)
        browser.wait_for(ready)
        browser.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
        assert browser.evaluate("document.documentElement.scrollWidth") <= PHONE
        assert violations(browser) == [], "on a phone"
        browser.resize(DESKTOP, 800)
        for theme in ("light", "dark"):
            browser.wait_for(f"document.documentElement.dataset.theme === '{theme}'")
            assert violations(browser) == [], theme
            browser.evaluate("document.getElementById('theme').click()")
        assert browser.evaluate("document.querySelectorAll('h1').length") == 1

    return check


def test_the_page_of_a_run(run_folder: Path, serve: Serve, check: Check) -> None:
    with serve(run_folder) as server:
        description = server.subject.view(str(server.subject.describe()["run"])).description
        description["information"] = [[0.05 * (5 * i + j) for j in range(5)] for i in range(4)]  # all colours
        check(server.url, READY)


def test_an_exported_page(exported_page: Path, check: Check) -> None:
    check(exported_page.as_uri(), READY)


def test_the_page_of_a_study(tmp_path: Path, serve: Serve, check: Check) -> None:
    write_study(tmp_path)
    with serve(tmp_path) as server:
        state = {"pins": [f"{i:016x}" for i in range(2)], "ranges": {"mig": [0, None]}}
        check(f"{server.url}#study={quote(json.dumps(state))}", f"({STATUS} ?? '').includes(' of 24 runs')")


def test_the_page_of_runs_in_training(tmp_path: Path, serve: Serve, check: Check) -> None:
    specs = [spec_of(beta=beta, seed=seed) for beta in (1.0, 4.0) for seed in range(3)]
    write_plan(tmp_path, *specs)
    first = write_run(tmp_path / "runs", specs[0], *({"step": s, "kl": 5.0 / s} for s in range(1, 50)))
    end_run(write_run(tmp_path / "runs", specs[5], {"step": 1, "kl": 1.0}), scores={"mig": 0.123456})
    with locked(first), serve(tmp_path) as server:
        check(server.url, "document.querySelectorAll('.live-grid td button').length === 6")


def test_the_page_of_compared_runs(run_folder: Path, tmp_path: Path, serve: Serve, check: Check) -> None:
    first = permuted_copy(run_folder, tmp_path / "first", seed=1)
    second = permuted_copy(run_folder, tmp_path / "second", seed=2)
    write_scores(first, 0.1)
    write_scores(second, 0.2)
    with serve(comparison_at([first, second])) as server:
        check(server.url, "document.querySelectorAll('canvas[data-run][data-codes]').length === 2")


@pytest.mark.usefixtures("quick_fonts")
def test_a_report(tmp_path: Path, check: Check) -> None:
    results = table(settings(["dsprites"], ["beta_vae"], seeds=2), {"mig": SIX["mig"]})
    check(write_report(results, tmp_path).as_uri(), "document.querySelector('.chart summary[aria-label]')")
