"""Display names: one vocabulary for reports and pages, in which a method and its metric differ."""

import json
from pathlib import Path

from explore.browser import Browser
from explore.conftest import Serve
from explore.test_run_page import READY
from explore.test_study_page import write_study
from unweave.explore.api.study import study_records
from unweave.explore.labels import labels_of
from unweave.report.names import METHODS, SCORES


def test_a_method_and_its_metric_have_different_names() -> None:
    scores = ["beta_vae_score.eval_accuracy", "factor_vae_score.eval_accuracy"]
    labels = labels_of(["beta_vae", "factor_vae"], ["dsprites"], scores)
    assert labels["method"] == {"beta_vae": "β-VAE", "factor_vae": "FactorVAE"}
    assert list(labels["score"].values()) == ["BetaVAE score", "FactorVAE score"]
    assert labels["data"] == {"dsprites": "dSprites"}
    assert not set(METHODS.values()) & set(SCORES.values())


def test_the_server_sends_names_of_what_a_study_has(tmp_path: Path) -> None:
    write_study(tmp_path)
    assert json.loads(study_records(tmp_path))["labels"] == {
        "method": {"beta_vae": "β-VAE", "factor_vae": "FactorVAE"},
        "data": {"cars3d": "Cars3D", "dsprites": "dSprites"},
        "score": {"mig": "MIG", "sap": "SAP"},
    }


def test_the_page_of_a_run_shows_both_names(run_folder: Path, serve: Serve, browser: Browser) -> None:
    with serve(run_folder) as server:
        view = server.subject.view(str(server.subject.describe()["run"]))
        view.description["scores"] = {"mine": 0.5, "mig": 0.25}
        view.description["labels"] |= {"score": {"mig": "MIG"}}
        browser.open(server.url)
        browser.wait_for(READY)
        assert browser.evaluate("document.querySelector('h1').textContent") == "β-VAE beta_vae"
        scores = browser.evaluate("[...document.querySelectorAll('.scores li')].map((li) => li.textContent)")
        assert scores == ["mine 0.500", "MIG mig 0.250"]
