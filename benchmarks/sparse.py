"""Features of sparse autoencoders against known factors, on codes and hidden layers of encoders.

    python benchmarks/sparse.py train zoo/beta_vae-16 zoo/rooms-beta_tcvae-10 --csv sparse.csv
    python benchmarks/sparse.py table sparse.csv   # in Markdown, for docs/sparse_autoencoders.md
    python benchmarks/sparse.py page sparse.csv    # put the table into docs/sparse_autoencoders.md

A subject is the folder of a run, of which the mean codes and the encoder's last hidden layer are used, or an
.npz file with arrays `codes` (n, d) and `factors` (n, k) in random order. Each gets a population over kinds,
numbers of features, k and seeds. Two controls are scored as well: untrained autoencoders, and the codes
themselves, split by sign. Rows are added to the CSV subject by subject; it has all settings, the page those
with k = 8.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from concurrent.futures import Executor, ProcessPoolExecutor
from dataclasses import replace
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.result_tables import median_and_range

import unweave
from unweave.data import GroundTruth
from unweave.errors import UnweaveError
from unweave.nn.networks.vae import Encoder
from unweave.runs.run import Run
from unweave.sparse import SparseSpec, score, train

PAGE = Path(__file__).parents[1] / "docs" / "sparse_autoencoders.md"
START, END = "<!-- results -->", "<!-- end of results -->"
COMPARED = 512  # features of the kinds that are compared with "topk"
WIDE = 64  # dimensions from which on dead features are revived
PENALTIES = (0.03, 0.1, 0.3)  # l1 of "relu"
CONTROL = "codes, split by sign"
SHOWN = {
    "unexplained": "unexplained",
    "active": "active",
    "dead": "dead",
    "mcc": "MCC",
    "auc": "AUC",
    "f1": "F1",
    "f1_split": "F1, split",
    "splitting": "splitting",
    "absorption": "absorption",
    "monosemanticity": "monosemanticity",
}


class Subject(NamedTuple):
    """Codes to train on, and codes to score with their factors."""

    name: str
    layer: str
    train: NDArray[Any]
    codes: NDArray[Any]
    factors: NDArray[np.int64]
    names: tuple[str, ...]


def subjects(path: Path, given: argparse.Namespace) -> Iterator[Subject]:
    """The codes of a run, layer by layer, or those of a file."""
    if path.suffix == ".npz":
        with np.load(path) as file:
            codes, factors = file["codes"], file["factors"]
        names = tuple(f"v{j}" for j in range(factors.shape[1]))
        points = min(given.points, len(codes) // 3)
        yield Subject(path.stem, "codes", codes[points:], codes[:points], factors[:points], names)
        return
    run = unweave.load(path, device=given.device)
    if not isinstance(run.data, GroundTruth):
        raise UnweaveError(f"{path} must be a run on data with a grid of factors.")
    parts = []
    for seed, rows in enumerate((given.rows, given.points)):
        factors = run.data.sample_factors(rows, seed=seed)
        parts.append((factors, *encoded(run, run.data, factors)))
    names = tuple(factor.name for factor in run.data.factors)
    for layer, number in (("codes", 1), ("hidden", 2)):
        if layer in given.layers:
            yield Subject(path.name, layer, parts[0][number], parts[1][number], parts[1][0], names)


@torch.no_grad()
def encoded(
    run: Run, data: GroundTruth, factors: NDArray[np.int64], chunk: int = 2000
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Mean codes, and outputs of the encoder's last hidden layer, of the images of factors."""
    encoder = run.networks["encoder"]
    if not isinstance(encoder, Encoder):
        raise UnweaveError(f"{run.path} has no encoder with hidden features.")
    codes, hidden = [], []
    for part in np.array_split(factors, -(-len(factors) // chunk)):
        images = data.observe(part)
        codes.append(run.encode(images))
        tensor = torch.from_numpy(images).to(run.device).float() / 255
        hidden.append(encoder.features(tensor[None])[0].float().cpu().numpy())
    return np.concatenate(codes), np.concatenate(hidden)


def specs(given: argparse.Namespace, dimensions: int) -> list[SparseSpec]:
    """All autoencoders of one subject. The auxiliary loss is for codes with many dimensions."""
    one = SparseSpec(features=max(given.k), k=max(given.k), steps=given.steps, batch=given.batch)
    if dimensions < WIDE:
        one = replace(one, auxiliary=0.0)
    seeds = range(given.seeds)
    topk = [
        replace(one, features=m, k=k, seed=seed)
        for m in given.features
        for k in given.k
        for seed in seeds
        if k <= m
    ]
    compared = [
        replace(one, features=COMPARED, k=k, kind="batch_topk", seed=seed) for k in given.k for seed in seeds
    ]
    penalised = [
        replace(one, features=COMPARED, k=None, l1=l1, kind="relu", seed=seed)
        for l1 in PENALTIES
        for seed in seeds
    ]
    untrained = [replace(spec, steps=0) for spec in topk]
    return [*topk, *compared, *penalised, *untrained]


def scored(subject: Subject, given: argparse.Namespace, pool: Executor) -> list[dict[str, Any]]:
    """One row for each autoencoder, and one for the codes themselves."""
    asked = specs(given, subject.codes.shape[1])
    start = time.perf_counter()
    models = train(subject.train, asked, device=given.device)
    trained = time.perf_counter() - start
    about = {"subject": subject.name, "layer": subject.layer, "dimensions": subject.codes.shape[1]}
    codes = subject.codes.astype(np.float64)
    centred = codes - codes.mean(axis=0)
    signs = np.maximum(np.concatenate([centred, -centred], axis=1), 0)
    rows = [about | {"kind": CONTROL, "features": signs.shape[1], "unexplained": 0.0}]
    for spec, model in zip(asked, models, strict=True):
        settings = {"features": spec.features, "k": spec.k, "l1": spec.l1, "seed": spec.seed}
        kind = spec.kind if spec.steps else "untrained"
        rows.append(about | {"kind": kind} | settings | {"unexplained": model.unexplained(subject.codes)})
    features = [signs, *(model.encode(subject.codes, sparse=True) for model in models)]
    scores = pool.map(partial(scores_of, factors=subject.factors, names=subject.names), features)
    found = [row | values for row, values in zip(rows, scores, strict=True)]
    total = time.perf_counter() - start
    print(
        f"{subject.name}, {subject.layer}: {len(models)} models, {trained:.0f} s to train, "
        f"{total - trained:.0f} s to score",
        flush=True,
    )
    return found


def scores_of(features: Any, factors: NDArray[np.int64], names: tuple[str, ...]) -> dict[str, float]:
    """The scores of features."""
    return dict(score(features, factors, names=names))


def markdown(results: pd.DataFrame, k: int) -> str:
    """Median and range over seeds of the settings with this k and of those without, in Markdown."""
    parts, table = [], results[results["k"].isna() | (results["k"] == k)]
    for (subject, layer), own in table.groupby(["subject", "layer"], sort=False):
        columns = ["kind", "features", "k or l1", "seeds", *SHOWN.values()]
        lines = [f"### {subject}, {layer} (d = {own['dimensions'].iloc[0]})", ""]
        lines += [f"| {' | '.join(columns)} |", "|---" * len(columns) + "|"]
        settings = ["kind", "features", "k", "l1"]
        for (kind, features, active, l1), rows in own.groupby(settings, sort=False, dropna=False):
            strength = _number(active) or _number(l1)
            cells = [f"{kind}", f"{features}", strength, f"{len(rows)}"]
            lines.append(f"| {' | '.join([*cells, *(cell(rows[name]) for name in SHOWN)])} |")
        parts.append("\n".join(lines))
    return "\n\n".join(parts)


def _number(value: Any) -> str:
    return "" if pd.isna(value) else f"{value:g}"


def cell(values: pd.Series[float]) -> str:
    """Median and range, or one number where all are the same to two digits."""
    same = f"{values.min():.2f}" == f"{values.max():.2f}"
    return f"{values.median():.2f}" if same else median_and_range(values, 2)


def options() -> argparse.Namespace:
    """The arguments of the script."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    training = commands.add_parser("train")
    training.add_argument("subjects", nargs="+", type=Path)
    training.add_argument("--csv", type=Path, required=True)
    training.add_argument("--layers", nargs="+", default=["codes", "hidden"], choices=["codes", "hidden"])
    training.add_argument("--features", nargs="+", type=int, default=[32, 128, 512, 2048])
    training.add_argument("--k", nargs="+", type=int, default=[2, 4, 8])
    training.add_argument("--device", default="auto")
    for name, default in (
        ("seeds", 3), ("steps", 5000), ("batch", 1024), ("rows", 100_000), ("points", 15_000), ("jobs", 1),
    ):  # fmt: skip
        training.add_argument(f"--{name}", type=int, default=default)
    for name in ("table", "page"):
        command = commands.add_parser(name)
        command.add_argument("results", type=Path)
        command.add_argument("--k", type=int, default=8, help="show the settings with this k")
    return parser.parse_args()


def main() -> None:
    """Train and score, or print the table."""
    given = options()
    if given.command == "train":
        rows: list[dict[str, Any]] = []
        with ProcessPoolExecutor(given.jobs, get_context("spawn")) as pool:
            for path in given.subjects:
                for subject in subjects(path, given):
                    rows += scored(subject, given, pool)
                    pd.DataFrame(rows).round(5).to_csv(given.csv, index=False)
        return
    table = markdown(pd.read_csv(given.results), given.k)
    if given.command == "table":
        print(table)
        return
    before, start, rest = PAGE.read_text().partition(START)
    _, end, after = rest.partition(END)
    if not start or not end:
        raise UnweaveError(f"{PAGE} must have the lines {START} and {END}, between which the table goes.")
    PAGE.write_text(f"{before}{START}\n{table}\n{END}{after}")


if __name__ == "__main__":
    main()
