"""The part of the table of metrics about identifiability, and further metrics of codes along factors."""

from __future__ import annotations

import math

from unweave.metrics import citations
from unweave.metrics.block_r2 import block_r2
from unweave.metrics.dci_es_forest import dci_es_forest
from unweave.metrics.dci_es_mlp import dci_es_mlp
from unweave.metrics.factored_components import factored_components
from unweave.metrics.flatness import flatness
from unweave.metrics.mcc import mcc
from unweave.metrics.med import med
from unweave.metrics.metric import Metric
from unweave.metrics.r2 import r2
from unweave.metrics.rmig import rmig
from unweave.metrics.sepin import sepin
from unweave.metrics.unified_scores import unified_scores
from unweave.metrics.z_max_var import z_max_var

_NUMBERS = "Factors are treated as numbers, so it has no meaning for categories."
_BLIND = "No measure of disentanglement: any invertible linear map of the codes has the same score."
_OTHER_MATRIX = "Aggregations lose their usual range with another matrix than their own."
_COUNTS_GROUPS = (
    "max_precision counts groups, so it reaches min(d, k). It takes the best threshold, which small random "
    "differences decide: for noise it can be as high as for perfect codes. Read it with area_precision."
)
_WHOLE_GRID = "It needs codes of all combinations of factors; some rows are not enough."

