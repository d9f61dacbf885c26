"""The part of the table of metrics about the density that a run gives to images."""

from __future__ import annotations

import math

from unweave.metrics import citations
from unweave.metrics.bits_per_dimension import bits_per_dimension
from unweave.metrics.metric import Metric

DENSITIES: tuple[Metric, ...] = (
    Metric(
        "bits_per_dimension",
        bits_per_dimension,
        "bits_per_dimension[uniform1]",
        "density",
        "How many bits does a model with an exact likelihood need for each pixel and channel?",
        citations.KINGMA2018,
        frozenset({"permutation", "sign", "scale", "rotation", "copies", "dead", "row order"}),
        range=(-math.inf, math.inf),
        higher_is_better=False,
        flaws=(
            "No measure of disentanglement: it does not depend on the codes.",
            "Models of fewer bits of each grey level need fewer bits. Compare runs of the same n_bits_x.",
        ),
    ),
)
