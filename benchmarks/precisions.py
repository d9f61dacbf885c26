"""The same runs in several precisions next to the published models: the differences, in deviations of seeds.

    python benchmarks/precisions.py PUBLISHED bf16=A.parquet tf32=B.parquet float32=C.parquet --csv all.csv

PUBLISHED is the folder of the published results; each other argument is a table of results of one precision.
A table in Markdown is printed, with how many published seeds are lower behind each value; then, for each two
precisions, their differences in deviations of the published seeds: two seeds would be 1.41 apart.
"""

from __future__ import annotations

import sys
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.published import SCORES, in_order
from benchmarks.result_tables import add_published, keep_record, parser_of

from unweave.report.published import published
from unweave.report.rank_among_published import SETTING, rank_among_published
from unweave.results import read_table, wide


def markdown(table: pd.DataFrame) -> str:
    """One row for each setting and precision."""
    names = [name for name, _ in SCORES.values()]
    lines = [f"| setting | precision | {' | '.join(names)} |", f"|---|---{'|---' * len(names)}|"]
    for (method, strength, precision), rows in table.groupby(["method", "strength", "precision"], sort=False):
        found = {row.score: row for row in rows.itertuples()}
        cells = [f"{found[s].value:.{digits}f} ({found[s].below:g})" for s, (_, digits) in SCORES.items()]
        lines.append(f"| `{method}` {strength:g} | {precision} | {' | '.join(cells)} |")
    return "\n".join(lines)


def differences(table: pd.DataFrame, deviations: pd.DataFrame) -> list[str]:
    """Of each two precisions, over all settings, seeds and scores that both have."""
    spread = deviations.melt(ignore_index=False, var_name="score", value_name="deviation").reset_index()
    values = table.merge(spread, on=[*SETTING, "score"])
    values["scaled"] = values["value"] / values["deviation"]
    scaled = values.pivot_table("scaled", [*SETTING, "seed", "score"], "precision", observed=True)
    lines = []
    for one, other in combinations(table["precision"].unique(), 2):
        apart = (scaled[one] - scaled[other]).dropna()
        lines.append(
            f"{one} - {other}: mean {apart.mean():+.2f}, root of the mean square "
            f"{np.sqrt((apart**2).mean()):.2f} deviations, {len(apart)} numbers"
        )
    return lines


def main() -> None:
    """Compare, and write what was asked for."""
    parser = parser_of(__doc__)
    add_published(parser)
    parser.add_argument("results", nargs="+", help="PRECISION=TABLE, .parquet or .csv")
    given = parser.parse_args()
    own = {
        name: read_table(Path(path)).table for name, path in (pair.split("=", 1) for pair in given.results)
    }
    theirs = published(given.published).table
    compared = [
        rank_among_published(table, theirs, list(SCORES)).assign(precision=name)
        for name, table in own.items()
    ]
    table = in_order(pd.concat(compared, ignore_index=True))
    print(markdown(table))
    print()
    print("\n".join(differences(table, wide(theirs).groupby(SETTING)[list(SCORES)].std())))
    keep_record(pd.concat([wide(t).assign(precision=n) for n, t in own.items()]), given.csv)


if __name__ == "__main__":
    main()
