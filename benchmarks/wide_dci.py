"""How well histogram trees agree with exact trees in DCI: `python benchmarks/wide_dci.py FILE.csv`.

24 sets of codes with planted factors: d is 50, 100 or 200, and eight degrees of mixing from none to complete.
Each factor is held by one to ten codes, the other codes are mixtures and noise. 3,000 points to train on and
1,500 to test on. One row of the file is one set of codes with one kind of trees; the summary is printed.
Takes about five minutes of one core.
"""

from __future__ import annotations

import os

os.environ.update(dict.fromkeys(["OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"], "1"))

import argparse
import csv
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from unweave.metrics.checks import Split
from unweave.metrics.dci import DCI, dci, disentanglement
from unweave.metrics.estimators.histogram_boosting import DRAWN, bin_codes, fit_histogram_trees
from unweave.streams import Stream

SIZES = (3, 4, 6, 8, 10)
TRAIN, TEST = 3_000, 1_500
CODES, MIXING = (50, 100, 200), np.linspace(0, 1, 8)
SCORES = "disentanglement", "completeness", "informativeness_test"


def planted(d: int, mixing: float, seed: int) -> Split:
    """Codes that hold one factor each, mixed with all others to a degree from 0 to 1."""
    stream, sizes, n = Stream.of(seed), np.array(SIZES), TRAIN + TEST
    factors = stream.child("factors").integers(n, SIZES)
    values = (factors - (sizes - 1) / 2) / np.sqrt((sizes**2 - 1) / 12)
    copies = stream.child("copies").integers(len(SIZES), [10])[:, 0] + 1
    own = np.repeat(np.arange(len(SIZES)), copies)
    weights = np.zeros((len(SIZES), d))
    weights[own, np.arange(len(own))] = 1 - mixing
    weights += mixing * stream.child("weights").normal(len(SIZES), d)
    codes = np.tanh(values @ weights) + 0.3 * stream.child("noise").normal(n, d)
    return Split(codes[:TRAIN], factors[:TRAIN], codes[TRAIN:], factors[TRAIN:])


def exact(data: Split) -> DCI:
    """DCI as published."""
    return dci(data.codes, data.factors, test=(data.test_codes, data.test_factors))


def histograms(drawn: int) -> Callable[[Split], DCI]:
    """DCI by histogram trees whose nodes below the root look at so many codes beyond the best eight."""

    def measure(data: Split) -> DCI:
        bins = bin_codes(data.codes)
        trees = fit_histogram_trees(bins, data.factors, drawn=drawn)
        cells = bins.bin_like(data.test_codes)
        test = np.mean([tree.predict(cells) for tree in trees] == data.test_factors.T)
        train = np.mean([tree.fitted for tree in trees] == data.factors.T)
        importance = np.stack([tree.importances for tree in trees], axis=1)
        return DCI(
            disentanglement(importance),
            disentanglement(importance.T),
            float(train),
            float(test),
            importance,
        )

    return measure


def main() -> None:
    """Write the table and print the agreement with exact trees."""
    parser = argparse.ArgumentParser()
    parser.add_argument("file", type=Path)
    file = parser.parse_args().file
    kinds = {
        "exact": exact,
        "histogram, all codes": histograms(max(CODES)),
        "histogram, 8+56 codes": histograms(DRAWN),
    }
    rows = []
    for d in CODES:
        for case, mixing in enumerate(MIXING):
            data = planted(d, mixing, seed=1000 * d + case)
            for kind, measure in kinds.items():
                start = time.process_time()
                result = measure(data)
                taken = time.process_time() - start
                scores = [round(getattr(result, score), 5) for score in SCORES]
                rows.append([d, round(mixing, 3), kind, *scores, round(taken, 2)])
                print(*rows[-1], flush=True)
    with file.open("w", newline="") as sink:
        writer = csv.writer(sink)
        writer.writerow(["codes", "mixing", "trees", *SCORES, "seconds"])
        writer.writerows(rows)
    table = np.array([row[3:] for row in rows], np.float64).reshape(-1, len(kinds), len(SCORES) + 1)
    for k, kind in enumerate(kinds):
        summarise(kind, table[:, 0], table[:, k])


def summarise(kind: str, exact_scores: NDArray[np.float64], scores: NDArray[np.float64]) -> None:
    """Print correlation and mean absolute difference of each score, and the ratio of the times."""
    for j, name in enumerate(SCORES):
        first, second = exact_scores[:, j], scores[:, j]
        print(
            f"{kind:22s} {name:22s} correlation {np.corrcoef(first, second)[0, 1]:.4f}, "
            f"mean difference {np.abs(first - second).mean():.4f}, largest {np.abs(first - second).max():.4f}"
        )
    print(f"{kind:22s} time {exact_scores[:, -1].sum() / scores[:, -1].sum():.1f} x faster than exact trees")


if __name__ == "__main__":
    main()
