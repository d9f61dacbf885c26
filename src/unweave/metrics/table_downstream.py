"""The part of the table of metrics about predicting factors: of circles, and under a shift."""

from __future__ import annotations

import math

from unweave.metrics import citations
from unweave.metrics.downstream_circular import downstream_circular
from unweave.metrics.downstream_strong import downstream_strong
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
    Metric(
        "downstream_strong",
        downstream_strong,
        "downstream_strong[trees100,train10000,test5000,shifts10]",
        "representation",
        "How well are factors predicted where another factor has values that were never trained on?",
        citations.LOCATELLO2020_WEAK,
        frozenset({"scale"}),
        flaws=(
            "strong_test_accuracy is high only if test_accuracy is. The shift costs what lies between them.",
            "Trees cut along the codes, so they prefer codes that hold one factor each.",
            "It needs codes of all combinations of factors: an encoder and a data set, or a table of the "
            "whole grid. Rows are refused.",
        ),
        least_factors=2,
    ),
)
