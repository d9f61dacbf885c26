"""Light and dark: as the system has it, or as the reader chose, also after the page was closed."""

from pathlib import Path

from explore.browser import Browser
from explore.conftest import Serve
from explore.test_run_page import READY

THEME = "document.documentElement.dataset.theme"
SHADE = "parseInt(getComputedStyle(document.body).backgroundColor.match(/\\d+/)[0])"
PRESSED = "document.getElementById('theme').getAttribute('aria-pressed')"
CORNER = "document.querySelector('.traversal canvas').getContext('2d').getImageData(1, 1, 1, 1).data[0]"


def switch(browser: Browser, theme: str) -> None:
    """Press the switch, and check that all of the page has the theme."""
    browser.evaluate("document.getElementById('theme').click()")
    check(browser, theme)


def check(browser: Browser, theme: str) -> None:
    dark = theme == "dark"
    browser.wait_for(f"{THEME} === '{theme}' && ({CORNER} < 60) === {str(dark).lower()}")
    assert (browser.evaluate(SHADE) < 60) is dark
    assert browser.evaluate(PRESSED) == str(dark).lower()


def test_the_switch_is_remembered_by_the_next_explorer(
    run_folder: Path, serve: Serve, browser: Browser
) -> None:
    browser.prefer("light")
    with serve(run_folder) as server:
        browser.open(server.url)
        browser.wait_for(READY)
        check(browser, "light")
        switch(browser, "dark")
    with serve(run_folder) as other:  # at another port
        browser.open(other.url)
        browser.wait_for(READY)
        check(browser, "dark")
        switch(browser, "light")
        browser.prefer("dark")  # whoever chose what the system had follows the system
        check(browser, "dark")
    assert browser.errors == []


def test_the_switch_of_an_exported_page_is_remembered(exported_page: Path, browser: Browser) -> None:
    browser.prefer("dark")
    for theme in ("dark", "light"):
        browser.open(exported_page.as_uri())
        browser.wait_for(READY)
        check(browser, theme)
        if theme == "dark":
            switch(browser, "light")
    assert browser.errors == []


def test_paper_is_light(run_folder: Path, serve: Serve, browser: Browser) -> None:
    browser.prefer("dark")
    with serve(run_folder) as server:
        browser.open(server.url)
        browser.wait_for(READY)
        browser.send("Emulation.setEmulatedMedia", media="print")
        assert browser.evaluate(SHADE) > 200
        browser.send("Emulation.setEmulatedMedia", media="")
