"""`unweave train --watch`: a page in another process, which ends with the training without a terminal."""

import re
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

import pytest

from command_line import run_here


def test_the_page_is_served_while_a_run_trains(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The address is printed before training, the page shows the run, and its process is gone at the end."""
    monkeypatch.setenv("BROWSER", "true")  # a command that opens nothing
    answers: list[bytes] = []
    finish = "unweave.commands.train._finish"
    printed: list[str] = []
    monkeypatch.setattr("unweave.commands.watch.say", printed.append)

    def look(*_: object) -> dict[str, float]:
        address = re.search(r"http://127\.0\.0\.1:\d+/", printed[0])
        assert address
        with urlopen(f"{address[0]}api/live", timeout=60) as answer:  # noqa: S310  our own server
            answers.append(answer.read())
        return {}

    monkeypatch.setattr(finish, look)
    words = ["--steps", "2", "--batch", "4", "--device", "cpu", "--no-scores", "--no-pictures", "--watch"]
    done = run_here("train", "beta_vae", "--architecture", "mlp", *words, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert printed[0].startswith("watch runs: http://127.0.0.1:")
    assert b'"trained"' in answers[0]
    address = re.search(r"http://127\.0\.0\.1:\d+/", printed[0])
    assert address
    with pytest.raises(URLError):
        urlopen(address[0], timeout=5)  # noqa: S310
