"""The Slurm engine against a stand-in for Slurm: jobs that die, fail, are cancelled, or go on alone."""

import json
import os
import signal
import sys
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import pandas as pd
import pytest

from study.chaos import STUDY
from study.stand_in_slurm import StandInSlurm
from study.tiny import Pretend, tiny_spec
from unweave.commands.study import study_app
from unweave.errors import UnweaveError
from unweave.progress import no_progress
from unweave.study import StudyFolder
from unweave.study.engines.engine import ENGINES, EngineJob, drive, engine_named
from unweave.study.engines.slurm import Record, SlurmEngine, submitted_jobs
from unweave.study.engines.slurm_queue import array_text
from unweave.study.engines.slurm_script import Resources
from unweave.study.planner import Unit, plan_of
from unweave.study.progress import Status
from unweave.study.tasks import open_ledger
from unweave.study.work import TrainAndScore
from unweave.training.trainer import Stopped

# Does a shard by copying finished runs; a file named after the shard says what goes wrong, once or always.
SHARD = """
import json, os, shutil, sys, time
from pathlib import Path
study, shard, source = Path(sys.argv[4]), sys.argv[-1], Path(sys.argv[1])
i, n = map(int, shard.split("/"))
fault = source / f"fault-{i}"
word = fault.read_text() if fault.exists() else ""
if word and not word.endswith("always"):
    fault.unlink()
if word.startswith("exit"):
    sys.exit(int(word.split()[1]))
for unit in json.loads((study / "plan.json").read_text())["units"][i::n]:
    for run in unit:
        if word == "fail":
            target = study / "runs" / next((source / "runs").glob(f"*{run}*")).name
            target.mkdir(parents=True)
            (target / "error.json").write_text(json.dumps({"doing": "train", "error": "no", "trace": ""}))
            continue
        while word.startswith("hang"):
            time.sleep(0.1)
        [done] = (source / "runs").glob(f"*{run}*")
        shutil.copytree(done, study / "runs" / done.name, dirs_exist_ok=True)
"""


@pytest.fixture
def slurm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[StandInSlurm]:
    made = StandInSlurm.install(tmp_path / "slurm")
    monkeypatch.setenv("PATH", f"{made.root / 'bin'}{os.pathsep}{os.environ['PATH']}")
    yield made
    made.end()


class Scene:
    """A study of four populations, and an engine whose jobs copy its finished runs from another folder."""

    def __init__(self, path: Path) -> None:
        self.study = StudyFolder.create(path / "my study", tiny_spec("0-3"))
        self.units = plan_of(self.study, 2)
        self.done = StudyFolder.create(path / "done", self.study.spec)
        work = Pretend()
        for unit in self.units:
            work.train(self.done, unit, no_progress)
            for run in unit.runs:
                work.evaluate(self.done, run, no_progress)
        (path / "shard.py").write_text(SHARD)
        self.program = (sys.executable, "-IS", str(path / "shard.py"), str(self.done.path))
        self.said: list[str] = []

    def fault(self, shard: int, word: str) -> None:
        (self.done.path / f"fault-{shard}").write_text(word)

    def run(self, tell: Callable[[Status], None] | None = None, **options: object) -> Status:
        chosen = {"array": 4, "look_every": 0.1, "grace": 0.6, "program": self.program} | options
        engine = engine_named("slurm", chosen)
        job = EngineJob(StudyFolder(self.study.path), self.units, TrainAndScore("cpu"), say=self.said.append)
        return drive(engine, job, tell)


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


def test_an_array_does_all_shards_once(scene: Scene, slurm: StandInSlurm) -> None:
    status = scene.run(partition="gpu", time="1:00", cpus=2, sbatch="--qos=high --comment='a b'")
    assert (status.finished, status.measured, status.running) == (True, 8, 0)
    assert slurm.submitted == ["100 0-3"]
    script = (scene.study.path / "slurm" / "job.sh").read_text()
    assert script.rstrip() in scene.said
    for line in ("--partition=gpu", "--time=1:00", "--cpus-per-task=2", "--qos=high", "'--comment=a b'"):
        assert f"#SBATCH {line}\n" in script
    assert '--shard "$SLURM_ARRAY_TASK_ID/4"' in script
    assert submitted_jobs(scene.study) == ["100"]
    assert scene.run().finished  # a second time there is nothing to submit
    assert slurm.submitted == ["100 0-3"]


