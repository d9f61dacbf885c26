"""Runs of the published study's settings next to its published models, setting by setting.

    unweave study run locatello2019_mini -o STUDY
    unweave study collect STUDY
    python benchmarks/published.py STUDY/results.parquet PUBLISHED --figure mini_study.png --csv numbers.csv

PUBLISHED is the folder of the published results. A table in Markdown is printed: one row a setting, one
column a score, with our value for each seed and, in brackets, how many of the published seeds are lower.
"""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib.pyplot as plt
import pandas as pd
from scipy.stats import kstest

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.result_tables import keep_record, options

from unweave.report.names import METHODS
from unweave.report.published import published
from unweave.report.rank_among_published import outside, rank_among_published
from unweave.results import METHOD_ORDER, read_table, wide

# Score, its name in the table, and the decimals worth printing.
SCORES = {
    "elbo.reconstruction": ("reconstruction", 1),
    "elbo.kl": ("KL", 2),
    "beta_vae_score.eval_accuracy": ("BetaVAE", 2),
    "factor_vae_score.eval_accuracy": ("FactorVAE", 2),
    "mig": ("MIG", 3),
    "dci.disentanglement": ("DCI", 3),
    "dci.completeness": ("DCI compl.", 3),
    "dci.informativeness_test": ("DCI inform.", 3),
    "sap": ("SAP", 3),
    "modularity": ("modularity", 2),
    "explicitness.test": ("explicitness", 3),
}


def in_order(table: pd.DataFrame) -> pd.DataFrame:
    """By method, strength and seed."""
    place = table["method"].map({name: i for i, name in enumerate(METHOD_ORDER)})
    return table.assign(place=place).sort_values(["place", "strength", "seed"]).drop(columns="place")


def markdown(table: pd.DataFrame) -> str:
    """One row a setting, one column a score; what no published seed reaches is bold."""
    names = [name for name, _ in SCORES.values()]
    lines = [f"| setting | {' | '.join(names)} |", f"|---{'|---' * len(names)}|"]
    odd = outside(table)
    for (method, strength), rows in table.groupby(["method", "strength"], sort=False):
        cells = []
        for score, (_, digits) in SCORES.items():
            found = rows[rows["score"] == score]
            texts = [f"{row.value:.{digits}f} ({row.below:g})" for row in found.itertuples()]
            cells.append(
                ", ".join(f"**{t}**" if odd[i] else t for t, i in zip(texts, found.index, strict=True))
            )
        lines.append(f"| `{method}` {strength:g} | {' | '.join(cells)} |")
    return "\n".join(lines)


def summary(table: pd.DataFrame) -> str:
    """How many are outside of the published range, and whether ranks are uniform."""
    lines = [f"{outside(table).sum()} of {len(table)} numbers are outside of the published range; of further"]
    lines[0] += f" published seeds {(2 / (table['seeds'] + 1)).sum():.0f} would be"
    for score, (name, _) in SCORES.items():
        rows = table[table["score"] == score]
        place = (rows["below"] + 0.5) / (rows["seeds"] + 1)
        lines.append(
            f"{name}: {outside(rows).sum()} of {len(rows)} outside, mean rank {place.mean():.2f}, "
            f"p of uniform ranks {kstest(place, 'uniform').pvalue:.2f}"
        )
    return "\n".join(lines)


def draw(table: pd.DataFrame, path: Path) -> None:
    """Each setting's published range and median, and our runs as dots; a panel for each score."""
    settings = table[["method", "strength"]].drop_duplicates().reset_index(drop=True)
    place = {(row.method, row.strength): i for i, row in enumerate(settings.itertuples())}
    figure, axes = plt.subplots(4, 3, figsize=(13, 11), sharex=True, layout="constrained")
    for axis, (score, (name, _)) in zip(axes.flat, SCORES.items(), strict=False):
        rows = table[table["score"] == score]
        x = [place[key] for key in zip(rows["method"], rows["strength"], strict=True)]
        axis.vlines(x, rows["low"], rows["high"], color="0.8", linewidth=5, label="published, 50 seeds")
        axis.plot(x, rows["median"], "_", color="0.35", markersize=7, label="their median")
        axis.plot(x, rows["value"], "o", color="C3", markersize=3.5, label="ours")
        axis.set_title(name)
    axes.flat[0].legend(frameon=False)
    first = settings.drop_duplicates("method")
    for axis in axes.flat:
        axis.set_xticks([])
        for edge in first.index[1:]:
            axis.axvline(edge - 0.5, color="0.9", linewidth=0.8)
    axes.flat[-1].set_visible(False)
    for axis in (axes[3, 0], axes[3, 1], axes[2, 2]):
        axis.set_xticks(first.index + 2.5, [METHODS[m] for m in first["method"]], rotation=30, ha="right")
        axis.tick_params(axis="x", length=0, labelbottom=True)
    figure.savefig(path, dpi=110)


def main() -> None:
    """Compare, and write what was asked for."""
    given = options(__doc__, published=True)
    own = read_table(given.results).table
    table = in_order(rank_among_published(own, published(given.published).table, list(SCORES)))
    print(markdown(table))
    print()
    print(summary(table))
    if given.figure:
        draw(table, given.figure)
    keep_record(wide(own), given.csv)


if __name__ == "__main__":
    main()
