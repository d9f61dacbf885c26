"""Study specs: grids, presets, TOML files, and what is wrong with them."""

import dataclasses
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from study.tiny import tiny_spec
from unweave.data.own.reference import Reference
from unweave.errors import UnweaveError
from unweave.methods import BetaVAE, settings_of
from unweave.methods.sampling import images_per_step
from unweave.methods.semi_supervised import LABELLERS
from unweave.metrics import metrics_named
from unweave.runs.spec import RunSpec
from unweave.study import PRESETS, StudyFolder, StudySpec, preset_named, read_study
from unweave.study.planner import make_units, plan_of
from unweave.study.spec import grid, whole_numbers

ROOT = Path(__file__).parents[2]


def test_the_published_study_is_the_published_study() -> None:
    spec = preset_named("locatello2019")
    assert len(spec.runs) == len({run.id for run in spec.runs}) == 12_600
    assert Counter(run.data for run in spec.runs)["shapes3d"] == 1800
    assert {run.seed for run in spec.runs} == set(range(50))
    assert {run.architecture for run in spec.runs} == {"released"}
    by_method = {(run.method.name, run.steps) for run in spec.runs}
    assert ("factor_vae", 150_000) in by_method
    assert ("beta_vae", 300_000) in by_method
    assert len({(run.data, run.method) for run in spec.runs}) == 7 * 36
    assert len(preset_named("hartmann2021").runs) == 10_800
    assert len(preset_named("locatello2019_dsprites").runs) == 1_800
    mini = preset_named("locatello2019_mini")
    assert len(mini.runs) == 72
    assert set(mini.runs) == {run for run in preset_named("locatello2019_dsprites").runs if run.seed < 2}
    assert (mini.metrics, mini.representations, mini.points) == (
        spec.metrics,
        spec.representations,
        spec.points,
    )
    total = sum(run.steps for run in spec.runs)
    assert total == 12_600 * 300_000 - 2_100 * 150_000


def test_the_weakly_supervised_study() -> None:
    small, full = preset_named("locatello2020_weak"), preset_named("locatello2020_weak_full")
    assert len(small.runs) == 5 * 6 * 5
    assert len(full.runs) == (4 * 2 + 1) * 6 * 5 * 50 == 13_500
    assert set(small.runs) < set(full.runs)
    assert {run.steps for run in full.runs} == {300_000}
    assert {run.method.name for run in small.runs if run.method.sampling.together == 1} == {"beta_vae"}
    units = make_units(small.runs, largest=60)
    assert [len(unit.runs) for unit in units] == [60, 60, 30], "without labels, with labels, single images"


def test_the_study_of_few_labels() -> None:
    """Both arms have the same methods, strengths and seeds; one of them is trained with 90% of the labels."""
    small, full = preset_named("locatello2020_few_labels"), preset_named("locatello2020_few_labels_full")
    assert (len(small.runs), len(full.runs)) == (280, 14_880)
    assert set(small.runs) < set(full.runs)
    for spec, weights in ((small, 1), (full, 3)):
        alone, taught = Counter[tuple[Any, ...]](), Counter[tuple[Any, ...]]()
        for run in spec.runs:
            settings, name = settings_of(run.method), run.method.name
            pool = run.data, name.removeprefix("s2_"), settings[str(run.method.strength)], run.seed, run.steps
            if not name.startswith("s2_"):
                alone[pool] += 1
                continue
            assert settings["train_percentage"] == 90
            taught[pool, settings["labels"], settings["labeller"]] += 1
        assert set(alone.values()) == {1}
        assert set(taught.values()) == {weights}
        for labels in (100, 1000):
            assert {pool for pool, number, kind in taught if (number, kind) == (labels, "perfect")} == set(
                alone
            )
        assert {kind for _, number, kind in taught if number == 100} == set(LABELLERS)
    kinds = {run.method.name for run in full.runs}
    assert {name for name in kinds if not name.startswith("s2_")} == {
        "beta_vae",
        "factor_vae",
        "dip_vae_i",
        "beta_tcvae",
    }
    assert {run.steps for run in small.runs if run.method.name == "s2_factor_vae"} == {150_000}