IDENTIFIABILITY: tuple[Metric, ...] = (
    Metric(
        "mcc",
        mcc,
        "mcc[pearson]",
        "codes",
        "How strongly does each factor correlate with the code matched to it?",
        citations.KHEMAKHEM2020,
        frozenset({"permutation", "sign", "scale", "dead", "row order"}),
        flaws=(
            _NUMBERS,
            "Only a straight line counts. A copy of a code costs nothing and helps if it holds two factors.",
            "Noise scores above 0: each factor gets the best of the codes.",
        ),
        factors_as="numbers",
    ),
    Metric(
        "mcc_spearman",
        mcc,
        "mcc[spearman]",
        "codes",
        "MCC with rank correlations: codes may be monotone functions of factors.",
        citations.KHEMAKHEM2020,
        frozenset({"permutation", "sign", "scale", "dead", "row order"}),
        flaws=(
            _NUMBERS,
            "A code that is not monotone in a factor, such as a cosine, is not seen.",
            "Noise scores above 0: each factor gets the best of the codes.",
        ),
        options={"correlation": "spearman"},
        factors_as="numbers",
    ),
    Metric(
        "mcc_affine",
        mcc,
        "mcc[pearson,affine-fit]",
        "codes+test",
        "MCC on test data after an affine map of the codes: weak identifiability.",
        citations.KHEMAKHEM2020ICE,
        frozenset({"permutation", "sign", "scale", "rotation", "copies", "dead", "row order"}),
        flaws=(_NUMBERS, _BLIND),
        options={"fit": "affine"},
        factors_as="numbers",
    ),
    Metric(
        "r2_linear",
        r2,
        "r2[linear]",
        "codes+test",
        "How much of the variance of the factors can a linear model predict from all codes?",
        citations.VONKUGELGEN2021,
        frozenset({"permutation", "sign", "scale", "rotation", "copies", "dead", "row order"}),
        range=(-math.inf, 1.0),
        flaws=(_NUMBERS, _BLIND, "With hundreds of codes and few points it overfits and falls below 0."),
        factors_as="numbers",
    ),
    Metric(
        "r2_kernel",
        r2,
        "r2[kernel-ridge,cv3,rows2000]",
        "codes+test",
        "How much of the variance of the factors can kernel regression predict from all codes?",
        citations.VONKUGELGEN2021,
        frozenset({"permutation", "sign", "scale", "dead"}),
        range=(-math.inf, 1.0),
        flaws=(
            _NUMBERS,
            "No measure of disentanglement: a rotation hardly changes it.",
            "One kernel width serves all codes, so codes of noise next to informative ones cost accuracy.",
        ),
        options={"model": "kernel"},
        factors_as="numbers",
    ),
    Metric(
        "r2_mlp",
        r2,
        "r2[mlp64-64,adam200]",
        "codes+test",
        "How much of the variance of the factors can a neural network predict from all codes?",
        citations.EASTWOOD2023,
        frozenset({"scale"}),
        range=(-math.inf, 1.0),
        flaws=(
            _NUMBERS,
            "No measure of disentanglement: a rotation hardly changes it.",
            "It moves with the seed, and with the order of codes and points, by about 0.01.",
        ),
        options={"model": "mlp"},
        factors_as="numbers",
    ),
    Metric(
        "block_r2",
        block_r2,
        "block_r2[kernel-ridge,cv3,rows500,single]",
        "codes+test",
        "How much of the variance of each factor can be predicted from the one code matched to it?",
        citations.VONKUGELGEN2021,
        frozenset({"permutation", "sign", "scale", "dead"}),
        flaws=(
            _NUMBERS,
            "A code that holds several factors costs only the accuracy of its match; see the matrix.",
        ),
        factors_as="numbers",
    ),
    Metric(
        "dci_es_forest",
        dci_es_forest,
        "dci_es_forest[trees100,depths1-32]",
        "codes+test",
        "How deep must trees be to read the factors off the codes? DCI-ES with the authors' forests.",
        citations.EASTWOOD2023,
        frozenset({"scale"}),
        range=(-1.0, 1.0),
        flaws=(
            "It does not ask how much is known: noise has a flat curve and an explicitness of 1.",
            "A factor with many values needs deep trees however simple the codes are.",
            _NUMBERS,
            "The size is that of the arrays, dead codes included; it may be above 1.",
        ),
        factors_as="numbers",
    ),
    Metric(
        "dci_es_mlp",
        dci_es_mlp,
        "dci_es_mlp[widths0-243,adam4600]",
        "codes+test",
        "How wide must a neural network be to predict the factors? DCI-ES with the authors' perceptrons.",
        citations.EASTWOOD2023,
        frozenset({"scale", "dead"}),
        range=(-1.0, 1.0),
        flaws=(
            "It does not ask how much is known: noise has a flat curve and an explicitness of 1.",
            "It moves a little with the seed, and with the order of codes and points.",
            "Five factors take about 40 seconds on one core, whatever the number of points.",
            _NUMBERS,
            "The size is that of the arrays, dead codes included; it may be above 1.",
        ),
        factors_as="numbers",
    ),
    Metric(
        "rmig",
        rmig,
        "rmig[bins100,limits4]",
        "posterior",
        "Is each factor held by one code only? From binned densities of q(z|x).",
        citations.DO2020,
        frozenset({"permutation", "dead", "row order"}),
        flaws=(
            "Codes beyond -4 to 4 fall into the first or last bin, so the score depends on their scale.",
            "A copied code costs its factor everything; a code that holds several factors is not punished.",
        ),
    ),
    Metric(
        "sepin",
        sepin,
        "sepin[samples1000]",
        "posterior",
        "How much information about the image does each code have that the others do not have? In nats.",
        citations.DO2020,
        frozenset({"scale"}),
        range=(-math.inf, math.inf),
        flaws=(
            "It knows no factors: a rotation of independent codes of equal variance scores the same.",
            "Information is at most log n. With narrow posteriors each code alone reaches that; SEPIN is 0.",
        ),
    ),
    Metric(
        "med_top1",
        med,
        "med[bins20,top1]",
        "codes",
        "MED of the most disentangled code of each factor.",
        citations.CAO2022,
        frozenset({"permutation", "copies", "dead", "row order"}),
        flaws=(
            "A factor that no code holds best is left out without a penalty.",
            "A code of 20 bins cannot name more than 20 values, so a perfect dSprites code stays below 1.",
        ),
        options={"top": 1},
        least_factors=2,
        factors_as="labels with gaps",
    ),
    Metric(
        "z_max_var",
        z_max_var,
        "z_max_var[batch200,std0.05,train800,test800]",
        "representation",
        "Does changing one factor make one and the same code vary most?",
        citations.KIM2019,
        frozenset({"permutation", "sign", "copies", "dead"}),
        flaws=(
            _WHOLE_GRID,
            "It only asks which code varies most: a rotation that leaves each factor a code of its own "
            "that it moves most is not seen.",
            "A code counts if its standard deviation is 0.05 or more, so the score jumps with the scale.",
        ),
        least_factors=2,
        depends_on_scale=True,
    ),
    Metric(
        "flatness",
        flatness,
        "flatness[l2-width,l1-length,paths1024]",
        "representation",
        "Do codes move straight along one axis when one factor changes?",
        citations.MICHLO2023,
        frozenset({"permutation", "sign", "dead"}),
        flaws=(
            _WHOLE_GRID,
            "Values of a factor are taken in their order, so it has no meaning for categories. A "
            "circular factor on a circle scores low.",
            "It does not ask whether two factors move the same code.",
        ),
        depends_on_scale=True,
    ),
    Metric(
        "factored_components",
        factored_components,
        "factored_components[variance,l2,paths1024,triplets64]",
        "representation",
        "Are the codes along each factor linear, parallel to one axis and in order?",
        citations.MICHLO2023,
        frozenset({"permutation", "sign"}),
        flaws=(
            _WHOLE_GRID,
            "Values of a factor are taken in their order, so it has no meaning for categories.",
            "It does not ask whether two factors move the same code. A dead code raises the ratios.",
            "Geometric means: one factor at 0 makes a component 0.",
        ),
        depends_on_scale=True,
    ),
    Metric(
        "unified_information",
        unified_scores,
        "unified_scores[bins20]",
        "codes",
        "All aggregations (of DCI, MIG, SAP, modularity) of the matrix of mutual information.",
        citations.LOCATELLO2020,
        frozenset({"permutation", "row order"}),
        range=(0.0, math.inf),
        flaws=(_OTHER_MATRIX, _COUNTS_GROUPS),
        options={"relation": "information"},
        factors_as="labels with gaps",
    ),
    Metric(
        "unified_importance",
        unified_scores,
        "unified_scores[trees100]",
        "codes+test",
        "All aggregations (of DCI, MIG, SAP, modularity) of the matrix of importances of boosted trees.",
        citations.LOCATELLO2020,
        frozenset({"permutation", "sign", "scale", "row order"}),
        range=(0.0, math.inf),
        flaws=(_OTHER_MATRIX, _COUNTS_GROUPS),
        options={"relation": "importance"},
    ),
    Metric(
        "unified_accuracy",
        unified_scores,
        "unified_scores[svm-ovr,C0.01]",
        "codes+test",
        "All aggregations (of DCI, MIG, SAP, modularity) of the matrix of accuracies of linear classifiers.",
        citations.LOCATELLO2020,
        frozenset({"permutation", "sign", "row order"}),
        range=(0.0, math.inf),
        flaws=(_OTHER_MATRIX, _COUNTS_GROUPS),
        options={"relation": "accuracy"},
        depends_on_scale=True,
    ),
)
