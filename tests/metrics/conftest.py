"""Fixtures of the tests of metrics."""

from typing import Any

import pytest
import sklearn.ensemble  # type: ignore[import-untyped]


@pytest.fixture
def small_forests(monkeypatch: pytest.MonkeyPatch) -> None:
    """Grow random forests of 10 trees instead of 100."""
    forest = sklearn.ensemble.RandomForestClassifier

    def small(**options: Any) -> Any:
        return forest(**options | {"n_estimators": 10})

    monkeypatch.setattr(sklearn.ensemble, "RandomForestClassifier", small)
