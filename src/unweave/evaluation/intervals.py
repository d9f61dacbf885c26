"""How far a score from one sample of points may be from its mean over fresh samples of the same size.

A score T of n points has the mean E[T] over fresh samples of n points. An interval v ± t s around the value v
of one sample covers that mean, where s estimates the standard deviation of T and t is the 97.5% quantile of
Student's distribution with one degree of freedom less than there are repeats.

- Where points can be drawn from a ground truth, each repeat is the score of a fresh sample of n points, and s
  is the standard deviation of these.
- Where there are n rows only, each repeat is the score of a random half of them, drawn without replacement.
  If T is nearly a mean over rows with variance V/n, the score of m of them has the variance V (1/m - 1/n)
  around the score of all. With m = n/2 this is V/n: halves of n rows vary as much as fresh samples of n, and
  s needs no rescaling. This is the jackknife that deletes half of the rows [1].

Rows that are fitted to and rows that are tested on are halved apart. A metric that splits the rows itself
gets the same split in all repeats: a new split in each would add variance that fresh samples do not have. For
the difference of the means of both parts, it would double the variance.

Half samples have no row twice. A bootstrap sample does, which changes scores that count values, look for
nearest neighbours, or test on other rows than they are fitted to. That a score of n/2 points has another mean
than one of n does not matter, because the interval is centred at the value of all n.

Scores on the very points that trees were fitted to have no interval from halves (`MEMORISED`): trees memorise
half of the points better, and in a simulation only half of such intervals covered the mean.

Reference: [1] Shao and Wu, "A general theory for jackknife variance estimation", Annals of Statistics 1989.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtr, stdtrit

from unweave.streams import Stream

LEVEL = 0.95  # how often an interval covers the mean over fresh samples
LEAST_REPEATS = 2  # of which a standard deviation can be computed


def half_of(rows: NDArray[np.int64], stream: Stream) -> NDArray[np.int64]:
    """A random half of the rows without replacement, at least one."""
    half: NDArray[np.int64] = rows[stream.permutations(1, len(rows))[0][: max(len(rows) // 2, 1)]]
    return half


def interval(
    value: float, repeats: Sequence[float], bounds: tuple[float, float] = (-math.inf, math.inf)
) -> tuple[float, float] | tuple[None, None]:
    """The ends of the 95% interval around a value, cut off at `bounds`; None for fewer than two repeats.

    >>> [round(end, 3) for end in interval(0.5, [0.4, 0.6, 0.5])]
    [0.07, 0.93]
    """
    if len(repeats) < LEAST_REPEATS:
        return None, None
    reach = float(stdtrit(len(repeats) - 1, (1 + LEVEL) / 2)) * float(np.std(repeats, ddof=1))
    return min(max(value - reach, bounds[0]), value), max(min(value + reach, bounds[1]), value)


def mean_and_interval(
    values: Sequence[float], bounds: tuple[float, float] = (-math.inf, math.inf)
) -> tuple[float, float, float]:
    """The mean of independent repeats, and its 95% t-interval, cut off at `bounds`; NaN for one repeat.

    >>> [round(end, 3) for end in mean_and_interval([0.4, 0.6, 0.5])]
    [0.5, 0.252, 0.748]
    """
    centre, count = float(np.mean(values)), len(values)
    if count < LEAST_REPEATS:
        return centre, math.nan, math.nan
    reach = float(stdtrit(count - 1, (1 + LEVEL) / 2)) * float(np.std(values, ddof=1)) / math.sqrt(count)
    return centre, max(centre - reach, bounds[0]), min(centre + reach, bounds[1])


def no_interval_notes(names: Sequence[str]) -> tuple[str, ...]:
    """A note on the scores that could be measured on too few repeats."""
    if not names:
        return ()
    return (f"No interval for {', '.join(names)}: fewer than {LEAST_REPEATS} repeats can be used.",)


def probability_above_zero(value: float, repeats: Sequence[float]) -> float:
    """How sure it is that the mean over fresh samples is above 0: Student's distribution at value / s.

    >>> probability_above_zero(0.0, [0.1, -0.1]), probability_above_zero(0.1, [0.1, 0.1])
    (0.5, 1.0)
    """
    spread = float(np.std(repeats, ddof=1))
    if spread == 0:
        return 0.5 + 0.5 * float(np.sign(value))
    return float(stdtr(len(repeats) - 1, value / spread))
