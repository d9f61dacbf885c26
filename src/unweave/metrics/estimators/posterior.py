"""Information between factors and codes that are drawn from Gaussian posteriors, by Monte Carlo.

One sum over all rows gives the density of a sampled code, and parts of the same sum its densities given
each factor, so that the exponentials, which are most of the cost, are taken once.
"""

from __future__ import annotations

import math
import os
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numpy.typing import NDArray

from unweave.compilation import compiled
from unweave.streams import Stream

# 2^r = sum_i (r log 2)^i / i! with an error below 1e-13 for |r| <= 1/2.
_COEFFICIENTS = tuple(math.log(2) ** i / math.factorial(i) for i in range(11))
# Below this power of two a density is as good as none.
_LEAST_POWER = -1000.0


def posterior_information(
    mean: NDArray[np.float64],
    log_var: NDArray[np.float64],
    values: NDArray[np.int64],
    samples: int,
    stream: Stream,
) -> NDArray[np.float64]:
    """Return E[log q(z_i | v_j) - log q(z_i)], (d, k), over samples from the posteriors of random rows.

    mean and log_var are (n, d); the values (n, k) of each factor are numbered 0, 1, 2, ...
    """
    rows = stream.child("rows").integers(samples, [len(mean)])[:, 0]
    noise = stream.child("noise").normal(samples, mean.shape[1])
    drawn = mean[rows] + np.exp(log_var[rows] / 2) * noise
    # The rows with value v of factor j are order[j, start[j, v]] .. order[j, start[j, v + 1] - 1].
    order = np.ascontiguousarray(np.argsort(values, axis=0, kind="stable").T)
    most = int(values.max()) + 2
    start = np.stack([np.searchsorted(np.sort(column), np.arange(most)) for column in values.T])
    scale = np.exp(-log_var / 2)

    def of_code(i: int) -> NDArray[np.float64]:
        column = [np.ascontiguousarray(table[:, i]) for table in (drawn, mean, scale)]
        return np.asarray(_mean_log_ratio(column[0], column[1], column[2], order, start, values[rows]))

    with ThreadPoolExecutor(os.cpu_count()) as threads:
        return np.stack(list(threads.map(of_code, range(mean.shape[1]))))


@compiled(nogil=True, fastmath={"reassoc", "contract", "nsz"})
def _mean_log_ratio(drawn, mean, scale, order, start, values):  # type: ignore[no-untyped-def]
    """For one code: the mean over samples of log q(z | v_j) - log q(z), for each factor j."""
    n, factors = len(mean), len(order)
    total_ratio = np.zeros(factors)
    weights, powers = np.empty(n), np.empty(n, np.int64)
    for s in range(len(drawn)):
        _densities(drawn[s], mean, scale, weights, powers)
        total = 0.0
        for row in range(n):
            total += weights[row]
        for j in range(factors):
            first, last = start[j, values[s, j]], start[j, values[s, j] + 1]
            part = 0.0
            for i in range(first, last):
                part += weights[order[j, i]]
            total_ratio[j] += np.log(part / (last - first)) - np.log(total / n)
    return total_ratio / len(drawn)


@compiled(nogil=True, fastmath={"reassoc", "contract", "nsz"})
def _densities(z, mean, scale, weights, powers):  # type: ignore[no-untyped-def]
    """Fill weights with scale exp(-((z - mean) scale)^2 / 2), written so that the loop is vectorised."""
    half_log2_e = 0.5 / np.log(2.0)
    for row in range(len(mean)):
        distance = (z - mean[row]) * scale[row]
        exponent = max(-half_log2_e * distance * distance, _LEAST_POWER)
        whole = np.floor(exponent + 0.5)
        rest = exponent - whole
        value = _COEFFICIENTS[10]
        for i in range(9, -1, -1):
            value = value * rest + _COEFFICIENTS[i]
        weights[row] = value * scale[row]
        powers[row] = (np.int64(whole) + 1023) << 52  # the bits of the float64 2^whole
    power = powers.view(np.float64)
    for row in range(len(mean)):
        weights[row] *= power[row]
