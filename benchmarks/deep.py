"""Deep methods next to a VAE on the same data: likelihoods, scores, rates, and what their papers claim.

    python benchmarks/deep.py OUT [--cases vae,glow] [--data dsprites,rooms] [--seeds 3] [--share 0.1]
    python benchmarks/deep.py OUT --rates [--cases vae,glow] [--data dsprites]

OUT gets `deep.csv`, a row for each run, and one picture of each data set: images of the data, samples and
reconstructions of the first run of each case. Both are written again after each case, so a run that is
interrupted loses one case, and so does a case that fails. No case starts after `--seconds`.

A case trains its seeds as one population, by the method's defaults unless CASES says otherwise. `--share`
shortens all runs. `--each SECONDS` shortens the runs of a case to what fits into so many seconds, by the
rate of its first updates. The column `seconds` has the time that training took, `images` what each run saw.

With `--rates`, OUT gets `rates.csv` instead: `rate` are model-steps a second of a population of all seeds,
`one_rate` those of one run, and `plain_rate` those of a plain loop: the same networks and losses, one model,
torch.optim.Adam, no CUDA graph.

Bits per dimension: the VAEs' are their negative ELBO, an upper bound. On black and white data likelihoods
are Bernoulli, and Glow has 1 bit. On other data they are `gaussian_learned`, a density of images in [0, 1],
to which log2(255) bits are added for the distance of two grey levels.
"""

from __future__ import annotations

import argparse
import math
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
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
from unweave.training.trainer import Plan, default_precision, pick_device, use_device
from unweave.training.update import GRAPH_STEPS, Update

METRICS = "mig, dci, sap, modularity, explicitness"
IMBALANCED = "glyphs_centred:only(size=2):ojha_imbalance"
SHOWN = 12  # images in a row of the picture
PLAIN_STEPS = 20
TIMED_SECONDS = 2.0  # how long updates are timed
GREY_LEVEL_BITS = math.log2(255)  # of the distance of two grey levels of images in [0, 1]

Measures = Callable[[Run], Mapping[str, float]]


def no_more(_run: Run) -> Mapping[str, float]:
    """Scores only."""
    return {}


def bits_of_vae(run: Run) -> Mapping[str, float]:
    """The bound in bits per dimension."""
    elbo = unweave.evaluate(run, metrics="elbo")["elbo.elbo"]
    extra = 0 if run.spec.likelihood == "bernoulli" else GREY_LEVEL_BITS
    return {"bits_per_dimension": -elbo / (math.prod(run.shape) * math.log(2)) + extra}


def bits_of_layers(run: Run) -> Mapping[str, float]:
    """The bound of all layers, and the information of each resolution about each factor."""
    known = score_layers(run)
    extra = 0 if run.spec.likelihood == "bernoulli" else GREY_LEVEL_BITS
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

    def specs(self, truth: GroundTruth, seeds: int, steps: int, device: str) -> list[RunSpec]:
        """The runs."""
        method = self.method(truth)
        settings = dict(self.settings)
        if self.is_likelihood:
            settings["likelihood"] = "bernoulli" if truth.binary else "gaussian_learned"
        settings |= {"data": truth.name, "steps": steps, "precision": default_precision(device, method)}
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
    """The runs, trained as one population, and the seconds that it took."""
    begun = time.monotonic()
    folders = train_what_fits(specs, truth, [folder / spec.id for spec in specs], Plan(device))
    seconds = time.monotonic() - begun
    return [Run(run_folder, pick_device(device), truth) for run_folder in folders], seconds


def update_rate(specs: list[RunSpec], truth: GroundTruth, device: str) -> float:
    """Updates a second of a population in which all players have started."""
    place = use_device(device)
    population = Population(specs, truth.shape, place)
    population.step.fill_(max(player.first_step for player in population.players))
    update = Update(population, batches_of(truth, place), len(truth))
    update.run(2 + GRAPH_STEPS)
    few = rate(lambda: update.run(GRAPH_STEPS), 1, place)
    return GRAPH_STEPS * rate(lambda: update.run(GRAPH_STEPS), max(1, round(TIMED_SECONDS * few)), place)


def plain_rate(spec: RunSpec, truth: GroundTruth, device: str) -> float:
    """Updates a second of one model by a plain loop: autograd and torch.optim.Adam."""
    place = use_device(device)
    population = Population([spec], truth.shape, place)
    population.step.fill_(max(player.first_step for player in population.players))
    update = Update(population, batches_of(truth, place), len(truth))
    optimisers: dict[str, torch.optim.Optimizer] = {}

    def step() -> None:
        for player, gradients in update.gradients():
            parameters = player.optimiser.parameters
            if player.name not in optimisers:
                optimisers[player.name] = torch.optim.Adam(parameters, 1e-4)
            for parameter, gradient in zip(parameters, gradients, strict=True):
                parameter.grad = gradient.to(parameter.dtype)
            optimisers[player.name].step()

    return rate(step, PLAIN_STEPS, place)


