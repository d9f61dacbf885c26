"""The part of the table of metrics about fairness: whether predictions depend on a sensitive factor."""

from __future__ import annotations

from unweave.metrics import citations
from unweave.metrics.fairness import fairness
from unweave.metrics.metric import Metric

_ACCURACY = (
    "A predictor that always gives the same answer is fair. Compare runs of about the same accuracy, "
    "such as downstream_trees."
)
_CHANCE = (
    "0 is reached only if an intervention leaves the other codes as they are. Sampled codes, noisy images "
    "and codes that come as rows also differ by chance. A pair whose predictions depend on nothing then "
    "scores about sqrt((c - 1) / 628) for c predicted values: 0.06 for 3, 0.22 for 32."
)

FAIRNESS: tuple[Metric, ...] = (
    Metric(
        "fairness_trees",
        fairness,
        "fairness[trees100,train10000,group100]",
        "interventions",
        "How far do predictions of a factor by boosted trees depend on another, sensitive factor?",
        citations.LOCATELLO2019_FAIRNESS,
        frozenset({"scale"}),
        higher_is_better=False,
        flaws=(
            _ACCURACY,
            _CHANCE,
            "Trees cut along the codes, so they prefer codes that hold one factor each.",
        ),
        options={"predictor": "trees"},
        least_factors=2,
        halves_rows=True,
    ),
    Metric(
        "fairness_logistic",
        fairness,
        "fairness[logistic-cv,train10000,group100]",
        "interventions",
        "How far do predictions of a factor by logistic regression depend on another, sensitive factor?",
        citations.LOCATELLO2019_FAIRNESS,
        frozenset({"permutation", "sign", "rotation", "dead"}),
        higher_is_better=False,
        flaws=(
            _ACCURACY,
            _CHANCE,
            "No measure of disentanglement: a rotation of the codes leaves it unchanged.",
            "A perfect dSprites code scores 0.029, not 0, because the weights of the other codes are not 0.",
        ),
        options={"predictor": "logistic"},
        least_factors=2,
        halves_rows=True,
        depends_on_scale=True,
    ),
)
