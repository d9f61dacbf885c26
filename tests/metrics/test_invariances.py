"""What the table declares a score to be unchanged by, on codes with ties, copies, dead codes and offsets."""

import dataclasses
import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from metrics.grids import grid, in_blocks, noise
from unweave.metrics import METRICS, Metric, Representation, compute
from unweave.metrics.metric import COUNTS, Change
from unweave.streams import Stream

pytestmark = pytest.mark.usefixtures("small_forests")
# Scores by models that take long to fit: they see two kinds of codes.
SLOW = {
    "downstream_logistic",
    "fairness_logistic",
    "dci_forest",
    "block_r2",
    "block_separation",
    "block_mig",
    "r2_mlp",
    "dci_es",
    "dci_es_forest",
    "dci_es_mlp",
    "r4",
}
SIZES = (3, 4)
SCALES = np.array([40.0, 0.3, 1.7])
FEW_DRAWS: dict[str, dict[str, Any]] = {
    "beta_vae_score": {"train": 200, "test": 100, "batch": 8},
    "factor_vae_score": {"train": 200, "test": 100, "batch": 8, "variance_points": 300},
    "z_max_var": {"train": 200, "test": 100, "batch": 8, "variance_points": 300},
    "downstream_strong": {"train": 80, "test": 40, "experiments": 2},
    "fairness_trees": {"train": 180, "points": 30},
    "fairness_logistic": {"train": 100, "points": 30},
    "mig_posterior": {"samples": 500},
    "flatness": {"repeats": 32},
    "factored_components": {"repeats": 32, "triplets": 8},
    "sepin": {"samples": 100},
    "dci_es_mlp": {"updates": 20},
    "block_separation": {"updates": 50},
    "block_mig": {"updates": 50},
    "r4": {"rounds": 5},
}
# Of 20 bins, some have a value on the lower edge and one that is a little below the upper edge.
ON_EDGES = np.array([0.0, 1.0, 0.97, 20.0, 2.0, 1.97, 3.0, 2.97, 5.0, 4.97, 10.0, 9.97])
# Scores that are drawn or stop early move a little.
TOLERANCE = {
    "mig_posterior": 0.05,
    "dci": 0.05,
    "dci_histogram": 0.1,
    "dci_svm": 1e-3,
    "unified_importance": 0.2,
}


def awkward() -> dict[str, NDArray[np.float64]]:
    """Codes (12, d), one row for each point of the grid."""
    factors = grid(*SIZES).astype(np.float64)
    plain = factors @ np.array([[1.0, 0.4, 0.1], [0.2, 1.0, -0.7]]) + 0.2 * noise(12, 3)
    return {
        "plain": plain,
        "tied": factors @ np.array([[1.0, 1.0, 0.0], [0.0, 1.0, 2.0]]),
        "copied": np.hstack([plain[:, :2], plain[:, :1]]),
        "dead": np.column_stack([plain[:, :2], np.full(12, 3.7)]),
        "offset": plain + np.array([1000.0, -500.0, 0.0]),
        "on a line": np.round(factors @ np.array([[10.0, 3.0, 0.1], [1.0, 7.0, 0.7]]), 1),
        "on edges of bins": np.stack([ON_EDGES, 0.1 + ON_EDGES[::-1], np.roll(ON_EDGES, 3)], axis=1),
    }


def changed(codes: NDArray[np.float64], change: Change) -> NDArray[np.float64]:
    d = codes.shape[1]
    matrices: dict[Change, NDArray[np.float64]] = {
        "permutation": np.eye(d)[:, ::-1],
        "sign": -np.eye(d),
        "scale": np.diag(SCALES),
        "rotation": np.linalg.qr(noise(d, d, 3))[0],
        "copies": np.hstack([np.eye(d), np.eye(d)]),
        "dead": np.eye(d, d + 2),
    }
    return codes @ matrices[change] if change in matrices else codes


def scores(metric: Metric, table: NDArray[np.float64], change: Change | None) -> dict[str, float]:
    """Scores of 180 points of the grid, where each point has the row of the table, changed."""
    table = table if change is None else changed(table, change)
    rows = Stream.of(4).integers(180, [len(table)])[:, 0]
    if change == "row order":
        rows = rows[Stream.of(5).permutations(1, len(rows))[0]]
    held_out = Stream.of(6).integers(60, [len(table)])[:, 0]
    factors = grid(*SIZES)
    options = {**metric.options, **FEW_DRAWS.get(metric.name, {})}
    return compute(
        dataclasses.replace(metric, options=options),
        table[rows],
        factors[rows],
        test=(table[held_out], factors[held_out]),
        log_var=np.tile(_log_var(table, change), (len(rows), 1)),
        losses=np.ones(len(rows)),
        representation=Representation.from_table(table, SIZES),
        **in_blocks(table[rows], factors[rows]),
    )


def _log_var(table: NDArray[np.float64], change: Change | None) -> NDArray[np.float64]:
    """The posterior's width follows the scale of a code; that of a dead code is the prior's."""
    scale = SCALES if change == "scale" else np.ones(table.shape[1])
    return np.where(np.ptp(table, axis=0) > 0, -3 + 2 * np.log(scale), 0.0)


@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.name)
def test_a_declared_change_leaves_a_score_alone(metric: Metric) -> None:
    for kind, table in awkward().items():
        if metric.name in SLOW and kind not in ("tied", "dead"):
            continue
        before = scores(metric, table, None)
        for change in sorted(metric.unchanged_by):
            after = scores(metric, table, change)
            for name, value in before.items():
                if name.split(".")[-1] in COUNTS:
                    continue
                gap = abs(after[name] - value)
                assert math.isfinite(gap), (kind, change, name)
                assert gap <= TOLERANCE.get(metric.name, 1e-6), (kind, change, name, value, after[name])
