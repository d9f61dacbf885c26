"""How long the scores of the study take on one core: `python benchmarks/metrics.py`.

Codes are given: ten for each image of dSprites, made to look like those of a trained model (or your own,
`--codes FILE.npz` with an array `codes` that has a row for each point of the grid, last factor fastest).
10,000 training and 5,000 test points; the two scores that intervene look the codes of their draws up in the
table of all of them. Compiling happens once a machine and is stated apart.

`--sklearn shape,scale` (or `all`: six minutes) also fits the models of these factors, 10,000 points, by
scikit-learn: GradientBoostingClassifier with its defaults and its two accuracies, which is plain DCI, and
LogisticRegressionCV(Cs=10, cv=KFold(5)) a class. Next to the times are the largest differences of an
importance and of a test accuracy.

`--wide 768` measures the headline scores, of which `quick` is a part, of so many codes of 10,000 points; the
two scores that intervene look for matching rows, and DCI has histogram trees, as in `unweave.evaluate`. It
also times plain scikit-learn for a part of the same task and scales that up. `--csv FILE`
writes the table. `--peers` compares the scores without labels with the
formulas of disentanglement_lib, written with NumPy and SciPy, and DCI by support vector machines and forests
with plain calls of scikit-learn.

All seconds are those of the CPU, so that a busy machine changes little; wall time follows.
"""

from __future__ import annotations

import os
import tempfile

os.environ.update(dict.fromkeys(["OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"], "1"))
os.environ["NUMBA_CACHE_DIR"] = tempfile.mkdtemp()  # empty, so that compiling is measured

import argparse
import atexit
import csv
import functools
import math
import platform
import resource
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numba
import numpy as np
import scipy.linalg
import sklearn  # type: ignore[import-untyped]
from numpy.typing import NDArray
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier  # type: ignore[import-untyped]
from sklearn.linear_model import LogisticRegression, LogisticRegressionCV  # type: ignore[import-untyped]
from sklearn.metrics import mutual_info_score  # type: ignore[import-untyped]
from sklearn.model_selection import KFold  # type: ignore[import-untyped]
from sklearn.multiclass import OneVsRestClassifier  # type: ignore[import-untyped]
from sklearn.svm import LinearSVC  # type: ignore[import-untyped]

from unweave import metrics
from unweave.metrics.estimators.boosting import fit_boosted_trees, sort_codes
from unweave.metrics.estimators.logistic import fit_logistic_cv
from unweave.metrics.representation import Representation
from unweave.streams import Stream

SIZES = {"shape": 3, "scale": 6, "orientation": 40, "x": 32, "y": 32}
TRAIN, TEST = 10_000, 5_000
HEADLINE = "beta_vae_score", "factor_vae_score", "mig", "dci", "sap", "modularity", "explicitness"
QUICK = "mig", "sap", "modularity", "explicitness"
WANTED = {"headline": 30.0, "suite": 90.0}

Points = tuple[NDArray[np.float64], NDArray[np.int64]]


@dataclass(frozen=True)
class Data:
    """A representation, and points drawn from it."""

    representation: Representation
    train: Points
    test: Points


def trained_like() -> NDArray[np.float32]:
    """Ten codes of the whole grid: place bent, size and shape mixed, angle on a circle; three collapsed."""
    sizes = list(SIZES.values())
    factors = np.indices(sizes).reshape(len(sizes), -1).T
    shape, scale, _, x, y = (2 * factors / (np.array(sizes) - 1) - 1).T
    # A square looks the same after a quarter turn, an ellipse after half a turn.
    angle = 2 * np.pi * factors[:, 2] / sizes[2] * np.array([4, 2, 1])[factors[:, 0]]
    used = [
        1.7 * x + 0.3 * np.sin(2 * y),
        1.7 * y - 0.2 * x * scale,
        1.5 * scale + 0.4 * shape,
        np.sin(angle) + 0.2 * scale,
        np.cos(angle) + 0.3 * shape,
        np.tanh(shape + 0.6 * np.cos(angle)),
        0.5 * x * y,
    ]
    codes = np.stack([*used, *[np.zeros_like(x)] * 3], axis=1)
    noise = Stream.of(0).child("noise").normal(*codes.shape)
    return np.asarray(codes + noise * np.array([0.1] * 7 + [0.01] * 3), np.float32)


