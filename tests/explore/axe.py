"""axe-core in the page of a test: what keeps people with disabilities from using it."""

from pathlib import Path

import pytest

from explore.browser import Browser

SCRIPT = Path(__file__).parents[2] / "node_modules" / "axe-core" / "axe.min.js"


def violations(page: Browser) -> list[str]:
    """What axe finds on the page as it is now, one line for each rule and element."""
    if not SCRIPT.exists():
        pytest.skip("axe-core is not installed; npm install installs the version of package.json")
    if not page.evaluate("'axe' in window"):
        page.evaluate(SCRIPT.read_text(encoding="utf-8"))
    found: list[str] = page.evaluate(
        "axe.run(document, { resultTypes: ['violations'] }).then(({ violations }) => violations.flatMap("
        "({ id, help, nodes }) => nodes.map(({ target, html, any }) => "
        "`${id}: ${help}: ${target} ${html.slice(0, 200)} ${any[0]?.message ?? ''}`)))"
    )
    return found
