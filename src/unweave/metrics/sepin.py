"""SEPIN: the information of each code about the image that the other codes do not have.

Do and Tran, "Theory and Evaluation Metrics for Learning Disentangled Representations", ICLR 2020 [1]. This is
a measure of a probabilistic encoder q(z|x) alone; factors are not used.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unweave.compilation import compiled
from unweave.metrics.posterior_inputs import check_posteriors
from unweave.metrics.real_factors import Floats
from unweave.metrics.representation import check_count
from unweave.streams import Stream

# The logarithm of a density that is 0, such that sums of thousands of them are finite.
LEAST_LOG = -1e290


class SEPIN(NamedTuple):
    """Weighted and plain mean over codes of SEPIN, and the values of each code; all in nats."""

    wsepin: float
    sepin: float
    code_sepin: Floats  # (d,)
    code_information: Floats  # (d,): I(z_i; x)


def sepin(
    mean: ArrayLike,
    log_var: ArrayLike,
    factors: ArrayLike | None = None,  # noqa: ARG001 - the call of all metrics of posteriors
    *,
    samples: int = 1000,
    seed: int | Stream = 0,
) -> SEPIN:
    """Return the separated information of Gaussian posteriors q(z|x) = N(mean, exp(log_var)).

        SEPIN_i = I(z; x) - I(z_rest; x),   z_rest: all codes but z_i
        WSEPIN = sum_i rho_i SEPIN_i,   rho_i = I(z_i; x) / sum_j I(z_j; x)

    x is a random row and q(z) the average of q(z|x) over all n rows. Information is the mean of log ratios of
    densities over `samples` codes drawn from the posteriors of random rows, and at least 0. No information
    about x can exceed log n. SEPIN is at least 0 up to sampling noise; higher means that codes hold
    information that is theirs alone. In nats. `factors` is accepted and ignored.

    The INDIN of [1], I(z_i; x) - I(z_i; z_rest), equals SEPIN for posteriors with independent codes, as here.

    Differs from the authors' program: logarithms of densities throughout (there, densities are cut at 1e-8,
    which biases wide codes), and 1,000 samples by default (there 10,000).

    >>> means = 40.0 * np.stack(np.meshgrid(np.arange(8), np.arange(4)), axis=-1).reshape(-1, 2)
    >>> sepin(means, np.zeros((32, 2))).code_sepin.round(1).tolist()  # two separate codes, log 8 and log 4
    [2.1, 1.4]
    """
    means, log_vars = check_posteriors(mean, log_var)
    check_count("samples", samples)
    stream = Stream.of(seed).child("sepin")
    rows = stream.child("rows").integers(samples, [len(means)])[:, 0]
    noise = stream.child("noise").normal(samples, means.shape[1])
    scale = np.exp(-log_vars / 2)
    logs = _mean_log_densities(means, scale, rows, noise)
    return _scores(*logs)


def _scores(own: Floats, one: Floats, rest: Floats, whole: float) -> SEPIN:
    """The scores from mean log densities: log q(z_i|x), log q(z_i), log q(z_rest) and log q(z)."""
    code_information = np.maximum(own - one, 0)
    information = max(own.sum() - whole, 0.0)
    rest_information = np.maximum(own.sum() - own - rest, 0)
    code_sepin = information - rest_information
    total = code_information.sum()
    weights = code_information / total if total > 0 else np.zeros_like(code_information)
    return SEPIN(float(weights @ code_sepin), float(code_sepin.mean()), code_sepin, code_information)


def _mean_log_densities(
    means: Floats, scale: Floats, rows: NDArray[np.int64], noise: Floats
) -> tuple[Floats, Floats, Floats, float]:
    """Return means over samples of log q(z_i|x), log q(z_i) and log q(z_rest), (d,), and of log q(z).

    All lack the factor sqrt(2 pi) of each code, which cancels in every difference.
    """
    own = np.log(scale[rows]) - noise**2 / 2
    codes = means.shape[1]
    tables = _log_averages(means, scale, np.log(scale), rows, noise)
    one, rest, whole = tables[:, :codes], tables[:, codes : 2 * codes], tables[:, -1]
    return own.mean(axis=0), one.mean(axis=0), rest.mean(axis=0), float(whole.mean())


@compiled(nogil=True)
def _log_averages(means, scale, log_scale, rows, noise):  # type: ignore[no-untyped-def]
    """For each sample: log averages over all rows of q(z_i|x), q(z_rest|x) for each i, and q(z|x)."""
    n, d = means.shape
    result = np.empty((len(rows), 2 * d + 1))
    logs, largest, total = np.empty(2 * d + 1), np.empty(2 * d + 1), np.empty(2 * d + 1)
    for s in range(len(rows)):
        largest[:] = -np.inf
        total[:] = 0.0
        drawn = rows[s]
        for row in range(n):
            whole = 0.0
            for i in range(d):
                # The distance in deviations of this row; by parts, so that equal rows give the noise exactly.
                ratio = scale[row, i] / scale[drawn, i]
                distance = (means[drawn, i] - means[row, i]) * scale[row, i] + noise[s, i] * ratio
                logs[i] = max(log_scale[row, i] - 0.5 * distance * distance, LEAST_LOG)
                logs[d + i] = whole  # of the codes before i
                whole += logs[i]
            logs[2 * d] = whole
            after = 0.0
            for i in range(
                d - 1, -1, -1
            ):  # sums, not differences: those lose all digits next to a huge distance
                logs[d + i] += after
                after += logs[i]
            for j in range(2 * d + 1):
                if logs[j] <= largest[j]:
                    total[j] += np.exp(logs[j] - largest[j])
                else:
                    total[j] = total[j] * np.exp(largest[j] - logs[j]) + 1.0
                    largest[j] = logs[j]
        for j in range(2 * d + 1):
            result[s, j] = largest[j] + np.log(total[j] / n)
    return result
