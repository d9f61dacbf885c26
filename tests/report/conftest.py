"""The published results, read once for all tests of the report."""

from pathlib import Path

import pandas as pd
import pytest

from unweave.report.published import published
from unweave.report.sections.section import Material, material
from unweave.results import Results, wide


@pytest.fixture(scope="session")
def published_results(reference: Path) -> Results:
    """The table of the 10,800 published models."""
    folder = reference / "reference" / "published"
    if not folder.is_dir():
        pytest.skip("the folder of published results is not available")
    return published(folder)


@pytest.fixture(scope="session")
def published_models(published_results: Results) -> pd.DataFrame:
    """One row for each published model."""
    return wide(published_results.table)


@pytest.fixture(scope="session")
def published_runs(published_results: Results) -> Material:
    """What sections of the report start from."""
    built = material(published_results, "published")
    assert isinstance(built, Material)
    return built
