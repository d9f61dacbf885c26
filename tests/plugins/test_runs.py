"""Runs of a plug-in are opened again, know its version, and say so when it has changed or gone."""

import dataclasses
import json
from pathlib import Path

import pytest

import unweave
from plugins.outside import write_plugin
from unweave.data.opening import open_data
from unweave.errors import PluginChangedWarning, UnweaveError
from unweave.methods import VAE, method_named
from unweave.runs.run import Run
from unweave.runs.spec import RunSpec, method_with
from unweave.study.spec import StudySpec, read_study
from unweave.training.trainer import Plan, train_runs

CHANGED = "\n# changed\n"


def trained(path: Path, out: Path) -> Run:
    return unweave.train(
        method_with(f"{path}:MyVAE", {"gamma": 3.0}),
        f"{path}:squares",
        steps=2,
        batch=4,
        latents=3,
        likelihood=f"{path}:SQUARED",
        architecture=f"{path}:MY_MLP",
        out=out,
        device="cpu",
        progress=False,
    )


def spec_of(path: Path) -> RunSpec:
    return RunSpec(method_with(f"{path}:MyVAE", {"gamma": 3.0}), likelihood=f"{path}:SQUARED")


def test_a_run_of_plugins_is_opened_and_measured_again(tmp_path: Path) -> None:
    path = write_plugin(tmp_path)
    run = trained(path, tmp_path / "runs")
    again = unweave.load(run.path)
    assert again.spec == run.spec
    assert [plugin.kind for plugin in again.spec.plugins] == ["method", "architecture", "likelihood"]
    assert again.data.name == "my_squares"
    assert set(unweave.evaluate(again, metrics=f"{path}:mean_size", points=(20, 10))) == {"mean_size"}
    card = (run.path / "card.md").read_text()
    assert f"{path.resolve()}:MyVAE" in card


def test_a_spec_records_where_its_parts_came_from(tmp_path: Path) -> None:
    path = write_plugin(tmp_path)
    spec = spec_of(path)
    plain = json.loads(json.dumps(spec.to_dict()))
    assert plain["method"] == {"name": "my_vae", "gamma": 3.0}
    assert [record["from"] for record in plain["plugins"]] == [
        f"{path.resolve()}:MyVAE",
        f"{path.resolve()}:SQUARED",
    ]
    assert RunSpec.from_dict(plain) == spec
    assert "plugins" not in RunSpec(VAE()).to_dict()


def test_the_id_is_that_of_the_source_not_of_its_folder(tmp_path: Path) -> None:
    here = spec_of(write_plugin(tmp_path / "here"))
    assert spec_of(write_plugin(tmp_path / "there")).id == here.id
    assert spec_of(write_plugin(tmp_path / "changed", CHANGED)).id != here.id


def test_another_method_in_a_spec_has_its_own_record(tmp_path: Path) -> None:
    spec = spec_of(write_plugin(tmp_path))
    other = dataclasses.replace(spec, method=VAE(), likelihood="bernoulli")
    assert other == RunSpec(VAE())


def test_a_run_whose_method_has_changed_opens_with_a_warning(tmp_path: Path) -> None:
    path = write_plugin(tmp_path)
    run = trained(path, tmp_path / "runs")
    write_plugin(tmp_path, CHANGED)
    with pytest.warns(PluginChangedWarning, match=r"MyVAE has changed: \w+ was recorded, and .* is \w+"):
        again = unweave.load(run.path)
    assert again.spec.id == run.spec.id
    assert trained(path, tmp_path / "runs").path != run.path


def test_a_run_whose_method_has_changed_is_not_trained_on(tmp_path: Path) -> None:
    path = write_plugin(tmp_path)
    plain = spec_of(path).to_dict()
    write_plugin(tmp_path, CHANGED)
    spec = RunSpec.from_dict(plain)
    with pytest.raises(UnweaveError, match=r"MyVAE has changed.*Restore that source to train the run"):
        train_runs([spec], open_data(f"{path}:squares"), [tmp_path / "run"], Plan("cpu"))
    assert not (tmp_path / "run").exists()


def test_a_run_whose_plugin_is_gone_says_what_is_missing(tmp_path: Path) -> None:
    path = write_plugin(tmp_path)
    run = trained(path, tmp_path / "runs")
    path.unlink()
    with pytest.raises(UnweaveError, match=r"expected the method in .*mine.py, and there is no such file"):
        unweave.load(run.path)


def test_a_module_that_is_gone_is_read_from_its_file(tmp_path: Path) -> None:
    path = write_plugin(tmp_path)
    plain = RunSpec(method_named(f"{path}:MyVAE")()).to_dict()
    plain["plugins"][0]["from"] = "package_that_is.gone:MyVAE"
    assert RunSpec.from_dict(plain).method == method_named(f"{path}:MyVAE")()
    path.unlink()
    with pytest.raises(UnweaveError, match="is from a plug-in that is not installed here"):
        RunSpec.from_dict(plain)


def test_data_that_has_changed_is_refused(tmp_path: Path) -> None:
    path = write_plugin(tmp_path)
    run = trained(path, tmp_path / "runs")
    path.write_text(path.read_text().replace("np.uint8(255)", "np.uint8(254)"))
    with pytest.warns(PluginChangedWarning):
        again = unweave.load(run.path)
    with pytest.raises(UnweaveError, match=r'the data set "my_squares" of the plug-in .* has changed'):
        _ = again.data


STUDY = """
metrics = "mig, mine.py:mean_size"
points = [40, 20]
[shared]
data = "mine.py:squares"
seed = "0-1"
steps = 2
batch = 4
likelihood = "mine.py:SQUARED"
[[methods]]
name = "mine.py:MyVAE"
gamma = [1, 2]
[[methods]]
name = "vae"
"""


def test_a_study_file_names_plugins_seen_from_its_folder(tmp_path: Path) -> None:
    path = write_plugin(tmp_path)
    (tmp_path / "study.toml").write_text(STUDY)
    study = read_study(tmp_path / "study.toml")
    assert study.metrics == ("mig", f"{path.resolve()}:mean_size")
    assert {run.method.name for run in study.runs} == {"my_vae", "vae"}
    assert {run.data for run in study.runs} == {"my_squares"}
    assert [reference.path for reference in study.references] == [f"{path.resolve()}:squares"]
    again = StudySpec.from_dict(json.loads(json.dumps(study.to_dict())))
    assert again == study
