"""The reference cases: arrays of codes, the representation they are drawn from, and the published values."""

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unweave.metrics.representation import Representation
from unweave.streams import Stream

NAMES = [
    "dsp_perfect",
    "dsp_rot45_pairs",
    "dsp_duplicated",
    "dsp_dead_dims",
    "dsp_noisy_0.5",
    "dsp_small_scale",
    "s3d_two_in_one",
    "s3d_missing_factors_D4",
    "norb_noisy_0.3",
    "cars_perfect",
]


@dataclass(frozen=True)
class Case:
    """One case; `expected` are the values of the published scikit-learn, 0.21."""

    train: tuple[NDArray[Any], NDArray[Any]]
    test: tuple[NDArray[Any], NDArray[Any]]
    representation: Representation
    expected: dict[str, Any]


@cache
def load_case(folder: Path, name: str) -> Case:
    facts = json.loads((folder / "reference" / "metric_cases.json").read_text())[name]
    with np.load(folder / "reference" / "metric_cases.npz", allow_pickle=False) as arrays:
        part = {
            key.removeprefix(f"{name}/"): arrays[key] for key in arrays.files if key.startswith(f"{name}/")
        }
    return Case(
        train=(part["codes_train"], part["factors_train"]),
        test=(part["codes_test"], part["factors_test"]),
        representation=_additive(part["table"], part["sigma"], tuple(facts["factor_sizes"])),
        expected=facts["expected"]["sklearn_0.21"],
    )


def _additive(table: NDArray[Any], sigma: NDArray[Any], sizes: tuple[int, ...]) -> Representation:
    """code(y) = sum_j T_j[y_j] + sigma * noise; the rows of T_0, T_1, ... lie one after another."""
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])

    def encode(factors: NDArray[np.int64], stream: Stream) -> NDArray[np.float64]:
        codes = table[factors + starts].sum(axis=1)
        return np.asarray(codes + sigma * stream.normal(len(factors), len(sigma)))

    return Representation(encode, sizes)
