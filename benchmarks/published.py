"""Train settings of the published study at full length, for the comparison with the published models.

    python benchmarks/published.py FOLDER --minutes 9     (again, until it says that all runs are done)
    python benchmarks/published.py FOLDER --score
    python benchmarks/published.py FOLDER --compare results_dsprites_full.csv

Each call of the first goes on where the last one stopped. The second measures all runs, mean and sampled
codes, into FOLDER/measured.json; the third prints the scores beside the published seeds of the same setting.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import signal
import threading
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import torch

from unweave.data import load
from unweave.evaluation.evaluate import Effort
from unweave.evaluation.kept import evaluate_run
from unweave.methods import DIPVAE1, DIPVAE2, AnnealedVAE, BetaTCVAE, BetaVAE, FactorVAE, settings_of
from unweave.methods.method import Method
from unweave.run import Run, folder_name
from unweave.spec import RunSpec
from unweave.store import RunFolder
from unweave.training.trainer import Plan, Report, Stopped, train_runs

METHODS: list[Method] = [
    BetaVAE(1.0),
    BetaVAE(4.0),
    BetaVAE(16.0),
    AnnealedVAE(c_max=5.0),
    FactorVAE(10.0),
    DIPVAE1(5.0),
    DIPVAE2(5.0),
    BetaTCVAE(beta=4.0),
    BetaTCVAE(beta=10.0),
]
SEEDS = (0, 1)

# Our method and its setting -> name and column of the published files.
COLUMNS = {
    "beta_vae": ("beta_vae", "vae_beta", "beta"),
    "annealed_vae": ("annealed_vae", "annealed_vae_c_max", "c_max"),
    "factor_vae": ("factor_vae", "factor_vae_gamma", "gamma"),
    "dip_vae_i": ("dip_vae_i", "dip_vae_lambda_od", "lambda_od"),
    "dip_vae_ii": ("dip_vae_ii", "dip_vae_lambda_od", "lambda_od"),
    "beta_tcvae": ("beta_tc_vae", "beta_tc_vae_beta", "beta"),
}


def specs(precision: str, steps: int) -> list[RunSpec]:
    """All runs; FactorVAE makes half of the updates, as the published ones did."""
    return [
        RunSpec(
            method,
            seed=seed,
            steps=steps // 2 if isinstance(method, FactorVAE) else steps,
            precision=precision,  # type: ignore[arg-type]
        )
        for method in METHODS
        for seed in SEEDS
    ]


def measure(job: tuple[Path, str, str, int]) -> dict[str, Any]:
    """All scores of a run; they are in its folder too."""
    folder, device, suite, threads = job
    torch.set_num_threads(threads)
    run = Run(RunFolder(folder), device)
    kinds = ("mean", "sampled")
    start = time.perf_counter()
    records = evaluate_run(run, suite, kinds, Effort(jobs=threads))
    method = {"name": run.spec.method.name, **settings_of(run.spec.method)}
    print(f"{folder.name}: {time.perf_counter() - start:.0f} s", flush=True)
    return {
        "method": method,
        "seed": run.spec.seed,
        "precision": run.spec.precision,
        "result": run.result,
        "scores": {kind: dict(record) for kind, record in zip(kinds, records, strict=True)},
        "seconds": {kind: record.seconds for kind, record in zip(kinds, records, strict=True)},
        "images": records[0].images,
    }


def score(options: argparse.Namespace) -> None:
    """Measure all runs, several at a time."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    folders = sorted(path.parent for path in options.folder.glob("*/spec.json"))
    workers = max(1, min((os.cpu_count() or 1) // 2, len(folders)))
    threads = max(1, (os.cpu_count() or 1) // workers)
    jobs = [(folder, device, options.suite, threads) for folder in folders]
    with ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context("spawn")) as pool:
        measured = list(pool.map(measure, jobs))
    (options.folder / "measured.json").write_text(json.dumps(measured, indent=1))
    print(f"-> {options.folder / 'measured.json'}", flush=True)


def train(options: argparse.Namespace) -> None:
    """Train for some minutes; measure what is finished."""
    if options.minutes:
        timer = threading.Timer(options.minutes * 60, os.kill, (os.getpid(), signal.SIGTERM))
        timer.daemon = True
        timer.start()
    wanted = specs(options.precision, options.steps)
    folders = [options.folder / folder_name(spec) for spec in wanted]

    def tell(report: Report) -> None:
        if report.step % 10_000 == 0:
            rec = " ".join(f"{terms['reconstruction']:.0f}" for terms in report.terms)
            print(
                f"step {report.step:,} after {report.seconds:.0f} s, {len(report.runs)} runs: {rec}",
                flush=True,
            )

    plan = Plan(options.device, log_every=1000, checkpoint_every=50_000)
    try:
        train_runs(wanted, load("dsprites"), folders, plan, tell)
    except Stopped as stop:
        print(f"{stop}; call again", flush=True)
        return
    print("all runs are done", flush=True)


# Our score of the mean codes, the published column, and the decimals worth printing.
SHARED = [
    ("elbo.reconstruction", "reconstruction_loss", 2),
    ("elbo.kl", "kl_loss", 2),
    ("beta_vae_score.eval_accuracy", "beta_vae_eval_accuracy", 3),
    ("factor_vae_score.eval_accuracy", "factor_vae_eval_accuracy", 3),
    ("mig", "mig_discrete_mig", 3),
    ("dci.disentanglement", "dci_disentanglement", 3),
    ("dci.completeness", "dci_completeness", 3),
    ("dci.informativeness_test", "dci_informativeness_test", 3),
    ("sap", "sap_score", 3),
    ("modularity", "modularity_score", 3),
    ("explicitness.test", "modularity_explicitness_score_test", 3),
]


def compare(options: argparse.Namespace) -> None:
    """Print our runs beside the published ones, as a table in Markdown."""
    import pandas as pd

    published = pd.read_csv(options.compare, quotechar='"')
    names = published["model_name"].str.strip("'")
    measured = json.loads((options.folder / "measured.json").read_text())
    print("| setting | score | ours | published mean (range of 50 seeds) | in range |")
    print("|---|---|---|---|---|")
    outside, numbers = 0, 0
    for method in METHODS:
        name, column, setting = COLUMNS[method.name]
        value = float(getattr(method, setting))
        rows = published[(names == name) & (published[column] == value)]
        mine = [m for m in measured if m["method"] == {"name": method.name, **settings_of(method)}]
        for ours, theirs, digits in SHARED:
            low, high = rows[theirs].min(), rows[theirs].max()
            found = [m["scores"]["mean"][ours] for m in mine]
            right = [low <= number <= high for number in found]
            numbers, outside = numbers + len(right), outside + right.count(False)
            cells = [
                f"{method.name} {setting}={value:g}",
                ours,
                ", ".join(f"{number:.{digits}f}" for number in found),
                f"{rows[theirs].mean():.{digits}f} ({low:.{digits}f} to {high:.{digits}f})",
                "yes" if all(right) else "no",
            ]
            print(f"| {' | '.join(cells)} |")
    print(f"{outside} of {numbers} numbers are outside of the published range")


def main() -> None:
    """Train, measure or compare."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--minutes", type=float, default=0, help="stop after so many minutes")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--precision", default="bf16")
    parser.add_argument("--steps", type=int, default=300_000)
    parser.add_argument("--score", action="store_true", help="measure runs that are trained")
    parser.add_argument("--suite", default="study", help="which metrics")
    parser.add_argument("--compare", type=Path, help="the published results_dsprites_full.csv")
    options = parser.parse_args()
    if options.compare:
        compare(options)
    elif options.score:
        score(options)
    else:
        train(options)


if __name__ == "__main__":
    main()
