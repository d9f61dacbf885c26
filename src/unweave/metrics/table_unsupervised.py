"""The part of the table of metrics that needs no factors: scores of codes alone, and of a run."""

from __future__ import annotations

import math

from unweave.metrics import citations
from unweave.metrics.elbo import elbo
from unweave.metrics.metric import Metric
from unweave.metrics.total_correlation import (
    mean_pairwise_information,
    total_correlation,
    wasserstein_correlation,
)

UNSUPERVISED: tuple[Metric, ...] = (
    Metric(
        "total_correlation",
        total_correlation,
        "total_correlation[gaussian,jitter1e-5]",
        "unsupervised",
        "How far are the codes from independence, as a Gaussian sees it?",
        citations.WATANABE1960,
        frozenset({"permutation", "sign", "dead", "row order"}),
        range=(0.0, math.inf),
        higher_is_better=False,
        flaws=(
            "Only correlation is seen: codes may depend on each other and score 0.",
            "Noise and a rotation of a perfect code score 0 too.",
            "For copied codes it is as large as the jitter allows.",
        ),
        depends_on_scale=True,
    ),
    Metric(
        "wasserstein_correlation",
        wasserstein_correlation,
        "wasserstein_correlation[gaussian]",
        "unsupervised",
        "Wasserstein distance from a Gaussian fit to its independent version.",
        citations.LOCATELLO2019,
        frozenset({"permutation", "sign", "dead", "row order"}),
        range=(0.0, math.inf),
        higher_is_better=False,
        flaws=("Only correlation is seen. It grows with the square of the scale of the codes.",),
        depends_on_scale=True,
    ),
    Metric(
        "wasserstein_correlation_normalised",
        wasserstein_correlation,
        "wasserstein_correlation[gaussian,normalised]",
        "unsupervised",
        "Wasserstein correlation divided by the total variance.",
        citations.LOCATELLO2019,
        frozenset({"permutation", "sign", "dead", "row order"}),
        range=(0.0, 2.0),
        higher_is_better=False,
        flaws=("Only correlation is seen. It depends on the scale of each code.",),
        options={"normalised": True},
        depends_on_scale=True,
    ),
    Metric(
        "mean_pairwise_information",
        mean_pairwise_information,
        "mean_pairwise_information[bins20]",
        "unsupervised",
        "How much information do two different codes share?",
        citations.LOCATELLO2019,
        frozenset({"permutation", "row order"}),
        range=(0.0, math.log(20)),
        higher_is_better=False,
        flaws=(
            "Counting has a bias: independent codes have about (bins - 1)^2 / 2n nats, 0.018 for "
            "10,000 points.",
            "A value on the edge of a bin belongs to the bin above, so another sign or scale of codes with "
            "few different values can change the score.",
        ),
    ),
    Metric(
        "elbo",
        elbo,
        "elbo[sample1]",
        "likelihood",
        "The evidence lower bound of a run, its reconstruction and KL terms, and its active codes.",
        citations.KINGMA2014,
        frozenset({"permutation", "sign", "dead", "row order"}),
        range=(-math.inf, math.inf),
        flaws=(
            "No measure of disentanglement: a rotation of the codes leaves a model as likely as it was.",
            "A code may be active and hold nothing that the decoder uses.",
        ),
    ),
)
