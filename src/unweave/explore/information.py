"""Mutual information of codes and factors, corrected for what chance alone gives."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from unweave.metrics.information import discretise, entropies, information_of_labels, numbered
from unweave.streams import Stream

SHUFFLES = 4


def corrected_information(codes: NDArray[np.float32], factors: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return I(z_i; v_j) in nats, (d, k), of codes (n, d) in 20 bins and factors (n, k).

    The plug-in estimate I is above 0 for unrelated columns, by about (bins - 1)(values - 1) / 2n. This excess
    E is measured with shuffled rows. The result is M (I - E) / (M - E), at least 0, where M is the largest
    possible value, min(H(z_i), H(v_j)): the adjusted mutual information of [1], in nats. It is M where I = M.

    [1] Vinh, Epps and Bailey (2010). Information theoretic measures for clusterings comparison. JMLR 11.
    """
    bins, values = discretise(codes), numbered(factors)
    orders = Stream.of(0).child("explore", "shuffle").permutations(SHUFFLES, len(values))
    by_chance = np.mean([information_of_labels(bins, values[order]) for order in orders], axis=0)
    largest = np.minimum(entropies(bins)[:, None], entropies(values)[None])
    found = information_of_labels(bins, values)
    room = largest - by_chance
    share = np.divide(found - by_chance, room, out=np.zeros_like(room), where=room > 0)
    return np.asarray(np.clip(share, 0.0, 1.0) * largest)
