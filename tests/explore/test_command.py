"""`unweave explore` from the terminal."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from urllib.request import urlopen

import pytest

from command_line import run_here


def _heed_interrupts() -> None:
    """Undo that jobs in the background of a shell ignore them."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


def test_it_serves_until_it_is_interrupted(run_folder: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "unweave", "explore", str(run_folder), "--no-open"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=_heed_interrupts,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        try:
            line = process.stdout.readline()
            address = re.search(r"http://127\.0\.0\.1:\d+/", line)
            assert address, line
            with urlopen(address[0], timeout=60) as answer:  # noqa: S310  our own server
                assert b"<title>unweave explore</title>" in answer.read()
            process.send_signal(signal.SIGINT)
            assert process.wait(30) == 130
            assert process.stderr.read() == ""
        finally:
            process.kill()


SERVED = """
import os, sys
from pathlib import Path
from unweave.commands.explore import serve
from unweave.explore.server import ExploreServer
from unweave.explore.subject import subject_at

def report(server):
    print(os.environ["OMP_WAIT_POLICY"], "torch" in sys.modules)
    raise KeyboardInterrupt

ExploreServer.serve_forever = report
serve(subject_at(Path(sys.argv[1])), "127.0.0.1", 0, open_page=False)
"""


@pytest.mark.parametrize(("chosen", "used"), [({}, "PASSIVE"), ({"OMP_WAIT_POLICY": "ACTIVE"}, "ACTIVE")])
def test_threads_wait_without_using_the_cores_that_the_browser_needs(
    run_folder: Path, chosen: dict[str, str], used: str
) -> None:
    others = {name: value for name, value in os.environ.items() if name != "OMP_WAIT_POLICY"}
    ended = subprocess.run(
        [sys.executable, "-c", SERVED, str(run_folder)],
        env=others | chosen,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 130, ended.stderr
    # PyTorch reads the variable when it is imported, so it must not be imported before.
    assert ended.stdout.splitlines()[-1] == f"{used} False"


def test_it_writes_a_page(run_folder: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    done = run_here("explore", run_folder, "--export", page)
    assert (done.returncode, done.stdout, done.stderr) == (0, f"-> {page}\n", "")
    assert page.stat().st_size > 1_000_000


def test_what_cannot_be_explored_is_one_sentence(tmp_path: Path) -> None:
    done = run_here("explore", tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"unweave: {tmp_path} is neither the folder of a run")
    (tmp_path / "study.json").write_text("{}")
    done = run_here("explore", tmp_path, "--export", "page.html")
    assert (done.returncode, done.stdout) == (2, "")
    assert "is a study; --export writes the page of one run" in done.stderr
