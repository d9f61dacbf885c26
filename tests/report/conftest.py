"""What the tests of the report share."""

from collections.abc import Iterator

import pytest

from unweave.report.style import SETTINGS


@pytest.fixture(scope="module")
def quick_fonts() -> Iterator[None]:
    """Write the fonts of PDF files as Type 3: a subset of a TrueType font takes half of the time of a report."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(SETTINGS, "pdf.fonttype", 3)
        yield
