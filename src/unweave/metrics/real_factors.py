"""Codes and real-valued factors: the checks and scalings of metrics that treat factors as numbers."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unweave.errors import UnweaveError
from unweave.metrics.checks import FactorError, check_codes_factors, scaled

Floats = NDArray[np.float64]

# A standardised test code can be this many deviations out, and its square is still a number.
FARTHEST = 1e100


class RealSplit(NamedTuple):
    """Checked arrays to fit on, and checked arrays to test on; factors are real numbers."""

    codes: Floats  # (n, d)
    factors: Floats  # (n, k)
    test_codes: Floats  # (m, d)
    test_factors: Floats  # (m, k)


def split_real(
    codes: ArrayLike, factors: ArrayLike, test: tuple[ArrayLike, ArrayLike] | None = None
) -> RealSplit:
    """Check codes and real-valued factors, and return them with the test data.

    Without `test`, the last third of the rows is held out.
    """
    checked, numbers = check_codes_factors(codes, factors, discrete=False)
    if test is None:
        rest = len(checked) - len(checked) // 3
        if rest == len(checked):
            raise UnweaveError(
                f"Holding out the last third needs at least 3 rows; got {len(checked)}. "
                "Pass more rows, or test=(codes, factors)."
            )
        for column, values in enumerate(numbers[:rest].T):
            if (values == values[0]).all():
                raise FactorError(
                    f"Each factor must take at least two values; {{factor}} is {values[0]:g} in all "
                    "rows that are not held out. Shuffle the rows.",
                    column,
                )
        return RealSplit(checked[:rest], numbers[:rest], checked[rest:], numbers[rest:])
    if not isinstance(test, tuple | list) or len(test) != 2:
        raise UnweaveError(f"`test` must be a pair (codes, factors); got {type(test).__name__}.")
    test_codes, test_numbers = check_codes_factors(*test, discrete=False, varied=False)
    if (test_codes.shape[1], test_numbers.shape[1]) != (checked.shape[1], numbers.shape[1]):
        raise UnweaveError(
            f"Test data must have {checked.shape[1]} codes and {numbers.shape[1]} factors like the training "
            f"data; got {test_codes.shape[1]} and {test_numbers.shape[1]}."
        )
    return RealSplit(checked, numbers, test_codes, test_numbers)


def standardised(train: Floats, test: Floats) -> tuple[Floats, Floats]:
    """Return both tables, shifted and scaled so that the columns of `train` have mean 0 and variance 1.

    A constant column of `train` becomes 0 in both tables. Huge and tiny columns keep their precision.

    >>> train, test = standardised(np.array([[0.0], [2.0]]), np.array([[4.0]]))
    >>> train.ravel().tolist(), test.ravel().tolist()
    ([-1.0, 1.0], [3.0])
    """
    outer, exponents = scaled(train, axis=0)
    # Shifting by the first row is exact for close values, so columns of neighbouring numbers keep a variance.
    inner, further = scaled(outer - outer[0], axis=0)
    centre, deviation = inner.mean(axis=0), inner.std(axis=0)
    varies = deviation > 0
    deviation = np.where(varies, deviation, 1.0)
    with np.errstate(over="ignore", invalid="ignore"):
        shifted = np.ldexp(np.ldexp(test, -exponents) - outer[0], -further)
        held_out = np.clip((shifted - centre) / deviation, -FARTHEST, FARTHEST)
    return (inner - centre) / deviation * varies, np.where(varies, held_out, 0.0)


def explained_variance(truth: Floats, prediction: Floats) -> Floats:
    """Return R^2 of each column: 1 - squared error / squared deviation from the mean; 0 if it is constant.

    >>> explained_variance(np.array([[0.0], [2.0]]), np.array([[0.0], [1.0]])).tolist()
    [0.5]
    """
    error = ((truth - prediction) ** 2).sum(axis=0)
    total = ((truth - truth.mean(axis=0)) ** 2).sum(axis=0)
    varies = (truth != truth[0]).any(axis=0) & (total > 0)
    return np.where(varies, 1 - error / np.where(varies, total, 1.0), 0.0)
