"""Scores of directions that are found afterwards, on codes and hidden layers of trained encoders.

    python benchmarks/directions.py zoo/rooms-beta_tcvae-10 zoo/beta_vae-16 --csv directions.csv

A subject is the folder of a run, of which the mean codes and the encoder's last hidden layer are used.
Directions are fitted on one sample of images and measured on another. "used" is the number of codes whose
means have a variance above 0.05, as in the FactorVAE score. Prints the table of docs/directions.md.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.sparse import encoded

import unweave
from unweave.data import Factor, GroundTruth
from unweave.directions import Directions, first_weights, ica, linear, pca, sefa
from unweave.errors import UnweaveError
from unweave.runs.run import Run

ACTIVE = 0.05
WIDE = 64
SCORES = {
    "mig": "MIG",
    "disentanglement": "disentanglement",
    "completeness": "completeness",
    "informativeness_test": "informativeness",
}


def fits(
    run: Run, layer: str, codes: NDArray[Any], factors: NDArray[np.int64], used: int
) -> Iterator[tuple[str, Directions | None]]:
    """What is measured: codes as they are, and directions in them."""
    columns = dict(zip((factor.name for factor in run.data.factors), factors.T, strict=True))
    kinds = {factor.name: kind_of(factor) for factor in run.data.factors if isinstance(factor, Factor)}
    yield "none", None
    yield "PCA, all", pca(codes, min(codes.shape[1], run.spec.latents))
    yield "PCA, used", pca(codes, used)
    yield "ICA, all", ica(codes, min(codes.shape[1], run.spec.latents))
    yield "ICA, used", ica(codes, used)
    if layer == "codes":
        weights = first_weights(run.modules().decoder, run.spec.latents)
        yield "SeFa, all", sefa(weights, mean=codes.mean(axis=0))
    yield "linear", linear(codes, columns, kinds=kinds)


def kind_of(factor: Factor) -> Any:
    """The kind of a factor, with its period if it is circular."""
    return ("circular", float(factor.period or factor.size)) if factor.kind == "circular" else factor.kind


def scored(path: Path, given: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """One row for each layer and each way to find directions."""
    run = unweave.load(path, device=given.device)
    if not isinstance(run.data, GroundTruth):
        raise UnweaveError(f"{path} must be a run on data with a grid of factors.")
    train, test = given.points
    fitted = run.data.sample_factors(given.images, seed=0)
    measured = run.data.sample_factors(train + test, seed=1)
    of_fit, of_points = encoded(run, run.data, fitted), encoded(run, run.data, measured)
    used = int((of_fit[0].var(axis=0) > ACTIVE).sum())
    for number, layer in enumerate(("codes", "hidden")):
        for name, found in fits(run, layer, of_fit[number], fitted, used):
            codes = of_points[number] if found is None else found.codes(of_points[number])
            numbers = scores_of(codes, measured, train)
            yield {"model": path.name, "layer": layer, "directions": name, "codes": codes.shape[1], **numbers}


def scores_of(codes: NDArray[Any], factors: NDArray[np.int64], train: int) -> dict[str, float]:
    """MIG and DCI; wide codes are measured with histogram trees."""
    dci = "dci_histogram" if codes.shape[1] > WIDE else "dci"
    test = (codes[train:], factors[train:])
    scores = unweave.evaluate(codes[:train], factors[:train], test=test, metrics=f"mig, {dci}")
    return {key: next(v for name, v in scores.items() if name.rpartition(".")[2] == key) for key in SCORES}


def table(rows: pd.DataFrame) -> str:
    """The rows in Markdown."""
    lines = [
        f"| model, layer | directions | codes | {' | '.join(SCORES.values())} |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in rows.to_dict("records"):
        cells = [f"{row[key]:.2f}" for key in SCORES]
        first = [f"`{row['model']}`, {row['layer']}", row["directions"], str(row["codes"])]
        lines.append(f"| {' | '.join([*first, *cells])} |")
    return "\n".join(lines)


def main() -> None:
    """Measure all subjects."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("subjects", type=Path, nargs="+")
    parser.add_argument("--csv", type=Path, required=True)
    parser.add_argument("--images", type=int, default=10_000)
    parser.add_argument("--points", type=int, nargs=2, default=(10_000, 5_000))
    parser.add_argument("--device", default="cpu")
    given = parser.parse_args()
    rows: list[dict[str, Any]] = []
    for path in given.subjects:
        for row in scored(path, given):
            rows.append(row)
            print(row, flush=True)
            pd.DataFrame(rows).to_csv(given.csv, index=False)
    print(table(pd.DataFrame(rows)))


if __name__ == "__main__":
    main()
