"""Own and published runs compared, setting by setting."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from unweave.report.names import in_order, score_label, setting_label
from unweave.report.style import GREY, OKABE_ITO, panels, styled
from unweave.results import METHOD_ORDER

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WIDEST = 3.0  # what is farther away is drawn at the edge


@styled
def own_and_published(table: pd.DataFrame) -> Figure:
    """Differences of own from published numbers, in units of the largest one that agrees.

    `table` holds the rows of one data set of `unweave.report.agreement.agreement`. A row for each setting, a
    column for each score; lines are the range of the published runs, crosses differ.
    """
    scores = list(dict.fromkeys(table["score"]))
    key = ["method", "strength", "setting"]
    order = in_order(table["method"], METHOD_ORDER)
    settings = sorted(
        table[key].drop_duplicates().itertuples(index=False, name=None),
        key=lambda setting: (order.index(setting[0]), *setting[1:]),
    )
    figure, axes = panels(
        1,
        len(scores),
        height=0.16 * len(settings) + 0.2,
        margins=(1.1, 0.1, 0.25, 0.42),
        gaps=(0.12, 0.1),
        widest=1.6,
    )
    for j, score in enumerate(scores):
        axis = axes[0, j]
        rows = table[table["score"] == score]
        place = np.array([settings.index(row) for row in rows[key].itertuples(index=False, name=None)])
        own, low, high = (_scaled(rows, name) for name in ("own", "min", "max"))
        axis.axvspan(-1, 1, color=OKABE_ITO[3], alpha=0.3, linewidth=0)
        axis.hlines(place, low, high, color=GREY, linewidth=0.8)
        agrees = rows["agrees"].to_numpy(bool)
        axis.plot(own[agrees], place[agrees], "o", color=OKABE_ITO[0], markersize=3.2)
        axis.plot(own[~agrees], place[~agrees], "X", color=OKABE_ITO[4], markersize=5)
        axis.set_title(score_label(score))
        axis.set_yticks(range(len(settings)), [setting_label(*setting) for setting in settings])
        axis.set_ylim(len(settings) - 0.4, -0.6)
        axis.set_xlim(-WIDEST - 0.3, WIDEST + 0.3)
        axis.set_xticks([-1, 0, 1])
        axis.tick_params(labelleft=j == 0)
    figure.supxlabel("own - published, in units of the largest difference that agrees", fontsize=7, y=0.01)
    return figure


def _scaled(rows: pd.DataFrame, name: str) -> NDArray[np.float64]:
    """The difference of a column from the published number over what is allowed, cut at the edges."""
    difference = (rows[name] - rows["published"]).to_numpy(float)
    allowed = rows["allowed"].to_numpy(float)
    scaled: NDArray[np.float64] = (
        np.sign(difference) * WIDEST
    )  # what nothing is allowed for, and still differs
    np.divide(difference, allowed, out=scaled, where=allowed > 0)
    return np.clip(scaled, -WIDEST, WIDEST)
