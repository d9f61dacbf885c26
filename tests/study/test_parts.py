"""Studies that measure runs on all combinations and on held-out ones: spec, workers, table and files."""

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from command_line import run_here
from study.tiny import tiny_spec
from unweave.errors import UnweaveError
from unweave.evaluation.generalisation_store import kept_generalisation
from unweave.evaluation.parts import parts_to_measure
from unweave.progress import no_progress
from unweave.results import COLUMNS, check_table, read_table, wide
from unweave.study import StudyFolder, StudySpec, grid, read_study
from unweave.study.planner import Unit, plan_of
from unweave.study.session import prepare_study
from unweave.study.tasks import is_measured, open_ledger
from unweave.study.work import TrainAndScore

HELD = "dsprites:hold(shape=2,x=16..31)"
CORRELATED = "dsprites:x~y=0.2"
SHARED: dict[str, Any] = {"steps": 2, "batch": 4, "latents": 2, "architecture": "mlp"}


def spec(data: list[str], **fields: Any) -> StudySpec:
    runs = grid([{"name": "beta_vae"}], data=data, seed="0", **SHARED)
    return StudySpec("parts", runs, metrics="sap", representations=("mean",), points=(60, 30), **fields)


def run_all(study: StudyFolder) -> None:
    work = TrainAndScore("cpu")
    for unit in plan_of(study, 4):
        work.train(study, unit, no_progress)
        for run in unit.runs:
            work.evaluate(study, run, no_progress)


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> StudyFolder:
    """Three runs, measured on all parts that their data have."""
    folder = tmp_path_factory.mktemp("studies") / "parts"
    made = StudyFolder.create(
        folder, spec(["dsprites", CORRELATED, HELD], on=("training", "all", "held_out"))
    )
    run_all(made)
    return made


def table_of(study: StudyFolder, output: Path) -> pd.DataFrame:
    run_here("study", "export", study.path, "--output", output)
    return read_table(output).table


def test_the_default_changes_neither_the_file_of_a_study_nor_what_is_measured() -> None:
    """Studies of older versions are read, and their finished runs are not measured again."""
    plain = tiny_spec()
    assert plain.on == ("training",)
    assert "on" not in plain.to_dict()
    assert plain.measures == "(('mig', 'modularity'), ('mean', 'sampled'), (60, 30), 0, False)"
    more = tiny_spec(on=("held_out", "training"))
    assert more.on == ("training", "held_out")
    assert more.measures != plain.measures
    assert StudySpec.from_dict(more.to_dict()) == more
    assert plain.merged(more).on == ("training", "held_out")


def test_wrong_parts_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UnweaveError, match=r"on must include training, .*; got held_out\. Write for example"):
        tiny_spec(on=("held_out",))
    text = 'on = ["training", "heldout"]\n[[methods]]\nname = "vae"\n'
    (tmp_path / "s.toml").write_text(text)
    with pytest.raises(UnweaveError, match=r's\.toml: on must be training, all or held_out; got "heldout"'):
        read_study(tmp_path / "s.toml")
    (tmp_path / "s.toml").write_text(text.replace("heldout", "held_out"))
    assert read_study(tmp_path / "s.toml").on == ("training", "held_out")


@pytest.mark.parametrize(
    ("data", "parts"),
    [
        ("dsprites", ("training",)),
        ("dsprites:noise", ("training",)),
        (CORRELATED, ("training", "all")),
        ("dsprites:weigh(shape=0)=0.1", ("training", "all")),
        (HELD, ("training", "all", "held_out")),
        ("dsprites:only(scale=3)", ("training", "all", "held_out")),
        ("mine:random(0.3):x~y=0.2", ("training", "all", "held_out")),
    ],
)
def test_the_parts_that_data_have(data: str, parts: tuple[str, ...]) -> None:
    assert parts_to_measure(data, ("training", "all", "held_out")) == parts


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_each_part_has_rows_in_the_table(study: StudyFolder, tmp_path: Path, suffix: str) -> None:
    table = table_of(study, tmp_path / f"table.{suffix}")
    sap = table[table["score"] == "sap"]
    assert sorted(zip(sap["data"], sap["on"], strict=True)) == [
        ("dsprites", "training"),
        (HELD, "all"),
        (HELD, "held_out"),
        (HELD, "training"),
        (CORRELATED, "all"),
        (CORRELATED, "training"),
    ]
    assert sap["protocol"].str.contains(",on:").tolist() == (sap["on"] != "training").tolist()


