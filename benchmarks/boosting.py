"""How fast factors are predicted, beside scikit-learn: `python benchmarks/boosting.py [--all]`.

CPU seconds. dSprites' factor sizes (3, 6, 40, 32, 32), 10,000 x 10 codes made like trained ones: nonlinear
mixtures of the factors plus noise. scikit-learn fits shape and scale only, or, with --all, everything
(about ten minutes); the largest difference of an importance and that of a test accuracy are printed too.
"""

from __future__ import annotations

import sys
import time

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import GradientBoostingClassifier  # type: ignore[import-untyped]
from sklearn.linear_model import LogisticRegressionCV  # type: ignore[import-untyped]
from sklearn.model_selection import KFold  # type: ignore[import-untyped]

from unweave.metrics.boosting import fit_boosted_trees, sort_codes
from unweave.metrics.logistic import fit_logistic_cv
from unweave.streams import Stream

SIZES = {"shape": 3, "scale": 6, "orientation": 40, "x": 32, "y": 32}
TRAIN, TEST, CODES = 10_000, 5_000, 10

Data = tuple[NDArray[np.float64], NDArray[np.int64]]


def trained_like() -> Data:
    """Codes that hold each factor mainly in one place, bent and mixed; the last four are noise."""
    stream, sizes = Stream.of(0), list(SIZES.values())
    factors = stream.child("factors").integers(TRAIN + TEST, sizes)
    scaled = 2 * factors / (np.array(sizes) - 1) - 1
    mixing = 0.15 * stream.child("mixing").normal(len(sizes), CODES)
    mixing[:, : len(sizes)] += np.eye(len(sizes))
    mixing[:, 6:] = 0
    codes = np.tanh(1.5 * scaled @ mixing) + 0.1 * stream.child("noise").normal(TRAIN + TEST, CODES)
    return codes.astype(np.float32).astype(np.float64), factors


def trees(data: Data, theirs: list[str]) -> None:
    """Print a line a factor for boosted trees."""
    codes, factors = data
    warm = fit_boosted_trees(sort_codes(codes[:100]), factors[:100, 0], rounds=1)  # compiles
    warm.predict(codes[:10])
    ours_all, theirs_all = 0.0, 0.0
    for j, name in enumerate(SIZES):
        start = time.process_time()
        model = fit_boosted_trees(sort_codes(codes[:TRAIN]), factors[:TRAIN, j])
        accuracy = (model.predict(codes[TRAIN:]) == factors[TRAIN:, j]).mean()
        ours = time.process_time() - start
        ours_all += ours
        line = f"trees     {name:12s} {ours:9.2f} s"
        if name in theirs:
            start = time.process_time()
            other = GradientBoostingClassifier(random_state=0).fit(codes[:TRAIN], factors[:TRAIN, j])
            other_accuracy = other.score(codes[TRAIN:], factors[TRAIN:, j])
            seconds = time.process_time() - start
            theirs_all += seconds
            gap = np.abs(model.importances - other.feature_importances_).max()
            line += f" {seconds:11.2f} s {seconds / ours:7.0f} x   importance {gap:.4f}, "
            line += f"accuracy {abs(accuracy - other_accuracy):.4f}"
        print(line, flush=True)
    print(f"trees     {'all five':12s} {ours_all:9.2f} s", end="")
    print(f" {theirs_all:11.2f} s {theirs_all / ours_all:7.0f} x" if len(theirs) == len(SIZES) else "")


def logistic(data: Data, theirs: list[str]) -> None:
    """Print a line a factor for the logistic regression with cross-validated C."""
    codes, factors = data
    for j, name in enumerate(SIZES):
        labels = factors[:TRAIN, j]
        start = time.process_time()
        fit_logistic_cv(codes[:TRAIN], labels)
        ours = time.process_time() - start
        line = f"logistic  {name:12s} {ours:9.2f} s"
        if name in theirs:
            start = time.process_time()
            for target in range(SIZES[name]):
                LogisticRegressionCV(
                    Cs=10, cv=KFold(5), scoring="accuracy", l1_ratios=(0.0,), use_legacy_attributes=False,
                ).fit(codes[:TRAIN], labels == target)  # fmt: skip
            seconds = time.process_time() - start
            line += f" {seconds:11.2f} s {seconds / ours:7.0f} x"
        print(line, flush=True)


def main() -> None:
    """Print the table."""
    theirs = list(SIZES) if "--all" in sys.argv[1:] else ["shape", "scale"]
    data = trained_like()
    print(f"{'':22s} {'unweave':>11s} {'scikit-learn':>13s} {'ratio':>8s}     largest differences")
    trees(data, theirs)
    logistic(data, theirs)


if __name__ == "__main__":
    main()
