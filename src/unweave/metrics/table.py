"""The table of all metrics: what each needs, where its scores lie, and what leaves them unchanged.

A metric is a file and a record here. The command, the pages of the documentation, the evaluation and the
property tests read this table, so none of them can forget a metric.
"""

from __future__ import annotations

import math

from unweave.metrics import citations
from unweave.metrics.beta_vae_score import beta_vae_score
from unweave.metrics.dcimig import dcimig
from unweave.metrics.downstream import SIZES, downstream
from unweave.metrics.explicitness import explicitness
from unweave.metrics.factor_vae_score import factor_vae_score
from unweave.metrics.infomec import infomec
from unweave.metrics.irs import irs
from unweave.metrics.jemmig import jemmig
from unweave.metrics.med import med
from unweave.metrics.metric import Change, Metric, Mixed, Variant
from unweave.metrics.mig import mig, mig_posterior
from unweave.metrics.mig_sup import mig_sup
from unweave.metrics.mixed import sap_mixed
from unweave.metrics.modularity import modularity
from unweave.metrics.sap import sap, sap_with_accuracies
from unweave.metrics.table_blocks import BLOCKS
from unweave.metrics.table_dci import DCI_METRICS
from unweave.metrics.table_density import DENSITIES
from unweave.metrics.table_downstream import DOWNSTREAM
from unweave.metrics.table_fairness import FAIRNESS
from unweave.metrics.table_identifiability import IDENTIFIABILITY
from unweave.metrics.table_symmetry import SYMMETRY
from unweave.metrics.table_unsupervised import UNSUPERVISED


def _unchanged(*changes: Change) -> frozenset[Change]:
    return frozenset(changes)


# Not by sign and scale: they move a value from the edge of one bin into the next.
_BINNED = _unchanged("permutation", "row order")
_BIN_EDGES = (
    "A value on the edge of a bin belongs to the bin above. Another sign or scale of a code leaves the score "
    "unchanged unless it moves such a value, as it can for codes with few different values."
)
_BINS_CAP = (
    "A code of 20 bins cannot name more than 20 values, so a perfect dSprites code stays below 1. "
    + _BIN_EDGES
)