def test_the_study_of_fairness() -> None:
    spec, published = preset_named("locatello2019_fairness"), preset_named("locatello2019_dsprites")
    assert len(spec.runs) == 36 * 5
    assert set(spec.runs) < set(published.runs)
    names = {metric.name for metric in metrics_named(spec.metrics)}
    assert {"fairness_trees", "downstream_trees", "dci"} < names


@pytest.mark.parametrize("name", PRESETS)
def test_presets_go_through_json(name: str) -> None:
    spec = preset_named(name)
    assert StudySpec.from_dict(spec.to_dict()) == spec


def test_a_toml_file(tmp_path: Path) -> None:
    (tmp_path / "s.toml").write_text(
        """
        name = "mine"
        metrics = ["quick", "irs"]
        points = [100, 50]
        [shared]
        data = ["dsprites", "rooms"]
        seed = "0-2,7"
        steps = 10
        [[methods]]
        name = "beta_vae"
        beta = [1, 4]
        [[methods]]
        name = "factor_vae"
        gamma = 10
        steps = 5
        """
    )
    spec = read_study(tmp_path / "s.toml")
    assert len(spec.runs) == 2 * 4 * 3
    assert spec.metrics == ("mig", "sap", "modularity", "explicitness", "irs")
    assert RunSpec(BetaVAE(4.0), data="rooms", seed=7, steps=10) in spec.runs
    assert {run.steps for run in spec.runs if run.method.name == "factor_vae"} == {5}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("nmae = 'x'", r'no field "nmae"\. Did you mean "name"'),
        ("[shared]\nsteps = 1\n[[methods]]\nname = 'beta_vea'", r'no method "beta_vea"\. Did you mean'),
        ("[[methods]]\nname = 'beta_vae'\nbeat = 1", r'no setting "beat"\. Did you mean "beta"'),
        ("[shared]\nsed = 1\n[[methods]]\nname = 'vae'", r'no field "sed"\. Did you mean "seed"'),
        ("metrics = 'migg'\n[[methods]]\nname = 'vae'", r'no metric or suite "migg"'),
        ("representations = ['mena']\n[[methods]]\nname = 'vae'", r'no representation "mena"'),
        ("points = [1]\n[[methods]]\nname = 'vae'", "how many to train and to test on"),
        ("[shared]\nseed = '3-1'\n[[methods]]\nname = 'vae'", "the range of seeds"),
        ("[[methods]]\nname = 'beta_vae'\nbeta = []", "beta has no values"),
        ("[[methods]]\nbeta = 1", "needs its name"),
        ("", "has no runs"),
        ("= 3", "cannot read .* as TOML"),
    ],
)
def test_typos_are_found_before_anything_starts(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "s.toml").write_text(text)
    with pytest.raises(UnweaveError, match=message):
        read_study(tmp_path / "s.toml")


@given(
    st.lists(st.integers(0, 30), min_size=1, max_size=6),
    st.lists(st.sampled_from([1.0, 2.0, 4.0]), min_size=1, max_size=3, unique=True),
    st.integers(1, 7),
)
@settings(deadline=None, max_examples=40)
def test_units_hold_every_run_once_and_begin_with_the_first_seeds(
    seeds: list[int], betas: list[float], largest: int
) -> None:
    methods: list[dict[str, Any]] = [
        {"name": "beta_vae", "beta": betas},
        {"name": "factor_vae", "gamma": betas, "steps": 7},
    ]
    runs = dict.fromkeys(grid(methods, seed=seeds, steps=9))
    units = make_units(list(runs), largest)
    by_id = {run.id: run for run in runs}
    assert sorted(run for unit in units for run in unit.runs) == sorted(by_id)
    assert all(1 <= len(unit.runs) <= largest for unit in units)
    for unit in units:
        together = [by_id[run] for run in unit.runs]
        assert len({(run.steps, len(run.method.players)) for run in together}) == 1
    first = [by_id[unit.runs[0]].seed for unit in units]
    assert first == sorted(first)
    assert units == make_units(list(reversed(list(runs))), largest)


def test_a_plan_is_kept_when_the_study_grows(tmp_path: Path) -> None:
    folder = StudyFolder.create(tmp_path / "s", tiny_spec())
    before = plan_of(folder, 4)
    grown = StudyFolder.create(tmp_path / "s", tiny_spec("3-8", metrics="irs"))
    assert len(grown.runs) == 18
    assert set(grown.spec.metrics) == {"mig", "modularity", "irs"}
    after = plan_of(grown, 2)
    assert after[: len(before)] == before
    assert sorted(run for unit in after for run in unit.runs) == sorted(grown.runs)
    with pytest.raises(UnweaveError, match="would be another study"):
        StudyFolder.create(tmp_path / "s", tiny_spec(points=(50, 20)))


