"""InfoGAN and InfoGAN-CR by the number of their updates, and measured as the authors of InfoGAN-CR do.

    python benchmarks/info_gan.py RUN... --figure info_gan.png --csv scores.csv
    python benchmarks/info_gan.py RUN... --as-published

Each RUN is the folder of a run on dSprites. The first line takes the scores that `unweave evaluate` kept in
them, of runs of any number of steps; the second measures trained runs again.
"""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from numpy.typing import NDArray
from sklearn.ensemble import RandomForestRegressor  # type: ignore[import-untyped]

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.result_tables import NAMES, keep_record, parser_of, table_of_medians

from unweave.data import GroundTruth, load
from unweave.evaluation.score_store import kept_scores
from unweave.metrics import mig
from unweave.metrics.dci import disentanglement
from unweave.runs.run import Run
from unweave.runs.store import RunFolder
from unweave.streams import Stream

SCORES = {name: title for name, title in NAMES.items() if name not in ("sap", "modularity")}
DRAWN = ("factor_vae_score.eval_accuracy", "mig", "dci.disentanglement")
COLOURS = {"info_gan": "C0", "info_gan_cr": "C3"}
PUBLISHED = {  # Lin et al., 2020
    "info_gan": {"factor_vae_score.eval_accuracy": 0.82, "mig": 0.22},
    "info_gan_cr": {"factor_vae_score.eval_accuracy": 0.88, "mig": 0.37},
}
VOTES, GROUP, POINTS = 500, 100, 73_728
DEPTHS = (4, 2, 4, 2, 2)  # of the trees for shape, scale, orientation, x and y


def kept(folders: list[RunFolder]) -> pd.DataFrame:
    """One row a run: method, seed, updates, and the scores of its mean codes."""
    rows = []
    for folder in folders:
        spec, scores = folder.spec, [score for record in kept_scores(folder) for score in record.scores]
        of_means = {score.name: score.value for score in scores if score.representation == "mean"}
        described = {"method": spec.method.name, "seed": spec.seed, "updates": spec.steps}
        rows.append(described | {name: of_means[name] for name in SCORES})
    return pd.DataFrame(rows).sort_values(["method", "updates", "seed"])


def markdown(runs: pd.DataFrame) -> str:
    """Median and range for each number of updates."""
    grouped = runs.groupby(["method", "updates"])
    said = [((f"`{method}`", f"{updates:,}"), rows) for (method, updates), rows in grouped]
    return table_of_medians(("method", "updates"), said, SCORES, 2)


def draw(runs: pd.DataFrame, path: Path) -> None:
    """Scores over updates, a line for each seed; dotted: what was published."""
    figure, axes = plt.subplots(1, len(DRAWN), figsize=(12, 3.6))
    for axis, score in zip(axes, DRAWN, strict=True):
        for method, colour in COLOURS.items():
            for seed in sorted(set(runs["seed"])):
                _draw_seed(axis, runs[runs["seed"] == seed], method, score)
            axis.plot([], [], colour, label=method)
            if score in PUBLISHED[method]:
                axis.axhline(PUBLISHED[method][score], color=colour, linestyle=":", linewidth=1)
        axis.set(title=SCORES[score], xlabel="updates, in thousands", ylim=(0, None), xlim=(0, None))
        axis.grid(color="0.92")
    axes[0].legend(loc="lower right")
    figure.tight_layout()
    figure.savefig(path, dpi=80)


def _draw_seed(axis: Axes, runs: pd.DataFrame, method: str, score: str) -> None:
    """InfoGAN-CR was InfoGAN until its regulariser set in: its line begins there."""
    own = runs[runs["method"] == method].sort_values("updates")
    if method == "info_gan_cr":
        before = runs[(runs["method"] == "info_gan") & (runs["updates"] < own["updates"].min())]
        own = pd.concat([before.sort_values("updates").tail(1), own])
    axis.plot(own["updates"] / 1000, own[score], f"{COLOURS[method]}.-", linewidth=1)


def as_published(folder: RunFolder, data: GroundTruth) -> tuple[float, float, float]:
    """FactorVAE score, MIG and DCI by the protocol of Lin et al., 2020."""
    run, stream, kinds = Run(folder, "auto", data), Stream.of(0).child("as published"), len(data.sizes)
    factors = data.sample_factors(POINTS, stream)
    codes = run.encode(data.observe(factors))
    held = np.arange(VOTES) % kinds
    groups = data.sample_groups(VOTES, GROUP, stream, held[:, None] == np.arange(kinds))
    spread = run.encode(data.observe(groups.reshape(-1, kinds))).reshape(VOTES, GROUP, -1).std(1)
    stillest = (spread / codes.std(0)).argmin(1)
    # The votes that choose a factor for each code are also those that it is judged by.
    right = [np.bincount(held[stillest == code]).max() for code in set(stillest.tolist())]
    return sum(right) / VOTES, mig(codes, factors), disentanglement(_by_shallow_forests(codes, factors))


def _by_shallow_forests(codes: NDArray[np.floating], factors: NDArray[np.int64]) -> NDArray[np.float64]:
    """(codes, factors): importances of ten shallow trees that regress each factor."""
    return np.stack(
        [
            RandomForestRegressor(10, max_depth=depth, random_state=0).fit(codes, factor).feature_importances_
            for depth, factor in zip(DEPTHS, factors.T, strict=True)
        ],
        axis=1,
    )


def main() -> None:
    """Print a table; draw the figure."""
    parser = parser_of(__doc__)
    parser.add_argument("runs", nargs="+", type=Path)
    parser.add_argument("--figure", type=Path)
    parser.add_argument("--as-published", action="store_true")
    given = parser.parse_args()
    folders = [RunFolder(path) for path in given.runs]
    if given.as_published:
        print("| method | seed | updates | FactorVAE | MIG | DCI by shallow forests |")
        print(f"|---{'|---' * 5}|")
        data = load("dsprites")
        for folder in folders:
            spec, scores = folder.spec, as_published(folder, data)
            cells = " | ".join(f"{score:.2f}" for score in scores)
            print(f"| `{spec.method.name}` | {spec.seed} | {spec.steps:,} | {cells} |", flush=True)
        return
    runs = kept(folders)
    print(markdown(runs))
    if given.figure:
        draw(runs, given.figure)
    keep_record(runs, given.csv)


if __name__ == "__main__":
    main()