def test_jobs_that_die_are_submitted_again(scene: Scene, slurm: StandInSlurm) -> None:
    scene.fault(1, "hang")  # until its machine dies
    scene.fault(2, "exit 130")  # a time limit
    killed: list[str] = []
    calls = count()

    def kill(status: Status) -> None:
        if next(calls) % 3 == 0:
            (slurm.root / "down").touch()  # squeue fails now and then
        if status.measured >= 4 and not killed:
            slurm.kill("100_1")
            killed.append("100_1")

    assert scene.run(kill).measured == 8
    assert sorted(slurm.submitted) == ["100 0-3", "101 2", "102 1"]
    assert Record.read(scene.study.path / "slurm" / "jobs.json").jobs[1].job == "102"  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("word", "submissions", "message"),
    [
        ("exit 1 always", 3, r"Shard 3 ended 3 times without progress; .*102_3\.log says why"),
        ("exit 2", 1, r"1 shards are not done. Shard 3 stopped with an error; .*100_3\.log says why"),
    ],
)
def test_a_shard_that_cannot_be_done(
    scene: Scene, slurm: StandInSlurm, word: str, submissions: int, message: str
) -> None:
    scene.fault(3, word)
    with pytest.raises(UnweaveError, match=message):
        scene.run(max_requeues=2)
    assert len(slurm.submitted) == submissions
    assert len(list(scene.study.path.glob("runs/*/scores.json"))) == 6  # the others are done


def test_runs_that_fail_are_reported_and_tried_by_the_next_call(scene: Scene, slurm: StandInSlurm) -> None:
    from unweave.study.session import failures_of

    open_ledger(scene.study, scene.units).close()  # of an earlier local driver, who did nothing
    scene.fault(0, "fail")
    assert scene.run().failed == 2
    assert [failure.error for failure in failures_of(scene.study)] == ["no", "no"]
    assert scene.run().measured == 8
    assert slurm.submitted == ["100 0-3", "101 0"]


def test_ctrl_c_detaches_and_the_next_call_attaches(scene: Scene, slurm: StandInSlurm) -> None:
    scene.fault(0, "hang always")

    def interrupt(status: Status) -> None:
        if status.measured == 6 and status.running == 1:
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(Stopped, match=r"jobs continue.* unweave study status '.*my study'.* scancel 100\."):
        scene.run(interrupt)

    with pytest.raises(Stopped):  # the queued job keeps its number of shards
        scene.run(interrupt, array=2)
    assert slurm.submitted == ["100 0-3"]
    assert "attached to Slurm job 100: 1 of 4 shards are queued" in scene.said
    (scene.done.path / "fault-0").unlink()
    slurm.kill("100_0")
    assert scene.run().measured == 8
    assert slurm.submitted == ["100 0-3", "101 0"]


def test_a_job_that_is_cancelled_is_not_submitted_again(scene: Scene, slurm: StandInSlurm) -> None:
    scene.fault(0, "hang")

    def cancel(status: Status) -> None:
        if status.measured == 6:
            os.system(f"{slurm.root / 'bin' / 'scancel'} 100")  # noqa: S605

    with pytest.raises(UnweaveError, match="Shard 0 was cancelled as job 100"):
        scene.run(cancel)
    assert slurm.submitted == ["100 0-3"]


def test_two_drivers_of_one_study(scene: Scene, slurm: StandInSlurm) -> None:
    def again(_status: Status) -> None:
        with pytest.raises(UnweaveError, match=r"the Slurm engine of .* is in use by process"):
            scene.run()

    assert scene.run(again).finished
    assert slurm.submitted == ["100 0-3"]


