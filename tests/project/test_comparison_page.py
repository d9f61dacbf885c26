"""The page of comparisons shows the runs that were measured."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/comparison.md").read_text().splitlines()


def _cell(values: pd.Series[float]) -> str:
    return f"{values.median():.2f} ({values.min():.2f} to {values.max():.2f})"


@pytest.mark.parametrize(
    ("table", "groups", "scores"),
    [
        ("dimensions", 30, ("mig", "dci.disentanglement", "factor_vae_score.eval_accuracy", "sap")),
        ("blocks", 10, ("block_separation", "swap_consistency", "block_mig")),
    ],
)
def test_tables_show_the_runs_that_were_measured(table: str, groups: int, scores: tuple[str, ...]) -> None:
    runs = pd.read_csv(ROOT / f"benchmarks/results/2026-11-16-h200-comparison-{table}.csv")
    settings = [rows for _, rows in runs.groupby(["method", "setting"], dropna=False)]
    assert [len(rows) for rows in settings] == [5] * groups
    for rows in settings:
        cells = " | ".join(_cell(rows[score]) for score in scores)
        start = f"| `{rows['method'].iloc[0]}"
        assert any(line.startswith(start) and f"| {cells} |" in line for line in PAGE)


def test_the_mean_image_is_the_baseline_of_the_check_for_collapse() -> None:
    runs = pd.read_csv(ROOT / "benchmarks/results/2026-11-16-h200-comparison-blocks.csv")
    saved = 1 - runs["elbo.reconstruction"] / 613  # the loss of the mean image of glyphs
    blurred = set(runs.loc[saved < 0.1, "method"])
    collapsed = {line.split("`")[1] for line in PAGE if line.endswith("| yes |")}
    assert blurred == collapsed == set(), "no method collapses with its defaults"
