"""Train settings of the published study at full length, for the comparison with the published models.

    python benchmarks/published.py FOLDER --minutes 9     (again, until it says that all runs are done)

Each call goes on where the last one stopped. At the end FOLDER/measured.json has the reconstruction loss and
the KL divergence of each run on fresh images, one z drawn for each, as the published numbers were taken.
`python benchmarks/published.py FOLDER --compare results_dsprites_full.csv` prints them beside the published
seeds of the same setting.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import threading
from pathlib import Path
from typing import Any

import torch

from unweave.data import load
from unweave.methods import DIPVAE1, DIPVAE2, AnnealedVAE, BetaTCVAE, BetaVAE, FactorVAE, settings_of
from unweave.methods.method import Method
from unweave.nn.likelihood import reconstruction_loss
from unweave.run import Run, folder_name
from unweave.spec import RunSpec
from unweave.store import RunFolder
from unweave.streams import Stream
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
IMAGES = 16_384

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


def measure(folder: RunFolder, device: str) -> dict[str, Any]:
    """Reconstruction loss and KL of a run on fresh images."""
    run = Run(folder, device)
    stream = Stream.of(run.spec.seed).child("fresh images")
    sums, truth = torch.zeros(2), load(run.spec.data)
    for start in range(0, IMAGES, 1024):
        part = stream.skip(start)
        images = truth.observe(truth.sample_factors(1024, part))
        posterior = run.posterior(images)
        noise = torch.from_numpy(part.child("noise").normal(1024, run.spec.latents)).float().to(device)
        logits = run.logits(posterior.sample(noise))
        target = torch.from_numpy(images).to(device).float() / 255
        loss = reconstruction_loss(logits, target, run.spec.likelihood)
        sums += torch.stack([loss, posterior.kl().mean()]).cpu()
    rec, kl = (sums / (IMAGES / 1024)).tolist()
    method = {"name": run.spec.method.name, **settings_of(run.spec.method)}
    return {
        "method": method,
        "seed": run.spec.seed,
        "precision": run.spec.precision,
        "reconstruction": rec,
        "kl": kl,
        "result": folder.result,
    }


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
    device = "cuda" if torch.cuda.is_available() else "cpu"
    measured = [measure(RunFolder(folder), device) for folder in folders]
    (options.folder / "measured.json").write_text(json.dumps(measured, indent=1))
    print("all runs are done", flush=True)


def compare(options: argparse.Namespace) -> None:
    """Print our runs beside the published ones, as a table in Markdown."""
    import pandas as pd

    published = pd.read_csv(options.compare, quotechar='"')
    names = published["model_name"].str.strip("'")
    measured = json.loads((options.folder / "measured.json").read_text())
    print("| setting | reconstruction | published (50 seeds) | KL | published | in range |")
    print("|---|---|---|---|---|---|")
    outside = 0
    for method in METHODS:
        name, column, setting = COLUMNS[method.name]
        value = float(getattr(method, setting))
        rows = published[(names == name) & (published[column] == value)]
        mine = [m for m in measured if m["method"] == {"name": method.name, **settings_of(method)}]
        cells, right = [f"{method.name} {setting}={value:g}"], True
        for ours, theirs in (("reconstruction", "reconstruction_loss"), ("kl", "kl_loss")):
            low, high = rows[theirs].min(), rows[theirs].max()
            cells.append(", ".join(f"{m[ours]:.2f}" for m in mine))
            cells.append(f"{rows[theirs].mean():.2f} ({low:.2f} to {high:.2f})")
            right &= all(low <= m[ours] <= high for m in mine)
        outside += not right
        print(f"| {' | '.join(cells)} | {'yes' if right else 'no'} |")
    print(f"{outside} of {len(METHODS)} settings are outside of the published range")


def main() -> None:
    """Train or compare."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--minutes", type=float, default=0, help="stop after so many minutes")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--precision", default="bf16")
    parser.add_argument("--steps", type=int, default=300_000)
    parser.add_argument("--compare", type=Path, help="the published results_dsprites_full.csv")
    options = parser.parse_args()
    if options.compare:
        compare(options)
    else:
        train(options)


if __name__ == "__main__":
    main()
