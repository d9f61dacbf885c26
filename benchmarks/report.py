"""How long the report of a whole study takes: `python benchmarks/report.py [--seeds 50] [--out FOLDER]`.

The results are made up, but look like those of the study: 7 data sets x 36 settings x 50 seeds = 12,600 runs,
mean and sampled codes, all scores of the suite "study". One core; seconds are wall time, memory is the most
that the process ever held. The report is written to a folder that is removed again, or to FOLDER.
"""

from __future__ import annotations

import os

os.environ.update(dict.fromkeys(["OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"], "1"))

import argparse
import platform
import resource
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from unweave.report.names import DATA, downstream_scores, metric_scores
from unweave.report.page import write_report
from unweave.results import METHOD_ORDER, Results, check_table, long_table, wide
from unweave.streams import Stream

WANTED = {"seconds": 120.0, "MB of memory": 2000.0, "MB of page": 15.0}
STRENGTHS = (1.0, 2.0, 4.0, 6.0, 8.0, 16.0)
METRICS = (
    "beta_vae_score.train_accuracy",
    "beta_vae_score.eval_accuracy",
    "factor_vae_score.train_accuracy",
    "factor_vae_score.eval_accuracy",
    "mig",
    "dci.disentanglement",
    "dci.completeness",
    "dci.informativeness_test",
    "modularity",
    "sap",
    "explicitness.test",
    "irs",
)
TASKS = tuple(
    f"downstream_{kind}.{what}"
    for kind in ("logistic", "trees")
    for what in (*(f"test_accuracy_{n}" for n in (10, 100, 1000, 10_000)), "efficiency")
)
OF_CODES = ("total_correlation", "wasserstein_correlation", "mean_pairwise_information")
OF_RUNS = ("elbo.reconstruction", "elbo.kl", "elbo.elbo", "elbo.active")

Made = TypeVar("Made")


def made_up_runs(seeds: int) -> pd.DataFrame:
    """The settings of all runs."""
    rows = [
        (data, method, f"strength={strength:g}", strength, seed)
        for data in DATA
        for method in METHOD_ORDER
        for strength in STRENGTHS
        for seed in range(seeds)
    ]
    runs = pd.DataFrame(rows, columns=["data", "method", "setting", "strength", "seed"])
    return runs.assign(source="own", run=[f"{i:016x}" for i in range(len(runs))])


def quality(runs: pd.DataFrame) -> NDArray[np.float64]:
    """(n,) one hidden number a run, decided by data set, method, setting and seed."""
    parts = []
    for keys, weight in ((["data"], 0.5), (["data", "method"], 0.8), (["data", "method", "setting"], 0.5)):
        code = runs.groupby(keys, sort=False).ngroup().to_numpy()
        parts.append(weight * Stream.of(0).child("quality", *keys).normal(code.max() + 1, 1)[code, 0])
    return np.asarray(sum(parts) + 0.8 * Stream.of(0).child("quality").normal(len(runs), 1)[:, 0])


def made_up_results(seeds: int = 50) -> Results:
    """A table of results of 252 settings with so many seeds, both representations."""
    runs = made_up_runs(seeds)
    hidden, strength = quality(runs), np.log(runs["strength"].to_numpy())
    tables = []
    for codes in ("mean", "sampled"):
        scores = {}
        for name in (*METRICS, *TASKS):
            noise = Stream.of(1).child(codes, name).normal(len(runs), 1)[:, 0]
            scores[name] = 1 / (1 + np.exp(-(hidden + noise) / 2))
        for name in OF_CODES:
            noise = Stream.of(1).child(codes, name).normal(len(runs), 1)[:, 0]
            scores[name] = np.exp((strength if codes == "mean" else -strength) + 0.5 * noise)
        protocols = {name: f"{name}[made-up,{codes}]" for name in scores}
        tables.append(long_table(runs.assign(representation=codes), pd.DataFrame(scores), protocols))
    noise = Stream.of(1).child("elbo").normal(len(runs), len(OF_RUNS))
    of_runs = pd.DataFrame(np.exp(strength[:, None] + noise / 3), columns=list(OF_RUNS))
    protocols = dict.fromkeys(OF_RUNS, "elbo[made-up]")
    tables.append(long_table(runs.assign(representation=""), of_runs, protocols))
    return check_table(pd.concat(tables, ignore_index=True))


def timed(what: str, make: Callable[[], Made]) -> Made:
    """Do something, and print how long it took."""
    start = time.perf_counter()
    made = make()
    print(f"{what:42s} {time.perf_counter() - start:9.1f} s")
    return made


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=50)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    print(f"{platform.machine()}, Python {platform.python_version()}, one core")
    results = timed("making up the results", lambda: made_up_results(options.seeds))
    runs = wide(results.table)
    tasks = downstream_scores(runs)[0]
    print(
        f"{len(runs):,} runs x 2 representations, {len(results.table):,} scores, "
        f"{len(metric_scores(runs))} metrics compared, {len(tasks)} tasks"
    )
    with tempfile.TemporaryDirectory() as folder:
        out = options.out or Path(folder)
        start = time.perf_counter()
        page = write_report(results, out)
        found = {
            "seconds": time.perf_counter() - start,
            "MB of memory": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3,
            "MB of page": page.stat().st_size / 1e6,
        }
        files = [path for path in out.rglob("*") if path.is_file()]
    for name, number in found.items():
        print(f"{name:42s} {number:9.1f}   wanted: under {WANTED[name]:g}")
    print(f"{'files':42s} {len(files):9d}")


if __name__ == "__main__":
    main()
