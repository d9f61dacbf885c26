"""InfoMEC: modularity, explicitness and compactness, all three from information.

Hsu, Dorrell, Whittington, Wu, Finn, "Disentanglement via Latent Quantization", NeurIPS 2023 [1], with
the settings of the authors' program [2].
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unweave.compilation import compiled
from unweave.errors import UnweaveError
from unweave.metrics.checks import check_codes_factors, scaled
from unweave.metrics.information import entropies, information_of_labels, numbered
from unweave.streams import Stream

# A code counts as active if its range is above this share of the largest range [2].
ACTIVE_RANGE = 1 / 20
# Breaks ties between equal codes, in units of their standard deviation.
TIE_NOISE = 1e-10


class InfoMEC(NamedTuple):
    """InfoM, InfoE and InfoC, the matrix I(z_i; v_j) / H(v_j) they come from, and which codes are active."""

    modularity: float
    explicitness: float
    compactness: float
    information: NDArray[np.float64]
    active: NDArray[np.bool_]


def infomec(
    codes: ArrayLike,
    factors: ArrayLike,
    *,
    discrete: bool = False,
    neighbours: int = 10,
    seed: int | Stream = 0,
) -> InfoMEC:
    """Return InfoM, InfoE and InfoC; at most 1, higher is better. Of noise only InfoE is about 0.

    With U_ij = I(z_i; v_j) / H(v_j) and a = the number of active codes (range > 1/20 of the largest, or > 0
    for discrete codes):
    InfoM = (mean over active i of max_j U_ij / sum_j U_ij - 1/k) / (1 - 1/k),
    InfoC = (mean_j of max_i U_ij / sum_i U_ij - 1/a) / (1 - 1/a) over active i,
    InfoE = mean_j 1 - (log loss of v_j predicted from all codes) / log(values of v_j).
    I is Ross's nearest-neighbour estimate with 10 neighbours or, for `discrete` codes, counted. Evaluations
    of runs count if the method quantises its codes (QLAE), and the protocol then says "counted". The
    predictor is a multinomial logistic regression on standardised (or one-hot) codes, classes balanced, no
    penalty, scored on its own training data after at most 100 steps of L-BFGS. The 100 steps are part of the
    definition: with very many values or few points they can end 0.01 short. Classes that can be separated
    have no optimum, but the loss falls towards 0, and InfoE goes to 1.

    InfoM and InfoC ask how uneven the information is, not how much there is. What noise seems to know is
    little, but uneven by chance: ten codes of noise have an InfoM of about 0.5 and an InfoC of about 0.3 for
    the factors of dSprites.

    The authors' later program, of Hsu et al., "Tripod: Three Complementary Inductive Biases for Disentangled
    Representation Learning", ICML 2024, has another rule for active codes: an interquartile range above a
    tenth of the largest or, for discrete codes, above 0.1. Its scores are not comparable.

    Differs from [2]: a code or factor without any information counts as spread evenly (there 0/0), as do
    all if no code is active; with one factor InfoM, with one active code InfoC, is 1 if there is any
    information. Tie-breaking noise comes from `seed`; it does not depend on the order of
    the rows, and copies of a code get the same.

    >>> factors = np.stack(np.meshgrid(np.arange(4), np.arange(4)), axis=-1).reshape(-1, 2).repeat(20, axis=0)
    >>> score = infomec(factors, factors, discrete=True)
    >>> [round(float(x), 2) for x in score[:3]]
    [1.0, 1.0, 1.0]
    """
    if isinstance(neighbours, bool) or not isinstance(neighbours, int | np.integer) or neighbours < 1:
        raise UnweaveError(f"neighbours must be a whole number >= 1; got {neighbours!r}.")
    table, checked = check_codes_factors(codes, factors)
    values = numbered(checked)
    # One power of two for all codes keeps the comparison of their ranges.
    ranges = np.ptp(scaled(table)[0], axis=0)
    if discrete:
        labels = np.stack([np.unique(code, return_inverse=True)[1] for code in table.T], axis=1)
        information = information_of_labels(labels, values)
        features = np.hstack([np.eye(label.max() + 1)[label] for label in labels.T])
        active = ranges > 0
    else:
        features = _standardised(table)
        noise = TIE_NOISE * Stream.of(seed).child("infomec").normal(len(table), 1)[:, 0]
        information = _neighbour_information(features, values, int(neighbours), noise)
        information[ranges == 0] = 0
        active = (ranges > ranges.max() * ACTIVE_RANGE) & (ranges > 0)
    share = information / entropies(values)
    return InfoMEC(
        modularity=_concentration(share[active]),
        explicitness=float(np.mean([_predictive_information(features, column) for column in values.T])),
        compactness=_concentration(share[active].T) if active.any() else 0.0,
        information=share,
        active=active,
    )


def _standardised(table: NDArray[np.float64]) -> NDArray[np.float64]:
    table = scaled(table, axis=0)[0]
    deviation = np.where(np.ptp(table, axis=0) > 0, table.std(axis=0), 1.0)
    return np.asarray((table - table.mean(axis=0)) / deviation)


def _concentration(share: NDArray[np.float64]) -> float:
    """Mean over rows of largest / sum, rescaled from 1/columns .. 1 to 0 .. 1; a row of zeros counts 0."""
    total, columns = share.sum(axis=1), share.shape[1]
    rows = share[total > 0]
    if not len(rows):
        return 0.0
    if columns == 1:
        return len(rows) / len(share)
    part = rows.max(axis=1) / rows.sum(axis=1)
    return float(((part - 1 / columns) / (1 - 1 / columns)).sum() / len(share))


def _neighbour_information(
    codes: NDArray[np.float64], values: NDArray[np.int64], neighbours: int, noise: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Ross, "Mutual Information between Discrete and Continuous Data Sets", PLoS ONE 2014, (d, k).

    I = psi(n) + mean psi(k) - mean psi(n_v) - mean psi(m), where n_v is the number of points with the same
    value, and m that of all points nearer than the k-th neighbour of the same value, the point included.
    Points that are alone with their value are left out; a negative estimate becomes 0. Noise breaks ties.
    """
    from scipy.special import digamma

    psi = np.concatenate([[0.0], digamma(np.arange(1, len(codes) + 1))])
    information = np.zeros((codes.shape[1], values.shape[1]))
    tied = [len(np.unique(code)) < len(code) for code in codes.T]
    for j, column in enumerate(values.T):
        sizes = np.bincount(column)
        kept = sizes[column] > 1
        if not kept.any():
            continue
        own = sizes[column[kept]]
        known = psi[len(own)] + psi[np.minimum(neighbours, own - 1)].mean() - psi[own].mean()
        for i, code in enumerate(codes.T):
            line, labels = _ascending(code[kept], column[kept], noise, tied[i])
            near = _count_near(line, labels, sizes, neighbours)
            information[i, j] = max(0.0, known - psi[near].mean())
    return information


