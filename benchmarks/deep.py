"""Deep methods next to a VAE on the same data: likelihoods, scores, rates, and what their papers claim.

    python benchmarks/deep.py OUT [--cases vae,glow] [--data dsprites,rooms] [--seeds 3] [--share 0.1]

OUT gets `deep.csv`, a row for each run, and one picture of each data set: images of the data, samples and
reconstructions of the first run of each case. Both are written again after each case, so a run that is
interrupted loses one case. `--share` shortens all runs. No case starts after `--seconds`.

A case trains its seeds as one population, by the method's defaults unless CASES says otherwise. `rate` are
its model-steps a second, `plain_rate` those of a plain loop: the same networks and losses, one model,
torch.optim.Adam, no CUDA graph.

Bits per dimension: the VAEs' are their negative ELBO, an upper bound. On black and white data likelihoods
are Bernoulli, and Glow has 1 bit. On other data they are `gaussian_learned`, a density of images in [0, 1],
to which 8 bits are added for the width of a grey level.
"""

from __future__ import annotations

import argparse
import math
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.plain_pytorch import rate

import unweave
from unweave.data import GroundTruth, load
from unweave.data.grid import Images
from unweave.evaluation import found_clusters, frechet_distance, inversion, score_layers
from unweave.methods import (
    VAE,
    VDVAE,
    ElasticInfoGAN,
    EncDiff,
    FactorQVAE,
    Glow,
    InfoGAN,
    Method,
    StyleGAN2,
    Tripod,
)
from unweave.runs.figures import sheet_figure
from unweave.runs.run import Run
from unweave.runs.spec import RunSpec, spec_of
from unweave.runs.views import Row
from unweave.training.batches import batches_of
from unweave.training.memory import train_what_fits
from unweave.training.population import Population
from unweave.training.trainer import Plan, default_precision, pick_device
from unweave.training.update import Update

METRICS = "mig, dci, sap, modularity, explicitness"
IMBALANCED = "glyphs_centred:only(size=2):ojha_imbalance"
SHOWN = 12  # images in a row of the picture
PLAIN_STEPS = 20

Measures = Callable[[Run], Mapping[str, float]]


def no_more(_run: Run) -> Mapping[str, float]:
    """Scores only."""
    return {}


def bits_of_vae(run: Run) -> Mapping[str, float]:
    """The bound in bits per dimension."""
    elbo = unweave.evaluate(run, metrics="elbo")["elbo.elbo"]
    extra = 0 if run.spec.likelihood == "bernoulli" else 8
    return {"bits_per_dimension": -elbo / (math.prod(run.shape) * math.log(2)) + extra}


def bits_of_layers(run: Run) -> Mapping[str, float]:
    """The bound of all layers, and the information of each resolution about each factor."""
    known = score_layers(run)
    extra = 0 if run.spec.likelihood == "bernoulli" else 8
    information = {
        f"information.{layer}.{factor}": float(known.information[i, j])
        for i, layer in enumerate(known.layers)
        for j, factor in enumerate(known.factors)
    }
    return {"bits_per_dimension": known.bits_per_dimension + extra} | information


def bits_of_flow(run: Run) -> Mapping[str, float]:
    """The exact likelihood."""
    return dict(unweave.evaluate(run, metrics="bits_per_dimension"))


def distance(run: Run) -> Mapping[str, float]:
    """The Frechet distance of samples, with its interval and that of real images."""
    found = frechet_distance(run)
    ends = {"frechet.low": found.low or math.nan, "frechet.high": found.high or math.nan}
    return {"frechet": found.distance, "frechet.real": found.floor} | ends


def distance_and_inversion(run: Run) -> Mapping[str, float]:
    """The same, and the errors of the encoder."""
    errors = inversion(run)
    names = ("codes", "generated", "real", "mean_generated", "mean_real")
    return {**distance(run)} | {f"inversion.{name}": getattr(errors, name).mean for name in names}


def clusters(run: Run) -> Mapping[str, float]:
    """Categories against the classes of the data, and their prior against the frequencies."""
    found = found_clusters(run)
    agreement = {"clusters.nmi": found.images.nmi, "clusters.entropy": found.images.entropy}
    return agreement | {"clusters.prior_distance": found.prior_distance, "clusters.used": float(found.used)}


@dataclass(frozen=True)
class Case:
    """A method, made for the data, with the steps of its runs and what is measured besides scores."""

    method: Callable[[GroundTruth], Method]
    steps: int
    measures: Measures = no_more
    is_likelihood: bool = False
    data: str | None = None  # instead of that of the command line
    settings: Mapping[str, Any] = field(default_factory=dict)

    def specs(self, truth: GroundTruth, seeds: int, share: float, device: str) -> list[RunSpec]:
        """The runs."""
        method = self.method(truth)
        settings = dict(self.settings)
        if self.is_likelihood:
            settings["likelihood"] = "bernoulli" if truth.binary else "gaussian_learned"
        precision, steps = default_precision(device, method), max(1, round(share * self.steps))
        settings |= {"data": truth.name, "steps": steps, "precision": precision}
        return [spec_of(method, seed=seed, **settings) for seed in range(seeds)]


def depth(layers: int) -> Case:
    """A very deep VAE with so many layers of latents and the blocks of eight layers."""
    method = VDVAE(layers=layers, plain_blocks=max(0, 8 - layers))
    all_of_one_layer = {"latents": method.zdim}
    return Case(lambda _: method, 20_000, bits_of_layers, is_likelihood=True, settings=all_of_one_layer)


