"""BetaVAE score: whether a linear classifier can tell which factor two images share.

Higgins et al., "beta-VAE: learning basic visual concepts with a constrained variational framework",
ICLR 2017, section 3.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from unweave.compilation import compiled
from unweave.errors import UnweaveError
from unweave.metrics.estimators.linear import decisions, logistic_one_vs_rest
from unweave.metrics.representation import Representation, check_count, check_representation, parts
from unweave.streams import Stream


class BetaVAEScore(NamedTuple):
    """Share of points whose shared factor the classifier names, on its training points and on fresh ones."""

    train_accuracy: float
    eval_accuracy: float


def beta_vae_score(
    representation: Representation,
    *,
    batch: int = 64,
    train: int = 10_000,
    test: int = 5_000,
    seed: int | Stream = 0,
) -> BetaVAEScore:
    """Accuracy of a linear classifier that names the factor which pairs of images share [1].

    A point: choose a factor k; draw `batch` pairs of factors (v, v') with v'_k = v_k; the features are
    mean |z(v) - z(v')| over the pairs, d numbers; the label is k. The classifier is one-versus-rest logistic
    regression with penalised intercept and C = 1, on features as they are (not standardised), trained on
    `train` points; eval_accuracy is its accuracy on `test` fresh ones.

    Range: about 1/K (chance) to 1; higher is better. With a single factor it is 1.

    From rows (`Representation.from_rows`), a pair is two different rows with the same value of the factor;
    values that one row has are never drawn. One random half of the rows gives the training points and the
    other the test points, so that codes of pure noise score 1/K.

    Differs from [1]: the pairs share the factor's value pairwise, it varies from pair to pair, as in the
    published study [2]; the classifier is the default of the scikit-learn (0.21) of [2], as an exact optimum.

    References: [1] Higgins et al., ICLR 2017. [2] Locatello et al., "Challenging common assumptions in the
    unsupervised learning of disentangled representations", ICML 2019.

    >>> perfect = Representation(lambda factors, stream: factors / 3.0, sizes=(4, 4, 4))
    >>> beta_vae_score(perfect, train=200, test=100)
    BetaVAEScore(train_accuracy=1.0, eval_accuracy=1.0)
    """
    check_representation(representation)
    for name, count in (("batch", batch), ("train", train), ("test", test)):
        check_count(name, count)
    stream = Stream.of(seed).child("beta_vae_score")
    to_fit, to_test = representation.separated(stream)
    features, labels = _points(to_fit, train, batch, stream.child("train"))
    weights = logistic_one_vs_rest(features, labels, len(representation.sizes))
    fresh, fresh_labels = _points(to_test, test, batch, stream.child("test"))
    return BetaVAEScore(_accuracy(weights, features, labels), _accuracy(weights, fresh, fresh_labels))


def _points(
    representation: Representation, points: int, batch: int, stream: Stream
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    sizes = representation.sizes
    shared = stream.child("shared").integers(points, [len(sizes)])[:, 0]
    features = []
    for first, count in parts(points, batch, representation.width):
        rows = stream.skip(first * batch)
        one = rows.child("factors", "one").integers(count * batch, sizes)
        other = rows.child("factors", "other").integers(count * batch, sizes)
        held = np.repeat(shared[first : first + count], batch)
        column = held[:, None]
        np.put_along_axis(other, column, np.take_along_axis(one, column, axis=1), axis=1)
        codes, other_codes = representation.pairs(one, other, rows.child("codes"), held)
        features.append(_mean_distances(codes, other_codes, batch))
    table = np.concatenate(features)
    if not np.isfinite(table).all():
        raise UnweaveError("codes are too far apart: their differences are not finite. Rescale them.")
    return table, shared


@compiled(nogil=True)
def _mean_distances(one, other, batch):  # type: ignore[no-untyped-def]
    """Mean over each `batch` rows of |one - other|, (rows / batch, d)."""
    means = np.zeros((len(one) // batch, one.shape[1]))
    for i in range(len(one)):
        for j in range(one.shape[1]):
            means[i // batch, j] += abs(one[i, j] - other[i, j])
    return means / batch


def _accuracy(
    weights: NDArray[np.float64], features: NDArray[np.float64], labels: NDArray[np.int64]
) -> float:
    return float((decisions(features, weights).argmax(axis=1) == labels).mean())
