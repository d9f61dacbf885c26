"""How often intervals of the report hold the truth, and how often it claims something about noise.

`benchmarks/report_statistics.py` simulates 500 studies or more of each shape. Its results are recorded and
checked. A smaller simulation here would notice if the statistics changed.
"""

import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from benchmarks import report_statistics as simulation  # noqa: E402

RECORDED = pd.read_csv(ROOT / "benchmarks" / "results" / "2026-11-16-report-statistics.csv")
SMALL = simulation.Shape(3, 4, 3)


def test_recorded_errors_are_at_most_5_percent() -> None:
    errors = RECORDED[RECORDED["what"] == "error"]
    assert set(errors["shape"]) == {"2x2x2", "6x6x5"}
    assert (errors["studies"] >= 500).all()
    assert {"best method", "share above chance"} < set(errors["name"])
    assert (errors["share"] <= 0.05).all()


def test_recorded_intervals_cover_in_92_to_98_percent() -> None:
    coverage = RECORDED[(RECORDED["what"] == "coverage") & RECORDED["share"].notna()]
    assert set(coverage["name"]) == set(simulation.INTERVALS)
    assert (coverage["studies"] >= 500).all()
    wrong = coverage[~coverage["share"].between(0.92, 0.98)]
    assert wrong.empty, wrong


@pytest.mark.parametrize("name", list(simulation.INTERVALS))
def test_intervals_cover(name: str) -> None:
    share = simulation.coverage(name, SMALL, 1.0, studies=40)
    # Three standard errors of 40 studies around 92 and 98%.
    assert 0.92 - 3 * np.sqrt(0.08 * 0.92 / 40) <= share <= 1


def test_noise_is_rarely_called_an_effect() -> None:
    errors = simulation.noise_errors(SMALL, 25)
    assert max(errors.values()) <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 25)
