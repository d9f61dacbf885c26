"""Are predictions from disentangled codes fairer? The published settings, measured for fairness."""

from __future__ import annotations

from unweave.study.presets.published import METHODS, SHARED
from unweave.study.spec import StudySpec, grid

METRICS = "study, fairness_trees"


def locatello2019_fairness() -> StudySpec:
    """180 models on dSprites: the 36 settings of the published study, 5 seeds, with unfairness measured."""
    runs = grid(METHODS, data="dsprites", seed="0-4", **SHARED)
    return StudySpec("locatello2019_fairness", runs, metrics=METRICS, representations=("mean",))
