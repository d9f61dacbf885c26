"""Lock files: one holder at a time, on POSIX systems and on Windows, whose locks are imitated here."""

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from stand_in_msvcrt import behave_like_windows
from unweave import locks
from unweave.errors import UnweaveError
from unweave.locks import claim, hold, holder_of, process_start

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows is imitated by locks of POSIX")
HOLDER = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from stand_in_msvcrt import behave_like_windows
from unweave.locks import claim, hold
if sys.argv[2] == "windows":
    behave_like_windows()
path = Path(sys.argv[4])
with claim(path, "it") if sys.argv[3] == "claim" else hold(path):
    print("held", flush=True)
    sys.stdin.readline()
"""


@pytest.fixture(params=["posix", "windows"])
def system(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "windows":
        behave_like_windows(monkeypatch)
    return str(request.param)


@contextmanager
def held_elsewhere(system: str, how: str, path: Path) -> Iterator[subprocess.Popen[str]]:
    """A process that holds a lock until it gets a line."""
    words = [sys.executable, "-c", HOLDER, str(Path(__file__).parent), system, how, str(path)]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        assert process.stdout.readline() == "held\n"
        try:
            yield process
        finally:
            process.kill()


def test_a_claim_names_its_holder_and_is_free_after_a_kill(system: str, tmp_path: Path) -> None:
    path = tmp_path / "train.lock"
    with held_elsewhere(system, "claim", path) as other:
        assert holder_of(path) == "alive"
        with pytest.raises(UnweaveError, match=rf"it is in use by process {other.pid} on"), claim(path, "it"):
            pytest.fail("two processes have the lock")
        other.kill()
        other.wait()
        assert holder_of(path) == "dead"
        with claim(path, "it"):
            assert holder_of(path) == "alive"
            assert f'"pid": {os.getpid()},' in path.read_text()
    assert not path.exists()
    assert holder_of(path) is None


def test_a_claim_is_free_after_its_release(system: str, tmp_path: Path) -> None:
    path = tmp_path / "train.lock"
    with held_elsewhere(system, "claim", path) as other:
        other.communicate("\n")
        assert other.returncode == 0
        assert not path.exists()
        with claim(path, "it"):
            assert path.exists()


def test_holders_wait_for_each_other(system: str, tmp_path: Path) -> None:
    path = tmp_path / "table.npy"
    entered = threading.Event()

    def enter() -> None:
        with hold(path):
            entered.set()

    with held_elsewhere(system, "hold", path) as other:
        waiter = threading.Thread(target=enter)
        waiter.start()
        assert not entered.wait(0.3)
        other.communicate("\n")
        waiter.join(20)
        assert entered.is_set()
    assert path.with_suffix(".lock").exists()


def test_the_locked_byte_is_behind_any_content() -> None:
    """Windows lets no other process read a locked byte, and others must read who holds the lock."""
    assert 2**20 < locks.LOCKED_BYTE < 2**31


def test_a_process_has_one_start_time_without_proc(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on macOS and Windows: two processes differ, one that has ended has none."""
    pytest.importorskip("psutil")
    started = process_start(os.getpid())
    assert started is not None

    def missing(self: Path, **_options: object) -> str:
        raise FileNotFoundError(self)

    waiting = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    with waiting as child, monkeypatch.context() as patch:
        patch.setattr(Path, "read_text", missing)
        patch.setattr(Path, "exists", lambda _self: False)
        own, other = process_start(os.getpid()), process_start(child.pid)
        assert own == process_start(os.getpid())
        assert own
        assert other
        assert float(own) < float(other)
        child.kill()
        assert _eventually_gone(child.pid)
    assert process_start(child.pid) is None


def _eventually_gone(pid: int) -> bool:
    """Whether a killed process, of which its parent has not heard yet, counts as gone."""
    wait = threading.Event()
    return any(process_start(pid) is None or wait.wait(0.05) for _ in range(100))