def draw(representation: Representation, train: int, test: int) -> Data:
    """Points for the metrics that need no interventions."""
    return Data(representation, representation.draw(train, seed=0), representation.draw(test, seed=1))


def suite(data: Data) -> dict[str, Callable[[], object]]:
    """The scores of the study, by name; the intervening ones draw as many points as there are others."""
    codes, factors = data.train
    draws = {"train": len(codes), "test": len(data.test[0])}
    sampled = codes + 0.1 * Stream.of(0).child("sample").normal(*codes.shape)
    return {
        "beta_vae_score": lambda: metrics.beta_vae_score(data.representation, **draws),
        "factor_vae_score": lambda: metrics.factor_vae_score(data.representation, **draws),
        "mig": lambda: metrics.mig(codes, factors),
        "dci": lambda: metrics.dci(codes, factors, test=data.test),
        "sap": lambda: metrics.sap(codes, factors, test=data.test),
        "modularity": lambda: metrics.modularity(codes, factors),
        "explicitness": lambda: metrics.explicitness(codes, factors, test=data.test),
        "irs": lambda: metrics.irs(codes, factors),
        "total_correlation, means": lambda: metrics.total_correlation(codes),
        "total_correlation, samples": lambda: metrics.total_correlation(sampled),
        "wasserstein_correlation": lambda: metrics.wasserstein_correlation(codes),
        "mean_pairwise_information": lambda: metrics.mean_pairwise_information(codes),
        "downstream_logistic": lambda: metrics.downstream(codes, factors, test=data.test),
        "downstream_trees": lambda: metrics.downstream(codes, factors, test=data.test, predictor="trees"),
    }


def wide(d: int) -> Data:
    """Codes like those of a wide encoder: each mixes all factors in a curve, with noise."""
    sizes = np.array(list(SIZES.values()))
    mixing, waves = Stream.of(9).normal(len(sizes), d), Stream.of(10).normal(len(sizes), d)

    def points(n: int, seed: int) -> Points:
        factors = Stream.of(seed).integers(n, list(sizes))
        values = (factors - (sizes - 1) / 2) / np.sqrt((sizes**2 - 1) / 12)
        noise = Stream.of(seed).child("noise").normal(n, d)
        return np.tanh(values @ mixing / 2) + 0.3 * np.sin(values @ waves) + 0.3 * noise, factors

    train = points(TRAIN, 0)
    return Data(Representation.from_rows(*train), train, points(TEST, 1))


def time_wide(d: int, file: Path | None) -> None:
    """Print a line for each headline score of d codes, with the time of scikit-learn, and write a file."""
    data = wide(d)
    runs, peers = suite(data), wide_peers(data)
    runs["dci_histogram"] = lambda: metrics.dci(*data.train, test=data.test, model="histogram")
    lines: list[tuple[object, ...]] = []
    times: dict[str, NDArray[np.float64]] = {}
    for name in ("dci_histogram" if name == "dci" else name for name in HEADLINE):
        taken = times[name] = seconds(runs[name])
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        peer = peers[name]() if name in peers else math.nan
        lines.append((name, d, TRAIN, *taken.round(2), round(memory, 2), round(peer, 1)))
        ratio = f"   scikit-learn {peer:8.0f} s {peer / taken[0]:6.1f} x" if name in peers else ""
        print(f"{name:30s} {taken[0]:7.2f} s {taken[1]:7.2f} s   peak {memory:.1f} GiB{ratio}", flush=True)
    for suite_name, names in (("quick", QUICK), ("headline", times)):
        total = np.sum([times[name] for name in names], axis=0)
        lines.append((f"all of {suite_name}", d, TRAIN, *total.round(2), "", ""))
        print(f"{f'all of {suite_name}':30s} {total[0]:7.2f} s {total[1]:7.2f} s")
    if file:
        with file.open("w", newline="") as sink:
            table = csv.writer(sink, lineterminator="\n")
            table.writerow(["score", "codes", "points", "cpu_s", "wall_s", "peak_gib", "scikit_learn_cpu_s"])
            table.writerows(lines)


