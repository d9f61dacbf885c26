"""`frechet_distance`: how far generated images are from those of the data, by features of a classifier [1].

[1] Heusel, Ramsauer, Unterthiner, Nessler, Hochreiter: GANs trained by a two time-scale update rule converge
to a local Nash equilibrium, NeurIPS 2017.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unweave.data.grid import GroundTruth
from unweave.errors import UnweaveError
from unweave.evaluation.intervals import half_of, interval
from unweave.evaluation.judges import judge_of
from unweave.evaluation.opened_run import opened_run
from unweave.progress import Progress
from unweave.streams import Stream

IMAGES = 5000
LEAST_IMAGES = 4  # whose halves, for the interval, still have a covariance
REPEATS = 10  # random halves of the images, for the interval

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class FrechetDistance:
    """The distance of generated images from images of the data; lower is better, 0 at best.

    `low` and `high` are the ends of its 95% interval. `floor` is the distance of two independent samples of
    the data, of `images` each as well, which the distance of perfect images has too. `features` is how many
    features are compared, and `accuracy` by how much the classifier that they are from is right, mean over
    all factors.
    """

    subject: str
    data: str
    distance: float
    low: float | None
    high: float | None
    floor: float
    images: int
    features: int
    accuracy: float

    def __str__(self) -> str:
        return (
            f"Frechet distance {self.distance:.3g} ({self.low:.3g} to {self.high:.3g}), of real images "
            f"{self.floor:.3g}; {self.images:,} images, {self.features} features of a classifier with "
            f"accuracy {self.accuracy:.2f}"
        )


def frechet_distance(
    run: Any, *, images: int = IMAGES, seed: int | Stream = 0, progress: Progress | None = None
) -> FrechetDistance:
    """Compare images that a run, or that in a folder, generates with images of its data.

    |m - m'|^2 + tr(C + C' - 2 (C C')^(1/2)), with means m and covariances C of features of both kinds of
    images; [1], equation 6.

    The features are those of the last hidden layer of a network that predicts all factors, trained on the
    data set once, which takes minutes on a CPU, and kept in the cache folder. `images` generated and as many
    drawn images are compared. Distances can be compared if they have the same data and number of images.

    Differs from [1]: no Inception network, which was trained on photographs; numbers are of another scale.
    """
    run = opened_run(run, "frechet_distance")
    truth = run.data
    if not isinstance(truth, GroundTruth):
        raise UnweaveError(
            f"frechet_distance needs a classifier of factors, and {truth.name} is no full grid of factors."
        )
    if isinstance(images, bool) or not isinstance(images, int | np.integer) or images < LEAST_IMAGES:
        raise UnweaveError(f"images must be a whole number >= {LEAST_IMAGES}; got {images!r}.")
    stream = Stream.of(seed).child("frechet distance")
    sampled = run.sample(int(images), stream)  # first, because it refuses methods that cannot draw images
    judge = judge_of(truth, progress=progress)
    real, other = (
        judge.features(truth.observe(truth.sample_factors(images, drawn), drawn)).astype(np.float64)
        for drawn in (stream.child("real"), stream.child("other real"))
    )
    generated = judge.features(sampled).astype(np.float64)
    distance = distance_of_samples(generated, real)
    rows = np.arange(images)
    halves = [
        distance_of_samples(
            generated[half_of(rows, stream.child("generated half", repeat))],
            real[half_of(rows, stream.child("real half", repeat))],
        )
        for repeat in range(REPEATS)
    ]
    low, high = interval(distance, halves, (0.0, np.inf))
    floor, accuracy = distance_of_samples(other, real), float(judge.accuracy.mean())
    return FrechetDistance(
        str(run.path), truth.name, distance, low, high, floor, int(images), real.shape[1], accuracy
    )


def distance_of_samples(first: ArrayLike, second: ArrayLike) -> float:
    """The Frechet distance of normal distributions with the means and covariances of samples (n, d)."""
    samples = [np.asarray(rows, np.float64) for rows in (first, second)]
    mean, other_mean = (rows.mean(axis=0) for rows in samples)
    if min(map(len, samples)) >= samples[0].shape[1]:
        covariance, other_covariance = (np.cov(rows, rowvar=False, ddof=1) for rows in samples)
        return distance_of_normals(mean, covariance, other_mean, other_covariance)
    # C = A^T A and C' = B^T B: the eigenvalues of C C' are the squared singular values of A B^T, which is
    # the smaller matrix if there are few samples.
    a, b = ((rows - rows.mean(axis=0)) / np.sqrt(len(rows) - 1) for rows in samples)
    cross = np.linalg.svd(a @ b.T, compute_uv=False).sum()
    within = np.square(a).sum() + np.square(b).sum() - 2 * cross
    return max(0.0, float(np.square(mean - other_mean).sum() + within))


def distance_of_normals(
    mean: ArrayLike, covariance: ArrayLike, other_mean: ArrayLike, other_covariance: ArrayLike
) -> float:
    """The squared Frechet distance of two normal distributions; means (d,), covariances (d, d).

    >>> float(round(distance_of_normals([0.0], [[1.0]], [3.0], [[4.0]]), 6))
    10.0
    """
    first, second = (np.atleast_2d(np.asarray(c, np.float64)) for c in (covariance, other_covariance))
    root = _square_root(first)
    # The product of covariances has the eigenvalues of this symmetric matrix.
    eigenvalues = np.linalg.eigvalsh(root @ second @ root)
    between = np.square(np.asarray(mean, np.float64) - np.asarray(other_mean, np.float64)).sum()
    within = np.trace(first) + np.trace(second) - 2 * np.sqrt(eigenvalues.clip(min=0)).sum()
    return max(0.0, float(between + within))


def _square_root(matrix: Floats) -> Floats:
    """The symmetric square root of a covariance."""
    values, vectors = np.linalg.eigh(matrix)
    return np.asarray((vectors * np.sqrt(values.clip(min=0))) @ vectors.T)