def flow(**sizes: int) -> Case:
    """Glow, with as many bits as the data has."""
    cosine = {"schedule": "cosine"}
    return Case(
        lambda truth: Glow(n_bits_x=1 if truth.binary else 8, **sizes), 20_000, bits_of_flow, settings=cosine
    )


ONE_CODE = {"latents": 1}
CASES: dict[str, Case] = {
    "vae": Case(
        lambda _: VAE(), 20_000, lambda run: {**bits_of_vae(run), **distance(run)}, is_likelihood=True
    ),
    "vd_vae-1": depth(1),
    "vd_vae-4": depth(4),
    "vd_vae-8": depth(8),
    "glow": flow(),
    "glow-deep": flow(n_levels=3, depth=8, width=128),
    "style_gan2": Case(lambda _: StyleGAN2(), 20_000, distance_and_inversion),
    "info_gan": Case(lambda _: InfoGAN(), 40_000, distance),
    "tripod": Case(lambda _: Tripod(), 40_000),
    "factor_qvae": Case(lambda _: FactorQVAE(), 20_000),
    "enc_diff": Case(lambda _: EncDiff(), 20_000),
    "elastic_info_gan": Case(
        lambda _: ElasticInfoGAN(), 30_000, clusters, data=IMBALANCED, settings=ONE_CODE
    ),
    "info_gan-categories": Case(
        lambda _: InfoGAN(categories=10), 30_000, clusters, data=IMBALANCED, settings=ONE_CODE
    ),
}


def trained(specs: list[RunSpec], truth: GroundTruth, folder: Path, device: str) -> tuple[list[Run], float]:
    """The runs, trained as one population, and their model-steps a second."""
    begun = time.monotonic()
    folders = train_what_fits(specs, truth, [folder / spec.id for spec in specs], Plan(device))
    seconds = time.monotonic() - begun
    runs = [Run(run_folder, pick_device(device), truth) for run_folder in folders]
    return runs, sum(spec.steps for spec in specs) / seconds


def plain_rate(spec: RunSpec, truth: GroundTruth, device: torch.device) -> float:
    """Updates a second of one model by a plain loop: autograd and torch.optim.Adam."""
    update = Update(Population([spec], truth.shape, device), batches_of(truth, device), len(truth))
    optimisers: dict[str, torch.optim.Optimizer] = {}

    def step() -> None:
        for player, gradients in update.gradients():
            parameters = player.optimiser.parameters
            if player.name not in optimisers:
                optimisers[player.name] = torch.optim.Adam(parameters, 1e-4)
            for parameter, gradient in zip(parameters, gradients, strict=True):
                parameter.grad = gradient.to(parameter.dtype)
            optimisers[player.name].step()

    return rate(step, PLAIN_STEPS, device)


def rows_of(label: str, run: Run, truth: GroundTruth) -> list[Row]:
    """Samples, where a method has a distribution of codes, and reconstructions of the first row."""
    rows = [(f"{label}: reconstructions", run.reconstruct(shown(truth)))]
    if run.spec.method.has_prior or isinstance(run.spec.method, StyleGAN2):
        rows.insert(0, (f"{label}: samples", run.sample(SHOWN)))
    return [(name, np.clip(255 * images, 0, 255).round().astype(np.uint8)) for name, images in rows]


def shown(truth: GroundTruth) -> Images:
    """The images whose reconstructions are drawn."""
    return truth.sample_images(SHOWN, seed=1)


def scores_of(label: str, case: Case, run: Run) -> dict[str, Any]:
    """A row of the table."""
    spec = run.spec
    names = {"data": spec.data, "case": label, "method": str(spec.method), "seed": spec.seed}
    sizes = {"steps": spec.steps, "batch": spec.batch, "latents": spec.latents, "precision": spec.precision}
    return names | sizes | dict(unweave.evaluate(run, metrics=METRICS)) | dict(case.measures(run))


def main() -> None:
    """Train and measure, case by case."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--cases", default=",".join(CASES))
    parser.add_argument("--data", default="dsprites,rooms")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--share", type=float, default=1.0)
    parser.add_argument("--seconds", type=float, default=math.inf)
    parser.add_argument("--device", default="auto")
    options = parser.parse_args()
    started, device = time.monotonic(), pick_device(options.device)
    options.out.mkdir(parents=True, exist_ok=True)
    table: list[dict[str, Any]] = []
    pictures: dict[str, list[Row]] = {}
    names: list[tuple[str, str]] = [
        (label, data)
        for label in options.cases.split(",")
        for data in (CASES[label].data or options.data).split(",")
    ]
    with tempfile.TemporaryDirectory() as place:
        for label, data in names:
            if time.monotonic() - started > options.seconds:
                break
            case, truth = CASES[label], load(data)
            specs = case.specs(truth, options.seeds, options.share, options.device)
            plain = plain_rate(specs[0], truth, device)
            runs, ours = trained(specs, truth, Path(place), options.device)
            rates = {"runs": len(runs), "rate": round(ours, 1), "plain_rate": round(plain, 1)}
            table += [scores_of(label, case, run) | rates for run in runs]
            pd.DataFrame(table).to_csv(options.out / "deep.csv", index=False)
            rows = pictures.setdefault(data, [("images", shown(truth))])
            rows += rows_of(label, runs[0], truth)
            file = f"deep-{data.partition(':')[0]}.png"
            sheet_figure(f"{data}, first run of each case", rows).savefig(options.out / file)
            print(f"{time.monotonic() - started:.0f} s: {label} on {data}, {ours:.0f}/s, plain {plain:.0f}/s")


if __name__ == "__main__":
    main()
