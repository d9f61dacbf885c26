"""The chance levels of docs/metrics/chance.md are what codes of pure noise score."""

import math
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from benchmarks import chance  # noqa: E402

RECORDED = pd.read_csv(ROOT / "benchmarks" / "results" / "2026-11-16-chance.csv")
DRAWS = 3
CHEAP = ("mig", "sap", "modularity", "mcc", "explicitness", "mig_sup", "jemmig", "irs", "factor_vae_score")


def level(score: str, n: int, d: int, sizes: tuple[int, ...]) -> pd.Series:
    """The documented level of a score."""
    text = " ".join(map(str, sizes))
    rows = RECORDED[(RECORDED[["score", "n", "d", "sizes"]] == [score, n, d, text]).all(axis=1)]
    assert len(rows) == 1, (score, n, d, sizes)
    return rows.iloc[0]


@pytest.mark.parametrize("metric", CHEAP)
@pytest.mark.parametrize(("d", "sizes"), [(5, (2, 2, 2)), (10, (4, 6, 8))])
def test_documented_levels_are_met(metric: str, d: int, sizes: tuple[int, ...]) -> None:
    """Fresh noise scores the documented level, to 5 standard errors."""
    found: dict[str, list[float]] = {}
    for number in range(DRAWS):
        for record in chance.chance(chance.Cell(metric, 1000, d, sizes, 1000 + number)):
            found.setdefault(str(record["score"]), []).append(float(str(record["value"])))
    assert found
    for score, values in found.items():
        documented = level(score, 1000, d, sizes)
        error = documented["deviation"] * math.sqrt(1 / DRAWS + 1 / documented["draws"])
        assert abs(np.mean(values) - documented["mean"]) <= 5 * error + 1e-3, score


def test_levels_that_follow_from_the_definition() -> None:
    rows = RECORDED.set_index("score")
    factors = rows["sizes"].str.count(" ") + 1
    assert (abs(rows["mean"] - 1 / factors).loc["beta_vae_score.eval_accuracy"] < 0.06).all()
    assert (abs(rows["mean"].loc["explicitness.test"] - 0.5) < 0.02).all()
    assert (rows["mean"].loc[["mig", "sap", "med"]] < 0.05).all()


def test_the_page_has_the_recorded_table() -> None:
    text = chance.PAGE.read_text()
    assert chance.page_with(text, RECORDED) == text
