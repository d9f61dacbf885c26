"""Heat maps of Spearman's correlation: scores with each other, with what needs no label, with tasks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pandas as pd

from unweave.report.names import DATA, data_sets, label, score_label
from unweave.report.style import WIDTH, heat_map, panels, styled
from unweave.report.tables import correlation_matrix

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CELL = 0.165  # inches


@styled
def correlations(table: pd.DataFrame, rows: Sequence[str], columns: Sequence[str]) -> Figure:
    """One (rows, columns) heat map for each data set, numbers in hundredths.

    `table` is that of `unweave.report.tables.correlation_table`. What could not be computed is white.
    """
    data = data_sets(table)
    matrices = [
        correlation_matrix(table[table["data"] == name], rows, columns).rename(score_label, axis=0)
        for name in data
    ]
    matrices = [matrix.rename(score_label, axis=1) for matrix in matrices]
    return _maps([label(name, DATA) for name in data], matrices)


@styled
def transfer_correlations(table: pd.DataFrame) -> Figure:
    """One (data sets, data sets) heat map for each score: whether settings keep their order elsewhere.

    `table` is that of `unweave.report.tables.transfer_correlations`.
    """
    scores = list(dict.fromkeys(table["score"]))
    data = [name for name in DATA if name in {*table["first"], *table["second"]}]
    data += sorted({*table["first"], *table["second"]} - set(data))
    matrices = []
    for score in scores:
        matrix = correlation_matrix(table[table["score"] == score], data, data)
        short = {name: label(name, DATA).replace("-dSprites", "") for name in data}
        matrices.append(matrix.rename(short, axis=0).rename(short, axis=1))
    return _maps([score_label(score) for score in scores], matrices)


def _maps(titles: Sequence[str], matrices: Sequence[pd.DataFrame]) -> Figure:
    """Heat maps with square cells, as many in a row as the page allows; names at the outer ones."""
    height, width = (max(matrix.shape[i] for matrix in matrices) for i in (0, 1))
    left = 0.12 + 0.06 * max(len(str(name)) for matrix in matrices for name in matrix.index)
    below = 0.1 + 0.06 * max(len(str(name)) for matrix in matrices for name in matrix.columns)
    across = max(1, min(len(matrices), int((WIDTH - left) / (width * CELL + 0.15))))
    down = -(-len(matrices) // across)
    across = -(-len(matrices) // down)  # so that the last row is not much shorter than the others
    figure, axes = panels(
        down,
        across,
        height=height * CELL,
        widest=width * CELL,
        margins=(left, 0.15, 0.25, below),
        gaps=(0.15, 0.3),
    )
    for i, axis in enumerate(axes.ravel()):
        if i >= len(matrices):
            axis.set_visible(False)
            continue
        heat_map(axis, matrices[i])
        axis.set_title(titles[i])
        axis.tick_params(labelleft=i % across == 0, labelbottom=i + across >= len(matrices))
    return figure
