"""Bits per dimension of Glow and of a VAE on the same data.

    python benchmarks/glow.py OUT.csv [--data dsprites,rooms] [--seeds 3] [--steps 40000] [--device auto]

The VAE's number is its negative ELBO per dimension, an upper bound of the same quantity. On black and white
data its likelihood is Bernoulli, and Glow has 1 bit: both give probabilities of black and white. On other
data it is `gaussian_learned`, a density of images in [0, 1], to which 8 bits are added for the width of a
grey level.
"""

from __future__ import annotations

import argparse
import math
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd

import unweave
from unweave.data import GroundTruth, load
from unweave.methods import VAE, Glow
from unweave.runs.run import Run

METRICS = "mig, sap, modularity, explicitness, elbo"
LARGER = {"n_levels": 3, "depth": 8, "width": 128}


def bits_of_vae(elbo: float, shape: tuple[int, ...], binary: bool) -> float:
    """The bound in bits per dimension, from an ELBO in nats."""
    return -elbo / (math.prod(shape) * math.log(2)) + (0 if binary else 8)


def measured(run: Run, truth: GroundTruth) -> dict[str, Any]:
    """Bits per dimension and scores of a run."""
    is_flow = isinstance(run.spec.method, Glow)
    asked = METRICS + (", bits_per_dimension" if is_flow else "")
    scores = {name: float(value) for name, value in unweave.evaluate(run, metrics=asked).items()}
    if not is_flow:
        scores["bits_per_dimension"] = bits_of_vae(scores["elbo.elbo"], truth.shape, truth.binary)
    return {"data": truth.name, "method": run.spec.method.name, "seed": run.spec.seed} | scores


def runs_of(truth: GroundTruth, seeds: int, steps: int, device: str, folder: Path) -> Iterator[Run]:
    """Runs of Glow by its defaults and of a larger one, and of the VAE."""
    likelihood, bits = ("bernoulli", 1) if truth.binary else ("gaussian_learned", 8)
    for seed in range(seeds):
        shared: dict[str, Any] = {"seed": seed, "steps": steps, "device": device, "progress": False}
        yield unweave.train(VAE(), truth, out=folder, likelihood=likelihood, **shared)
        for method in (Glow(n_bits_x=bits), Glow(n_bits_x=bits, **LARGER)):
            yield unweave.train(method, truth, out=folder, **shared)


def main() -> None:
    """Train all runs and write one row for each into the file, after each run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("csv", type=Path)
    parser.add_argument("--data", default="dsprites,rooms")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=40_000)
    parser.add_argument("--device", default="auto")
    options = parser.parse_args()
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as place:
        for name in options.data.split(","):
            truth = load(name)
            for run in runs_of(truth, options.seeds, options.steps, options.device, Path(place)):
                rows.append(measured(run, truth) | {"settings": str(run.spec.method)})
                pd.DataFrame(rows).to_csv(options.csv, index=False)
                sys.stdout.write(f"{rows[-1]}\n")
                sys.stdout.flush()


if __name__ == "__main__":
    main()