def _ascending(
    code: NDArray[np.float64], labels: NDArray[np.int64], noise: NDArray[np.float64], tied: bool
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """The code in ascending order, with the labels; if it is tied, the noise decides between equal codes.

    The noise goes to places in an order that depends on the code and its labels only, so that neither the
    order of the rows nor the sign of the code nor other codes decide, and a copy is treated alike.
    """
    if not tied:
        order = np.argsort(code, kind="stable")
        return code[order], labels[order]
    both = [np.stack([side, labels])[:, np.lexsort((labels, side))] for side in (code, -code)]
    different = np.argwhere(both[0] != both[1])
    chosen = both[0]
    if len(different):
        row, column = different[0]
        chosen = both[int(both[1][row, column] < both[0][row, column])]
    line = chosen[0] + noise[: len(code)]
    order = np.argsort(line, kind="stable")
    return line[order], chosen[1][order].astype(np.int64)


@compiled(nogil=True)
def _count_near(code, labels, sizes, neighbours):  # type: ignore[no-untyped-def]
    """How many of the ascending codes lie nearer to each than its k-th neighbour with the same label."""
    n = len(code)
    start = np.zeros(len(sizes) + 1, np.int64)
    start[1:] = np.cumsum(sizes * (sizes > 1))
    # Codes by label, ascending within each.
    filled, grouped, place = start.copy(), np.empty(n), np.empty(n, np.int64)
    for row in range(n):
        grouped[filled[labels[row]]] = code[row]
        place[filled[labels[row]]] = row
        filled[labels[row]] += 1
    near = np.empty(n, np.int64)
    for label in range(len(sizes)):
        k = min(neighbours, sizes[label] - 1)
        for i in range(start[label], start[label + 1]):
            distance = np.inf
            for first in range(max(start[label], i - k), min(i, start[label + 1] - 1 - k) + 1):
                farther = max(grouped[i] - grouped[first], grouped[first + k] - grouped[i])
                distance = min(distance, farther)
            near[place[i]] = _count_within(code, place[i], distance)
    return near


@compiled(nogil=True)
def _count_within(code, row, distance):  # type: ignore[no-untyped-def]
    """How many of the ascending codes are strictly nearer to code[row] than the distance, itself included."""
    low, high = row, len(code)  # the first to the right that is too far
    while high - low > 1:
        middle = (low + high) // 2
        if code[middle] - code[row] < distance:
            low = middle
        else:
            high = middle
    least, most = -1, row  # the last to the left that is too far
    while most - least > 1:
        middle = (least + most) // 2
        if code[row] - code[middle] < distance:
            most = middle
        else:
            least = middle
    return high - most


def _predictive_information(features: NDArray[np.float64], labels: NDArray[np.int64]) -> float:
    """1 - log loss / log(classes) of an unpenalised, balanced logistic regression after 100 steps."""
    from scipy.optimize import fmin_l_bfgs_b

    inputs = np.vstack([features.T, np.ones(len(features))])
    sizes = np.bincount(labels)
    classes, rows = len(sizes), np.arange(len(labels))
    weights = (len(labels) / (classes * sizes))[labels]

    def predict(parameters: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the log probability of each label, (n,), and all probabilities, (classes, n)."""
        logits = parameters.reshape(classes, -1) @ inputs
        logits -= logits.max(axis=0)
        own = logits[labels, rows]
        np.exp(logits, out=logits)
        total = logits.sum(axis=0)
        return own - np.log(total), np.divide(logits, total, out=logits)

    def loss(parameters: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        logs, slope = predict(parameters)
        slope *= weights
        slope[labels, rows] -= weights
        return -float(weights @ logs), (slope @ inputs.T).ravel()

    found = fmin_l_bfgs_b(
        loss, np.zeros(classes * len(inputs)), maxiter=100, maxls=50, pgtol=1e-4, factr=64.0
    )
    return 1 + float(predict(found[0])[0].mean()) / float(np.log(classes))
