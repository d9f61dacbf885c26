"""How often do 95% intervals of scores cover the mean over fresh samples? A simulation with known answer.

    python benchmarks/intervals.py --records records.csv --out coverage.csv --jobs 16 --cases 200

For each kind of codes and each number of points n, many data sets are drawn; `evaluate(codes, factors,
repeats=...)` gives each its scores with intervals. The truth is the mean of a score over the other data sets
of the same kind and n.

`--records` has one row for each data set and score. Data sets that are in it already are not measured again:
run the command again, with more cases or more minutes, to add to it. Metrics that are fast come first.

`--out` has one row for each score, n and kind: the number of data sets (`cases`), how many of them have an
interval of width 0 (`degenerate`), the share of the other intervals that cover the truth (`covered`), the
mean score, its standard deviation, and the mean width of the other intervals. An interval has width 0 if all
repeats give the same number, as for a score of exactly 1 in every sample; it says nothing about coverage.

Kinds of codes: the factors with a little noise; a rotation of these; half of the factors with much noise;
rounded codes with many ties. `ground_truth` draws the points from a grid of encoded images, as for a run.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable, Iterable
from multiprocessing import get_context
from pathlib import Path
from typing import NamedTuple, TextIO

# One thread a process; read when NumPy and numba are imported.
os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1"}

import numpy as np
import pandas as pd
from numpy.typing import NDArray

import unweave
from unweave.data.grid import Card, Factor, GroundTruth
from unweave.metrics import metrics_named
from unweave.streams import Stream

SIZES = (3, 4, 6, 10)  # values of the factors
POINTS = (1_000, 10_000)
GROUND_TRUTH = "ground_truth"


class Case(NamedTuple):
    """One data set and what to measure on it: a kind of codes, the number of points, which of many it is."""

    kind: str
    n: int
    number: int
    metrics: str
    repeats: int


RECORD_COLUMNS = [*Case._fields, "score", "value", "low", "high"]
COLUMNS = ["score", "n", "kind", "cases", "degenerate", "covered", "mean", "deviation", "width"]


def standardised(factors: NDArray[np.int64]) -> NDArray[np.float64]:
    """Factors with mean 0 and variance 1 over the grid."""
    sizes = np.array(SIZES)
    return np.asarray((factors - (sizes - 1) / 2) / np.sqrt((sizes**2 - 1) / 12))


def with_noise(factors: NDArray[np.int64], stream: Stream) -> NDArray[np.float64]:
    """Each factor in a code of its own, with noise, and one code of noise."""
    noise = stream.normal(len(factors), len(SIZES) + 1)
    return np.hstack([standardised(factors) + 0.2 * noise[:, :-1], noise[:, -1:]])


def rotated(factors: NDArray[np.int64], stream: Stream) -> NDArray[np.float64]:
    """A fixed rotation of the codes with noise."""
    codes = with_noise(factors, stream)
    rotation = np.linalg.qr(Stream.of(0).child("rotation").normal(codes.shape[1], codes.shape[1]))[0]
    return np.asarray(codes @ rotation)


def partly_informative(factors: NDArray[np.int64], stream: Stream) -> NDArray[np.float64]:
    """Half of the factors with much noise, and codes of noise."""
    codes = stream.normal(len(factors), len(SIZES) + 1)
    codes[:, ::2] += standardised(factors)[:, : len(SIZES) // 2 + 1]
    return codes


def tied(factors: NDArray[np.int64], stream: Stream) -> NDArray[np.float64]:
    """Noisy codes that are rounded to few values."""
    codes = with_noise(factors, stream)
    return np.asarray(np.round(2 * (codes + 0.5 * stream.child("more").normal(*codes.shape))) / 2)


CODES: dict[str, Callable[[NDArray[np.int64], Stream], NDArray[np.float64]]] = {
    "with_noise": with_noise,
    "rotated": rotated,
    "partly_informative": partly_informative,
    "tied": tied,
}


def numbers_as_images(factors: NDArray[np.int64], stream: Stream) -> NDArray[np.uint8]:  # noqa: ARG001
    """Images (n, 1, 1, k) of which each pixel is a factor."""
    return factors.astype(np.uint8)[:, None, None]


def encode_ground_truth(images: NDArray[np.float32]) -> NDArray[np.float64]:
    """A smooth mixture of the factors, the same for the same image."""
    factors = np.rint(images[:, 0, 0] * 255).astype(np.int64)
    codes = standardised(factors)
    mixed = codes + 0.5 * np.sin(7 * codes[:, ::-1])
    return np.asarray(np.hstack([mixed, np.sin(31 * codes.sum(axis=1, keepdims=True))]))


def scores_of(case: Case) -> unweave.Scores:
    """The scores of one data set, with intervals."""
    stream = Stream.of(0).child(case.kind, case.n).child("data set", case.number)
    seed = stream.child("evaluation")
    if case.kind == GROUND_TRUTH:
        factors = tuple(Factor(f"v{j}", size) for j, size in enumerate(SIZES))
        card = Card("Numbers as pixels", licence="", citation="")
        truth = GroundTruth("numbers", factors, (1, 1, len(SIZES)), numbers_as_images, card, "simulation")
        return unweave.evaluate(
            encode_ground_truth,
            data=truth,
            metrics=case.metrics,
            points=(case.n, case.n // 2),
            repeats=case.repeats,
            seed=seed,
            jobs=1,
        )
    drawn = stream.child("factors").integers(case.n, SIZES)
    codes = CODES[case.kind](drawn, stream.child("codes"))
    return unweave.evaluate(codes, drawn, metrics=case.metrics, repeats=case.repeats, seed=seed, jobs=1)


def measured(case: Case) -> list[dict[str, object]]:
    """One record for each score of a data set that has an interval."""
    return [
        case._asdict() | {"score": score.name, "value": score.value, "low": score.low, "high": score.high}
        for score in scores_of(case).scores
        if score.low is not None
    ]


def coverage(records: pd.DataFrame) -> pd.DataFrame:
    """The share of intervals that cover the mean of the other data sets, by score, n and kind."""
    rows = [
        {"score": score, "n": n, "kind": kind, **coverage_of(group)}
        for (score, n, kind), group in records.groupby(["score", "n", "kind"], sort=True)
    ]
    return pd.DataFrame(rows, columns=COLUMNS)


def coverage_of(group: pd.DataFrame) -> dict[str, float]:
    """The row of the table for the data sets of one score, n and kind."""
    values, cases = group["value"].to_numpy(), len(group)
    others = (values.sum() - values) / max(cases - 1, 1)
    rounding = 1e-9
    covered = (group["low"] <= others + rounding) & (group["high"] >= others - rounding)
    width = group["high"] - group["low"]
    proper = width > 0
    return {
        "cases": cases,
        "degenerate": int((~proper).sum()),
        "covered": round(float(covered[proper].mean()), 4),
        "mean": round(float(values.mean()), 5),
        "deviation": round(float(values.std(ddof=1)) if cases > 1 else 0.0, 5),
        "width": round(float(width[proper].mean()) if proper.any() else 0.0, 5),
    }


def overall(table: pd.DataFrame) -> pd.DataFrame:
    """The coverage by score and n over all kinds of codes; intervals of width 0 are counted apart."""
    proper = table["cases"] - table["degenerate"]
    weighted = table.assign(covered=table["covered"].fillna(0) * proper)
    totals = weighted.groupby(["score", "n"], sort=True)[["cases", "degenerate", "covered"]].sum()
    return totals.assign(
        covered=(totals["covered"] / (totals["cases"] - totals["degenerate"])).round(4)
    ).reset_index()


def seconds_of(metric: str, n: int) -> float:
    """How long one score takes, once its loops are compiled."""
    case = Case("rotated", n, 0, metric, repeats=0)
    scores_of(case._replace(n=min(n, 200)))
    start = time.monotonic()
    scores_of(case)
    return time.monotonic() - start


def ordered_cases(
    seconds: dict[tuple[str, int], float], kinds: list[str], count: int, repeats: int
) -> list[Case]:
    """All data sets, those of fast metrics first; by number, so that all kinds advance together."""
    return [
        Case(kind, n, number, metric, repeats)
        for metric, n in sorted(seconds, key=lambda key: seconds[key])
        for number in range(count)
        for kind in kinds
    ]


def read_records(path: Path) -> pd.DataFrame:
    """The records of earlier runs, if there are some."""
    return pd.read_csv(path) if path.exists() else pd.DataFrame(columns=RECORD_COLUMNS)


def missing_cases(cases: list[Case], records: pd.DataFrame) -> list[Case]:
    """The data sets that have no record yet."""
    done = set(records[list(Case._fields)].itertuples(index=False, name=None))
    return [case for case in cases if tuple(case) not in done]


def simulate(cases: list[Case], jobs: int, minutes: float, file: TextIO) -> None:
    """Measure data sets in processes, for so many minutes at most, and add their records to a file."""
    deadline = time.monotonic() + 60 * minutes
    with get_context("spawn").Pool(jobs) as pool:
        results: Iterable[list[dict[str, object]]] = pool.imap_unordered(measured, cases)
        for number, result in enumerate(results, start=1):
            lines = pd.DataFrame(result, columns=RECORD_COLUMNS)
            file.write(lines.to_csv(index=False, header=False, float_format="%.10g"))
            file.flush()
            if number % 100 == 0:
                print(f"{number:,} of {len(cases):,} data sets", file=sys.stderr, flush=True)
            if time.monotonic() > deadline:
                print(f"stopped after {minutes} minutes: {number:,} data sets", file=sys.stderr)
                break


def main() -> None:
    """Read the options, simulate, and print the coverage over all kinds of codes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--records", type=Path, required=True, help="one row a data set and score (.csv)")
    parser.add_argument("--out", type=Path, required=True, help="the table to write (.csv)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--cases", type=int, default=50, help="data sets of each kind and n")
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--metrics", default="headline")
    parser.add_argument("--points", type=int, nargs="+", default=list(POINTS))
    parser.add_argument("--kinds", nargs="+", default=[*CODES, GROUND_TRUTH])
    parser.add_argument("--minutes", type=float, default=6.0, help="stop after this time")
    options = parser.parse_args()
    names = [metric.name for metric in metrics_named(options.metrics)]
    seconds = {(name, n): seconds_of(name, n) for name in names for n in options.points}
    cases = ordered_cases(seconds, options.kinds, options.cases, options.repeats)
    missing = missing_cases(cases, read_records(options.records))
    with options.records.open("a") as file:
        if not file.tell():
            file.write(",".join(RECORD_COLUMNS) + "\n")
        simulate(missing, options.jobs, options.minutes, file)
    records = read_records(options.records)
    table = coverage(records[records["repeats"] == options.repeats])
    table.to_csv(options.out, index=False)
    print(overall(table).to_string(index=False))


if __name__ == "__main__":
    main()
