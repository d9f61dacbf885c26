"""What does each score give for codes of pure noise? Chance levels by n, d and the sizes of the factors.

    python benchmarks/chance.py --out chance.csv --jobs 16
    python benchmarks/chance.py --page benchmarks/results/2026-11-16-chance.csv

Codes are normal noise (n, d), factors are drawn uniformly and independently of them. Each cell of the table
is the mean of a score over several such data sets, and its standard deviation over them. The second command
writes the table of docs/metrics/chance.md.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from multiprocessing import get_context
from pathlib import Path
from typing import NamedTuple

# One thread a process; read when NumPy and numba are imported.
os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1"}

import pandas as pd

import unweave
from unweave.errors import UnweaveError
from unweave.metrics.metric import COUNTS
from unweave.metrics.table import METRICS
from unweave.streams import Stream

PAGE = Path(__file__).parents[1] / "docs" / "metrics" / "chance.md"
MARK = "<!-- table: written by benchmarks/chance.py -->"
# The data sets by the number of points: widths of codes, sizes of factors, and how many are drawn.
GRID = {
    1_000: ((5, 10, 50), ((2, 2, 2), (4, 6, 8), (3, 6, 40, 32, 32)), 6),
    10_000: ((10,), ((4, 6, 8), (3, 6, 40, 32, 32)), 2),
}
KEYS = ["score", "n", "d", "sizes"]
# Those that rows alone cannot give, or that take minutes at 10,000 points; they are variants of others.
LEFT_OUT = {
    "mig_posterior",
    "rmig",
    "sepin",
    "elbo",
    "z_max_var",
    "flatness",
    "factored_components",
    "dci_es_forest",
    "dci_es_mlp",
    "unified_importance",
    "block_r2",
    "block_separation",
    "block_mig",
    "swap_consistency",
    "downstream_reduced",
    "downstream_strong",
    "fairness_trees",
    "fairness_logistic",
    "d_lsbd",
    "equivariance",
    "r4",
}


class Cell(NamedTuple):
    """One data set of noise, and the metric to measure on it."""

    metric: str
    n: int
    d: int
    sizes: tuple[int, ...]
    number: int


def chance(cell: Cell) -> list[dict[str, object]]:
    """The scores of one data set of noise; none if they cannot be measured."""
    stream = Stream.of(0).child("chance", cell.number).child(str((cell.n, cell.d, cell.sizes)))
    factors = stream.child("factors").integers(cell.n, cell.sizes)
    codes = stream.child("codes").normal(cell.n, cell.d)
    try:
        scores = unweave.evaluate(codes, factors, metrics=cell.metric, seed=cell.number, jobs=1)
    except UnweaveError as error:
        print(f"{cell.metric}: {error}", file=sys.stderr)
        return []
    place = {"n": cell.n, "d": cell.d, "sizes": " ".join(map(str, cell.sizes))}
    return [
        {"score": name, **place, "value": value}
        for name, value in scores.items()
        if name.rpartition(".")[2] not in COUNTS
    ]


def summarised(records: list[dict[str, object]]) -> pd.DataFrame:
    """Mean and standard deviation of each score in each cell."""
    groups = pd.DataFrame(records).groupby(KEYS, sort=False)["value"]
    table = groups.agg(mean="mean", deviation="std", draws="count").reset_index()
    return table.round({"mean": 5, "deviation": 5}).sort_values(KEYS)


def all_cells() -> list[Cell]:
    """All cells; the first data set of each comes first, so that nothing is missing if time runs out."""
    names = [metric.name for metric in METRICS if metric.name not in LEFT_OUT]
    cells = [
        Cell(name, n, d, sizes, number)
        for n, (widths, all_sizes, draws) in GRID.items()
        for d in widths
        for sizes in all_sizes
        for number in range(draws)
        for name in names
    ]
    return sorted(cells, key=lambda cell: (cell.number, -cell.n))


def simulate(cells: list[Cell], jobs: int, minutes: float, out: Path) -> None:
    """Measure all cells in processes, and write the table; after so many minutes, what is there."""
    deadline, records = time.monotonic() + 60 * minutes, list[dict[str, object]]()
    for name in sorted({cell.metric for cell in cells}):  # compiles once, for all processes
        chance(Cell(name, 200, 5, (2, 3, 4), 0))
    with get_context("spawn").Pool(jobs) as pool:
        for number, found in enumerate(pool.imap_unordered(chance, cells), start=1):
            records += found
            if number % 500 == 0:
                print(f"{number:,} of {len(cells):,}", file=sys.stderr, flush=True)
                summarised(records).to_csv(out, index=False)
            if time.monotonic() > deadline:
                print(f"stopped after {minutes} minutes at {number:,} of {len(cells):,}", file=sys.stderr)
                break
    summarised(records).to_csv(out, index=False)


def markdown(table: pd.DataFrame) -> str:
    """One table for each n: a row for each score, a column for each d and sizes."""
    parts = []
    for n, of_n in table.groupby("n", sort=True):
        columns = sorted(set(zip(of_n["sizes"], of_n["d"], strict=True)), key=lambda key: (len(key[0]), key))
        values = {(row.score, row.sizes, row.d): f"{row.mean:.3f}" for row in of_n.itertuples(index=False)}
        heads = [f"{sizes.replace(' ', ', ')}; {d}" for sizes, d in columns]
        lines = ["| score | " + " | ".join(heads) + " |", "|---|" + "---|" * len(columns)]
        for score in sorted(set(of_n["score"])):
            cells = [values.get((score, *column), "") for column in columns]
            lines.append(f"| `{score}` | " + " | ".join(cells) + " |")
        parts.append(f"### n = {n:,}\n\n" + "\n".join(lines))
    return "\n\n".join(parts)


def page_with(text: str, table: pd.DataFrame) -> str:
    """The page with new tables."""
    return text.partition(MARK)[0] + MARK + "\n\n" + markdown(table) + "\n"


def main() -> None:
    """Read the options; simulate, or write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--out", type=Path, help="the table to write (.csv)")
    parser.add_argument("--page", type=Path, help="write the page from this table instead")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--minutes", type=float, default=4.0, help="write what is there after this time")
    parser.add_argument("--points", type=int, nargs="+", default=list(GRID))
    given = parser.parse_args()
    if given.page:
        PAGE.write_text(page_with(PAGE.read_text(), pd.read_csv(given.page)))
        return
    if not given.out:
        parser.error("--out or --page is required")
    cells = [cell for cell in all_cells() if cell.n in given.points]
    simulate(cells, given.jobs, given.minutes, given.out)


if __name__ == "__main__":
    main()