def wide_peers(data: Data) -> dict[str, Callable[[], float]]:
    """Estimated CPU seconds of scikit-learn for the same models: a part is timed and scaled up."""
    codes, factors = data.train
    shape, d = factors[:, list(SIZES).index("shape")], int(codes.shape[1])
    share = sum(SIZES.values()) / SIZES["shape"]  # of all classes
    bins = np.digitize(codes[:, 0], np.histogram(codes[:, 0], 20)[1][:-1])
    trees = GradientBoostingClassifier(n_estimators=1, random_state=0)
    svm = LinearSVC(C=0.01, class_weight="balanced", dual=False)
    logistic = OneVsRestClassifier(LogisticRegression(max_iter=1000))

    def information() -> float:
        return cpu_seconds(lambda: mutual_info_score(bins, shape)) * d * len(SIZES)

    return {
        "dci_histogram": lambda: cpu_seconds(lambda: trees.fit(codes, shape)) * share * 100,
        "sap": lambda: cpu_seconds(lambda: svm.fit(codes[:, :1], shape)) * share * d,
        "mig": information,
        "modularity": information,
        "explicitness": lambda: cpu_seconds(lambda: logistic.fit(codes, shape)) * share,
    }


def compare_peers(codes: NDArray[np.float64]) -> None:
    """Print a line for each score without labels, with the formula of disentanglement_lib."""

    def total_correlation() -> float:
        covariance = np.cov(codes.T)
        return float(np.log(np.diag(covariance)).sum() - np.linalg.slogdet(covariance)[1]) / 2

    def wasserstein_correlation() -> float:
        covariance = np.cov(codes.T)
        root = scipy.linalg.sqrtm(covariance @ np.diag(np.diag(covariance)))
        return float(2 * np.trace(covariance) - 2 * np.trace(root).real)

    for peer in (total_correlation, wasserstein_correlation):
        ours = getattr(metrics, peer.__name__)
        first, second = (
            min(seconds(run)[0] for _ in range(30)) for run in (functools.partial(ours, codes), peer)
        )
        print(f"{peer.__name__:30s} {1e3 * first:7.2f} ms {1e3 * second:9.2f} ms {second / first:6.1f} x")


def compare_classifiers(data: Data) -> None:
    """Print a line for DCI by each model of scikit-learn, with plain calls of the model on the same codes."""
    codes, factors = data.train
    test_codes, test_factors = data.test

    def plain(model: LinearSVC | RandomForestClassifier) -> None:
        for labels, held_out in zip(factors.T, test_factors.T, strict=True):
            model.fit(codes, labels)
            model.score(codes, labels), model.score(test_codes, held_out)

    svm, forest = LinearSVC(penalty="l1", dual=False, C=0.01), RandomForestClassifier(random_state=0)
    runs = (
        ("svm", functools.partial(metrics.dci, codes, factors, test=data.test, model="svm"), svm),
        ("forest", functools.partial(metrics.dci, codes, factors, test=data.test, model="forest"), forest),
    )
    for name, ours, model in runs:
        first, second = seconds(ours)[0], seconds(functools.partial(plain, model))[0]
        print(f"dci_{name:26s} {first:7.2f} s  {second:9.2f} s  {second / first:6.1f} x")


def seconds(run: Callable[[], object]) -> NDArray[np.float64]:
    """CPU and wall seconds of a call."""
    cpu, wall = time.process_time(), time.perf_counter()
    run()
    return np.array([time.process_time() - cpu, time.perf_counter() - wall])


def cpu_seconds(run: Callable[[], object]) -> float:
    """CPU seconds of a call, the least of three."""
    return float(min(seconds(run)[0] for _ in range(3)))


def compile_all() -> None:
    """Call everything once, with few points."""
    table = Stream.of(0).normal(12, 10).astype(np.float32)
    data = draw(Representation.from_table(table, (3, 4)), 100, 50)
    for run in suite(data).values():
        run()
    metrics.dci(*data.train, test=data.test, model="histogram")


def time_suite(data: Data) -> None:
    """Print a line a score, and the sums that are wanted."""
    totals = {"headline": np.zeros(2), "suite": np.zeros(2)}
    for name, run in suite(data).items():
        taken = seconds(run)
        totals["suite"] += taken
        if name in HEADLINE:
            totals["headline"] += taken
        print(f"{name:30s} {taken[0]:7.2f} s {taken[1]:7.2f} s", flush=True)
    for name, total in totals.items():
        line = f"{'all of the ' + name:30s} {total[0]:7.2f} s {total[1]:7.2f} s"
        print(f"{line}   wanted: at most {WANTED[name]:.0f} s")


