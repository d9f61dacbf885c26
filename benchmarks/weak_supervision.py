"""Does weak supervision pay? Ada-GVAE, which learns from pairs, next to beta-VAEs, which learn from images.

    unweave study run locatello2020_weak -o STUDY
    unweave study collect STUDY
    python benchmarks/weak_supervision.py STUDY/results.parquet PUBLISHED --figure weak_supervision.png

PUBLISHED is the folder of the published results, whose beta-VAEs are compared with the own ones. A table of
medians in Markdown is printed.
"""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib.pyplot as plt
import pandas as pd

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.result_tables import NAMES, keep_record, options, table_of_medians

from unweave.report.published import published
from unweave.results import read_table, wide

SCORES = {
    name: NAMES[name] for name in ("mig", "dci.disentanglement", "factor_vae_score.eval_accuracy", "sap")
}
KINDS = [
    ("published", "beta_vae", "beta-VAE, published", "0.55"),
    ("own", "beta_vae", "beta-VAE", "C0"),
    ("own", "ada_gvae", "Ada-GVAE", "C3"),
]


def markdown(runs: pd.DataFrame) -> str:
    """Median and range of each method and beta."""
    said = []
    for source, method, title, _ in KINDS:
        own = runs[(runs["source"] == source) & (runs["method"] == method)]
        said += [((title, f"{beta:g}", str(len(rows))), rows) for beta, rows in own.groupby("strength")]
    return table_of_medians(("method", "beta", "seeds"), said, SCORES, 3)


def draw(runs: pd.DataFrame, path: Path) -> None:
    """Each run a dot, each setting a column with a line at its median."""
    figure, axes = plt.subplots(1, 2, figsize=(11, 4), layout="constrained")
    for axis, score in zip(axes, list(SCORES)[:2], strict=True):
        ticks: list[str] = []
        for source, method, title, colour in KINDS:
            own = runs[(runs["source"] == source) & (runs["method"] == method)]
            for number, (beta, rows) in enumerate(own.groupby("strength")):
                x, label = len(ticks), title if number == 0 else None
                spread = [x + 0.5 * (i / max(len(rows) - 1, 1) - 0.5) for i in range(len(rows))]
                axis.plot(spread, rows[score], "o", color=colour, markersize=3.5, alpha=0.7, label=label)
                axis.hlines(rows[score].median(), x - 0.4, x + 0.4, color=colour, linewidth=2)
                ticks.append(f"{beta:g}")
        axis.set_xticks(range(len(ticks)), ticks)
        axis.set_xlabel("beta")
        axis.set_title(SCORES[score])
        axis.set_ylim(bottom=0)
    axes[0].legend(frameon=False)
    figure.savefig(path, dpi=110)


def main() -> None:
    """Print the table, draw the figure."""
    given = options(__doc__, published=True)
    own, theirs = (
        wide(read(path).table) for read, path in ((read_table, given.results), (published, given.published))
    )
    runs = pd.concat([own, theirs[(theirs["data"] == "dsprites") & (theirs["method"] == "beta_vae")]])
    print(markdown(runs))
    if given.figure:
        draw(runs, given.figure)
    keep_record(own, given.csv)


if __name__ == "__main__":
    main()
