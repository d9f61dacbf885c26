"""The part of the table of metrics about predicting factors: of circles, without codes, and under a shift."""

from __future__ import annotations

import math

from unweave.metrics import citations
from unweave.metrics.downstream_circular import downstream_circular
from unweave.metrics.downstream_reduced import downstream_reduced
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
        "downstream_reduced",
        downstream_reduced,
        "downstream_reduced[trees100,removed1]",
        "codes+test",
        "What do the other codes know of a factor whose most important code is removed?",
        citations.LOCATELLO2020,
        frozenset({"scale"}),
        range=(-1.0, 1.0),
        flaws=(
            "Of reduced_accuracy lower is better, down to chance. Of the other numbers higher is better.",
            "A factor that needs two codes, such as an angle, counts as leaking. In Python, `removed` is the "
            "number of codes that are removed.",
            "Trees cut along the codes, so they prefer codes that hold one factor each.",
        ),
        least_factors=2,
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
