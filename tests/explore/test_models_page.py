"""The page of a user's model or arrays in a browser, and what it shows while it is opened."""

import threading
from typing import Any

import numpy as np

from explore.browser import Browser
from explore.dots import FACTORS, decode, dot_images, dots, encode
from unweave.explore.session import explore

READY = "document.querySelector('.traversal canvas')?.dataset.drawn"
BACKGROUND: dict[str, Any] = {"open_page": False, "wait": False}


def titles(browser: Browser) -> list[str]:
    """The titles of the panels."""
    found: list[str] = browser.evaluate(
        "[...document.querySelectorAll('.panel h2')].map((h) => h.textContent)"
    )
    return found


def bright_pixel(browser: Browser, place: int) -> list[int]:
    """Where the dot of the true (0) or the decoded (1) image is, as x and y."""
    script = (
        f"(() => {{ const c = document.querySelectorAll('canvas.picture')[{place}];"
        "const d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data;"
        "const i = Array.from({length: c.width * c.height}, (_, p) => d[4 * p]).indexOf(255);"
        "return [i % c.width, Math.floor(i / c.width)]; })()"
    )
    found: list[int] = browser.evaluate(script)
    return found


def test_the_page_of_a_model_moves_its_latents(browser: Browser) -> None:
    opened = explore(encode=encode, decode=decode, data=dots(), content=1, name="places", **BACKGROUND)
    try:
        browser.open(opened.url)
        browser.wait_for(READY)
        assert browser.evaluate("document.querySelector('h1').textContent") == "places"
        shown = titles(browser)
        assert {"Image", "Latents", "True factors", "Traversals", "Change one true factor"} <= set(shown)
        assert "Which latent knows which factor" in shown
        assert "Content of one image, style of another" in shown
        browser.wait_for("document.querySelectorAll('canvas.picture')[1].dataset.codes === '2.00,2.00'")
        assert bright_pixel(browser, 0) == bright_pixel(browser, 1) == [2, 2]
        browser.evaluate(
            "(() => { const input = document.querySelector('[data-latent=\"0\"] input'); input.value = 4;"
            "input.dispatchEvent(new Event('input')); })()"
        )
        browser.wait_for("document.querySelectorAll('canvas.picture')[1].dataset.codes === '4.00,2.00'")
        assert bright_pixel(browser, 1) == [4, 2]
    finally:
        opened.close()
    assert browser.errors == []


def test_moves_that_are_shown_as_none_are_no_finding(browser: Browser) -> None:
    opened = explore(encode=lambda images: encode(images) * [1, 1e-4], data=dots(), **BACKGROUND)
    try:
        for factor, sentence in (
            ("x", r"moves z0 most, by [\d.]+\d\.$"),
            ("y", r"moves no latent by 0\.01 or"),
        ):
            browser.open(opened.url)
            browser.wait_for("document.querySelector('.finding').textContent")
            buttons = "[...document.querySelectorAll('.choice button')]"
            browser.evaluate(f"{buttons}.find((b) => b.textContent === '{factor}').click()")
            browser.wait_for(
                f"/^Changing {factor} {sentence}/.test(document.querySelector('.finding').textContent)"
            )
    finally:
        opened.close()
    assert browser.errors == []


def test_arrays_without_factors_start_from_an_image_and_show_the_nearest(browser: Browser) -> None:
    opened = explore(codes=FACTORS.astype(float), images=dot_images(), **BACKGROUND)
    try:
        browser.open(opened.url)
        browser.wait_for(READY)
        assert titles(browser) == ["Image", "Latents", "Start from an image", "Traversals"]
        text = browser.evaluate("document.querySelector('.pictures').textContent")
        assert "nearest to the sliders, of 25 true images (the model has no decoder)" in text
        assert "true ones with the nearest codes" in browser.evaluate(
            "document.querySelector('.traversal').textContent"
        )
        browser.evaluate("document.querySelectorAll('.examples button')[7].click()")
        x, y = np.flatnonzero(dot_images()[7].ravel()) % 8, np.flatnonzero(dot_images()[7].ravel()) // 8
        browser.wait_for(
            f"document.querySelectorAll('canvas.picture')[1].dataset.codes === '{x[0]:.2f},{y[0]:.2f}'"
        )
        assert bright_pixel(browser, 0) == bright_pixel(browser, 1) == [x[0], y[0]]
    finally:
        opened.close()
    assert browser.errors == []


def test_the_page_says_how_much_is_encoded(browser: Browser) -> None:
    go_on, calls = threading.Event(), []

    def encode_slowly(images: Any) -> Any:
        calls.append(len(images))
        if len(calls) > 1:  # the trial before the page is served
            assert go_on.wait(60)
        return encode(images)

    opened = explore(encode=encode_slowly, data=dots(), **BACKGROUND)
    try:
        browser.open(opened.url)
        browser.wait_for(
            "document.querySelector('.opening')?.textContent.includes('Encoding images: 0 of 25')"
        )
        assert browser.evaluate("document.querySelector('.opening progress').max") == 25
        go_on.set()
        browser.wait_for(READY)
        assert browser.evaluate("document.querySelector('.opening')") is None
    finally:
        go_on.set()
        opened.close()
    assert browser.errors == []
