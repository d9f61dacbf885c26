"""Codes without a prior have no scale: metrics that depend on it get standardised codes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import unweave
from metrics.grids import drawn
from training.tiny import TINY
from unweave.data import from_arrays
from unweave.evaluation.effort import Effort
from unweave.evaluation.score_store import evaluate_run
from unweave.evaluation.standardising import Scale
from unweave.methods import METHODS, method_named
from unweave.metrics import METRICS, metric_named
from unweave.metrics.metric import compute
from unweave.metrics.requests import Conditions
from unweave.results import RUN_COLUMNS, check_table, wide
from unweave.streams import Stream

SIZES = (3, 4, 5)
FACTORS = drawn(SIZES, 900)
CODES = FACTORS + 0.3 * Stream.of(1).normal(900, 3)
TINY_CODES = CODES * [1e-4, 2e-3, 30.0] + [5.0, 0.0, -7.0]


def protocols(scores: unweave.Scores) -> dict[str, str]:
    return {score.name: score.protocol for score in scores.scores}


def test_metrics_say_whether_they_depend_on_the_scale() -> None:
    """Those that say no give the same score if the scale of all codes changes, up to the rounding of bins."""
    for metric in METRICS:
        if "scale" in metric.unchanged_by:  # tested exactly with the other invariances
            assert not metric.depends_on_scale, metric.name
        elif metric.needs in ("codes", "unsupervised") and not metric.depends_on_scale:
            before, after = (compute(metric, codes, FACTORS) for codes in (CODES, 1e-4 * CODES))
            assert after == pytest.approx(before, abs=0.02), metric.name


def test_standardised_scores_are_those_of_standardised_codes() -> None:
    """By hand: mean and deviation of the rows that are fitted or counted."""
    test = (TINY_CODES[600:], FACTORS[600:])
    train = (TINY_CODES[:600], FACTORS[:600])
    scores = unweave.evaluate(*train, test=test, metrics="mig, sap, mig_sup", standardise=True)
    centre, deviation = train[0].mean(axis=0), train[0].std(axis=0)
    codes, test_codes = ((part - centre) / deviation for part in (train[0], test[0]))
    sap = compute(metric_named("sap"), codes, FACTORS[:600], test=(test_codes, FACTORS[600:]))
    assert scores["sap"] == pytest.approx(sap["sap"])
    assert scores["mig_sup"] == compute(metric_named("mig_sup"), codes, FACTORS[:600])["mig_sup"]
    assert scores["mig"] == compute(metric_named("mig"), *train)["mig"]
    assert protocols(scores) == {
        "mig": "mig[bins20,n600,mean]",
        "sap": "sap[svm-ovr,C0.01,n600+300,standardised,mean]",
        "mig_sup": "mig_sup[bins20,active0.01,n600,standardised,mean]",
    }


def test_small_codes_do_not_count_unless_they_are_standardised() -> None:
    raw = unweave.evaluate(TINY_CODES, FACTORS, metrics="factor_vae_score, sap")
    assert raw["factor_vae_score.active"] == 1
    assert any("factor_vae_score counted 1 of 3 codes" in note for note in raw.notes)
    assert any("use standardise=True" in note for note in raw.notes)
    scores = unweave.evaluate(TINY_CODES, FACTORS, metrics="factor_vae_score, sap", standardise=True)
    assert scores["factor_vae_score.active"] == 3
    assert scores["factor_vae_score.eval_accuracy"] > raw["factor_vae_score.eval_accuracy"] + 0.3
    assert any("Codes were standardised for factor_vae_score and sap" in note for note in scores.notes)


def test_interventions_of_an_encoder_are_standardised() -> None:
    factors = np.stack(np.meshgrid(*map(np.arange, SIZES), indexing="ij"), axis=-1).reshape(-1, 3)
    images = np.zeros((60, 1, 4, 4), np.uint8)
    images[:, 0, 0, :3] = factors

    def encode(x: np.ndarray) -> np.ndarray:
        return 1e-3 * x.reshape(len(x), -1)[:, :3]

    data = from_arrays(images, factors)
    options: dict[str, Any] = {"data": data, "metrics": "factor_vae_score"}
    assert unweave.evaluate(encode, **options)["factor_vae_score.active"] == 0
    scores = unweave.evaluate(encode, **options, standardise=True)
    assert scores["factor_vae_score.eval_accuracy"] == 1


def test_constant_codes_and_other_columns_stay() -> None:
    codes = np.stack([np.full(50, 3.7), 3.7 + 1e-9 * np.arange(50), np.arange(50.0), np.arange(50.0)], axis=1)
    scaled = Scale.of(codes, [0, 1, 2])(codes)
    np.testing.assert_array_equal(scaled[:, [0, 1, 3]], codes[:, [0, 1, 3]])
    assert scaled[:, 2].mean() == pytest.approx(0)
    assert scaled[:, 2].std() == pytest.approx(1)
    assert Scale.of(codes, slice(None))(codes.astype(np.float32)).dtype == np.float32


def test_runs_of_methods_without_a_prior_are_standardised(tmp_path: Path) -> None:
    fields: dict[str, Any] = {"steps": 2, "batch": 4, "latents": 4, "architecture": "mlp", "device": "cpu"}
    words = {}
    for name in ("ae", "vae"):
        run = unweave.train(name, TINY, out=tmp_path, progress=False, **fields)
        direct = unweave.evaluate(run, metrics="factor_vae_score, mig", points=(100, 50))
        [stored] = evaluate_run(run, "factor_vae_score, mig", effort=Effort((100, 50)))
        assert protocols(direct) == protocols(stored)
        words[name] = protocols(direct)
    assert ",standardised,mean]" in words["ae"]["factor_vae_score.eval_accuracy"]
    assert words["ae"]["mig"] == words["vae"]["mig"]
    assert "standardised" not in words["vae"]["factor_vae_score.eval_accuracy"]


def test_which_methods_have_no_prior() -> None:
    without = {kind.name for kind in METHODS if kind().codes_without_prior(4)}
    assert {"ae", "qlae", "lord", "drnet", "f_statistic", "adversarial_split"} <= without
    study = {"vae", "beta_vae", "annealed_vae", "factor_vae", "beta_tcvae", "dip_vae_i", "dip_vae_ii"}
    assert without.isdisjoint(study | {"aae", "info_vae", "info_gan", "ladder_vae", "ada_gvae"})
    assert list(method_named("ae")().codes_without_prior(4)) == [0, 1, 2, 3]
    assert list(method_named("adversarial_split")().codes_without_prior(4)) == [0, 1]  # z has a prior


def test_standardised_scores_may_be_compared_with_those_of_other_methods() -> None:
    metric = metric_named("factor_vae_score")
    plain = metric.protocol("mean")
    standardised = metric.protocol("mean", Conditions(standardised=True))
    rows = [
        dict.fromkeys(RUN_COLUMNS, "own")
        | {"run": run, "method": run, "strength": 0.0, "seed": 0}
        | {"representation": "mean", "score": "factor_vae_score", "protocol": protocol, "value": 0.5}
        for run, protocol in (("vae", plain), ("ae", standardised))
    ]
    assert len(wide(check_table(pd.DataFrame(rows)).table)) == 2
