"""The Ray engine, on clusters of one machine: a machine that dies, a driver that dies, runs that fail."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Timer

import pandas as pd
import pytest

from study.gpu_notes import NotesGPUs, gpus_by_process
from study.noted import Noted, lines_of
from study.tiny import Pretend, tiny_spec
from unweave.errors import UnweaveError
from unweave.study import StudyFolder, StudySpec
from unweave.study.engines.ray import run_ray
from unweave.study.engines.ray_cluster import Portion, machines, portion_for
from unweave.study.ledger import Ledger
from unweave.study.planner import plan_of
from unweave.study.presets import with_fields
from unweave.study.progress import Status
from unweave.study.table import collect
from unweave.study.tasks import open_ledger
from unweave.study.work import TrainAndScore
from unweave.study.worker import Worker
from unweave.training.trainer import Stopped

ray = pytest.importorskip("ray", reason="Ray is not installed")

HEAD, SECOND = "127.0.0.3", "127.0.0.4"
# A token that Ray has once made for this user would be asked for from then on.
ENVIRONMENT = os.environ | {"PYTHONPATH": str(Path(__file__).parents[1]), "RAY_AUTH_MODE": "disabled"}


@contextmanager
def node(ip: str, scratch: Path, *options: str) -> Iterator[subprocess.Popen[bytes]]:
    """A machine of a Ray cluster with one core, in a process group of its own."""
    command = [
        sys.executable,
        "-m",
        "ray.scripts.scripts",
        "start",
        f"--node-ip-address={ip}",
        "--num-cpus=1",
    ]
    command += ["--disable-usage-stats", "--include-log-monitor=false", "--object-store-memory=100000000"]
    command += ["--block", *options]
    # A node that dies is noticed in a second, not in a quarter of a minute.
    quick = {"RAY_health_check_period_ms": "500", "RAY_health_check_failure_threshold": "2"}
    process = subprocess.Popen(
        command,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=ENVIRONMENT | quick | {"TMPDIR": str(scratch)},
        start_new_session=True,
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def wait_until(holds: Callable[[], bool]) -> None:
    for _ in range(600):
        if holds():
            return
        time.sleep(0.1)
    raise TimeoutError("a minute has passed")


def answers(ip: str, port: int) -> bool:
    try:
        socket.create_connection((ip, port), timeout=1).close()
    except OSError:
        return False
    return True


def removed(folder: Path) -> bool:
    """Whether a folder is gone; processes that are about to end may write into it once more."""
    shutil.rmtree(folder, ignore_errors=True)
    return not folder.exists()


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """Of a cluster of one machine, to which this process is connected."""
    with socket.socket() as free:
        free.bind((HEAD, 0))
        port = free.getsockname()[1]
    folder = Path(tempfile.mkdtemp(prefix="ray-", dir="/tmp"))  # names of sockets must be short
    head = ("--head", f"--port={port}", "--include-dashboard=false", f"--temp-dir={folder}")
    with node(HEAD, folder, *head):
        wait_until(lambda: answers(HEAD, port))
        ray.init(address=f"{HEAD}:{port}", log_to_driver=False, logging_level="ERROR")
        yield f"{HEAD}:{port}"
        ray.shutdown()
    time.sleep(1)  # workers outlive their node by a moment
    wait_until(lambda: removed(folder))


def table_of(study: StudyFolder) -> pd.DataFrame:
    frame, notes = collect(study)
    assert not notes
    assert not frame.duplicated(["run", "representation", "score"]).any()
    return frame.sort_values(["run", "representation", "score"], ignore_index=True).astype(str)


def undisturbed(path: Path, spec: StudySpec, largest: int) -> pd.DataFrame:
    """The table of a study that was left alone."""
    study = StudyFolder.create(path, spec)
    Worker(study, open_ledger(study, plan_of(study, largest)), TrainAndScore("cpu")).run()
    return table_of(study)


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> pd.DataFrame:
    return undisturbed(tmp_path_factory.mktemp("expected") / "s", tiny_spec("0-11"), 3)


class Killer:
    """Kills a machine while it trains: all its processes, without a word."""

    def __init__(self, victim: "subprocess.Popen[bytes]", diary: Path) -> None:
        self.victim, self.diary = victim, diary
        self.lost: set[str] = set()

    def __call__(self, status: Status) -> None:
        lines = [line for line in lines_of(self.diary) if line.machine == SECOND]
        ended = {line.unit for line in lines if line.what == "ends"}
        at_work = {line.unit: line.pid for line in lines if line.what == "rests" and line.unit not in ended}
        if status.measured >= 3 and at_work and not self.lost:
            self.lost = set(at_work)
            for pid in at_work.values():
                os.kill(pid, signal.SIGKILL)
            os.killpg(self.victim.pid, signal.SIGKILL)


@pytest.mark.parametrize("in_place", [True, False], ids=["shared folder", "no shared folder"])
def test_a_machine_that_dies(address: str, expected: pd.DataFrame, tmp_path: Path, in_place: bool) -> None:
    study, diary = StudyFolder.create(tmp_path / "s", tiny_spec("0-11")), tmp_path / "diary"
    train = TrainAndScore("cpu", checkpoint_every=1, log_every=1)
    with node(SECOND, tmp_path, f"--address={address}") as second:
        wait_until(lambda: len(machines()) == 2)
        kill = Killer(second, diary)
        work = Noted(train, diary, slow=SECOND, seconds=3)
        status = run_ray(study, plan_of(study, 3), work, address, kill, in_place=in_place)
    assert status.finished
    assert not status.failed
    assert kill.lost
    again = [line[::2] for line in lines_of(diary) if line.unit in kill.lost]
    assert again == [("begins", SECOND), ("rests", SECOND), ("begins", HEAD), ("ends", HEAD)]
    assert table_of(study).equals(expected)


def test_ctrl_c_leaves_a_checkpoint_to_go_on_from(address: str, tmp_path: Path) -> None:
    study, diary = StudyFolder.create(tmp_path / "s", tiny_spec("0")), tmp_path / "diary"
    units, work = plan_of(study, 2), TrainAndScore("cpu", log_every=1)

    sent: list[Timer] = []

    def interrupt(_status: Status) -> None:
        if any(line.what == "rests" for line in lines_of(diary)) and not sent:
            sent.append(Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)))  # while the driver waits for Ray
            sent[0].start()

    with pytest.raises(Stopped):
        run_ray(study, units, Noted(work, diary, slow=HEAD, seconds=1), address, interrupt)
    assert [line.what for line in lines_of(diary)] == ["begins", "rests"]
    assert all(study.run_folder(run).checkpoints() == [2] for run in study.runs)
    assert set(Ledger(study.path / "ledger.sqlite").states().values()) == {"ready", "waiting"}
    assert run_ray(study, units, work, address).finished
    assert table_of(study).equals(undisturbed(tmp_path / "alone", study.spec, 2))


def test_a_driver_that_is_killed_and_started_again(address: str, tmp_path: Path) -> None:
    study, diary = StudyFolder.create(tmp_path / "s", tiny_spec("0-7")), tmp_path / "diary"
    units = plan_of(study, 2)

    def trained() -> list[str]:
        lines = diary.read_text().splitlines() if diary.exists() else []
        return [line for line in lines if line.startswith("train")]

    process = subprocess.Popen([sys.executable, "-c", DRIVER, address, study.path, diary], env=ENVIRONMENT)
    wait_until(lambda: len(trained()) >= 3)
    process.kill()
    process.wait()
    run_ray(study, units, Pretend(diary=diary), address, in_place=False)
    assert len(table_of(study)) == 16 * 4
    assert len(units) <= len(trained()) <= len(units) + 3  # at most what was on its way is done again


DRIVER = """
import sys
from pathlib import Path
from study.tiny import Pretend
from unweave.study import StudyFolder, StudySpec
from unweave.study.planner import read_plan
from unweave.study.engines.ray_cluster import Portion, machines, portion_for
from unweave.study.engines.ray import run_ray

