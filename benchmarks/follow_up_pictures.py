"""Draw the pictures of the follow-up pages from the scores that were measured.

    python benchmarks/follow_up_pictures.py [docs/pictures]

The scores are in `benchmarks/results/`, measured by `follow_up.py`. The figures are those of the report.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from unweave.report.correlated_factors import condition_table, runs_on_all
from unweave.report.figures.generalisation import held_out_differences, scores_against_correlation
from unweave.report.figures.methods import scores_by_method
from unweave.report.figures.metrics import scores_against
from unweave.report.generalisation import held_out_pairs, held_out_table
from unweave.report.style import style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ROOT = Path(__file__).parents[1]
DOTS_PER_INCH = 130
DCI, FACTOR_VAE = "dci.disentanglement", "factor_vae_score.eval_accuracy"
HELD_OUT, CORRELATED = "dsprites:hold(shape=0,x=16..31)", "dsprites:x~y=0.2"


def results(name: str, measured: str = "2026-11-16-h200") -> pd.DataFrame:
    """The runs of a study, with the columns that reports have."""
    table = pd.read_csv(ROOT / f"benchmarks/results/{measured}-follow-up-{name}.csv")
    return table.assign(source="own", strength=float("nan"))


def part(table: pd.DataFrame, on: str) -> pd.DataFrame:
    """The scores on one part of the data."""
    return table[table["on"] == on].drop(columns="on")


def fairness() -> Figure:
    """Unfairness of 34 runs against metrics and accuracy."""
    columns = [DCI, "mig", "modularity", "downstream_trees.test_accuracy_10000"]
    return scores_against(results("scores"), ["fairness_trees.mean_unfairness"], columns)


def downstream() -> Figure:
    """Accuracy of the same runs with few and with many labels, against metrics."""
    rows = [f"downstream_trees.test_accuracy_{labels}" for labels in (100, 10_000)]
    return scores_against(results("scores"), rows, [DCI, "mig", "sap", "modularity"])


def generalisation() -> Figure:
    """What nine runs lose on combinations that were held out."""
    runs = results("held-out").query("data == @HELD_OUT")
    names = [f"generalisation.{name}" for name in ("accuracy", "r2", "reconstruction")]
    return held_out_differences(
        held_out_table(held_out_pairs(part(runs, "training"), part(runs, "held_out"), names))
    )


def schott() -> Figure:
    """What runs with and without supervision lose on the splits of Schott et al."""
    runs = results("schott", "2026-11-19-cpu")
    names = ["generalisation.r2", "generalisation.reconstruction"]
    pairs = held_out_pairs(part(runs, "training"), part(runs, "held_out"), names)
    return held_out_differences(held_out_table(pairs))


def correlated_factors() -> Figure:
    """Scores on all combinations, without and with a correlation of x and y in training."""
    runs = results("correlated").query("data in ['dsprites', @CORRELATED]")
    values = runs_on_all(part(runs, "training"), part(runs, "all"), [DCI, "mig", FACTOR_VAE])
    return scores_against_correlation(condition_table(values))


def correlation_strengths() -> Figure:
    """The same without a correlation, with weak and strong ones, and with several correlated pairs."""
    runs = results("correlations", "2026-11-19-cpu")
    values = runs_on_all(part(runs, "training"), part(runs, "all"), [DCI, "mig"])
    return scores_against_correlation(condition_table(values))


def few_labels() -> Figure:
    """Scores of runs without labels, and of runs that train with 100."""
    runs = results("few-labels").query("steps == 25000")
    return scores_by_method(runs, ["mig", DCI])


def symmetry() -> Figure:
    """D_LSBD of circular factors, with planes of each object and with shared planes."""
    return scores_by_method(results("symmetry"), ["d_lsbd", "d_lsbd.shared"])


PICTURES: tuple[Callable[[], Figure], ...] = (
    fairness,
    downstream,
    generalisation,
    schott,
    correlated_factors,
    correlation_strengths,
    few_labels,
    symmetry,
)


def main() -> None:
    """Write all pictures to the folder of the first argument."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "docs/pictures"
    for draw in PICTURES:
        picture = folder / f"{draw.__name__}.png"
        with style():
            draw().savefig(picture, dpi=DOTS_PER_INCH, bbox_inches="tight", metadata={"Software": None})
        print(picture)


if __name__ == "__main__":
    main()