def test_reconstruction_and_predictions_of_held_out_combinations_are_scores(
    study: StudyFolder, tmp_path: Path
) -> None:
    table = table_of(study, tmp_path / "table.parquet")
    held = next(run for run, spec in study.runs.items() if spec.data == HELD)
    stored = kept_generalisation(study.run_folder(held), ((60, 30), 0))
    assert stored is not None
    for part in ("training", "held_out"):
        scores = wide(table, "mean", part).set_index("run").loc[held]
        assert scores["generalisation.squared_error"] == getattr(stored["squared_error"], part)
        accuracies = [getattr(row, part) for row in stored.rows if row.measure == "accuracy"]
        assert scores["generalisation.accuracy"] == pytest.approx(sum(accuracies) / 5)
    others = table[table["data"] != HELD]
    assert not others["score"].str.startswith("generalisation").any()


def test_scores_of_training_data_do_not_depend_on_other_parts(study: StudyFolder, tmp_path: Path) -> None:
    plain = StudyFolder.create(tmp_path / "plain", spec([HELD]))
    run_all(plain)
    before, after = (table_of(folder, tmp_path / "t.csv") for folder in (plain, study))
    assert set(before["on"]) == {"training"}
    assert not list(plain.path.rglob("scores-*.json"))
    expected = wide(before)
    same = wide(after).query("data == @HELD").reset_index(drop=True)
    pd.testing.assert_frame_equal(expected, same[list(expected)])


def test_a_finished_study_is_measured_again_only_on_what_is_new(study: StudyFolder, tmp_path: Path) -> None:
    grown = StudyFolder.create(tmp_path / "s", spec([CORRELATED]))
    run_all(grown)
    ledger = open_ledger(grown, [Unit(tuple(grown.runs))])
    assert set(ledger.states().values()) == {"done"}
    grown = StudyFolder.create(tmp_path / "s", spec([CORRELATED], on=("training", "all")))
    [run] = grown.runs
    assert not is_measured(grown, run)
    assert open_ledger(grown, [Unit((run,))]).states()[run] == "ready"
    before = (grown.run_path(run) / "scores.json").stat().st_mtime_ns
    run_all(grown)
    assert is_measured(grown, run)
    assert (grown.run_path(run) / "scores.json").stat().st_mtime_ns == before


def test_further_parts_can_be_asked_for(tmp_path: Path) -> None:
    session = prepare_study(spec([CORRELATED]), out=tmp_path / "s", device="cpu", on="all")
    assert session.folder.spec.on == ("training", "all")
    again = prepare_study(tmp_path / "s", device="cpu", on=["held_out"])
    assert again.folder.spec.on == ("training", "all", "held_out")


def test_tables_without_the_column_are_of_training_data() -> None:
    cells = ["own", "a", "dsprites", "vae", "", 1.0, 0, "mean", "mig", "mig[bins20,mean]", 0.25]
    old = pd.DataFrame([cells], columns=list(COLUMNS))
    assert list(check_table(old).table["on"]) == ["training"]
    both = pd.concat([old.assign(on="training"), old.assign(on="all", value=0.5)])
    assert wide(both)["mig"].tolist() == [0.25]
    assert wide(both, on="all")["mig"].tolist() == [0.5]
    with pytest.raises(UnweaveError, match="is in the table twice"):
        check_table(pd.concat([both, both]))
