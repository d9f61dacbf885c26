"""The records of DCI by its models, and of DCI-ES."""

from __future__ import annotations

from unweave.metrics import citations
from unweave.metrics.dci import dci
from unweave.metrics.dci_es import dci_es
from unweave.metrics.metric import Metric, Mixed, Variant
from unweave.metrics.mixed import dci_mixed

_HISTOGRAM = Variant({"model": "histogram"}, "dci[histogram-trees100,depth3,rate0.1,bins64,codes8+56]")

DCI_METRICS: tuple[Metric, ...] = (
    Metric(
        "dci",
        dci,
        "dci[trees100,depth3,rate0.1]",
        "codes+test",
        "Which codes are needed to predict which factor? By boosted trees.",
        citations.EASTWOOD2018,
        frozenset({"permutation", "sign", "scale", "row order"}),
        flaws=(
            "The importances are those of one model with fixed settings: another kind of model gives another "
            "score.",
            "Accuracy on the training data says little: trees fit noise to 0.53.",
        ),
        compares_factors=("disentanglement",),
        mixed=Mixed(dci_mixed, "regression-trees"),
        for_wide_codes=_HISTOGRAM,
    ),
    Metric(
        "dci_histogram",
        dci,
        _HISTOGRAM.estimator,
        "codes+test",
        "DCI by boosted trees that are fast for hundreds of codes.",
        citations.EASTWOOD2018,
        frozenset({"permutation", "scale", "row order"}),
        flaws=(
            "An approximation of dci. On 24 sets of 50 to 200 codes, its disentanglement differs from that "
            "of dci by 0.011 on average and by at most 0.027, its completeness by 0.008 and at most 0.020. "
            "Both are higher as a rule.",
            "It moves by about 0.002 with the seed, which draws codes for each tree.",
            "Accuracy on the training data says little: trees fit noise to 0.45.",
        ),
        options=_HISTOGRAM.options,
        compares_factors=("disentanglement",),
    ),
    Metric(
        "dci_svm",
        dci,
        "dci[svm-l1,C0.01]",
        "codes+test",
        "DCI by linear support vector machines with an L1 penalty.",
        citations.EASTWOOD2018,
        frozenset({"permutation", "sign", "scale", "row order"}),
        flaws=(
            "No line separates the middle values of an ordered factor, so informativeness is low.",
            "Disentanglement of noise is 0.47: the few weights that the penalty leaves are not shared.",
        ),
        options={"model": "svm"},
        compares_factors=("disentanglement",),
    ),
    Metric(
        "dci_forest",
        dci,
        "dci[forest100]",
        "codes+test",
        "DCI by random forests.",
        citations.EASTWOOD2018,
        frozenset({"scale"}),
        flaws=(
            "Trees are grown until they fit: noise gets importance, and a perfect code stays below 1. The "
            "score moves with the seed.",
        ),
        options={"model": "forest"},
        compares_factors=("disentanglement",),
    ),
    Metric(
        "dci_lasso",
        dci,
        "dci[lasso0.01]",
        "codes+test",
        "DCI by linear regression with an L1 penalty, as in the paper.",
        citations.EASTWOOD2018,
        frozenset({"permutation", "sign", "scale", "row order"}),
        flaws=(
            "Factors are taken as numbers, so it has no meaning for categories.",
            "A code that holds a factor in a curve is not seen.",
            "Disentanglement of noise is 0.74: the few weights that the penalty leaves are not shared.",
        ),
        options={"model": "lasso"},
        compares_factors=("disentanglement",),
        mixed=Mixed(dci_mixed),
    ),
    Metric(
        "dci_es",
        dci_es,
        "dci_es[fourier1024,ridge0.001]",
        "codes+test",
        "How simple a model is enough to read the factors off the codes, and how few codes are there?",
        citations.EASTWOOD2023,
        frozenset({"scale", "dead", "row order"}),
        range=(-1.0, 1.0),
        flaws=(
            "It does not ask how much is known. What no probe can learn has a flat curve, so noise and dead "
            "codes have an explicitness of 1: read it with the informativeness of dci.",
            "No measure of disentanglement: a rotation leaves a linear code linear, so it scores 1 too. Not "
            "linear are the sine and cosine of each factor, taken as an angle: they score 0.77.",
            "Factors are taken as numbers, so it has no meaning for categories.",
            "It moves by about 0.01 with the frequencies drawn: with the seed, and with the order and the "
            "signs of the codes.",
            "The frequencies suit about ten codes. With twenty more codes of noise no probe finds the curve "
            "of a factor, and the codes look explicit.",
            "The size is that of the arrays, dead codes included; it may be above 1.",
        ),
        factors_as="numbers",
    ),
)
