"""Studies with a name: how large they are, what they measure, and their small versions."""

from collections import Counter
from pathlib import Path

import pytest

import unweave
from command_line import run_here
from unweave.data.catalogue import entry_of
from unweave.errors import UnweaveError
from unweave.metrics import metric_named
from unweave.study import PRESETS, StudySpec, grid, preset_named
from unweave.study.presets import reduced
from unweave.study.session import prepare_study, study_named


@pytest.mark.parametrize(
    ("name", "runs", "data", "parts"),
    [
        ("montero2021", 180, 6, ("training", "held_out")),
        ("schott2022", 160, 8, ("training", "held_out")),
        ("traeuble2021", 280, 8, ("training", "all")),
        ("roth2023", 320, 8, ("training", "all")),
    ],
)
def test_studies_of_generalisation(name: str, runs: int, data: int, parts: tuple[str, ...]) -> None:
    study = preset_named(name)
    assert len(study.runs) == runs
    assert f"{runs} models" in (PRESETS[name].__doc__ or "")
    names = {run.data for run in study.runs}
    assert len(names) == data
    assert all(not entry_of(one).wanted for one in names), "no files are needed"
    assert study.on == parts
    assert {run.seed for run in study.runs} == set(range(5))


def test_the_pairs_and_strengths_of_traeuble() -> None:
    """The released code correlates [3, 4] of dSprites and [3, 5] of Shapes3D, counted with its colour."""
    names = {run.data for run in preset_named("traeuble2021").runs}
    pairs = {"dsprites": "orientation~x", "rooms": "scale~azimuth"}
    expected = {f"{base}:{pair}={sigma}" for base, pair in pairs.items() for sigma in (0.2, 0.4, 0.7)}
    assert names == {*pairs, *expected}


@pytest.mark.parametrize("name", PRESETS)
def test_every_study_has_a_version_of_some_minutes(name: str) -> None:
    whole = preset_named(name)
    small = reduced(whole, "smoke")
    assert small.name == f"{name}_smoke"
    assert 4 <= len(small.runs) <= 16
    assert len({run.data for run in small.runs}) <= 2
    assert max(Counter((run.data, run.method) for run in small.runs).values()) <= 2  # seeds
    assert {(run.steps <= 100, run.batch <= 32, run.precision) for run in small.runs} == {
        (True, True, "float32")
    }
    assert all(not entry_of(run.data).wanted for run in small.runs), "no files are needed"
    assert (small.points, small.representations) == ((1_000, 500), ("mean",))
    assert small.on == whole.on
    left_out = [metric_named(name).needs for name in whole.metrics if name not in small.metrics]
    assert set(left_out) <= {"representation", "posterior"}, "only what encodes all images"
    kept = {metric_named(name).needs for name in small.metrics}
    assert not kept & {"representation", "posterior"}
    assert {run.data for run in small.runs} <= {run.data for run in whole.runs}
    assert {run.method for run in small.runs} <= {run.method for run in whole.runs}


def test_a_small_version_keeps_what_is_compared() -> None:
    """Data with and without the correlation, weak and strong settings, two seeds."""
    runs = grid(
        [{"name": "beta_vae", "beta": [1, 2, 4]}, {"name": "factor_vae", "gamma": [5, 10]}],
        data=["dsprites", "dsprites:x~y=0.7", "dsprites:x~y=0.2", "rooms"],
        seed="3-9",
    )
    small = reduced(StudySpec("s", runs, metrics="mig"), "smoke")
    assert {run.data for run in small.runs} == {"dsprites", "dsprites:x~y=0.2"}
    assert {run.seed for run in small.runs} == {3, 4}
    betas = {run.method.beta for run in small.runs if run.method.name == "beta_vae"}  # type: ignore[attr-defined]
    assert betas == {1, 4}
    assert len(small.runs) == 16


def test_small_versions_of_four_methods_have_four_models() -> None:
    """beta-VAE and beta-TCVAE with a weight of 1 are one model: they do not both keep their first setting."""
    weights = {
        run.method.name: run.method.beta
        for run in reduced(preset_named("tonnaer2022"), "smoke").runs
        if hasattr(run.method, "beta")
    }
    assert weights == {"beta_vae": 16, "beta_tcvae": 10, "ada_gvae": 1}


def test_the_small_version_of_few_labels_answers_its_three_questions() -> None:
    methods = {run.method for run in reduced(preset_named("locatello2020_few_labels"), "smoke").runs}
    labels = {(getattr(one, "labeller", None), getattr(one, "labels", 0)) for one in methods}
    assert labels == {(None, 0), ("perfect", 100), ("partial", 100)}


def test_the_small_version_has_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    runs = grid([{"name": "vae"}], data="dsprites", seed="0-4")
    whole = prepare_study(StudySpec("mine", runs, metrics="mig"), device="cpu").folder
    small = prepare_study(whole.path, device="cpu", preset="smoke").folder
    assert small.path == Path("studies/mine_smoke")
    assert (len(whole.runs), len(small.runs)) == (5, 2)
    assert study_named(small.path)[0].name == "mine_smoke"


def test_a_wrong_version_is_refused() -> None:
    with pytest.raises(UnweaveError, match='no smaller version "smok"'):
        unweave.study("traeuble2021", preset="smok")  # type: ignore[operator]


def test_the_plan_of_a_small_version() -> None:
    done = run_here("study", "plan", "montero2021", "--preset", "smoke", "--no-measure")
    assert "montero2021_smoke: 16 runs" in done.stderr + done.stdout
    assert "on training, held_out" in done.stderr + done.stdout
