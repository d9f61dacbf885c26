"""What tests of evaluation share."""

import pytest

from unweave.metrics.table import SUITES


@pytest.fixture
def without_perceptrons(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave the one metric out of the suite of all that takes many seconds however few the points are."""
    monkeypatch.setitem(SUITES, "all", tuple(name for name in SUITES["all"] if name != "dci_es_mlp"))
