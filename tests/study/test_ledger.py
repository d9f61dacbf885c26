"""The ledger: each task is one worker's at a time, and none is lost or done twice."""

import os
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unweave.errors import UnweaveError
from unweave.locks import process_start
from unweave.study.ledger import ATTEMPTS, DEATHS, LEASE, Ledger, Task

TRAIN = [Task(f"u{i}", "train", f"u{i}") for i in range(3)]
EVALUATE = [Task(f"r{i}", "evaluate", f"u{i}", "mig") for i in range(3)]


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    made = Ledger(tmp_path / "ledger.sqlite")
    made.add([(task, "ready") for task in TRAIN] + [(task, "waiting") for task in EVALUATE])
    return made


def test_tasks_are_claimed_in_order_and_once(ledger: Ledger) -> None:
    other = Ledger(ledger.path)
    claimed = [ledger.claim(["evaluate", "train"]), other.claim(["train"]), ledger.claim(["train"])]
    assert claimed == TRAIN
    assert ledger.claim(["evaluate", "train"]) is None
    assert ledger.open_tasks() == 6
    ledger.done(TRAIN[1], 1.0)
    assert other.claim(["evaluate", "train"]) == EVALUATE[1]
    assert other.claim(["evaluate", "train"]) is None


def test_errors_are_counted_and_a_failed_unit_fails_its_runs(ledger: Ledger) -> None:
    for attempt in range(ATTEMPTS):
        task = ledger.claim(["train"])
        assert task == TRAIN[0]
        assert ledger.fail(task, f"wrong {attempt}") == (attempt == ATTEMPTS - 1)
    assert [(f.task.id, f.error) for f in ledger.failures()] == [
        ("u0", "wrong 1"),
        ("r0", "its training failed"),
    ]
    assert ledger.retry() == 2
    assert ledger.states()["u0"] == "ready"
    assert ledger.states()["r0"] == "waiting"


def test_what_is_given_back_was_not_tried(ledger: Ledger) -> None:
    for _ in range(5 * ATTEMPTS):
        task = ledger.claim(["train"])
        assert task == TRAIN[0]
        ledger.release(task)
    assert not ledger.failures()


def test_split_units(ledger: Ledger) -> None:
    assert ledger.claim(["train"]) == TRAIN[0]
    ledger.split(TRAIN[0], [(Task("alone-r0", "train", "alone-r0"), "r0")])
    task = ledger.claim(["train"])
    assert task is not None
    assert task.id == "alone-r0"
    ledger.done(task, 0.1)
    assert ledger.states()["r0"] == "ready"
    ledger.add([(task, "ready") for task in TRAIN])  # the plan still has the unit
    assert ledger.states()["u0"] == "split"


def claim_in_another_process(path: Path) -> None:
    code = "import sys; from pathlib import Path; from unweave.study.ledger import Ledger; "
    code += "print(Ledger(Path(sys.argv[1])).claim(['train']).id)"
    done = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "u0"


def test_a_dead_process_holds_nothing_whatever_the_clock_says(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    claim_in_another_process(ledger.path)
    assert ledger.claim(["train"]) == TRAIN[0]
    # A clock that jumps ahead takes nothing from a process that lives.
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + 1e6)
    assert Ledger(ledger.path).claim(["train"]) == TRAIN[1]


def test_leases_of_other_machines_end_when_they_are_not_renewed(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    far = Ledger(ledger.path)
    far.host = "far away"
    assert far.claim(["train"]) == TRAIN[0]
    assert ledger.claim(["train"]) == TRAIN[1]
    assert far.renew(TRAIN[0], 0.5)
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + LEASE + 1)
    assert ledger.claim(["train"]) == TRAIN[0]
    assert not far.renew(TRAIN[0], 0.6)


def test_a_task_that_kills_its_workers_fails_in_the_end(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "l.sqlite")
    ledger.add([(TRAIN[0], "ready")])
    for _ in range(DEATHS):
        ledger.base.execute(
            "UPDATE tasks SET state = 'running', host = ?, pid = 1, born = '0'", (ledger.host,)
        )
        task = ledger.claim(["train"])
    assert task is None
    assert ledger.failures()[0].error == f"its worker died {DEATHS} times"


def test_another_wish_opens_a_task_again(ledger: Ledger) -> None:
    ledger.base.execute("UPDATE tasks SET state = 'done'")
    ledger.add([(EVALUATE[0], "done"), (EVALUATE[1]._replace(wanted="mig, sap"), "ready")])
    assert ledger.states()["r0"] == "done"
    assert ledger.claim(["evaluate"]) == EVALUATE[1]._replace(wanted="mig, sap")
    ledger.add([(TRAIN[2], "ready")])  # its files are gone
    assert ledger.states()["u2"] == "ready"


def test_what_is_no_ledger(tmp_path: Path) -> None:
    (tmp_path / "x.sqlite").write_bytes(b"this is no database, whatever its name says" * 100)
    with pytest.raises(UnweaveError, match="Delete it: it is rebuilt"):
        Ledger(tmp_path / "x.sqlite")
    with pytest.raises(UnweaveError, match=r"cannot use .* --shard"):
        Ledger(tmp_path / "no folder" / "x.sqlite")
    base = sqlite3.connect(tmp_path / "new.sqlite")
    base.execute("PRAGMA user_version=99")
    base.close()
    with pytest.raises(UnweaveError, match="another version"):
        Ledger(tmp_path / "new.sqlite")


def test_birth() -> None:
    assert process_start(os.getpid()) == process_start(os.getpid()) is not None
    child = subprocess.Popen([sys.executable, "-c", "pass"])
    while child.poll() is None:
        time.sleep(0.01)
    assert process_start(child.pid) is None


@given(
    st.lists(st.tuples(st.integers(0, 2), st.sampled_from(["claim", "done", "fail", "release"])), max_size=40)
)
@settings(deadline=None, max_examples=40)
def test_whatever_workers_do_no_task_is_two_workers_at_once(
    tmp_path_factory: pytest.TempPathFactory, moves: list[tuple[int, str]]
) -> None:
    path = tmp_path_factory.mktemp("ledger") / "l.sqlite"
    workers = [Ledger(path) for _ in range(3)]
    workers[0].add([(task, "ready") for task in TRAIN] + [(task, "waiting") for task in EVALUATE])
    held: dict[int, Task] = {}
    finished: set[str] = set()
    for worker, move in moves:
        if move == "claim" and worker not in held:
            task = workers[worker].claim(["evaluate", "train"])
            if task is not None:
                assert task not in held.values()
                assert task.id not in finished
                held[worker] = task
        elif move != "claim" and worker in held:
            task = held.pop(worker)
            if move == "done":
                workers[worker].done(task, 0.0)
                finished.add(task.id)
            elif move == "fail":
                workers[worker].fail(task, "wrong")
            else:
                workers[worker].release(task)
    states = workers[0].states()
    assert set(states) == {task.id for task in TRAIN + EVALUATE}
    assert {task_id for task_id, state in states.items() if state == "done"} == finished
    assert {task_id for task_id, state in states.items() if state == "running"} == {
        t.id for t in held.values()
    }
    for each in workers:
        each.close()
