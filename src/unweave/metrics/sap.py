"""SAP: separated attribute predictability, how far the best code of a factor is ahead of the second best.

Kumar, Sattigeri and Balakrishnan, "Variational inference of disentangled latent concepts from unlabeled
observations", ICLR 2018, section 3.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unweave.metrics.checks import Split, check_codes_factors, scaled, split
from unweave.metrics.estimators.single_code_svm import accuracy_of_one_code, svm_of_one_code

# A code or factor of no more variance than this predicts nothing (published).
LEAST_VARIANCE = 1e-12


class SAP(NamedTuple):
    """The score, and the accuracies (d, k) of one code for one factor."""

    score: float
    accuracy: NDArray[np.float64]


def sap(
    codes: ArrayLike,
    factors: ArrayLike,
    *,
    test: tuple[ArrayLike, ArrayLike] | None = None,
    continuous: bool = False,
) -> float:
    """SAP score: the mean over factors of (score of the best code - score of the second best) [1].

    The score of one code for one factor is the accuracy on test data of a linear SVM that sees only that
    code: one-versus-rest, squared hinge, C = 0.01, balanced classes, intercept penalised (scikit-learn 0.21's
    LinearSVC(C=0.01, class_weight="balanced") as the published study [2] had it, at its exact optimum).
    With continuous=True it is the squared correlation Cov(z, v)^2 / (Var z Var v) over the given data, 0 if
    either variance is 1e-12 or less; test data are not used, and factors may be any real numbers.

    Range 0 to 1; higher is better. A dead code takes part as published: it names the most frequent value. The
    rival of a single code is a dead code.

    Differs from [2]: a tie between m values counts 1/m, where [2] takes the first value. A dead code of a
    factor of two values is such a tie, since classes are balanced: it is half right whatever comes first.

    One-versus-rest lines through a single number cannot separate ordered classes: a perfect code of
    dSprites scores 0.246. The score depends on the scale of the codes, because C weighs it.

    References: [1] Kumar et al., ICLR 2018. [2] Locatello et al., "Challenging common assumptions in the
    unsupervised learning of disentangled representations", ICML 2019.

    >>> factors = np.tile([[0, 0], [0, 1], [1, 0], [1, 1]], (9, 1))
    >>> sap(factors * 2.0 - 1.0, factors)  # of two values, the wrong code guesses half right
    0.5
    >>> round(sap(factors * 2.0 - 1.0, factors, continuous=True), 12)
    1.0
    """
    if continuous:
        return _gap(_correlations(codes, factors))
    return sap_with_accuracies(codes, factors, test=test).score


def sap_with_accuracies(
    codes: ArrayLike, factors: ArrayLike, *, test: tuple[ArrayLike, ArrayLike] | None = None
) -> SAP:
    """SAP score, and the test accuracy of each code for each factor from which it comes."""
    data = split(codes, factors, test)
    alive = (data.codes != data.codes[0]).any(axis=0)
    # A dead code is as good as none, so it may as well be 0.
    dead = _accuracies(data._replace(codes=0 * data.codes[:, :1], test_codes=0 * data.test_codes[:, :1]))
    accuracies = np.repeat(dead, len(alive), axis=0)
    accuracies[alive] = _accuracies(
        data._replace(codes=data.codes[:, alive], test_codes=data.test_codes[:, alive])
    )
    return SAP(_gap(accuracies if len(alive) > 1 else np.vstack([accuracies, dead])), accuracies)


def _gap(scores: NDArray[np.float64]) -> float:
    ordered = np.sort(scores, axis=0)
    return float((ordered[-1] - ordered[-2]).mean())


def _accuracies(data: Split) -> NDArray[np.float64]:
    """(d, k): test accuracy of each code for each factor."""
    scores = np.empty((data.codes.shape[1], data.factors.shape[1]))
    for j, held_out in enumerate(data.test_factors.T):
        values, labels = np.unique(data.factors[:, j], return_inverse=True)
        place = np.searchsorted(values, held_out).clip(max=len(values) - 1)
        truth = np.where(values[place] == held_out, place, -1)
        for i, code in enumerate(data.codes.T):
            weights = svm_of_one_code(code, labels, len(values))
            scores[i, j] = accuracy_of_one_code(data.test_codes[:, i], weights, truth)
    return scores


def _correlations(codes: ArrayLike, factors: ArrayLike) -> NDArray[np.float64]:
    """(d, k): squared correlations."""
    checked_codes, checked_factors = check_codes_factors(codes, factors, discrete=False)
    z, v = _standardised(_at_least_two(checked_codes)), _standardised(checked_factors)
    return np.asarray((z.T @ v / len(z)) ** 2)


def _at_least_two(codes: NDArray[np.float64]) -> NDArray[np.float64]:
    return codes if codes.shape[1] > 1 else np.hstack([codes, np.zeros_like(codes)])


def _standardised(columns: NDArray[np.float64]) -> NDArray[np.float64]:
    safe, exponents = scaled(columns, axis=0)
    with np.errstate(over="ignore"):  # infinite is alive
        alive = np.ldexp(safe.std(axis=0, ddof=1), exponents) > LEAST_VARIANCE**0.5
    alive &= (columns != columns[0]).any(axis=0)
    return np.asarray((safe - safe.mean(axis=0)) / np.where(alive, safe.std(axis=0), 1.0) * alive)
