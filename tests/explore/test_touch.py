"""The pages under a finger: taps show and select, swipes scroll, and a scroll changes nothing."""

import json
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest

from explore.browser import Browser
from explore.conftest import Serve
from explore.test_run_page import CODES, READY
from explore.test_study_page import STATUS, write_study
from explore.touch import allow_touch, middle_of, swipe, tap

PLOT = ".study-plot canvas"
CARD = "document.querySelector('.study-card')"
SCROLLED = "new Promise((done) => setTimeout(() => done(scrollY), 300))"
# The place of a mark of the first colour, a blue that neither axes nor words have.
MARK = """(() => {
  const canvas = document.querySelector('.study-plot canvas');
  const { data, width, height } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
  for (let y = height - 1; y >= 0; y--) for (let x = 0; x < width; x++) {
    const at = 4 * (y * width + x);
    if (data[at + 2] > data[at] + 100 && data[at + 2] > 120) {
      const box = canvas.getBoundingClientRect();
      return [box.left + (x * box.width) / width, box.top + (y * box.height) / height - 2];
    }
  }
})()"""
# The runs are on a line from the upper left to the lower right.
EMPTY = (
    "(({ left, bottom }) => [left + 70, bottom - 60])"
    "(document.querySelector('.study-plot canvas').getBoundingClientRect())"
)


@pytest.fixture
def study(browser: Browser, tmp_path: Path, serve: Serve) -> Iterator[Browser]:
    """A study on a phone."""
    write_study(tmp_path)
    allow_touch(browser)
    with serve(tmp_path) as server:
        browser.open(f"{server.url}#study={quote(json.dumps({'x': 'mig', 'y': 'sap'}))}")
        browser.wait_for(f"({STATUS} ?? '').includes(' of 24 runs')")
        yield browser


@pytest.fixture
def run(browser: Browser, run_folder: Path, serve: Serve) -> Iterator[Browser]:
    """A run on a phone."""
    allow_touch(browser)
    with serve(run_folder) as server:
        browser.open(server.url)
        browser.wait_for(READY)
        yield browser


def test_a_scroll_over_a_plot_marks_nothing(study: Browser) -> None:
    x, y = middle_of(study, PLOT)
    before = study.evaluate("scrollY")
    swipe(study, (x, y + 100), (x + 10, y - 200))
    assert study.evaluate(SCROLLED) > before + 100, "the page scrolls"
    assert study.evaluate(STATUS) == "24 of 24 runs"


def test_a_scroll_over_a_plot_keeps_the_runs_that_were_marked(study: Browser) -> None:
    x, y = middle_of(study, PLOT)
    swipe(study, (x - 130, y - 100), (x + 30, y + 40))
    study.wait_for(f"{STATUS}.includes('of them marked')")
    marked = study.evaluate(STATUS)
    x, y = middle_of(study, PLOT)
    swipe(study, (x, y + 100), (x + 10, y - 200))
    study.evaluate(SCROLLED)
    assert study.evaluate(STATUS) == marked


def test_a_tap_shows_a_run_until_another_place_is_tapped(study: Browser) -> None:
    middle_of(study, PLOT)
    mark = tuple(study.wait_for(MARK))
    tap(study, mark)
    study.wait_for(f"!{CARD}.hidden")
    study.evaluate("new Promise((done) => setTimeout(done, 400))")
    assert study.evaluate(f"{CARD}.checkVisibility()"), "it stays when the finger is lifted"
    assert "Tap it again to open it." in study.evaluate(f"{CARD}.textContent")
    box = study.evaluate(
        f"(() => {{ const r = {CARD}.getBoundingClientRect(); return [r.left, r.right]; }})()"
    )
    assert 0 <= box[0] < box[1] <= 390
    tap(study, tuple(study.evaluate(EMPTY)))
    study.wait_for(f"{CARD}.hidden")
    tap(study, mark)
    study.wait_for(f"!{CARD}.hidden")
    tap(study, mark)
    study.wait_for("location.hash.includes('run=')")


def test_touching_a_slider_selects_and_moves_it(run: Browser) -> None:
    slider = "[data-latent='2'] input"
    tap(run, middle_of(run, slider, 0.9))
    run.wait_for("document.querySelector('.latent.selected').dataset.latent === '2'")
    run.wait_for(f"{CODES}.split(',')[2] > 1.5")
    start = middle_of(run, "[data-latent='3'] input", 0.5)
    swipe(run, start, (start[0] - 60, start[1] + 4))
    run.wait_for("document.querySelector('.latent.selected').dataset.latent === '3'")
    run.wait_for(f"{CODES}.split(',')[3] < -0.5")
    tap(run, middle_of(run, ".factor:last-of-type input", 0.9))
    run.wait_for("document.querySelector('.factor.selected label').textContent === 'y'")


def test_a_scroll_that_begins_on_a_slider_changes_nothing(run: Browser) -> None:
    run.evaluate("window.moves = 0; document.addEventListener('input', () => { window.moves += 1; })")
    codes = run.evaluate(CODES)
    selected = run.evaluate("document.querySelector('.latent.selected').dataset.latent")
    other = next(i for i in "0123" if i != selected)
    x, y = middle_of(run, f"[data-latent='{other}'] input", 0.9)
    value = run.evaluate(f"document.querySelector(\"[data-latent='{other}'] input\").value")
    before = run.evaluate("scrollY")
    swipe(run, (x, y), (x + 5, y - 250))
    assert run.evaluate(SCROLLED) > before + 100, "the page scrolls"
    assert run.evaluate(CODES) == codes
    assert run.evaluate(f"document.querySelector(\"[data-latent='{other}'] input\").value") == value
    assert run.evaluate("window.moves") == 0, "not even for a moment"
    assert run.evaluate("document.querySelector('.latent.selected').dataset.latent") == selected
