"""All methods of a table of results beside each other: median and range over seeds.

    python benchmarks/comparison.py RESULTS --figure comparison.png

RESULTS is a table of results, .parquet or .csv, such as `unweave study collect` writes. A table in Markdown
is printed, the method with the largest median MIG first. A setting is told where a method has several, or
where it is in words ("322,560 updates") and no list of values.
"""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib.pyplot as plt
import pandas as pd

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.result_tables import NAMES, keep_record, options, table_of_medians

from unweave.results import read_table, wide

DRAWN = ("mig", "dci.disentanglement", "factor_vae_score.eval_accuracy")


def kinds(runs: pd.DataFrame) -> list[tuple[str, pd.DataFrame]]:
    """The runs of each method, and of each setting of a method that has several; best MIG first."""
    several = runs.groupby("method")["setting"].nunique() > 1
    names = [
        f"{method} ({setting})" if several[method] or (setting and "=" not in setting) else method
        for method, setting in zip(runs["method"], runs["setting"], strict=True)
    ]
    found = [(str(name), rows) for name, rows in runs.groupby(pd.Series(names, runs.index))]
    return sorted(found, key=lambda kind: -float(kind[1]["mig"].median()))


def markdown(runs: pd.DataFrame) -> str:
    """Median and range."""
    said = [((f"`{name}`", str(len(rows))), rows) for name, rows in kinds(runs)]
    return table_of_medians(("method", "seeds"), said, NAMES, 2)


def draw(runs: pd.DataFrame, path: Path) -> None:
    """Each run a dot, each method a row, with a mark at its median."""
    ordered = kinds(runs)[::-1]
    figure, axes = plt.subplots(1, len(DRAWN), figsize=(12, 0.8 + 0.28 * len(ordered)), sharey=True)
    for axis, score in zip(axes, DRAWN, strict=True):
        for y, (_, rows) in enumerate(ordered):
            axis.plot(rows[score], [y] * len(rows), "o", color="C0", markersize=4, alpha=0.6)
            axis.plot(rows[score].median(), y, "|", color="C3", markersize=12, markeredgewidth=2)
        axis.set_title(NAMES[score])
        axis.set_xlim(left=0)
        axis.grid(axis="y", color="0.92")
    axes[0].set_yticks(range(len(ordered)), [name for name, _ in ordered])
    figure.tight_layout()
    figure.savefig(path, dpi=100)


def main() -> None:
    """Print the table, draw the figure."""
    given = options(__doc__, published=False)
    runs = wide(read_table(given.results).table)
    print(markdown(runs))
    if given.figure:
        draw(runs, given.figure)
    keep_record(runs, given.csv)


if __name__ == "__main__":
    main()
