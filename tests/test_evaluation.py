"""Scores of runs: those of the metrics on the run's codes, each on its own stream."""

from pathlib import Path

import numpy as np
import pytest

import unweave
from training.tiny import TINY
from unweave import evaluation
from unweave.errors import UnweaveError
from unweave.metrics import mig
from unweave.streams import Stream


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> unweave.Run:
    monkeypatch.setattr(evaluation, "TRAIN", 300)
    monkeypatch.setattr(evaluation, "TEST", 150)
    return unweave.train(unweave.methods.VAE(), TINY, out=tmp_path, steps=3, batch=4, latents=3, device="cpu")


def test_scores_are_those_of_the_metrics(run: unweave.Run) -> None:
    scores = evaluation.score(run)
    stream = Stream.of(0).child("evaluation")
    factors = TINY.sample_factors(450, stream)
    codes = run.encode(TINY.observe(factors))
    assert scores["mig[bins20,mean]"] == pytest.approx(mig(codes[:300], factors[:300]), abs=1e-6)
    assert set(scores) == {
        "mig[bins20,mean]",
        "sap[svm-ovr,C0.01]",
        "modularity[bins20,mean,dead0]",
        "explicitness[logistic-ovr,auc].train",
        "explicitness[logistic-ovr,auc].test",
    }
    assert np.isfinite(list(scores.values())).all()


def test_other_metrics_move_no_number(run: unweave.Run) -> None:
    alone = evaluation.score(run, ["sap"])
    assert alone.items() <= evaluation.score(run, ["modularity", "sap", "mig"]).items()


def test_what_codes_cannot_give_is_refused(run: unweave.Run) -> None:
    with pytest.raises(UnweaveError, match="factor_vae_score needs representation"):
        evaluation.score(run, ["factor_vae_score"])
    with pytest.raises(UnweaveError, match='Did you mean "mig"'):
        evaluation.score(run, ["migg"])
