"""Studies of abstract visual reasoning; `unweave reason` trains on their codes.

van Steenkiste, Locatello, Schmidhuber, Bachem: Are disentangled representations helpful for abstract visual
reasoning? NeurIPS 2019. The paper has 36 settings with 5 seeds on Shapes3D and on sprites of several colours.
"""

from __future__ import annotations

from unweave.study.presets.published import METHODS, SHARED
from unweave.study.spec import StudySpec, grid

DATA = ["dsprites", "rooms"]  # which need no files


def vansteenkiste2019() -> StudySpec:
    """360 models to reason with: the paper's 36 settings and 5 seeds on dSprites and on rooms."""
    return StudySpec("vansteenkiste2019", grid(METHODS, data=DATA, seed="0-4", **SHARED))


def vansteenkiste2019_mini() -> StudySpec:
    """72 models: the same with one seed."""
    return StudySpec("vansteenkiste2019_mini", grid(METHODS, data=DATA, seed=0, **SHARED))
