"""Z-max variance: whether changing one factor makes one and the same code vary most.

Kim, Wang, Sahu, Pavlovic, "Relevance Factor VAE: Learning and Identifying Disentangled Factors",
arXiv:1902.01568, 2019 [1]; settings of Carbonneau et al., "Measuring Disentanglement: A Review of Metrics",
2022 [2].
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from unweave.metrics.real_factors import standardised
from unweave.metrics.representation import Representation, check_count, check_representation, parts
from unweave.streams import Stream


class ZMaxVar(NamedTuple):
    """Share of votes that the majority rule gets right, on its own votes and on fresh ones; active codes."""

    train_accuracy: float
    eval_accuracy: float
    active: int


def z_max_var(
    representation: Representation,
    *,
    batch: int = 200,
    train: int = 800,
    test: int = 800,
    variance_points: int = 10_000,
    threshold: float = 0.05,
    seed: int | Stream = 0,
) -> ZMaxVar:
    """Return the accuracy of naming the one factor that changes from the code that varies most.

    A vote: choose a factor j; draw values of all other factors; draw `batch` points that differ only in
    factor j; the vote is (j, argmax_i Var_batch(z_i) / Var(z_i)), with the global variance from
    `variance_points` draws. Only codes of standard deviation >= `threshold` count. From `train` votes each
    code learns the factor it was chosen for most often; eval_accuracy is the share of `test` fresh votes that
    this rule names rightly. It is the counterpart of `factor_vae_score`, which fixes one factor and looks for
    the code that varies least.

    From about 1/k (chance) to 1; higher is better. With no active code all accuracies are 0.

    Differs from [2]: accuracies are not rescaled, (a - 1/k) / (1 - 1/k); points are drawn from a
    representation, not from rows with equal values; votes name codes, where the program of [2] numbers active
    codes only.

    >>> perfect = Representation(lambda factors, stream: factors / 3.0, sizes=(4, 4, 4))
    >>> z_max_var(perfect, train=100, test=50)
    ZMaxVar(train_accuracy=1.0, eval_accuracy=1.0, active=3)
    """
    check_representation(representation)
    for name, count, least in (("batch", batch, 2), ("train", train, 1), ("test", test, 1)):
        check_count(name, count, least)
    check_count("variance_points", variance_points, least=2)
    representation.require_grid("z_max_var needs")
    stream = Stream.of(seed).child("z_max_var")
    reference = representation.draw(variance_points, stream.child("variance"))[0]
    with np.errstate(over="ignore"):  # an infinite deviation is above any threshold
        active = np.flatnonzero(
            (reference != reference[0]).any(axis=0) & (reference.std(axis=0) >= threshold)
        )
    if not len(active):
        return ZMaxVar(0.0, 0.0, 0)
    reference = reference[:, active]
    votes, fresh = (
        _votes(representation, reference, active, count, batch, stream.child(name))
        for name, count in (("train", train), ("test", test))
    )
    rule, chosen = votes.argmax(axis=0), np.arange(len(active))
    accuracies = [float(table[rule, chosen].sum() / table.sum()) for table in (votes, fresh)]
    return ZMaxVar(accuracies[0], accuracies[1], len(active))


def _votes(
    representation: Representation,
    reference: NDArray[np.float64],
    active: NDArray[np.int64],
    votes: int,
    batch: int,
    stream: Stream,
) -> NDArray[np.int64]:
    """(k, active codes): how often each code varied most while each factor changed."""
    sizes = representation.sizes
    changed = stream.child("changed").integers(votes, [len(sizes)])[:, 0]
    others = stream.child("others").integers(votes, sizes)
    table = np.zeros((len(sizes), len(active)), np.int64)
    for first, count in parts(votes, batch):
        rows = stream.skip(first * batch)
        free = changed[first : first + count]
        factors = np.repeat(others[first : first + count], batch, axis=0)
        own = np.repeat(free, batch)
        drawn = rows.child("factors").integers(count * batch, sizes)
        factors[np.arange(len(own)), own] = drawn[np.arange(len(own)), own]
        codes = representation.codes(factors, rows.child("codes"))[:, active]
        units = standardised(reference, codes)[1].reshape(count, batch, -1)
        np.add.at(table, (free, units.var(axis=1).argmax(axis=1)), 1)
    return table
