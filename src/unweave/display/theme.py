"""The script of light and dark colours, which all pages of the explorer and reports share. Needs no torch."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

BUTTON = '<button type="button" id="theme" aria-pressed="false">Dark colours</button>'


@cache
def theme_script() -> str:
    """The script, to be run in the head of a page that has a `BUTTON`, before anything is drawn."""
    return files("unweave.display").joinpath("theme.js").read_text(encoding="utf-8")
