"""FactorVAE score: whether holding a factor fixed makes one and the same code hold still.

Kim and Mnih, "Disentangling by factorising", ICML 2018, section 4.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from unweave.compilation import compiled
from unweave.errors import UnweaveError
from unweave.metrics.checks import scaled
from unweave.metrics.representation import Representation, check_count, check_representation, parts
from unweave.streams import Stream


class FactorVAEScore(NamedTuple):
    """Share of votes that the majority rule gets right, on its own votes and on fresh ones; active codes."""

    train_accuracy: float
    eval_accuracy: float
    active: int


class _Codes(NamedTuple):
    """The active codes and how to bring them to variance 1."""

    active: NDArray[np.int64]
    exponents: NDArray[np.int32]
    centre: NDArray[np.float64]
    deviation: NDArray[np.float64]


def factor_vae_score(
    representation: Representation,
    *,
    batch: int = 64,
    train: int = 10_000,
    test: int = 5_000,
    variance_points: int = 10_000,
    threshold: float = 0.05,
    seed: int | Stream = 0,
) -> FactorVAEScore:
    """Accuracy of naming the fixed factor from the code that varies least [1].

    A vote: choose a factor k and a value; draw `batch` points with v_k at that value; the vote is
    (k, argmin_d Var_batch(z_d) / Var(z_d)), with the global variance from `variance_points` draws (both
    with n - 1). Only active codes stand for election: those of standard deviation >= `threshold`. From
    `train` votes each code learns the factor that it was most often chosen for (the first of equals; factor
    0 if never chosen); eval_accuracy is the share of `test` fresh votes in which that factor is k.

    Range: about 1/K (chance) to 1; higher is better. With no active code all accuracies are 0, as published.

    From rows (`Representation.from_rows`), only values that several rows share are held fixed. One random
    half of the rows gives the training votes and the other the test votes.

    Differs from [1]: `threshold` is compared with the standard deviation, as in the published study [2]; the
    paper speaks of the variance. Differs from [2]: `active` is the number of active codes (there: of all
    codes), and a constant code is never active (there: with threshold 0 it won every vote).

    References: [1] Kim and Mnih, ICML 2018. [2] Locatello et al., "Challenging common assumptions in the
    unsupervised learning of disentangled representations", ICML 2019.

    >>> perfect = Representation(lambda factors, stream: factors / 3.0, sizes=(4, 4, 4))
    >>> factor_vae_score(perfect, train=200, test=100)
    FactorVAEScore(train_accuracy=1.0, eval_accuracy=1.0, active=3)
    """
    check_representation(representation)
    check_count("batch", batch, least=2)
    check_count("train", train)
    check_count("test", test)
    check_count("variance_points", variance_points, least=2)
    if not threshold >= 0:
        raise UnweaveError(f"threshold is a standard deviation, 0 or more; got {threshold!r}.")
    stream = Stream.of(seed).child("factor_vae_score")
    codes = _active(representation.draw(variance_points, stream.child("variance"))[0], threshold)
    if not len(codes.active):
        return FactorVAEScore(0.0, 0.0, 0)
    to_fit, to_test = representation.separated(stream)
    votes = _votes(to_fit, codes, train, batch, stream.child("train"))
    fresh = _votes(to_test, codes, test, batch, stream.child("test"))
    rule = votes.argmax(axis=0)
    chosen = np.arange(len(codes.active))
    return FactorVAEScore(
        float(votes[rule, chosen].sum() / train), float(fresh[rule, chosen].sum() / test), len(codes.active)
    )


def _active(codes: NDArray[np.float64], threshold: float) -> _Codes:
    safe, exponents = scaled(codes, axis=0)
    deviation = safe.std(axis=0, ddof=1)
    varies = (codes != codes[0]).any(axis=0)
    active = np.flatnonzero(varies & (np.ldexp(deviation, exponents) >= threshold))
    return _Codes(active, exponents[active], safe.mean(axis=0)[active], deviation[active])


def _votes(
    representation: Representation, codes: _Codes, votes: int, batch: int, stream: Stream
) -> NDArray[np.int64]:
    """(k, active codes): how often each code varied least while each factor was fixed."""
    sizes = representation.sizes
    fixed = stream.child("fixed").integers(votes, [len(sizes)])[:, 0]
    table = np.zeros((len(sizes), len(codes.active)), np.int64)
    # Half of each power, since a whole one may be beyond the range of a float.
    halves = np.stack([-codes.exponents // 2, -codes.exponents - (-codes.exponents // 2)], axis=1)
    powers = np.ldexp(1.0, halves)
    for first, count in parts(votes, batch, representation.width):
        rows = stream.skip(first * batch)
        factors = rows.child("factors").integers(count * batch, sizes)
        held = fixed[first : first + count]
        groups = factors.reshape(count, batch, len(sizes))
        groups[np.arange(count), :, held] = groups[np.arange(count), 0, held][:, None]
        drawn = representation.codes(factors, rows.child("codes"), np.repeat(held, batch))
        stillest = _stillest(drawn, batch, codes.active, powers, codes.centre, codes.deviation)
        np.add.at(table, (held, stillest), 1)
    return table


@compiled(nogil=True)
def _stillest(drawn, batch, active, powers, centre, deviation):  # type: ignore[no-untyped-def]
    """The active code that varies least within each `batch` rows, brought to variance 1 overall."""
    best = np.empty(len(drawn) // batch, np.int64)
    group = np.empty((batch, len(active)))
    for b in range(len(best)):
        mean, variance = np.zeros(len(active)), np.zeros(len(active))
        for i in range(batch):
            for j in range(len(active)):
                value = drawn[b * batch + i, active[j]] * powers[j, 0] * powers[j, 1]
                group[i, j] = (value - centre[j]) / deviation[j]
                mean[j] += group[i, j]
        mean /= batch
        for i in range(batch):
            for j in range(len(active)):
                variance[j] += (group[i, j] - mean[j]) ** 2
        best[b] = variance.argmin()
    return best