address, path, diary = sys.argv[1:]
study = StudyFolder(Path(path))
run_ray(study, read_plan(study), Pretend(seconds=0.2, diary=Path(diary)), address, in_place=False)
"""


def test_a_run_that_fails_does_not_stop_the_others(address: str, tmp_path: Path) -> None:
    study, diary = StudyFolder.create(tmp_path / "s", tiny_spec("0-2")), tmp_path / "diary"
    bad = sorted(study.runs)[2]
    status = run_ray(study, plan_of(study, 3), Pretend(fails=(bad,), diary=diary), address)
    assert (status.measured, status.failed) == (5, 1)
    lines = [line.split() for line in diary.read_text().splitlines()]
    attempts = [runs for kind, *runs in lines if kind == "train" and bad in runs]
    assert [len(runs) for runs in attempts] == [3, 3, 1, 1]  # twice in company, then twice alone
    [training, _] = Ledger(study.path / "ledger.sqlite").failures()
    assert training.error == f"RuntimeError: {bad} cannot be trained"


def test_a_further_metric_is_measured_where_the_weights_are_not(address: str, tmp_path: Path) -> None:
    spec = tiny_spec("0", metrics="mig")
    study = StudyFolder.create(tmp_path / "s", spec)
    Worker(study, open_ledger(study, plan_of(study, 2)), TrainAndScore("cpu")).run()
    before = table_of(study)
    grown = StudyFolder.create(tmp_path / "s", tiny_spec("0", metrics="modularity"))
    run_ray(grown, plan_of(grown, 2), TrainAndScore("cpu"), address, in_place=False)
    after = table_of(grown)
    assert set(after["score"]) == {"mig", "modularity"}
    assert after[after["score"] == "mig"].reset_index(drop=True).equals(before)


def test_what_is_wrong_with_a_machine_stops_the_study(address: str, tmp_path: Path) -> None:
    study = StudyFolder.create(tmp_path / "s", with_fields(tiny_spec("0"), data="shapes3d"))
    with pytest.raises(UnweaveError, match=r"of the Ray cluster: .*unweave data fetch"):
        run_ray(study, plan_of(study, 2), TrainAndScore("cpu", tmp_path), address)
    assert set(Ledger(study.path / "ledger.sqlite").states().values()) == {"ready", "waiting"}


def test_each_task_sees_one_of_the_gpus_of_its_machine(address: str, tmp_path: Path) -> None:
    """Two simulated GPUs: Ray counts them, and tells each task which one it has."""
    study, diary = StudyFolder.create(tmp_path / "s", tiny_spec("0")), tmp_path / "diary"
    with node(SECOND, tmp_path, f"--address={address}", "--num-gpus=2"):
        wait_until(lambda: any(machine.get("GPU") == 2 for machine in machines()))
        assert portion_for(TrainAndScore("cuda")) == Portion(0, 1)
        work = NotesGPUs(diary, seconds=2)
        run_ray(study, plan_of(study, 1), work, address, portion=Portion(0, 1))
    assert set(gpus_by_process(diary, "train").values()) == {"0", "1"}
    wait_until(lambda: len(machines()) == 1)


def test_a_gpu_that_the_cluster_does_not_have(address: str, tmp_path: Path) -> None:
    study = StudyFolder.create(tmp_path / "s", tiny_spec("0"))
    with pytest.raises(UnweaveError, match="the Ray cluster has none"):
        run_ray(study, plan_of(study, 2), TrainAndScore("cuda"), address)


def test_a_cluster_that_cannot_be_reached(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    study = StudyFolder.create(tmp_path / "s", tiny_spec("0"))
    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    with pytest.raises(UnweaveError, match=r"cannot reach the Ray cluster at 127\.0\.0\.3:1: .*refused"):
        run_ray(study, plan_of(study, 2), TrainAndScore("cpu"), "127.0.0.3:1")
    with pytest.raises(UnweaveError, match="cannot reach the Ray cluster at nowhere: Invalid address"):
        run_ray(study, plan_of(study, 2), TrainAndScore("cpu"), "nowhere")


def test_ray_is_not_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    study = StudyFolder.create(tmp_path / "s", tiny_spec("0"))
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(UnweaveError, match=r"pip install unweave\[ray\]"):
        run_ray(study, plan_of(study, 2), TrainAndScore("cpu"))


@pytest.mark.parametrize(
    ("resources", "device", "portion", "slots"),
    [
        ([{"CPU": 1.0}, {"CPU": 8.0}], "auto", Portion(1), 9),
        ([{"CPU": 4.0}, {"CPU": 7.0}, {"memory": 1.0}], "auto", Portion(2), 5),
        ([{"CPU": 16.0, "GPU": 2.0}, {"CPU": 12.0, "GPU": 2.0}, {"CPU": 64.0}], "auto", Portion(6, 1), 4),
        ([{"CPU": 16.0, "GPU": 2.0}, {"CPU": 64.0}], "cpu", Portion(2), 40),
        ([{"GPU": 1.0}], "cuda", Portion(0, 1), 1),
        ([], "auto", Portion(1), 1),
    ],
)
def test_what_a_task_takes(
    resources: list[dict[str, float]],
    device: str,
    portion: Portion,
    slots: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("unweave.study.engines.ray_cluster.machines", lambda: resources)
    assert portion_for(TrainAndScore(device)) == portion
    assert portion.slots() == slots
