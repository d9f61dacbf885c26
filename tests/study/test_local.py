"""The local engine: everything is done once, failures stay where they are, and a kill loses nothing."""

import json
import os
import signal
import sys
import time
from pathlib import Path

import pandas as pd
import pytest

from command_line import run_here
from study.chaos import STUDY, chaos, in_order, start, table_of, wait_for_worker, words
from study.tiny import Pretend, tiny_spec
from unweave.errors import DiskFullError, UnweaveError
from unweave.files import write_json
from unweave.progress import Progress
from unweave.study import StudyFolder, StudySpec
from unweave.study.engines import local
from unweave.study.engines.local import Post, posts_for, run_local
from unweave.study.ledger import Ledger
from unweave.study.planner import Unit, plan_of
from unweave.study.progress import status_of_folders
from unweave.study.table import collect, run_table, write_table
from unweave.study.work import TrainAndScore, Work


def run_all(study: StudyFolder, work: Work, workers: int = 2, largest: int = 4) -> None:
    status = run_local(study, plan_of(study, largest), [Post(("evaluate", "train"), work, 1)] * workers)
    assert status.finished


def test_everything_is_done_once(tmp_path: Path) -> None:
    study = StudyFolder.create(tmp_path / "s", tiny_spec("0-19"))
    run_all(study, Pretend(diary=tmp_path / "diary"), workers=3)
    lines = [line.split() for line in (tmp_path / "diary").read_text().splitlines()]
    trained = [run for kind, *runs in lines if kind == "train" for run in runs]
    measured = [run for kind, *runs in lines if kind == "evaluate" for run in runs]
    assert sorted(trained) == sorted(measured) == sorted(study.runs)
    frame, notes = collect(study)
    assert not notes
    assert len(frame) == 40 * 2 * 2
    assert not frame.duplicated(["run", "representation", "score"]).any()
    run_all(StudyFolder(study.path), Pretend(diary=tmp_path / "diary"))
    assert len((tmp_path / "diary").read_text().splitlines()) == len(lines)  # nothing the second time


def test_a_further_metric_and_further_runs_change_no_number(tmp_path: Path) -> None:
    study = StudyFolder.create(tmp_path / "s", tiny_spec("0-1"))
    work = TrainAndScore("cpu")
    run_all(study, work)
    before = table_of(study)
    grown = StudyFolder.create(tmp_path / "s", tiny_spec("0-2", metrics="irs"))
    run_all(grown, work)
    after = table_of(grown)
    assert after["run"].nunique() == 6
    for _, scores in after.groupby("run"):
        assert set(scores["score"]) == {"mig", "modularity", "irs"}  # the old runs have the new metric
    same = after[after["run"].isin(before["run"]) & (after["score"] != "irs")]
    assert same.reset_index(drop=True).equals(before)


def test_a_run_that_fails_does_not_stop_the_others(tmp_path: Path) -> None:
    study = StudyFolder.create(tmp_path / "s", tiny_spec("0-4"))
    bad = sorted(study.runs)[3]
    run_all(study, Pretend(fails=(bad,), diary=tmp_path / "diary"))
    lines = [line.split() for line in (tmp_path / "diary").read_text().splitlines()]
    attempts = [runs for kind, *runs in lines if kind == "train" and bad in runs]
    assert [len(runs) for runs in attempts] == [4, 4, 1, 1]  # twice in company, then twice alone
    frame, notes = collect(study)
    assert frame["run"].nunique() == 9
    assert notes == ["1 of 10 runs have no scores."]
    ledger = Ledger(study.path / "ledger.sqlite")
    assert {failure.error for failure in ledger.failures()} == {
        f"RuntimeError: {bad} cannot be trained",
        "its training failed",
    }
    assert ledger.retry() == 2
    run_all(StudyFolder(study.path), Pretend())
    assert collect(study)[0]["run"].nunique() == 10


class Full(Pretend):
    """A disk that is full from the third unit on."""

    def train(self, study: StudyFolder, unit: Unit, progress: Progress) -> None:
        if len(list((study.path / "runs").glob("*/result.json"))) >= 8:
            raise DiskFullError("the disk is full")
        super().train(study, unit, progress)


def test_a_full_disk_stops_the_study_and_loses_nothing(tmp_path: Path) -> None:
    study = StudyFolder.create(tmp_path / "s", tiny_spec("0-9"))
    with pytest.raises(DiskFullError, match="Make room and run the same command again"):
        run_all(study, Full(), workers=1)
    kept = status_of_folders(study)
    assert kept.trained == 8
    run_all(study, Pretend(diary=tmp_path / "diary"))
    assert collect(study)[0]["run"].nunique() == 20
    done_later = [line for line in (tmp_path / "diary").read_text().splitlines() if line.startswith("train")]
    assert sum(len(line.split()) - 1 for line in done_later) == 12


class Dies(Pretend):
    """Work that ends its process before it has done anything."""

    def train(self, study: StudyFolder, unit: Unit, progress: Progress) -> None:  # noqa: ARG002
        sys.exit(7)


def test_workers_that_always_die_are_given_up(tmp_path: Path) -> None:
    study = StudyFolder.create(tmp_path / "s", tiny_spec("0"))
    status = run_local(study, plan_of(study, 4), [Post(("evaluate", "train"), Dies(), 1)])
    assert status.failed == 2


def test_a_lost_ledger_and_unreadable_runs(tmp_path: Path) -> None:
    study = StudyFolder.create(tmp_path / "s", tiny_spec("0-4"))
    run_all(study, Pretend(diary=tmp_path / "diary"))
    before = table_of(study)
    (study.path / "ledger.sqlite").unlink()
    lines = len((tmp_path / "diary").read_text().splitlines())
    run_all(study, Pretend(diary=tmp_path / "diary"))
    assert len((tmp_path / "diary").read_text().splitlines()) == lines
    assert table_of(study).equals(before)
    broken = sorted(study.runs)[0]
    (study.run_path(broken) / "scores.json").write_text("{")
    frame, notes = collect(study)
    assert frame["run"].nunique() == 9
    assert "cannot read" in notes[1]


