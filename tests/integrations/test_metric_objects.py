"""Scores of codes that come batch by batch."""

import numpy as np
import pytest
import torch

import unweave
from unweave.errors import UnweaveError
from unweave.integrations import DisentanglementScores

RNG = np.random.default_rng(0)
FACTORS = RNG.integers(0, 4, (300, 2))
CODES = FACTORS @ np.array([[1.0, 0.2], [0.1, 1.0]]) + RNG.normal(size=(300, 2)) * 0.1


def test_batches_score_as_all_rows_at_once() -> None:
    scores = DisentanglementScores(["mig", "modularity"], seed=3)
    for start in range(0, 300, 70):
        batch = torch.tensor(CODES[start : start + 70], requires_grad=True)
        scores.update(batch, torch.from_numpy(FACTORS[start : start + 70]))
    whole = unweave.evaluate(CODES, FACTORS, metrics=["mig", "modularity"], seed=3)
    assert dict(scores.compute()) == dict(whole)
    assert dict(scores.compute()) == dict(whole)  # it can be asked again


def test_reset_forgets() -> None:
    scores = DisentanglementScores("mig")
    scores.update(RNG.normal(size=(50, 3)), FACTORS[:50])
    scores.reset()
    buffer = CODES.copy()
    scores.update(buffer, FACTORS)
    buffer[:] = 0  # a batch may be overwritten
    assert scores.compute()["mig"] == unweave.evaluate(CODES, FACTORS, metrics="mig")["mig"]


def test_wrong_use_is_said() -> None:
    with pytest.raises(UnweaveError, match=r'"migg"'):
        DisentanglementScores("migg")
    scores = DisentanglementScores("mig")
    with pytest.raises(UnweaveError, match=r"call update\(codes, factors\) before compute"):
        scores.compute()
    with pytest.raises(UnweaveError, match=r"got \(300, 2\) and \(299, 2\)"):
        scores.update(CODES, FACTORS[1:])
    scores.update(CODES, FACTORS)
    with pytest.raises(UnweaveError, match=r"codes of this batch have 3 columns, those before 2"):
        scores.update(np.zeros((5, 3)), FACTORS[:5])
