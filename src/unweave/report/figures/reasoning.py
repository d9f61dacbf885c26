"""Do disentangled codes help abstract reasoning? Learning curves of each method."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from unweave.report.names import DATA, data_sets, label, methods
from unweave.report.style import GREY, few_ticks, legend, look_of, outer_labels, panels, same_limits, styled

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CHANCE = 1 / 6  # of six answers one is right


@styled
def learning_curves(runs: pd.DataFrame, accuracies: Sequence[str], matrices: Sequence[int]) -> Figure:
    """The mean accuracy of each method against the number of training matrices, one panel a data set.

    `accuracies` are the columns of the runs, and `matrices` the number of training matrices of each.
    """
    data, names = data_sets(runs), methods(runs)
    looks = look_of(names)
    figure, axes = panels(1, len(data), height=1.5, margins=(0.5, 0.1, 0.45, 0.35))
    for axis, one in zip(axes[0], data, strict=True):
        of_data = runs[runs["data"] == one]
        for name in names:
            means = of_data.loc[of_data["method"] == name, list(accuracies)].mean()
            measured = means.notna().to_numpy()  # other runs may have been checked after other numbers
            axis.plot(np.asarray(matrices)[measured], means[measured], **looks[name])
        axis.axhline(CHANCE, color=GREY, linewidth=0.8, linestyle=":")
        axis.set_xscale("log")
        few_ticks(axis.xaxis, log=True)
        axis.set_xlabel("training matrices")
    outer_labels(axes, ["accuracy"], [label(one, DATA) for one in data])
    same_limits(axes)
    legend(figure, names)
    return figure