METRICS: tuple[Metric, ...] = (
    Metric(
        "beta_vae_score",
        beta_vae_score,
        "beta_vae_score[pairs64,logistic-ovr,train10000,test5000]",
        "representation",
        "Can a linear classifier recognise the factor that two images share?",
        citations.HIGGINS2017,
        _unchanged("permutation", "sign", "dead"),
        flaws=(
            "It asks for different patterns of distances, not for one code a factor. A factor that no code "
            "holds is recognised by that, so all factors but one are enough for 1 (Kim and Mnih, 2018).",
            "It depends on the scale of the codes, because the classifier is penalised.",
        ),
        least_factors=2,
        halves_rows=True,
        depends_on_scale=True,
    ),
    Metric(
        "factor_vae_score",
        factor_vae_score,
        "factor_vae_score[batch64,std0.05,train10000,test5000]",
        "representation",
        "Does holding a factor fixed make one and the same code hold still?",
        citations.KIM2018,
        _unchanged("permutation", "sign", "copies", "dead"),
        flaws=(
            "It only asks which code varies least: a rotation that leaves each factor a code of its own that "
            "it moves most is not seen.",
            "A code counts if its standard deviation is 0.05 or more, so the score jumps with the scale.",
        ),
        least_factors=2,
        halves_rows=True,
        depends_on_scale=True,
    ),
    Metric(
        "mig",
        mig,
        "mig[bins20]",
        "codes",
        "Is each factor held by one code only? From binned codes.",
        citations.CHEN2018,
        _BINNED | {"dead"},
        flaws=(
            "A code of 20 bins cannot name more than 20 values: a perfect dSprites code scores 0.896, not 1.",
            "Two codes that share a factor evenly score 0, whatever they are like otherwise; a copied code "
            "costs its factor everything.",
            "A code that holds several factors is not punished.",
            "Not comparable with the estimator of the paper, mig_posterior.",
            _BIN_EDGES,
        ),
        factors_as="labels with gaps",
    ),
    Metric(
        "mig_posterior",
        mig_posterior,
        "mig_posterior[samples10000]",
        "posterior",
        "Is each factor held by one code only? From the densities of q(z|x), as in the paper.",
        citations.CHEN2018,
        _unchanged("permutation", "sign", "scale", "dead", "row order"),
        flaws=(
            "What q(z|x) is unsure about is lost: perfect means with a standard deviation of 0.1 score 0.77.",
            "Of a small sample each row recognises itself and all information is too large; give the whole "
            "data set.",
            "A copied code costs its factor everything; a code that holds several factors is not punished.",
            "Not comparable with the published estimator, mig.",
        ),
    ),
    Metric(
        "modularity",
        modularity,
        "modularity[bins20,dead0]",
        "codes",
        "Does each code depend on one factor only?",
        citations.RIDGEWAY2018,
        _BINNED | {"copies"},
        flaws=(
            "Codes of pure noise score about 0.7: the accidents of counting differ from factor to factor.",
            "A dead code counts 0, so five dead codes of ten leave a perfect code 0.5.",
            "It does not ask whether any factor is held at all.",
            _BIN_EDGES,
        ),
        least_factors=2,
        factors_as="labels with gaps",
    ),
    Metric(
        "explicitness",
        explicitness,
        "explicitness[logistic-ovr,auc]",
        "codes+test",
        "Can a linear classifier read every value of every factor off the codes?",
        citations.RIDGEWAY2018,
        _unchanged("permutation", "sign", "scale", "dead", "row order"),
        flaws=(
            "No measure of disentanglement: a rotation hardly changes it.",
            "No line separates a middle value of an ordered factor from both sides, so a "
            "perfect code does not score 1. Chance is 0.5, not 0.",
        ),
    ),
    *DCI_METRICS,
    Metric(
        "sap",
        sap,
        "sap[svm-ovr,C0.01]",
        "codes+test",
        "How far is the best code of a factor ahead of the second best? By linear classifiers of one code.",
        citations.KUMAR2018,
        _unchanged("permutation", "sign", "row order"),
        flaws=(
            "Lines through a single number cannot separate ordered classes: a perfect dSprites code scores "
            "0.246 on one sample and 0.250 on the one above, not 1.",
            "It depends on the scale of the codes, because C weighs it.",
            "A copied code costs its factor everything, and a dead code may be second best: it is right as "
            "often as the most frequent value of a factor.",
        ),
        detailed=sap_with_accuracies,
        mixed=Mixed(sap_mixed, "r2-of-numbers"),
        depends_on_scale=True,
    ),
    Metric(
        "sap_correlation",
        sap,
        "sap[correlation]",
        "codes",
        "SAP by squared correlations, for factors that are numbers.",
        citations.KUMAR2018,
        _unchanged("permutation", "sign", "scale", "dead", "row order"),
        flaws=(
            "Only a straight line counts, and categories have no correlation.",
            "A copied code costs its factor everything.",
        ),
        options={"continuous": True},
        factors_as="numbers",
    ),
    Metric(
        "irs",
        irs,
        "irs[bins20,quantile0.99]",
        "codes",
        "How far does a code stay put while other factors change?",
        citations.SUTER2019,
        _unchanged("permutation", "sign", "copies", "dead", "row order"),
        range=(-1.0, 1.0),
        flaws=(
            "Codes are weighed by their range, so the score depends on the scale of each.",
            "Noise scores well above 0, and codes that hold one factor together are not punished.",
        ),
        depends_on_scale=True,
    ),
    Metric(
        "infomec",
        infomec,
        "infomec[neighbours10,logistic100]",
        "codes",
        "Modularity, explicitness and compactness from information.",
        citations.HSU2023,
        _unchanged("permutation", "sign", "dead", "row order"),
        range=(-math.inf, 1.0),
        flaws=(
            "Codes whose range is a twentieth of the largest or less are left out of modularity and "
            "compactness, so these depend on the scale of each code.",
            "Noise has a modularity of about 0.5: estimates below 0 become 0, and what is left by chance "
            "counts as concentrated.",
            "Explicitness is scored on its own training data and depends on the 100 steps of the solver.",
        ),
        compares_factors=("modularity",),
        for_discrete_codes=Variant({"discrete": True}, "infomec[counted,logistic100]"),
    ),
    Metric(
        "mig_sup",
        mig_sup,
        "mig_sup[bins20,active0.01]",
        "codes",
        "Is each code informative about one factor only?",
        citations.LI2020,
        _unchanged("permutation", "copies", "dead", "row order"),
        flaws=(
            "A code counts if its variance is above 0.01, so the score jumps with the scale.",
            "It does not ask whether all factors are held. " + _BINS_CAP,
        ),
        factors_as="labels with gaps",
        depends_on_scale=True,
    ),
    Metric(
        "jemmig",
        jemmig,
        "jemmig[bins20]",
        "codes",
        "Is each factor held by one code only, which holds nothing else?",
        citations.DO2020,
        _BINNED | {"dead"},
        flaws=(
            "Noise scores 0.11, not 0: its bins are not equally full.",
            _BINS_CAP,
        ),
        factors_as="labels with gaps",
    ),
    Metric(
        "dcimig",
        dcimig,
        "dcimig[bins20]",
        "codes",
        "Has each factor a code of its own that holds all of it?",
        citations.SEPLIARSKAIA2019,
        _BINNED | {"copies", "dead"},
        flaws=("Copies of a code cost nothing. " + _BINS_CAP,),
        factors_as="labels with gaps",
    ),
    Metric(
        "med",
        med,
        "med[bins20]",
        "codes",
        "DCI's disentanglement with information in place of importance: nothing is fitted.",
        citations.CAO2022,
        _BINNED | {"copies", "dead"},
        flaws=(
            "Information is normalised for each factor, so a factor that no code holds counts as much as the "
            "others, with the accidents of counting.",
            _BINS_CAP,
        ),
        least_factors=2,
        factors_as="labels with gaps",
    ),
    Metric(
        "downstream_logistic",
        downstream,
        "downstream[logistic-cv]",
        "codes+test",
        "How well, and from how few points, can logistic regression predict the factors?",
        citations.LOCATELLO2019,
        _unchanged("permutation", "sign", "rotation", "dead"),
        flaws=("No measure of disentanglement. No line separates the middle values of an ordered factor.",),
        options={"predictor": "logistic"},
        sizes=SIZES,
        depends_on_scale=True,
    ),
    Metric(
        "downstream_trees",
        downstream,
        "downstream[trees100]",
        "codes+test",
        "How well, and from how few points, can boosted trees predict the factors?",
        citations.LOCATELLO2019,
        _unchanged("scale"),
        flaws=("Trees cut along the codes, so they prefer codes that hold one factor each.",),
        options={"predictor": "trees"},
        sizes=SIZES,
    ),
    *DOWNSTREAM,
    *FAIRNESS,
    *IDENTIFIABILITY,
    *BLOCKS,
    *SYMMETRY,
    *UNSUPERVISED,
    *DENSITIES,
)

_HEADLINE = ("beta_vae_score", "factor_vae_score", "mig", "dci", "sap", "modularity", "explicitness")

# Names for several metrics.
SUITES: dict[str, tuple[str, ...]] = {
    "quick": ("mig", "sap", "modularity", "explicitness"),  # seconds, and no more than 15,000 images
    "headline": _HEADLINE,  # the scores of the published models
    "study": (
        *_HEADLINE,
        "irs",
        "total_correlation",
        "wasserstein_correlation",
        "wasserstein_correlation_normalised",
        "mean_pairwise_information",
        "downstream_logistic",
        "downstream_trees",
        "elbo",
    ),
    "blocks": tuple(metric.name for metric in BLOCKS),  # for codes with blocks, such as content and style
    "all": tuple(metric.name for metric in METRICS),
}
