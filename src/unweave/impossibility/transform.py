"""The function that entangles codes and leaves their distribution as it is.

Theorem 1 of Locatello et al., "Challenging Common Assumptions in the Unsupervised Learning of Disentangled
Representations", ICML 2019 [1]: for d > 1 independent codes there are functions f such that f(z) has the law
of z, and every new code depends on every old one everywhere. The proof builds one:

    f = g^-1 o h^-1 o A o h o g

g takes each code to (0, 1) by its distribution function, h to a standard normal number by the normal quantile
function, and A is an orthogonal matrix without an entry of 0: in the proof a reflection, I - 2 v v^T. It
turns independent standard normal numbers into independent standard normal numbers, so nothing that looks at z
alone can tell z from f(z).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Literal, Protocol, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unweave.errors import UnweaveError, did_you_mean
from unweave.metrics.checks import check_codes
from unweave.streams import Stream

Array: TypeAlias = NDArray[np.float64]
Map: TypeAlias = Callable[[Array], Array]

LEAST_ENTRY = 1e-6  # of A: smaller entries count as 0
NAMED_PRIORS = ("empirical", "normal")
NAMED_MIXINGS = ("reflection", "cosines")


class Distribution(Protocol):
    """The law of each code, such as `scipy.stats.uniform()`; parameters may differ between columns."""

    def cdf(self, x: Any, /) -> Any:
        """P(Z <= x)."""

    def sf(self, x: Any, /) -> Any:
        """P(Z > x)."""

    def ppf(self, q: Any, /) -> Any:
        """The inverse of cdf."""

    def isf(self, q: Any, /) -> Any:
        """The inverse of sf."""

    def pdf(self, x: Any, /) -> Any:
        """The density."""


def direction(d: int) -> Array:
    """Return the v of the reflection that is used where none is given: (d,), of length 1, equal entries.

    The reflection has 1 - 2/d on its diagonal and -2/d off it: the fewer codes, the more they are mixed.
    Two codes are the exception, because equal entries would swap them: there they are mixed evenly.

    >>> direction(4).tolist()
    [0.5, 0.5, 0.5, 0.5]
    """
    _refuse_few(d)
    if d == 2:
        return np.array([math.sin(math.pi / 8), math.cos(math.pi / 8)])
    return np.full(d, d**-0.5)


def reflection(v: ArrayLike) -> Array:
    """Return A = I - 2 v v^T, (d, d), for v of any length but 0; it is its own inverse.

    Refused: a v for which an entry of A is 0, because a new code would not depend on some old one. That is a
    v with an entry of 0, or with one that is half of its squared length.

    >>> reflection([1, 1, 1, 1]).tolist()[0]
    [0.5, -0.5, -0.5, -0.5]
    """
    normal = np.asarray(v)
    if normal.ndim != 1 or len(normal) < 2 or normal.dtype.kind not in "iuf":
        raise UnweaveError(f"v must be d >= 2 real numbers; got an array {normal.shape} of {normal.dtype}.")
    length = float(np.linalg.norm(normal))
    if not 0 < length < math.inf:
        raise UnweaveError(f"v must be finite and not all 0; its length is {length}.")
    unit = normal / length
    matrix = np.eye(len(unit)) - 2 * np.outer(unit, unit)
    zeros = np.argwhere(np.abs(matrix) < LEAST_ENTRY)
    if len(zeros):
        i, j = zeros[0]
        raise UnweaveError(
            f"the reflection must have no entry of 0, and that of this v has one: new code {i} would not "
            f"depend on old code {j}. Give v no entry of 0, and none whose square is half of the sum of all."
        )
    return matrix


def cosines(d: int) -> Array:
    """Return A_ij = sqrt(2/d) cos(pi (i + 1/2) (j + 1/2) / d), (d, d), for many codes.

    It mixes them more than a reflection does. This matrix of the fourth discrete cosine transform is
    orthogonal and, as it is symmetric, its own inverse. No entry is 0 for any d: (2i + 1)(2j + 1) is odd, and
    would have to be 2d times an odd number.

    >>> A = cosines(10)
    >>> bool(np.allclose(A @ A, np.eye(10))), bool(np.abs(A).max() < 0.45)
    (True, True)
    """
    _refuse_few(d)
    half = np.arange(d) + 0.5
    return math.sqrt(2 / d) * np.cos(np.pi / d * np.outer(half, half))


def entangle(
    codes: ArrayLike,
    *,
    prior: str | Distribution = "empirical",
    mixing: str | ArrayLike = "reflection",
    seed: int | Stream = 0,
) -> NDArray[Any]:
    """Return f(codes), (n, d): the same distribution, and each new code depends on all old ones.

    `prior` is the law of the codes, by which f keeps it:

    - "normal": standard normal codes. f is the reflection itself, and f(f(z)) = z.
    - a distribution of `scipy.stats`, such as `scipy.stats.laplace()`, for codes of that law; f(f(z)) = z.
    - "empirical": any codes, also whole numbers. The distribution function of a code is that of its column,
      where equal values are spread at random over the probability that they share, and a new code is one of
      the old values of its column. So factors on a grid become factors on the same grid. A code that never
      changes stays as it is.

    `mixing` is A: "reflection", I - 2 v v^T with the v of `direction`; your own v, (d,); or "cosines",
    the matrix of that function, which mixes many codes more.

    The law is kept as far as the codes are independent and follow the prior. Row i uses row i of the `seed`'s
    stream.

    >>> codes = Stream.of(0).normal(10_000, 2)
    >>> new = entangle(codes, prior="normal")
    >>> bool(np.allclose(np.cov(new.T), np.eye(2), atol=0.03))
    True
    >>> sorted(set(entangle([[0, 5], [0, 6], [1, 5], [1, 6]])[:, 1].tolist()) - {5, 6})
    []
    """
    table = check_codes(codes)
    if isinstance(prior, str) and prior == "empirical":
        return _entangle_ranks(np.asarray(codes), mixing, Stream.of(seed).child("impossibility"))
    to_normal, from_normal, _ = _maps(prior)
    return from_normal(to_normal(table) @ _matrix(mixing, np.ones(table.shape[1], np.bool_)).T)


def jacobian(
    codes: ArrayLike, *, prior: str | Distribution = "normal", mixing: str | ArrayLike = "reflection"
) -> NDArray[np.float64]:
    """Return d f_i / d z_j at each of the codes, (n, d, d): no entry is 0.

    J_ij = A_ij s_i(f(z)) / s_j(z), where s = phi(x) / p(z) is how fast a code changes with its normal number
    x, phi the standard normal density and p that of the prior. The prior is "normal", under which J = A, or a
    distribution of `scipy.stats`; an empirical one has steps and no derivative.
    """
    if isinstance(prior, str) and prior == "empirical":
        raise UnweaveError(
            'the empirical distribution has steps and no derivative. Take prior="normal", or a distribution '
            "of scipy.stats."
        )
    table = check_codes(codes)
    matrix = _matrix(mixing, np.ones(table.shape[1], np.bool_))
    to_normal, from_normal, slope = _maps(prior)
    normal = to_normal(table)
    turned = normal @ matrix.T
    after, before = slope(from_normal(turned), turned), slope(table, normal)
    product: Array = matrix * after[:, :, None] / before[:, None, :]
    return product


def _refuse_few(d: int) -> None:
    if d < 2:
        raise UnweaveError(f"only two codes or more that vary can be entangled; got {d}.")


def _matrix(mixing: str | ArrayLike, alive: NDArray[np.bool_]) -> Array:
    """A, for those codes that are alive."""
    if isinstance(mixing, str):
        if mixing not in NAMED_MIXINGS:
            raise UnweaveError(f'there is no mixing "{mixing}". {did_you_mean(mixing, NAMED_MIXINGS)}')
        d = int(alive.sum())
        return cosines(d) if mixing == "cosines" else reflection(direction(d))
    v = np.asarray(mixing)
    if v.shape != alive.shape:
        raise UnweaveError(f"v must be ({len(alive)},), one number for each code; got {v.shape}.")
    return reflection(v[alive])


def _entangle_ranks(codes: NDArray[Any], mixing: str | ArrayLike, stream: Stream) -> NDArray[Any]:
    from scipy.special import ndtr, ndtri

    n = len(codes)
    alive = (codes != codes[0]).any(axis=0)
    matrix = _matrix(mixing, alive)
    ordered = np.sort(codes, axis=0)
    below, up_to = (_ranks(ordered, codes, side) for side in ("left", "right"))
    uniform = (below + stream.uniform(*codes.shape) * (up_to - below)) / n
    turned = ndtri(uniform[:, alive]) @ matrix.T
    rank = np.minimum((ndtr(turned) * n).astype(np.int64), n - 1)
    out = codes.copy()
    out[:, alive] = np.take_along_axis(ordered[:, alive], rank, axis=0)
    return out


def _ranks(ordered: NDArray[Any], codes: NDArray[Any], side: Literal["left", "right"]) -> NDArray[np.int64]:
    """How many values of its column are less than each code, or with side "right" not larger."""
    pairs = zip(ordered.T, codes.T, strict=True)
    return np.stack([np.searchsorted(column, values, side) for column, values in pairs], axis=1)


def _maps(prior: str | Distribution) -> tuple[Map, Map, Callable[[Array, Array], Array]]:
    """Codes -> normal numbers, normal numbers -> codes, and the slope d code / d normal of both."""
    from scipy.special import ndtr, ndtri

    if isinstance(prior, str):
        if prior != "normal":
            raise UnweaveError(f'there is no prior "{prior}". {did_you_mean(prior, NAMED_PRIORS)}')
        return (lambda z: z), (lambda x: x), lambda z, _: np.ones_like(z)
    if not all(hasattr(prior, name) for name in ("cdf", "sf", "ppf", "isf", "pdf")):
        raise UnweaveError(
            'prior must be "empirical", "normal", or a distribution such as scipy.stats.uniform(); got '
            f"{type(prior).__name__}."
        )

    # Each half by the smaller of the two tails, which keeps its digits far out.
    def to_normal(z: Array) -> Array:
        below, above = prior.cdf(z), prior.sf(z)
        x: Array = np.where(below < above, ndtri(below), -ndtri(above))
        if not np.isfinite(x).all():
            row, column = np.argwhere(~np.isfinite(x))[0]
            raise UnweaveError(
                f"codes must lie inside of the prior; {z[row, column]:g} in row {row}, column {column} does "
                'not. Give the distribution that the codes have, or prior="empirical".'
            )
        return x

    def from_normal(x: Array) -> Array:
        tail = ndtr(-np.abs(x))
        z: Array = np.where(x < 0, prior.ppf(tail), prior.isf(tail))
        return z

    def slope(z: Array, x: Array) -> Array:
        density: Array = np.exp(-(x**2) / 2) / math.sqrt(2 * math.pi) / prior.pdf(z)
        return density

    return to_normal, from_normal, slope