def test_a_new_ledger_sees_what_scores_are_missing(tmp_path: Path) -> None:
    study = StudyFolder.create(tmp_path / "s", tiny_spec("0"))
    run_all(study, TrainAndScore("cpu"))
    grown = StudyFolder.create(tmp_path / "s", tiny_spec("0", metrics="irs"))
    (study.path / "ledger.sqlite").unlink()
    run_all(grown, TrainAndScore("cpu"))
    assert set(collect(grown)[0]["score"]) == {"mig", "modularity", "irs"}


def test_runs_of_an_earlier_version_are_said_and_kept(tmp_path: Path) -> None:
    """A folder that another version wrote fails with a sentence; its files stay, and the rest goes on."""
    study = StudyFolder.create(tmp_path / "s", tiny_spec("0-1"))
    old = sorted(study.runs)[0]
    write_json(study.run_path(old) / "spec.json", {"spec": {"version": 0}, "image_shape": [1, 64, 64]})
    run_all(study, TrainAndScore("cpu"))
    error = json.loads((study.run_path(old) / "error.json").read_text())["error"]
    assert "this spec is of version 0; this unweave reads version 1" in error
    assert json.loads((study.run_path(old) / "spec.json").read_text())["spec"] == {"version": 0}
    assert collect(study)[0]["run"].nunique() == 3


def test_shards_are_merged(tmp_path: Path) -> None:
    whole = StudyFolder.create(tmp_path / "whole", tiny_spec("0-7"))
    run_all(whole, Pretend())
    parts = []
    for i in range(3):
        part = StudyFolder.create(tmp_path / f"part{i}", tiny_spec("0-7"))
        units = plan_of(part, 4)[i::3]
        run_local(part, units, [Post(("evaluate", "train"), Pretend(), 1)], ledger_path=tmp_path / f"l{i}")
        parts.append(part)
    merged, notes = collect(parts[0], parts[1:])
    assert not notes
    expected, _ = collect(whole)
    assert in_order(merged).equals(in_order(expected))


def test_tables(tmp_path: Path) -> None:
    study = StudyFolder.create(tmp_path / "s", tiny_spec("0"))
    run_all(study, Pretend())
    frame, _ = collect(study)
    for name in ("t.parquet", "t.csv"):
        write_table(frame, tmp_path / name)
    assert pd.read_parquet(tmp_path / "t.parquet").astype(str).equals(frame.astype(str))
    assert len(pd.read_csv(tmp_path / "t.csv")) == len(frame)
    with pytest.raises(UnweaveError, match=r"as \.parquet or \.csv"):
        write_table(frame, tmp_path / "t.xlsx")
    runs = run_table(study)
    assert list(runs["outcome"]) == ["finished", "finished"]
    assert list(frame["setting"].unique()) == ["beta=1", "beta=4"]
    assert list(frame["strength"].unique()) == [1.0, 4.0]


def test_posts_share_the_cores() -> None:
    posts = posts_for(TrainAndScore("cpu"), workers=3)
    assert [post.kinds for post in posts] == [("evaluate", "train")] * 3
    assert all(post.threads >= 1 for post in posts)


def test_chaos(tmp_path: Path) -> None:
    """36 runs on 3 workers, 5 kills of workers and drivers: the same table as of a study left alone."""
    (tmp_path / "study.toml").write_text(STUDY.format(last=5))
    assert run_here(*words(tmp_path / "calm", 2)).returncode == 0
    assert chaos(tmp_path, kills=5, workers=3) == 5
    expected, found = table_of(StudyFolder(tmp_path / "calm")), table_of(StudyFolder(tmp_path / "chaos"))
    assert found["run"].nunique() == 36
    assert not found.duplicated(["run", "representation", "score"]).any()
    assert found.equals(expected)
    assert not list((tmp_path / "chaos").glob("runs/*/.*.part"))


def test_two_drivers_share_the_work(tmp_path: Path) -> None:
    (tmp_path / "study.toml").write_text(STUDY.format(last=1))
    other = start(tmp_path / "s", 1)
    wait_for_worker(tmp_path / "s")
    assert run_here(*words(tmp_path / "s", 1)).returncode == 0
    assert other.wait() == 0
    assert table_of(StudyFolder(tmp_path / "s"))["run"].nunique() == 12


def test_ctrl_c_waits_until_a_process_can_stop() -> None:
    """Otherwise a process that is just starting would print the traceback of a KeyboardInterrupt."""
    process = local._context().Process(target=time.sleep, args=(60,))
    process.start()
    assert process.pid is not None
    time.sleep(0.5)
    os.kill(process.pid, signal.SIGINT)
    process.join(0.5)
    assert process.is_alive()
    process.terminate()
    process.join()


def test_an_interrupt_stops_cleanly(tmp_path: Path) -> None:
    (tmp_path / "study.toml").write_text(STUDY.format(last=49).replace("steps = 4", "steps = 100000"))
    driver = start(tmp_path / "s", 2)
    pids = wait_for_worker(tmp_path / "s")
    time.sleep(1)
    driver.send_signal(signal.SIGINT)
    assert driver.wait(timeout=60) == 130
    for pid in pids:
        assert not Path(f"/proc/{pid}").exists() or "Z" in Path(f"/proc/{pid}/stat").read_text().split()[2]
    spec: StudySpec = StudyFolder(tmp_path / "s").spec
    assert len(spec.runs) == 300
