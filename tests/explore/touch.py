"""A finger on the page: taps and swipes that Chromium turns into gestures, such as scrolling."""

import time

from explore.browser import Browser

STEPS = 12  # places that a swipe reports; a browser needs some of them to recognise a gesture


def allow_touch(page: Browser, width: int = 390, height: int = 800) -> None:
    """Make the page that of a phone."""
    page.send(
        "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=2, mobile=True
    )
    page.send("Emulation.setTouchEmulationEnabled", enabled=True)


def swipe(page: Browser, start: tuple[float, float], end: tuple[float, float]) -> None:
    """Put a finger down at one place and lift it at another; the same place twice is a tap."""
    steps = STEPS if start != end else 0
    _touch(page, "touchStart", start)
    for k in range(1, steps + 1):
        share = k / steps
        at = (start[0] + share * (end[0] - start[0]), start[1] + share * (end[1] - start[1]))
        _touch(page, "touchMove", at)
        time.sleep(0.016)
    page.send("Input.dispatchTouchEvent", type="touchEnd", touchPoints=[])


def tap(page: Browser, place: tuple[float, float]) -> None:
    """Touch one place for a moment."""
    swipe(page, place, place)


def _touch(page: Browser, kind: str, place: tuple[float, float]) -> None:
    page.send("Input.dispatchTouchEvent", type=kind, touchPoints=[{"x": place[0], "y": place[1]}])


def middle_of(page: Browser, selector: str, across: float = 0.5) -> tuple[float, float]:
    """A place in an element, half-way down, after scrolling it into the middle of the window."""
    x, y = page.evaluate(
        f"(() => {{ const e = document.querySelector({selector!r}); e.scrollIntoView({{block: 'center'}}); "
        "const r = e.getBoundingClientRect(); "
        f"return [r.left + {across} * r.width, r.top + r.height / 2]; }})()"
    )
    return x, y