def test_the_command_from_submission_to_table(
    tmp_path: Path,
    slurm: StandInSlurm,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A real shard, which trains and measures."""
    (tmp_path / "mine.toml").write_text(STUDY.format(last=0).replace("[1, 2, 4, 8, 16, 32]", "[1, 4]"))
    words = ["run", "mine.toml", "-o", "s", "--engine", "slurm", "--population", "1", "--array", "1"]
    words += ["--device", "cpu", "--workers", "1", "--sbatch", "--qos=high"]
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(
        "unweave.commands.study.engine_named",
        lambda name, options: engine_named(name, options | {"look_every": 0.3}),
    )
    study_app()(words, exit_on_error=False, result_action="return_value")
    printed = capsys.readouterr().out
    assert "#SBATCH --qos=high\n" in printed
    assert "2 of 2 runs done" in printed
    assert slurm.submitted == ["100 0"]
    assert pd.read_parquet(tmp_path / "s" / "results.parquet")["run"].nunique() == 2
    assert json.loads((tmp_path / "s" / "slurm" / "jobs.json").read_text())["shards"] == 1
    study_app()(["status", "s"], exit_on_error=False, result_action="return_value")
    assert "to cancel: scancel 100" in capsys.readouterr().out


def test_what_slurm_cannot_do(scene: Scene, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    job = EngineJob(scene.study, scene.units, TrainAndScore("cpu"))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UnweaveError, match="needs the command squeue, which is not on PATH"):
        drive(SlurmEngine(), job)
    with pytest.raises(UnweaveError, match=r"makes the shards itself\. Leave --shard out"):
        drive(SlurmEngine(), EngineJob(scene.study, scene.units, TrainAndScore(), tmp_path / "ledger"))
    with pytest.raises(UnweaveError, match=r"array must be a whole number >= 1; got 0\."):
        drive(SlurmEngine(array=0), job)
    with pytest.raises(UnweaveError, match=r"arguments of sbatch in .*No closing quotation"):
        Resources(extra="--comment='a").directives()


def test_names_and_options_of_engines() -> None:
    assert array_text([3, 1, 2]) == "1-3"
    assert array_text([5]) == "5"
    with pytest.raises(UnweaveError, match=r'there is no study engine "slrum"\. Did you mean "slurm"'):
        engine_named("slrum", {})
    with pytest.raises(UnweaveError, match=r"not an option of the engine ray\. Give --engine local or slurm"):
        engine_named("ray", {"workers": 2})
    for name in ENGINES:
        assert engine_named(name, {"workers": None})


OWN_ENGINE = """
from contextlib import contextmanager
from dataclasses import dataclass
from unweave.study.progress import status_of_folders

@dataclass(frozen=True)
class Idle:
    workers: int = 1

    @contextmanager
    def start(self, job):
        self_job = job
        class Crew:
            def advance(self): return False
            def status(self): return status_of_folders(self_job.study)
            def stop(self): return ""
        yield Crew()

class Other: pass
"""


def test_an_engine_from_a_file(scene: Scene, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(OWN_ENGINE)
    engine = engine_named(f"{tmp_path}/mine.py:Idle", {"workers": 3, "address": None})
    status = drive(engine, EngineJob(scene.study, scene.units, TrainAndScore("cpu")))
    assert (status.runs, status.trained) == (8, 0)
    with pytest.raises(UnweaveError, match=r"is not a study engine: it has no method `start"):
        engine_named(f"{tmp_path}/mine.py:Other", {})
    with pytest.raises(UnweaveError, match=r'there is no study engine "Missing" in .*mine\.py'):
        engine_named(f"{tmp_path}/mine.py:Missing", {})


def test_the_units_of_shards_are_those_of_the_command(scene: Scene) -> None:
    from unweave.study.session import shard_of

    parts: list[Unit] = [unit for i in range(3) for unit in shard_of(scene.units, f"{i}/3")]
    assert {unit.id for unit in parts} == {unit.id for unit in scene.units}
