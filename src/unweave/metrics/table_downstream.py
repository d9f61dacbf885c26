"""The part of the table of metrics about predicting factors from codes: regression of circular factors."""

from __future__ import annotations

import math

from unweave.metrics import citations
from unweave.metrics.downstream_circular import downstream_circular
from unweave.metrics.metric import Metric

DOWNSTREAM: tuple[Metric, ...] = (
    Metric(
        "downstream_circular",
        downstream_circular,
        "downstream_circular[kernel-ridge,cv3,rows2000,sine-cosine]",
        "codes+test+periods",
        "How well can kernel regression predict the angles of circular factors from all codes?",
        citations.LOCATELLO2019,
        frozenset({"permutation", "sign", "scale", "dead"}),
        range=(-math.inf, 1.0),
        flaws=(
            "No measure of disentanglement: a rotation hardly changes it.",
            "Only circular factors count.",
            "A symmetric object looks the same at several angles, so no code can score 1. A square of "
            "dSprites looks the same after a quarter turn.",
        ),
        factors_as="positions",
    ),
)
