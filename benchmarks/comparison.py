"""Compare methods that saw the same number of images: a table, and a figure with one dot for each run.

    unweave study run benchmarks/comparison_dimensions.toml -o DIMENSIONS
    unweave study run benchmarks/comparison_blocks.toml -o BLOCKS
    unweave study collect DIMENSIONS     # and BLOCKS
    python benchmarks/comparison.py dimensions DIMENSIONS/results.parquet --figure dimensions.png
    python benchmarks/comparison.py blocks BLOCKS/results.parquet --figure blocks.png

`dimensions` ranks methods by scores of single codes, `blocks` by scores of blocks of codes, such as content
and style. Several tables of results, .parquet or .csv, can be given. A table in Markdown is printed, the
method with the best median first.

Methods without a prior are scored on standardised codes, and InfoMEC counts discrete codes. The column
"codes" names such methods; their scores are compared with the others on purpose.

The last column checks for collapse: "yes" if, in some run, the decoded images are hardly better than the
mean image of the data set (less than a tenth of its loss is saved), or fewer than two codes are active.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.result_tables import keep_record, median_and_range, parser_of

from unweave.data import load
from unweave.results import combine, read_table, wide

LEAST_SAVED = 0.1  # share of the mean image's loss
LEAST_ACTIVE = 2
# Protocols that differ by what a method's codes are: what they say, and the protocol of other codes.
BY_CODES = {"standardised": ("standardised,", ""), "discrete": ("infomec[counted", "infomec[neighbours10")}
# Blocks of some methods should hold more factors than those of others; a separation is defined for both.
FACTORS_OF_BLOCKS = r"factors:[^,]*,"


@dataclass(frozen=True)
class Table:
    """The scores of a table: methods are ranked by the first, the first three are drawn."""

    scores: Mapping[str, str]


TABLES = {
    "dimensions": Table(
        {
            "mig": "MIG",
            "dci.disentanglement": "DCI",
            "factor_vae_score.eval_accuracy": "FactorVAE",
            "sap": "SAP",
            "infomec.modularity": "InfoM",
            "infomec.explicitness": "InfoE",
        }
    ),
    "blocks": Table(
        {
            "block_separation": "block separation",
            "swap_consistency": "swap consistency",
            "block_mig": "block-MIG",
            "block_separation.known": "known",
            "swap_consistency.reconstructed": "reconstructed",
        }
    ),
}


@cache
def loss_of_mean_image(name: str) -> float:
    """-log p(x), summed over pixels, if all images are decoded as the mean image."""
    data = load(name)
    images = data.observe(data.sample_factors(4_000, 0)).astype(np.float64) / 255
    mean = images.mean(axis=0).clip(1e-6, 1 - 1e-6)
    return float(-(images * np.log(mean) + (1 - images) * np.log(1 - mean)).sum(axis=(1, 2, 3)).mean())


def collapsed(runs: pd.DataFrame, has_scale: bool) -> str:
    """Whether some run decodes as badly as the mean image, or has fewer than two active codes.

    Codes without a prior have no scale (`has_scale` is False), so their variances do not count.
    """
    if runs["elbo.reconstruction"].isna().any():
        return "not measured"
    baseline = loss_of_mean_image(str(runs["data"].iloc[0]))
    blurred = runs["elbo.reconstruction"] > (1 - LEAST_SAVED) * baseline
    inactive = has_scale & (runs["elbo.active"] < LEAST_ACTIVE)
    return "yes" if (blurred | inactive).any() else "no"


def kinds_of_codes(table: pd.DataFrame) -> dict[str, str]:
    """How the codes of a method differ from those of most methods, by the method's name."""
    kinds: dict[str, list[str]] = {}
    for kind, (words, _) in BY_CODES.items():
        named = table["protocol"].astype(str).str.contains(words, regex=False)
        for method in table.loc[named, "method"].astype(str).unique():
            kinds.setdefault(method, []).append(kind)
    return {method: ", ".join(names) for method, names in kinds.items()}


def with_common_protocols(table: pd.DataFrame) -> pd.DataFrame:
    """The table with one protocol for each score, whatever kind the codes are."""
    protocols = table["protocol"].astype(str)
    for words, common in BY_CODES.values():
        protocols = protocols.str.replace(words, common, regex=False)
    protocols = protocols.str.replace(FACTORS_OF_BLOCKS, "", regex=True)
    return table.assign(protocol=protocols)


def groups(runs: pd.DataFrame, score: str) -> list[tuple[str, pd.DataFrame]]:
    """The runs of each method, and of each setting of a method that has several; the best median first."""
    by_name: list[tuple[str, pd.DataFrame]] = []
    for method, rows in runs.groupby(runs["method"].astype(str)):
        for setting, some in rows.groupby(rows["setting"].astype(str)):
            words = differing(str(setting), rows)
            by_name.append((f"{method} ({words})" if words else str(method), some))
    return sorted(by_name, key=lambda group: -float(group[1][score].median()))


def differing(setting: str, runs: pd.DataFrame) -> str:
    """The parts of a setting in which the settings of a method differ."""
    all_parts = [set(other.split(",")) for other in runs["setting"].astype(str)]
    common = set.intersection(*all_parts)
    return ", ".join(part for part in setting.split(",") if part not in common)


def markdown(runs: pd.DataFrame, table: Table, kinds: Mapping[str, str]) -> str:
    """Median and range of the scores, the kind of the codes, and the check for collapse."""
    shown = {score: title for score, title in table.scores.items() if score in runs}
    columns = ["method", "seeds", *shown.values(), "codes", "collapsed"]
    lines = [f"| {' | '.join(columns)} |", "|---" * len(columns) + "|"]
    for name, rows in groups(runs, next(iter(shown))):
        cells = [f"`{name}`", str(len(rows)), *(median_and_range(rows[score], 2) for score in shown)]
        kind = kinds.get(str(rows["method"].iloc[0]), "")
        cells += [kind, collapsed(rows, "standardised" not in kind)]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def draw(runs: pd.DataFrame, table: Table, path: Path) -> None:
    """Draw each run as a dot, each method as a row with a mark at its median."""
    scores = list(table.scores)[:3]
    ordered = groups(runs, scores[0])[::-1]
    figure, axes = plt.subplots(1, 3, figsize=(12, 0.8 + 0.28 * len(ordered)), sharey=True)
    for axis, score in zip(axes, scores, strict=True):
        for y, (_, rows) in enumerate(ordered):
            axis.plot(rows[score], [y] * len(rows), "o", color="C0", markersize=4, alpha=0.6)
            axis.plot(rows[score].median(), y, "|", color="C3", markersize=12, markeredgewidth=2)
        axis.set_title(table.scores[score])
        axis.set_xlim(left=min(0, float(runs[score].min())))
        axis.grid(axis="y", color="0.92")
    axes[0].set_yticks(range(len(ordered)), [name for name, _ in ordered])
    figure.tight_layout()
    figure.savefig(path, dpi=100)
    plt.close(figure)


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = parser_of(__doc__)
    parser.add_argument("table", choices=sorted(TABLES))
    parser.add_argument("results", type=Path, nargs="+", help="tables of results, .parquet or .csv")
    parser.add_argument("--figure", type=Path)
    return parser.parse_args()


def main() -> None:
    """Print the table, draw the figure."""
    options = arguments()
    table = TABLES[options.table]
    results = combine(*map(read_table, options.results)).table
    runs = wide(with_common_protocols(results))
    print(markdown(runs, table, kinds_of_codes(results)))
    if options.figure:
        draw(runs, table, options.figure)
    keep_record(runs, options.csv)


if __name__ == "__main__":
    main()
