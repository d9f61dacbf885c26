"""The rank of own runs among the published models of the same data, method and settings.

If a run is one more seed of a published setting, its rank among the published seeds is uniform, and it lies
below or above all n of them in 2 of n + 1 cases.
"""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from unweave.errors import UnweaveError
from unweave.results import wide

SETTING = ["data", "method", "setting"]


def rank_among_published(own: pd.DataFrame, published: pd.DataFrame, scores: Sequence[str]) -> pd.DataFrame:
    """One row for each run and score: value, rank, and what the published seeds of its setting have.

    `below` counts the published seeds with a lower score, equals half, out of `seeds`. Runs without a
    published counterpart have no row.
    """
    ours = _melted(wide(own), scores, "value").drop(columns="source")
    theirs = _melted(wide(published), scores, "theirs")[[*SETTING, "score", "theirs"]]
    pairs = ours.merge(theirs, on=[*SETTING, "score"])
    if pairs.empty:
        raise UnweaveError("none of the runs has the data, method and settings of a published model.")
    pairs["below"] = (pairs["theirs"] < pairs["value"]) + 0.5 * (pairs["theirs"] == pairs["value"])
    groups = pairs.groupby([*ours.columns], dropna=False, sort=False)
    return groups.agg(
        below=("below", "sum"),
        seeds=("theirs", "size"),
        median=("theirs", "median"),
        low=("theirs", "min"),
        high=("theirs", "max"),
    ).reset_index()


def outside(table: pd.DataFrame) -> pd.Series[bool]:
    """Which rows of `rank_among_published` have a value that no published seed reaches, on either side."""
    return (table["value"] < table["low"]) | (table["value"] > table["high"])


def _melted(runs: pd.DataFrame, scores: Sequence[str], name: str) -> pd.DataFrame:
    columns = ["source", "run", *SETTING, "strength", "seed"]
    known_scores = [score for score in scores if score in runs]
    return runs.melt(columns, known_scores, var_name="score", value_name=name).dropna(subset=name)
