"""The pages without a mouse: few tab stops, arrows in grids, and a focus that is never lost."""

import json
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest

from explore.browser import Browser
from explore.conftest import Serve
from explore.test_run_page import CODES, READY
from explore.test_study_page import STATUS, write_study

ACTIVE = "document.activeElement"


@pytest.fixture
def run(browser: Browser, run_folder: Path, serve: Serve) -> Iterator[Browser]:
    """The page of a run with four latents and five factors."""
    with serve(run_folder) as server:
        browser.open(server.url)
        browser.wait_for(READY)
        yield browser


@pytest.fixture
def study(browser: Browser, tmp_path: Path, serve: Serve) -> Iterator[Browser]:
    """The page of a study, with a range of MIG."""
    write_study(tmp_path)
    with serve(tmp_path) as server:
        browser.open(f"{server.url}#study={quote(json.dumps({'ranges': {'mig': [0.1, None]}}))}")
        browser.wait_for(f"({STATUS} ?? '').includes('14 of 24 runs')")
        yield browser


def test_a_matrix_is_one_tab_stop(run: Browser) -> None:
    stops = "[...document.querySelectorAll('.matrix table button')].filter((b) => b.tabIndex >= 0).length"
    assert run.evaluate(stops) == 1
    cells = run.evaluate("[...document.querySelectorAll('[data-cell]')].map((b) => b.dataset.cell)")
    run.evaluate("document.querySelector('[data-cell]').focus()")
    places = [
        ("ArrowRight", 1),
        ("ArrowDown", 6),
        ("ArrowLeft", 5),
        ("ArrowLeft", 5),
        ("End", 9),
        ("ArrowRight", 9),
    ]
    for key, place in places:
        run.press(key)
        assert run.evaluate(f"{ACTIVE}.dataset.cell") == cells[place], key
    run.press("Tab")
    assert run.evaluate(f"{ACTIVE}.textContent") == "Save PNG"
    assert run.evaluate(stops) == 1
    assert run.evaluate(f"document.querySelector('[data-cell=\"{cells[9]}\"]').tabIndex") == 0


def test_traversals_can_be_walked_with_keys(run: Browser) -> None:
    run.evaluate("document.querySelector('.traversal canvas').focus()")
    cell_text = "document.querySelector('.cell-text').textContent"
    rows = run.evaluate("document.querySelector('.traversal canvas').getAttribute('aria-label')")
    names = rows.partition("Rows: ")[2].partition(".")[0].split(", ")
    run.press("Tab")
    run.evaluate("document.querySelector('.traversal canvas').focus()")  # keys came last: the cell is drawn
    for key in ("Home", "ArrowRight"):
        run.press(key)
    first = run.evaluate("document.querySelector('.latent.selected').dataset.latent")
    assert run.evaluate(cell_text) == f"z{first} at -1.60. Enter goes there."
    run.press("ArrowDown" if names[-1] != f"z{first}" else "ArrowUp")
    latent = int(run.evaluate(cell_text).split()[0].removeprefix("z"))
    assert latent != int(first)
    run.press("Enter")
    run.wait_for(f"{CODES}.split(',')[{latent}] === '-1.60'")
    assert run.evaluate("document.querySelector('.latent.selected').dataset.latent") == str(latent)
    assert run.evaluate(f"{ACTIVE} === document.querySelector('.traversal canvas')"), "the focus stays"


def test_the_first_tab_stop_skips_to_the_content(run: Browser) -> None:
    address = run.evaluate("location.href")
    run.press("Tab")
    assert run.evaluate(f"{ACTIVE}.textContent") == "Skip to the content"
    assert run.evaluate(f"{ACTIVE}.getBoundingClientRect().top") >= 0, "it is seen when it has the focus"
    run.press("Enter")
    assert run.evaluate(f"{ACTIVE}.id") == "main"
    assert run.evaluate("location.href") == address, "the address holds the state of the page"


def test_every_view_has_one_heading_and_it_gets_the_focus(study: Browser) -> None:
    headings = "[...document.querySelectorAll('h1')].map((h) => h.textContent)"
    assert study.evaluate(headings) == [study.evaluate("document.getElementById('where').textContent")]
    assert study.evaluate(f"{ACTIVE} === document.body"), "nothing moves when the page opens"
    study.evaluate("location.hash = '#study={}'")
    study.wait_for(f"({STATUS} ?? '').startsWith('24 of 24 runs') && {ACTIVE}.tagName === 'H1'")


def test_the_focus_stays_near_a_filter_that_goes_away(study: Browser) -> None:
    study.evaluate("document.querySelector('.study-range button').focus()")
    study.press("Enter")
    study.wait_for(f"{STATUS} === '24 of 24 runs'")
    assert study.evaluate(f"{ACTIVE}.dataset.add") == "range"
    study.evaluate("[...document.querySelectorAll('form button')].at(-1).focus()")
    study.press("Enter")
    study.wait_for(f"{ACTIVE}.textContent === 'Show all runs'")