def rows_of(label: str, run: Run, truth: GroundTruth) -> list[Row]:
    """Samples, where a method can draw them, and reconstructions of the first row."""
    rows = [(f"{label}: reconstructions", run.reconstruct(shown(truth)))]
    if run.spec.method.has_samples(run.spec.latents):
        rows.insert(0, (f"{label}: samples", run.sample(SHOWN)))
    return [(name, np.clip(255 * images, 0, 255).round().astype(np.uint8)) for name, images in rows]


def shown(truth: GroundTruth) -> Images:
    """The images whose reconstructions are drawn."""
    return truth.sample_images(SHOWN, seed=1)


def scores_of(label: str, case: Case, run: Run) -> dict[str, Any]:
    """A row of the table."""
    spec = run.spec
    names: dict[str, Any] = {"data": spec.data, "case": label, "method": str(spec.method), "seed": spec.seed}
    sizes: dict[str, Any] = {"steps": spec.steps, "batch": spec.batch, "images": spec.steps * spec.batch}
    sizes |= {"latents": spec.latents, "precision": spec.precision}
    return names | sizes | dict(unweave.evaluate(run, metrics=METRICS)) | dict(case.measures(run))


@dataclass(frozen=True)
class Length:
    """How many runs of each case there are, and how long they are."""

    seeds: int
    share: float
    each: float
    device: str

    def specs(self, case: Case, truth: GroundTruth) -> list[RunSpec]:
        """The runs of a case."""
        steps = max(1, round(self.share * case.steps))
        specs = case.specs(truth, self.seeds, steps, self.device)
        if self.each < math.inf:
            fitting = int(self.each * update_rate(specs, truth, self.device))
            specs = case.specs(truth, self.seeds, max(1, min(steps, fitting)), self.device)
        return specs


def results_of(
    label: str, truth: GroundTruth, specs: list[RunSpec], device: str
) -> Iterator[tuple[dict[str, Any], list[Row]]]:
    """The row of each run of a case in the table, and the pictures of the first."""
    with tempfile.TemporaryDirectory() as place:
        runs, seconds = trained(specs, truth, Path(place), device)
        population = {"runs": len(runs), "seconds": round(seconds, 1)}
        for run in runs:
            pictures = rows_of(label, run, truth) if run is runs[0] else []
            yield scores_of(label, CASES[label], run) | population, pictures


def rates_of(label: str, truth: GroundTruth, length: Length) -> dict[str, Any]:
    """A row of the table of rates."""
    specs = CASES[label].specs(truth, length.seeds, CASES[label].steps, length.device)
    spec = specs[0]
    names: dict[str, Any] = {"data": spec.data, "case": label, "precision": spec.precision}
    rates = {
        "rate": len(specs) * update_rate(specs, truth, length.device),
        "one_rate": update_rate(specs[:1], truth, length.device),
        "plain_rate": plain_rate(specs[0], truth, length.device),
    }
    return (
        names
        | {"batch": spec.batch, "runs": len(specs)}
        | {name: round(number, 1) for name, number in rates.items()}
    )


def main() -> None:
    """Train and measure, case by case."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--cases", default=",".join(CASES))
    parser.add_argument("--data", default="dsprites,rooms")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--share", type=float, default=1.0)
    parser.add_argument("--each", type=float, default=math.inf)
    parser.add_argument("--seconds", type=float, default=math.inf)
    parser.add_argument("--rates", action="store_true")
    parser.add_argument("--device", default="auto")
    options = parser.parse_args()
    started = time.monotonic()
    options.out.mkdir(parents=True, exist_ok=True)
    length = Length(options.seeds, options.share, options.each, options.device)
    table: list[dict[str, Any]] = []
    pictures: dict[str, list[Row]] = {}
    names: list[tuple[str, str]] = [
        (label, data)
        for label in options.cases.split(",")
        for data in (CASES[label].data or options.data).split(",")
    ]
    for label, data in names:
        if time.monotonic() - started > options.seconds:
            break
        outcome = ""
        try:
            truth = load(data)
            if options.rates:
                table.append(rates_of(label, truth, length))
                pd.DataFrame(table).to_csv(options.out / "rates.csv", index=False)
            else:
                rows = pictures.setdefault(data, [("images", shown(truth))])
                specs = length.specs(CASES[label], truth)
                for scores, drawn in results_of(label, truth, specs, options.device):
                    table.append(scores)
                    rows += drawn
                    pd.DataFrame(table).to_csv(options.out / "deep.csv", index=False)
                draw(options.out, data, rows)
        except Exception as error:  # the other cases are still worth their time
            outcome = f" failed: {type(error).__name__}: {error}"
        print(f"{time.monotonic() - started:.0f} s: {label} on {data}{outcome}", flush=True)


def draw(out: Path, data: str, rows: list[Row]) -> None:
    """Write the picture of a data set."""
    file = f"deep-{data.partition(':')[0]}.png"
    sheet_figure(f"{data}, first run of each case", rows).savefig(out / file)


if __name__ == "__main__":
    main()
