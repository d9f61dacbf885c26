"""Built-in methods, metrics and data sets keep the contract, and so does the example of a plug-in."""

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import pytest

from plugins.outside import write_plugin
from training.tiny import narrow_discriminators
from unweave.data.catalogue import load
from unweave.data.grid import Factors
from unweave.errors import UnweaveError
from unweave.explore import run_view
from unweave.explore.export import export_page
from unweave.explore.run_view import view_of
from unweave.methods import METHODS, BetaVAE, Method, method_named
from unweave.methods.method import AUTOENCODER, Losses, StepContext, elbo_terms
from unweave.metrics.lookup import metric_named
from unweave.metrics.metric import Metric
from unweave.plugins import check_data, check_method, check_metric
from unweave.plugins.contract import SQUARES
from unweave.runs.run import Run
from unweave.streams import Stream

EXAMPLE = Path(__file__).parents[2] / "examples" / "plugin"


def explore_and_export(run: Run) -> None:
    """Show the run in the explorer, and export one of them; tests/explore compute the decoders of all."""
    view, kind = view_of(run), type(run.spec.method)
    assert view.description["method"] == kind.name
    assert view.decode(np.zeros((2, run.spec.latents), np.float32)).shape == (2, *SQUARES.shape)
    if kind is BetaVAE:
        page = run.path.parent / "page.html"
        export_page(view, page)
        assert page.stat().st_size > 10_000


@pytest.mark.parametrize("kind", METHODS, ids=lambda kind: kind.name)
def test_every_built_in_method_keeps_the_contract(
    kind: type[Method], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_view, "POINTS", 60)  # estimates of the explorer are not the point here
    with narrow_discriminators():
        check_method(kind, also=explore_and_export)


@dataclass(frozen=True)
class Mixing(BetaVAE):
    """A method whose runs see each other."""

    name: ClassVar[str] = "mixing"

    def losses(self, step: StepContext) -> Losses:
        forward = step.forward
        objective = forward.reconstruction + self.beta * forward.kl.sum()
        return Losses({AUTOENCODER: objective}, elbo_terms(forward))


@dataclass(frozen=True)
class Branching(BetaVAE):
    """A method that takes a setting for a number, which is a tensor in a population."""

    name: ClassVar[str] = "branching"

    def losses(self, step: StepContext) -> Losses:
        forward = step.forward
        weighted = forward.kl if self.beta == 1 else self.beta * forward.kl
        return Losses({AUTOENCODER: forward.reconstruction + weighted}, elbo_terms(forward))


@dataclass(frozen=True)
class Failing(BetaVAE):
    """A method whose loss fails."""

    name: ClassVar[str] = "failing"

    def losses(self, step: StepContext) -> Losses:
        raise KeyError(f"no such term at step {step.data_size}")


@pytest.mark.parametrize(
    ("kind", "sentence"),
    [
        (Mixing, "mixing trains to other weights in a population than alone"),
        (Branching, "branching does not train together with a run of {'beta': 5.0}: RuntimeError"),
        (Failing, "failing does not train: KeyError: 'no such term"),
    ],
)
def test_methods_that_break_the_contract_are_told(kind: type[Method], sentence: str) -> None:
    with pytest.raises(UnweaveError, match=sentence):
        check_method(kind)


@pytest.mark.parametrize("name", ["mig", "beta_vae_score", "mig_posterior", "total_correlation"])
def test_built_in_metrics_keep_the_contract(name: str) -> None:
    check_metric(metric_named(name))


def test_metrics_that_break_the_contract_are_told() -> None:
    draws = iter(range(10))
    moody = Metric("moody", lambda _codes, _factors: float(next(draws)), "moody[x]", "codes", "", "")
    with pytest.raises(UnweaveError, match="moody gives other scores for the same codes and seed"):
        check_metric(moody)
    large = Metric("large", lambda _codes, _factors: 7.0, "large[x]", "codes", "", "")
    with pytest.raises(UnweaveError, match=r"large gives 7\.0, outside of its range"):
        check_metric(large)


def test_data_sets_keep_the_contract() -> None:
    check_data(load("dsprites"))
    check_data(SQUARES)

    def floats(factors: Factors, _stream: Stream) -> Any:
        return np.zeros((len(factors), *SQUARES.shape))

    with pytest.raises(UnweaveError, match="uint8"):
        check_data(replace(SQUARES, render=floats))


def test_a_plugin_of_a_file_keeps_the_contract(tmp_path: Path) -> None:
    check_method(method_named(f"{write_plugin(tmp_path)}:MyVAE"))


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder into which pip has installed the example."""
    pytest.importorskip("setuptools")
    folder = tmp_path_factory.mktemp("example")
    shutil.copytree(EXAMPLE, folder / "source")
    options = ["--no-deps", "--no-build-isolation", "--no-index", "--disable-pip-version-check", "-q"]
    pip = [sys.executable, "-m", "pip", "install", *options]
    done = subprocess.run(
        [*pip, "--target", folder / "site", folder / "source"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return folder / "site"


def run(site: Path, folder: Path, *words: str) -> str:
    path = os.pathsep.join([str(site), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run(
        [sys.executable, *words],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": path, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


COMMANDS = """
from contextlib import suppress
from unweave.cli import app
study = "study run study.toml -o out --device cpu"
for words in ("methods list", "metrics list", "data list", study):
    with suppress(SystemExit):
        app(words)
"""
WHAT = {"methods": "sparse_vae", "metrics": "active_share", "data": "bars"}
STUDY = """
metrics = ["mig", "active_share"]
representations = ["mean"]
points = [40, 20]
[shared]
data = "bars"
steps = 3
batch = 4
[[methods]]
name = "sparse_vae"
weight = [0.1, 1]
[[methods]]
name = "beta_vae"
"""


def test_the_installed_example_is_listed_and_studied(site: Path, tmp_path: Path) -> None:
    (tmp_path / "study.toml").write_text(STUDY)
    printed = run(site, tmp_path, "-c", COMMANDS)
    assert all(name in printed for name in WHAT.values()), printed
    table = pd.read_parquet(tmp_path / "out" / "results.parquet")
    assert set(table["method"]) == {"sparse_vae", "beta_vae"}
    assert set(table["score"]) == {"mig", "active_share"}
    [record] = json.loads(next((tmp_path / "out" / "runs").glob("sparse*/spec.json")).read_text())["spec"][
        "plugins"
    ]
    assert (record["from"], record["version"]) == ("unweave_sparse.method:SparseVAE", "0.1.0")


def test_the_example_passes_its_own_tests(site: Path, tmp_path: Path) -> None:
    tests = str(EXAMPLE / "tests")
    options = ["-q", "-p", "no:cacheprovider", "--rootdir", str(tmp_path), "-c", os.devnull]
    assert "3 passed" in run(site, tmp_path, "-m", "pytest", *options, tests)
