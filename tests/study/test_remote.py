"""A task done on another machine: what is sent, what comes back, and what a kill in between leaves."""

import shutil
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from study.tiny import Pretend, tiny_spec
from unweave.errors import DiskFullError
from unweave.progress import Progress, no_progress
from unweave.runs.store import RunFolder
from unweave.study import StudyFolder
from unweave.study.engines.remote import Job, do_job, files_of, receive
from unweave.study.ledger import Task
from unweave.study.planner import Unit, plan_of
from unweave.study.table import collect
from unweave.study.tasks import open_ledger
from unweave.study.work import TrainAndScore, Work
from unweave.study.worker import Worker

ENDED = {"spec.json", "log.jsonl", "weights.safetensors", "card.md", "result.json", "scores.json"}


def job_in(path: Path, work: Work, beacon: str | None = None) -> Job:
    """Training of one unit of three runs."""
    study = StudyFolder.create(path, replace(tiny_spec("0"), runs=tiny_spec("0-1").runs[:3]))
    [unit] = plan_of(study, 3)
    return Job(Task(unit.id, "train", unit.id), unit, study.spec, path, beacon, work, threads=1)


def test_files_come_back_from_where_the_folder_is_not_seen(tmp_path: Path) -> None:
    job = job_in(tmp_path, TrainAndScore("cpu"))
    study = StudyFolder(tmp_path)
    answer = do_job(job, {}, no_progress)
    assert list(answer.outcomes) == [job.task.id, *job.unit.runs]
    assert not any(outcome.error for outcome in answer.outcomes.values())
    assert {run: set(parts) for run, parts in answer.files.items()} == dict.fromkeys(job.unit.runs, ENDED)
    assert not (tmp_path / "runs").exists()
    receive(study, answer.files)
    assert files_of(study, job.unit) == answer.files
    assert do_job(job, answer.files, no_progress).files == {
        run: {} for run in job.unit.runs
    }  # nothing is new


def test_work_is_done_in_the_folder_where_it_is_seen(tmp_path: Path) -> None:
    (tmp_path / "beacon").touch()
    job = job_in(tmp_path, TrainAndScore("cpu"), "beacon")
    assert not do_job(job, None, no_progress).files
    found = files_of(StudyFolder(tmp_path), job.unit)
    assert {run: set(parts) for run, parts in found.items()} == dict.fromkeys(job.unit.runs, ENDED)


def test_a_copy_of_the_folder_is_not_the_folder(tmp_path: Path) -> None:
    job = job_in(tmp_path / "first", Pretend(), "beacon")
    shutil.copytree(tmp_path / "first", tmp_path / "copy")
    (tmp_path / "first" / "beacon").touch()
    elsewhere = replace(job, folder=tmp_path / "copy")
    assert do_job(elsewhere, None, no_progress).needs_files
    assert set(do_job(elsewhere, {}, no_progress).files) == set(job.unit.runs)
    assert not (tmp_path / "copy" / "runs").exists()


def test_a_kill_while_files_are_received_changes_no_number(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Runs that were to end together do so when somebody looks next, without being trained again."""
    job = job_in(tmp_path, TrainAndScore("cpu"))
    study = StudyFolder(tmp_path)
    answer = do_job(job, {}, no_progress)
    complete = RunFolder.complete
    completed: list[RunFolder] = []

    def complete_one(folder: RunFolder) -> None:
        if completed:
            raise KeyboardInterrupt
        completed.append(folder)
        complete(folder)

    with monkeypatch.context() as patch:
        patch.setattr(RunFolder, "complete", complete_one)
        with pytest.raises(KeyboardInterrupt):
            receive(study, answer.files)
    assert [bool(study.run_folder(run).result) for run in job.unit.runs] == [True, False, False]
    assert not list(tmp_path.rglob("scores.json"))
    Worker(study, open_ledger(study, [job.unit]), TrainAndScore("cpu")).run()
    for run, parts in files_of(study, job.unit).items():
        for name in ("weights.safetensors", "log.jsonl"):
            assert parts[name] == answer.files[run][name]
        assert study.run_folder(run).ending is None
    frame, notes = collect(study)
    assert not notes
    assert frame["run"].nunique() == 3


@dataclass(frozen=True)
class Fails:
    """Trains some steps and fails."""

    error: Exception

    def train(self, study: StudyFolder, unit: Unit, progress: Progress) -> None:
        """Leave the beginning of a run, and fail."""
        for run in unit.runs:
            write = study.run_folder(run)
            write.create(study.runs[run], {"image_shape": [1, 64, 64]})
            write.append_log([{"step": 1}])
            write.save_checkpoint(1, {})
        progress(1, 5)
        raise self.error

    def evaluate(self, study: StudyFolder, run_id: str, progress: Progress) -> None:
        """Is not reached."""
        raise NotImplementedError


def test_what_goes_wrong_is_part_of_the_answer(tmp_path: Path) -> None:
    job = job_in(tmp_path, Fails(RuntimeError("no luck")))
    answer = do_job(job, {}, no_progress)
    [(task, outcome)] = answer.outcomes.items()
    assert (task, outcome.error) == (job.task.id, "RuntimeError: no luck")
    assert "Traceback" in outcome.trace
    assert all(set(parts) == {"spec.json", "log.jsonl"} for parts in answer.files.values())


def test_a_full_disk_is_not_the_fault_of_the_runs(tmp_path: Path) -> None:
    answer = do_job(job_in(tmp_path, Fails(DiskFullError("the disk is full"))), {}, no_progress)
    assert not answer.outcomes
    assert answer.halt == "the disk is full"
