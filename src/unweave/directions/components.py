"""Directions by the distribution of codes: PCA, PCA of activations (GANSpace), and ICA.

[1] Härkönen, Hertzmann, Lehtinen, Paris: GANSpace: Discovering Interpretable GAN Controls, NeurIPS 2020.
[2] Hyvärinen: Fast and Robust Fixed-Point Algorithms for Independent Component Analysis, IEEE Transactions on
    Neural Networks 10(3), 1999.
"""

from __future__ import annotations

import warnings
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from unweave.directions.directions import (
    Directions,
    Fitted,
    Floats,
    LinearReader,
    checked_count,
    linear_directions,
    signs,
)
from unweave.errors import UnweaveError
from unweave.metrics.checks import check_codes
from unweave.streams import Stream

WIDE = 2048  # codes with more numbers are decomposed by randomised SVD, unless all directions are asked for
ROUNDS = 1000  # of FastICA at most
SMALL = 1e-10  # variances below this share of the largest are rounding errors


class Components(NamedTuple):
    """Orthonormal principal directions (k, d), the variances along them, and where codes lie."""

    directions: Floats
    variances: Floats
    mean: Floats
    centred: Floats

    @property
    def explained(self) -> Floats:
        """The share of the total variance of each direction."""
        return np.asarray(self.variances / self.centred.var(axis=0).sum())


def pca(codes: ArrayLike, k: int | None = None, *, seed: int | Stream = 0) -> Directions:
    """The k directions in which codes (n, d) vary most, by principal component analysis.

    On the codes w of a StyleGAN this is GANSpace [1]. `k` is as many as codes vary in by default. `seed` is
    used for codes of more than 2,048 numbers only, whose decomposition is randomised.

    >>> codes = Stream.of(0).normal(500, 2) * [3, 1]
    >>> found = pca(codes, 1)
    >>> abs(found.directions.round(1)).tolist(), bool(found.explained[0] > 0.85)
    ([[1.0, 0.0]], True)
    """
    found = components(codes, k, Stream.of(seed))
    randomised = _is_randomised(found.centred.shape[1], k)
    fitted = Fitted("pca", len(found.centred), seed if randomised and isinstance(seed, int) else None)
    return Directions(
        found.directions, found.mean, found.explained, LinearReader(found.directions, found.mean), fitted
    )


def ganspace(
    activations: ArrayLike, latents: ArrayLike, k: int | None = None, *, seed: int | Stream = 0
) -> Directions:
    """Directions in latents (n, d) that follow the k principal components of activations (n, m).

    As in [1], eq. 2, for generators without an intermediate latent space: the principal coordinates x of the
    activations of a layer predict the latents z by least squares, min_U sum |U x - z|^2. The directions are
    the columns of U with unit length. `explained` is the share of the variance of the activations. By
    default, `k` is d, or as many as activations vary in if these are fewer.
    """
    targets = check_codes(latents, "latents")
    width = targets.shape[1]
    checked_count(k, width, f"latents have {width} numbers")
    found = components(activations, k, Stream.of(seed), "activations", width)
    if len(targets) != len(found.centred):
        raise UnweaveError(
            f"latents must have {len(found.centred)} rows like activations; got {len(targets)}."
        )
    mean = targets.mean(axis=0)
    coordinates = found.centred @ found.directions.T / np.sqrt(found.variances)
    columns = np.linalg.lstsq(coordinates, targets - mean)[0]
    lengths = np.linalg.norm(columns, axis=1, keepdims=True)
    if (lengths <= np.sqrt(SMALL) * np.linalg.norm(targets.std(axis=0))).any():
        raise UnweaveError(
            "activations do not depend linearly on latents along all components. Ask for a smaller k, and "
            "check that row i of both is of the same sample."
        )
    directions = columns / lengths
    fitted = Fitted("ganspace", len(targets), seed if isinstance(seed, int) else None)
    matrix = np.linalg.pinv(directions.T)
    return Directions(directions, mean, found.explained, LinearReader(matrix, mean), fitted)


def ica(codes: ArrayLike, k: int | None = None, *, seed: int | Stream = 0) -> Directions:
    """k independent components of codes (n, d), by FastICA [2] with the contrast log cosh.

    Codes are whitened along their k principal directions first, so new codes have variance 1. Directions are
    sorted by the variance that they add to the codes. At most one component may be Gaussian: independent
    Gaussian codes stay so under any rotation, and their directions are arbitrary. `seed` sets the start.
    """
    from sklearn.decomposition import FastICA  # type: ignore[import-untyped]
    from sklearn.exceptions import ConvergenceWarning  # type: ignore[import-untyped]

    stream = Stream.of(seed).child("ica")
    found = components(codes, k, stream)
    whitening = found.directions / np.sqrt(found.variances)[:, None]
    count = len(whitening)
    analysis = FastICA(whiten=False, fun="logcosh", max_iter=ROUNDS, w_init=stream.normal(count, count))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        analysis.fit(found.centred @ whitening.T)
    matrix: Floats = analysis.components_ @ whitening
    moves = np.asarray(np.linalg.pinv(matrix).T, np.float64)
    added = np.square(moves).sum(axis=1)
    order = np.argsort(-added, kind="stable")
    matrix = matrix[order] * signs(moves[order])
    remark = ""
    if analysis.n_iter_ >= ROUNDS:
        remark = (
            f"FastICA did not converge in {ROUNDS:,} rounds, so the directions may be arbitrary. Codes that "
            "are nearly Gaussian have no independent components."
        )
    fitted = Fitted("ica", len(found.centred), seed if isinstance(seed, int) else None, remark=remark)
    return linear_directions(matrix, found.mean, added[order] / found.centred.var(axis=0).sum(), fitted)


def components(
    codes: ArrayLike, k: int | None, stream: Stream, what: str = "codes", limit: int | None = None
) -> Components:
    """The k principal directions of codes (n, d); by default all in which they vary, `limit` at most."""
    table = check_codes(codes, what)
    mean = table.mean(axis=0)
    centred = table - mean
    most = min(table.shape[1], len(table) - 1)
    count = min(checked_count(k, most, f"{what} are {table.shape}"), limit or most)
    if not centred.any():
        raise UnweaveError(f"{what} must differ from each other; all rows are the same.")
    if _is_randomised(table.shape[1], k or limit):
        directions, variances = _randomised(centred, count, stream)
    else:
        squares, vectors = np.linalg.eigh(centred.T @ centred / len(centred))
        directions, variances = vectors.T[::-1][:count], squares[::-1][:count]
    varied = int((variances > SMALL * variances[0]).sum())
    if k is not None and varied < count:
        raise UnweaveError(f"{what} vary in {varied} directions only; got k = {k}. Ask for at most {varied}.")
    directions = directions[:varied] * signs(directions[:varied])
    return Components(directions, variances[:varied], mean, centred)


def _is_randomised(width: int, k: int | None) -> bool:
    return width > WIDE and k is not None


def _randomised(centred: Floats, count: int, stream: Stream) -> tuple[Floats, Floats]:
    from sklearn.utils.extmath import randomized_svd  # type: ignore[import-untyped]

    state = int(stream.child("svd").bits(1, 1)[0, 0])
    _, values, vectors = randomized_svd(centred, count, n_iter=7, random_state=state)
    return vectors, np.square(values) / len(centred)
