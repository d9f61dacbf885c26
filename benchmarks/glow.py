"""Bits per dimension of Glow and of a VAE on the same data.

    python benchmarks/glow.py OUT.csv [--data dsprites,rooms] [--seeds 3] [--steps 10000] [--seconds 1500]

The VAE's number is its negative ELBO per dimension, an upper bound of the same quantity. On black and white
data its likelihood is Bernoulli, and Glow has 1 bit: both give probabilities of black and white. On other
data it is `gaussian_learned`, a density of images in [0, 1], to which 8 bits are added for the width of a
grey level. The seeds of a method train as one population. No method starts after so many seconds.
"""

from __future__ import annotations

import argparse
import math
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd

import unweave
from unweave.data import GroundTruth, load
from unweave.methods import VAE, Glow, Method
from unweave.runs.run import Run
from unweave.runs.spec import spec_of
from unweave.training.memory import train_what_fits
from unweave.training.trainer import Plan, default_precision, pick_device

METRICS = "mig, dci, sap, modularity, explicitness"
LARGER = {"n_levels": 3, "depth": 8, "width": 128}


def bits_of_vae(elbo: float, shape: tuple[int, ...], binary: bool) -> float:
    """The bound in bits per dimension, from an ELBO in nats."""
    return -elbo / (math.prod(shape) * math.log(2)) + (0 if binary else 8)


def methods_of(truth: GroundTruth) -> Iterator[tuple[Method, dict[str, Any]]]:
    """The VAE, Glow by its defaults and a larger Glow, with the fields of their runs."""
    likelihood, bits = ("bernoulli", 1) if truth.binary else ("gaussian_learned", 8)
    yield VAE(), {"likelihood": likelihood}
    for sizes in ({}, LARGER):
        yield Glow(n_bits_x=bits, **sizes), {}


def trained(
    method: Method, truth: GroundTruth, seeds: int, folder: Path, device: str, **settings: Any
) -> list[Run]:
    """One run for each seed, as one population."""
    precision = default_precision(device, method)
    specs = [
        spec_of(method, data=truth.name, seed=seed, precision=precision, **settings) for seed in range(seeds)
    ]
    folders = train_what_fits(specs, truth, [folder / spec.id for spec in specs], Plan(device))
    return [Run(run_folder, pick_device(device), truth) for run_folder in folders]


def measured(run: Run, truth: GroundTruth) -> dict[str, Any]:
    """Bits per dimension and scores of a run."""
    is_flow = isinstance(run.spec.method, Glow)
    scores = dict(unweave.evaluate(run, metrics=f"{METRICS}, {'bits_per_dimension' if is_flow else 'elbo'}"))
    if not is_flow:
        scores["bits_per_dimension"] = bits_of_vae(scores["elbo.elbo"], truth.shape, truth.binary)
    names = {"data": truth.name, "method": str(run.spec.method), "seed": run.spec.seed}
    return names | {"steps": run.spec.steps} | scores


def main() -> None:
    """Train and measure, and write one row for each run into the file, after each method."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("csv", type=Path)
    parser.add_argument("--data", default="dsprites,rooms")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=10_000)
    parser.add_argument("--seconds", type=float, default=math.inf)
    parser.add_argument("--device", default="auto")
    options = parser.parse_args()
    started = time.monotonic()
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as place:
        for truth in map(load, options.data.split(",")):
            for method, settings in methods_of(truth):
                if time.monotonic() - started > options.seconds:
                    return
                begun = time.monotonic()
                runs = trained(
                    method,
                    truth,
                    options.seeds,
                    Path(place),
                    options.device,
                    steps=options.steps,
                    schedule="cosine",
                    **settings,
                )
                training = {"seconds": round(time.monotonic() - begun, 1)}
                rows += [measured(run, truth) | training for run in runs]
                pd.DataFrame(rows).to_csv(options.csv, index=False)
                sys.stdout.write(f"{rows[-1]}\n")
                sys.stdout.flush()


if __name__ == "__main__":
    main()