def compare_trees(data: Data, names: list[str]) -> None:
    """Print a line a factor for boosted trees, next to scikit-learn's."""
    (codes, factors), (test_codes, test_factors) = data.train, data.test
    sums = np.zeros(2)
    for name in names:
        labels, held_out = (table[:, list(SIZES).index(name)] for table in (factors, test_factors))
        start = time.process_time()
        model = fit_boosted_trees(sort_codes(codes), labels)
        accuracy = (model.predict(test_codes) == held_out).mean()
        middle = time.process_time()
        other = GradientBoostingClassifier(random_state=0).fit(codes, labels)
        other.score(codes, labels)
        other_accuracy = other.score(test_codes, held_out)
        taken = np.array([middle - start, time.process_time() - middle])
        sums += taken
        gaps = np.abs(model.importances - other.feature_importances_).max(), abs(accuracy - other_accuracy)
        print(_line("trees", name, taken), f"  importance {gaps[0]:.4f}, accuracy {gaps[1]:.4f}", flush=True)
    print(_line("trees", "these together", sums), "  wanted: at least 25 x")


def compare_logistic(data: Data, names: list[str]) -> None:
    """Print a line a factor for the logistic regression with cross-validated C, next to scikit-learn's."""
    (codes, factors), (test_codes, test_factors) = data.train, data.test
    for name in names:
        labels, held_out = (table[:, list(SIZES).index(name)] for table in (factors, test_factors))
        start = time.process_time()
        accuracy = (fit_logistic_cv(codes, labels).predict(test_codes) == held_out).mean()
        middle = time.process_time()
        decisions = [
            LogisticRegressionCV(
                Cs=10, cv=KFold(5), scoring="accuracy", l1_ratios=(0.0,), use_legacy_attributes=False,
            ).fit(codes, labels == value).decision_function(test_codes)
            for value in range(SIZES[name])
        ]  # fmt: skip
        other_accuracy = (np.argmax(decisions, axis=0) == held_out).mean()
        taken = np.array([middle - start, time.process_time() - middle])
        print(_line("logistic", name, taken), f"  accuracy {abs(accuracy - other_accuracy):.4f}", flush=True)


def _line(model: str, name: str, taken: NDArray[np.float64]) -> str:
    return f"{model:9s} {name:20s} {taken[0]:7.2f} s {taken[1]:10.2f} s {taken[1] / taken[0]:6.0f} x"


def main() -> None:
    """Print the tables."""
    atexit.register(shutil.rmtree, os.environ["NUMBA_CACHE_DIR"])
    parser = argparse.ArgumentParser()
    parser.add_argument("--codes", type=Path, help="an .npz file with the codes of all images of dSprites")
    parser.add_argument("--sklearn", default="", help="factors to fit by scikit-learn too, or all")
    parser.add_argument("--wide", type=int, default=0, help="measure this many codes instead, e.g. 768")
    parser.add_argument("--csv", type=Path, help="a file for the table of --wide")
    parser.add_argument("--peers", action="store_true", help="compare some scores with other programs")
    options = parser.parse_args()
    names = list(SIZES) if options.sklearn == "all" else [name for name in options.sklearn.split(",") if name]
    if unknown := set(names) - set(SIZES):
        parser.error(f"the factors are {', '.join(SIZES)}; got {', '.join(sorted(unknown))}")
    versions = f"numpy {np.__version__}, numba {numba.__version__}, scikit-learn {sklearn.__version__}"
    print(f"{platform.processor() or platform.machine()}, 1 thread, {versions}")
    print(f"{'':30s} {'CPU':>9s} {'wall':>9s}")
    compiling = seconds(compile_all)
    print(f"{'first calls, which compile':30s} {compiling[0]:7.2f} s {compiling[1]:7.2f} s", flush=True)
    if options.wide:
        time_wide(options.wide, options.csv)
        return
    table = np.load(options.codes)["codes"] if options.codes else trained_like()
    data = draw(Representation.from_table(table, list(SIZES.values())), TRAIN, TEST)
    time_suite(data)
    if options.peers:
        print(f"\n{'':30s} {'unweave':>10s} {'peer':>12s} {'ratio':>8s}")
        compare_peers(data.train[0])
        compare_classifiers(data)
    if names:
        print(f"\n{'':30s} {'unweave':>9s} {'scikit-learn':>12s} {'ratio':>8s}   differences")
        compare_trees(data, names)
        compare_logistic(data, names)


if __name__ == "__main__":
    main()