def test_folders_that_are_none(tmp_path: Path) -> None:
    with pytest.raises(UnweaveError, match=r"not the folder of a study: it has no study\.json"):
        _ = StudyFolder(tmp_path).spec
    (tmp_path / "study.json").write_text("[]")
    with pytest.raises(UnweaveError, match="is not of a study"):
        _ = StudyFolder(tmp_path).spec
    (tmp_path / "study.json").write_text('{"runs_in": "runs", "schema": 99}')
    with pytest.raises(UnweaveError, match="of version 99"):
        _ = StudyFolder(tmp_path).spec


def test_seeds() -> None:
    assert whole_numbers("0-3, 7") == [0, 1, 2, 3, 7]


def own(name: str, path: str, source: str = "pictures 1") -> Reference:
    return Reference("folder", path, name, (32, 32), "pad", 1, source)


def test_references_to_own_data_are_kept_and_merged(tmp_path: Path) -> None:
    runs = grid([{"name": "vae"}], data=["toys", "dsprites"], steps=2)
    spec = StudySpec("own", runs, metrics="mig", references=(own("toys", "/a/toys"), own("unused", "/b")))
    assert spec.references == (own("toys", "/a/toys"),)
    assert StudySpec.from_dict(json.loads(json.dumps(spec.to_dict()))) == spec
    assert StudyFolder.create(tmp_path, spec).spec.reference("toys") == own("toys", "/a/toys")
    assert spec.reference("dsprites") is None
    moved = dataclasses.replace(spec, references=(own("toys", "/c/toys"),))
    assert StudyFolder.create(tmp_path, moved).spec.references == (own("toys", "/c/toys"),)
    other = dataclasses.replace(spec, references=(own("toys", "/d/toys", "pictures 2"),))
    with pytest.raises(
        UnweaveError, match='two different data sets of one name, "toys": /c/toys and /d/toys'
    ):
        StudyFolder.create(tmp_path, other)


def test_a_study_without_own_data_is_written_as_before() -> None:
    spec = StudySpec("plain", grid([{"name": "vae"}], data="dsprites", steps=2), metrics="mig")
    assert "references" not in spec.to_dict()


def test_runs_that_see_the_same_number_of_images() -> None:
    methods: list[dict[str, Any]] = [{"name": "vae"}, {"name": "ada_gvae"}, {"name": "s2_beta_vae"}]
    runs = grid([*methods, {"name": "ae", "steps": 7}], data="dsprites", seed=0, images=6_400, batch=32)
    assert [run.steps for run in runs] == [200, 100, 100, 7], "a step has images, pairs, or labels as well"
    labelled_only = grid([{"name": "lord"}], data="dsprites", seed=0, images=6_400, batch=32)
    assert [run.steps for run in labelled_only] == [200], "LORD learns from labelled images alone"
    shorter = grid([{"name": "vae", "images": 64}], data="dsprites", seed=0, steps=10)
    assert [run.steps for run in shorter] == [1], "a method's own length counts"


@pytest.mark.parametrize(("name", "methods"), [("dimensions", 26), ("blocks", 10)])
def test_the_comparison_gives_every_method_the_same_images(name: str, methods: int) -> None:
    study = read_study(ROOT / "benchmarks" / f"comparison_{name}.toml")
    assert len({run.method.name for run in study.runs}) == methods
    assert {run.seed for run in study.runs} == set(range(5))
    for run in study.runs:
        images = run.steps * images_per_step(run.method.sampling, run.batch)
        assert images == pytest.approx(3_840_000, rel=1e-3), run.method.name


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"images": 640, "steps": 10}, "either steps or images; got both"),
        ({"images": 63}, "images must be at least 64, those of one step; got 63"),
        ({"images": 1e6}, "images must be a whole number"),
    ],
)
def test_impossible_numbers_of_images(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(UnweaveError, match=message):
        grid([{"name": "vae"}], data="dsprites", seed=0, **fields)
