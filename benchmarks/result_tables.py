"""What the scripts that turn a table of results into a page of the docs have in common."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import pandas as pd

NAMES = {
    "factor_vae_score.eval_accuracy": "FactorVAE",
    "mig": "MIG",
    "dci.disentanglement": "DCI",
    "sap": "SAP",
    "modularity": "modularity",
    "dci.informativeness_test": "informativeness",
    "infomec.modularity": "InfoM",
    "infomec.compactness": "InfoC",
    "infomec.explicitness": "InfoE",
}  # of scores, as pages call them


def parser_of(description: str | None) -> argparse.ArgumentParser:
    """The options that all such scripts have."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--csv", type=Path, help="one row a run, for the record")
    return parser


def add_published(parser: argparse.ArgumentParser) -> None:
    """Some are given the published results as well."""
    parser.add_argument("published", type=Path, help="the folder with results_dsprites_full.csv")


def options(description: str | None, published: bool) -> argparse.Namespace:
    """The arguments of a script about one table of results."""
    parser = parser_of(description)
    parser.add_argument("results", type=Path, help="a table of results, .parquet or .csv")
    if published:
        add_published(parser)
    parser.add_argument("--figure", type=Path)
    return parser.parse_args()


def median_and_range(values: pd.Series[float], digits: int) -> str:
    """As in "0.43 (0.31 to 0.46)"."""
    return f"{values.median():.{digits}f} ({values.min():.2f} to {values.max():.2f})"


def table_of_medians(
    heads: Sequence[str],
    kinds: Iterable[tuple[Sequence[str], pd.DataFrame]],
    scores: Mapping[str, str],
    digits: int,
) -> str:
    """In Markdown: for each kind of runs what is said of it, and median and range of each score."""
    columns = [*heads, *scores.values()]
    lines = [f"| {' | '.join(columns)} |", "|---" * len(columns) + "|"]
    for said, rows in kinds:
        cells = [*said, *(median_and_range(rows[score], digits) for score in scores)]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def keep_record(runs: pd.DataFrame, path: Path | None) -> None:
    """Write the scores of each run, if they are to be kept."""
    if path:
        runs.round(5).to_csv(path, index=False)
