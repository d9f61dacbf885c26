"""Codes without a prior or a width have no KL divergence and no bound: evaluations leave these out."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

import unweave
from training.tiny import TINY
from unweave.evaluation.effort import Effort
from unweave.evaluation.meaningless import meaningless_numbers
from unweave.evaluation.score_store import evaluate_run, scores_path
from unweave.methods import METHODS
from unweave.runs.run import Run
from unweave.runs.views import traversals

POINTS = (30, 15)
BOUND = ["elbo.reconstruction", "elbo.kl", "elbo.elbo", "elbo.active"]
NOTES = {
    "ae": "elbo.kl, elbo.elbo and elbo.active were left out: codes of ae have no standard normal prior.",
    "aae": (
        "elbo.kl and elbo.elbo were left out: codes of aae are not drawn from q(z|x), so they have no KL "
        "divergence."
    ),
}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Run]:
    """Runs of a few updates: with a bound, without a prior, and with a prior but without a width."""
    folder = tmp_path_factory.mktemp("runs")
    fields: dict[str, Any] = {"steps": 2, "batch": 4, "latents": 3, "device": "cpu", "progress": False}
    names = ("vae", "ae", "aae", "factor_qvae")
    return {name: unweave.train(name, TINY, out=folder, likelihood="bernoulli", **fields) for name in names}


def test_numbers_that_mean_nothing_are_left_out_with_a_note(runs: dict[str, Run]) -> None:
    scores = {name: unweave.evaluate(run, metrics="elbo", points=POINTS) for name, run in runs.items()}
    assert list(scores["vae"]) == BOUND
    assert list(scores["ae"]) == list(scores["factor_qvae"]) == BOUND[:1]
    assert list(scores["aae"]) == ["elbo.reconstruction", "elbo.active"]
    assert not any("left out" in note for note in scores["vae"].notes)
    for name, note in NOTES.items():
        assert note in scores[name].notes
    assert "left out" not in str(unweave.evaluate(runs["ae"], metrics="mig", points=POINTS).notes)


def test_kept_scores_of_earlier_versions_are_left_out_too(runs: dict[str, Run]) -> None:
    run, effort = runs["ae"], Effort(POINTS)
    [first] = evaluate_run(run, "elbo", effort=effort)
    path = scores_path(run.folder)
    record = json.loads(path.read_text())
    [scores] = (part["scores"] for part in record["evaluations"])
    scores.append(scores[0] | {"name": "elbo.kl"})
    path.write_text(json.dumps(record))
    [again] = evaluate_run(run, "elbo", effort=effort)
    assert list(first) == list(again) == BOUND[:1]
    assert NOTES["ae"] in first.notes
    assert NOTES["ae"] in again.notes


def test_a_comparison_has_the_numbers_that_both_runs_have(runs: dict[str, Run]) -> None:
    found = unweave.compare(runs["vae"], runs["ae"], metrics="elbo", points=POINTS, repeats=2)
    assert list(found) == BOUND[:1]
    assert NOTES["ae"] in found.notes


def test_methods_with_a_divergence_have_a_prior_for_all_codes() -> None:
    methods = [kind() for kind in METHODS]
    with_bound = {method.name for method in methods if method.has_divergence}
    assert {"vae", "beta_vae", "ada_gvae", "vlae", "m2"} <= with_bound
    assert with_bound.isdisjoint(
        {"ae", "qlae", "tripod", "factor_qvae", "enc_diff", "lord", "drnet", "glow", "aae", "info_gan"}
    )
    for method in methods:
        if method.has_divergence:
            assert not len(method.codes_without_prior(4)), method.name


def test_traversals_state_no_divergence_of_values_of_a_codebook(runs: dict[str, Run]) -> None:
    images = TINY.observe(TINY.factors_at(np.arange(6)))
    labels = [label for label, _ in traversals(runs["factor_qvae"], images, columns=2)]
    assert all("deviation" in label for label in labels)
    assert all("nats" in label for label, _ in traversals(runs["vae"], images, columns=2))


def test_some_codes_may_lack_a_prior(runs: dict[str, Run], monkeypatch: pytest.MonkeyPatch) -> None:
    run = runs["aae"]
    monkeypatch.setattr(type(run.spec.method), "codes_without_prior", lambda _self, _latents: [0])
    reason = "1 of the codes of aae have no standard normal prior"
    assert meaningless_numbers(run) == dict.fromkeys(BOUND[1:], reason)
