"""Kill a training or a study at chosen file operations, resume it, and compare it with one left alone.

Run as a program, because it forks: a fresh process without threads can do that safely. Each child counts what
it does to files of its folder (an audit hook sees every open, rename, remove and mkdir) and kills itself with
SIGKILL just before one of these operations. So kills hit every gap between two operations, and a kill is
repeatable. A quarter of the kills come from outside at a random time, also in the middle of a write.
"""

import os
import random
import shutil
import signal
import sys
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import torch

from study.chaos import table_of
from study.tiny import tiny_spec
from training.test_trainer import spec, train
from training.tiny import narrow_discriminators
from unweave.methods import BetaTCVAE, BetaVAE, FactorVAE
from unweave.streams import Stream
from unweave.study import StudyFolder
from unweave.study.planner import plan_of
from unweave.study.tasks import open_ledger
from unweave.study.work import TrainAndScore
from unweave.study.worker import Worker

EVENTS = ("open", "os.rename", "os.remove", "os.mkdir", "os.truncate")
Act = Callable[[Path], None]
State = dict[str, bytes]


def run_training(folder: Path) -> None:
    """Three runs of two lengths in one population, with a first checkpoint soon."""
    specs = [
        spec(BetaVAE(4.0), 0, steps=5),
        spec(BetaTCVAE(beta=6.0), 1, steps=5),
        spec(FactorVAE(5.0), 2, steps=3),
    ]
    train(folder, specs, checkpoint_every=2, log_every=1)


def state_of_training(folder: Path) -> State:
    """The weights and logs of all runs, and the names of other expected files."""
    names = ("weights.safetensors", "log.jsonl")
    content = {str(path.relative_to(folder)): path.read_bytes() for n in names for path in folder.rglob(n)}
    # A killed process may leave its lock file, which no longer locks anything.
    files = sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.suffix != ".lock")
    return content | {"files": "\n".join(files).encode()}


def run_study(folder: Path) -> None:
    """A study of two units of one run, trained and measured by a worker in this process."""
    study = StudyFolder.create(folder, tiny_spec("0"))
    work = TrainAndScore("cpu", checkpoint_every=2, log_every=1)
    with closing(open_ledger(study, plan_of(study, 1))) as ledger:
        Worker(study, ledger, work).run()


def state_of_study(folder: Path) -> State:
    """The weights of all runs and the table of results."""
    weights = {path.parent.name: path.read_bytes() for path in folder.rglob("weights.safetensors")}
    return weights | {"table": table_of(StudyFolder(folder)).to_csv().encode()}


def in_child(act: Act, folder: Path, kill_at: int = 0, kill_after: float = 0.0) -> int:
    """Do something in a child, killed before file operation `kill_at` or after `kill_after` seconds.

    Return how many file operations there were, or 0 if the child was killed.
    """
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        counted = _count_operations(folder, kill_at)
        act(folder)
        os.write(writer, str(counted[0]).encode())
        os._exit(0)
    os.close(writer)
    if kill_after:
        time.sleep(kill_after)
        os.kill(child, signal.SIGKILL)
    with os.fdopen(reader) as pipe:
        answer = pipe.read()
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL and (kill_at or kill_after):
        return 0
    if status or not answer:
        sys.exit(f"the child failed with status {status}, kill_at {kill_at}")
    return int(answer)


def _count_operations(folder: Path, kill_at: int) -> list[int]:
    counted, inside = [0], os.fspath(folder)

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        if event not in EVENTS or not str(arguments[0]).startswith(inside):
            return
        counted[0] += 1
        if counted[0] == kill_at:
            os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(hook)
    return counted


def kill_and_resume(act: Act, state: Callable[[Path], State], folder: Path, kills: int, seed: int) -> int:
    """Kill and resume that many times; every final state must equal that of an uninterrupted run."""
    start = time.monotonic()
    operations, seconds = in_child(act, folder / "whole"), time.monotonic() - start
    expected = state(folder / "whole")
    dice, done, parts = random.Random(seed), 0, folder / "parts"  # noqa: S311
    while done < kills:
        left = operations
        while done < kills:
            by_time = dice.random() < 0.25
            after, at = (dice.uniform(0, seconds), 0) if by_time else (0.0, _moment(dice, left))
            if in_child(act, parts, at, after):
                break
            done += 1
            left = max(2, left - operations // 4)  # so that each round comes to an end
        in_child(act, parts)
        actual = state(parts)
        if difference := [name for name in expected | actual if expected.get(name) != actual.get(name)]:
            sys.exit(f"after {done} kills these differ: {difference}")
        shutil.rmtree(parts)
    return done


def _moment(dice: random.Random, operations: int) -> int:
    """Which operation to kill at: the first checkpoint, the last files, or any, a third of the time each."""
    low, high = dice.choice(((1, operations // 3), (operations * 2 // 3, operations), (1, operations)))
    return dice.randint(max(low, 1), max(high, 1))


if __name__ == "__main__":
    torch.set_num_threads(1)
    what, place, number, first = sys.argv[1:]
    acts = {"train": (run_training, state_of_training), "study": (run_study, state_of_study)}
    Stream.of(0).uniform(1, 1)  # loads Numba's tables once, for all children
    with narrow_discriminators():
        print(kill_and_resume(*acts[what], Path(place), int(number), int(first)))  # noqa: T201
