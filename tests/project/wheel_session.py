"""A session with an installed wheel, without the repository: evaluate, train, study, report, explore, plug-in.

`python tests/project/wheel_session.py [WHEEL]` builds the wheel unless one is named, installs it with all of its
dependencies into a new environment and runs the session there. This takes a few minutes.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import urllib.request
import venv
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parents[2]
WINDOWS = os.name == "nt"
PARTS = '''
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from unweave.data.grid import Card, Factor, GroundTruth
from unweave.methods.method import AUTOENCODER, Losses, Method, Setting, StepContext, elbo_terms


@dataclass(frozen=True)
class MyVAE(Method):
    """My VAE: the KL divergence is weighted by gamma."""

    gamma: Setting = 2.0

    name: ClassVar[str] = "my_vae"
    citation: ClassVar[str] = ""

    def losses(self, step: StepContext) -> Losses:
        """The objective, and terms for the log."""
        forward = step.forward
        return Losses({AUTOENCODER: forward.reconstruction + self.gamma * forward.kl}, elbo_terms(forward))


def spread(codes, factors):
    """Mean deviation of the codes."""
    return float(np.std(codes, axis=0).mean())


def bars():
    """One horizontal and one vertical bar."""

    def render(factors, stream):
        bar = np.arange(32) // 8
        rows, columns = bar == factors[:, :1], bar == factors[:, 1:]
        return (rows[:, :, None] | columns[:, None, :])[:, None] * np.uint8(255)

    factors = (Factor("row", 4), Factor("column", 4))
    return GroundTruth("bars", factors, (1, 32, 32), render, Card("bars", "none", ""), "made up")
'''
STUDY = """
name = "small"
metrics = ["mig", "modularity", "parts.py:spread"]
representations = ["mean"]
points = [40, 20]
[shared]
data = "parts.py:bars"
seed = "0-1"
steps = 4
batch = 4
latents = 2
architecture = "mlp"
[[methods]]
name = "parts.py:MyVAE"
gamma = [1, 4]
[[methods]]
name = "beta_vae"
"""
# One process for all commands: every new process would import torch again.
COMMANDS = """
import sys
from pathlib import Path

import numpy as np

import unweave
from unweave.cli import main

assert unweave.__file__.startswith(sys.prefix), f"unweave comes from {unweave.__file__}"
factors = np.random.default_rng(0).integers(0, 3, (300, 2))
np.savez("codes.npz", codes=factors + 0.1 * np.random.default_rng(1).normal(size=(300, 2)), factors=factors)
for line in Path("commands.txt").read_text().splitlines():
    runs = [str(path.parent) for path in Path("runs").glob("*/spec.json")]
    sys.argv = ["unweave", *line.replace("RUN", *runs or [""]).split()]
    print("$", *sys.argv, flush=True)
    try:
        main()
    except SystemExit as ended:
        assert not ended.code, ended.code
"""
LINES = """cite
data show dsprites -o sheet.png
evaluate codes.npz --metrics mig,parts.py:spread --json scores.json --plot scores.png
train parts.py:MyVAE --data parts.py:bars --architecture mlp --steps 4 --batch 4 --latents 2 --quiet
study run study.toml -o study --device cpu --workers 1 --quiet
report study -o report
explore RUN --export page.html
"""


def build(folder: Path) -> Path:
    """Build the wheel into a folder."""
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    [wheel] = folder.glob("*.whl")
    return wheel


def install(wheel: Path, folder: Path, options: Sequence[str] = ()) -> Path:
    """Install a wheel into a new environment; return the folder of its commands."""
    venv.create(folder, with_pip=False)
    commands = folder / ("Scripts" if WINDOWS else "bin")
    pip = [sys.executable, "-m", "pip", "--python", str(commands / "python"), "install", "-q"]
    subprocess.run([*pip, *options, str(wheel)], check=True)
    return commands


def run_session(commands: Path, folder: Path) -> None:
    """Run all commands in a folder, then look at the study's page."""
    (folder / "parts.py").write_text(PARTS)
    (folder / "study.toml").write_text(STUDY)
    (folder / "commands.txt").write_text(LINES)
    subprocess.run([commands / "python", "-c", COMMANDS], cwd=folder, check=True)
    made = ["sheet.png", "scores.json", "scores.png", "study/results.parquet", "report/index.html", "page.html"]
    assert [name for name in made if not (folder / name).is_file()] == []
    assert "my_vae" in (folder / "report" / "index.html").read_text(encoding="utf-8")
    explore(commands, folder)


def explore(commands: Path, folder: Path) -> None:
    """Serve the study, and fetch the page, its scripts, its styles and its data."""
    words = [commands / "unweave", "explore", "study", "--no-open"]
    with subprocess.Popen(words, cwd=folder, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout
            address = re.search(r"http://\S+/", server.stdout.readline())
            assert address
            page = fetched(address[0])
            for name in ["api/subject", *re.findall(r'(?:src|href)="([\w./-]+\.(?:js|css))"', page)]:
                assert fetched(address[0] + name)
        finally:
            server.kill()


def fetched(address: str) -> str:
    """The text at an address of this machine."""
    with urllib.request.urlopen(address, timeout=60) as answer:  # noqa: S310  only http://127.0.0.1
        return str(answer.read().decode())


def main(words: Sequence[str]) -> None:
    """Build, install and use the wheel."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        wheel = Path(words[0]).resolve() if words else build(folder / "dist")
        work = folder / "work"
        work.mkdir()
        run_session(install(wheel, folder / "environment"), work)
    print("The wheel works.")


if __name__ == "__main__":
    main(sys.argv[1:])
