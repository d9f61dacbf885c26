"""Data sets of the library `datasets`, in and out."""

import sys
from dataclasses import replace

import numpy as np
import pytest

from training.tiny import FACTORS, TINY
from unweave.data import GroundTruth, from_arrays
from unweave.data.grid import Factor
from unweave.errors import UnweaveError
from unweave.integrations import from_hf_dataset, to_hf_dataset

pytestmark = pytest.mark.filterwarnings("ignore")  # those of datasets, dill and pyarrow
LABELLED = replace(TINY, factors=(Factor("size", 3, "categorical", ("s", "m", "l")), *FACTORS[1:]))


def test_there_and_back() -> None:
    datasets = pytest.importorskip("datasets", reason="the library datasets is not installed")
    there = to_hf_dataset(LABELLED)
    assert len(there) == len(TINY)
    assert there.features["size"] == datasets.ClassLabel(names=["s", "m", "l"])
    assert there[7]["image"].size == (32, 32)
    back = from_hf_dataset(there, name="squares")
    assert isinstance(back, GroundTruth)
    assert [factor.name for factor in back.factors] == ["size", "x", "y"]
    assert back.factors[0].labels == ("l", "m", "s")  # words are numbered in sorted order
    here = np.array([[2, 1, 3]])  # s
    assert np.array_equal(back.observe(here), TINY.observe([[0, 1, 3]]))


def test_draws_and_missing_values() -> None:
    pytest.importorskip("datasets", reason="the library datasets is not installed")
    assert len(to_hf_dataset(TINY, points=5, seed=1)) == 5
    rows = from_arrays(TINY.sample_images(3, 0), {"angle": [0.5, np.nan, 1.25]})
    there = to_hf_dataset(rows)
    assert there["angle"][:] == [0.5, None, 1.25]
    assert not from_hf_dataset(there, factors=[]).factors
    with pytest.raises(UnweaveError, match=r'no column "picture"'):
        from_hf_dataset(there, image="picture")


def test_a_missing_library_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(UnweaveError, match=r"needs the library datasets"):
        to_hf_dataset(TINY)
