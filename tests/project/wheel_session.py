"""A session with an installed wheel, without the repository: evaluate, train, report, explore, plug-ins.

`python tests/project/wheel_session.py [WHEEL]` builds the wheel unless one is named, installs it with all of
its dependencies into a new environment and runs the session there. This takes a few minutes.
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

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))  # for use as a script

from plugins.outside import write_plugin

ROOT = Path(__file__).parents[2]
WINDOWS = os.name == "nt"
METRIC = """
def spread(codes, factors):
    return float(codes.std(axis=0).mean())
"""
STUDY = """
name = "small"
metrics = ["mig", "modularity", "metric.py:spread"]
representations = ["mean"]
points = [40, 20]
[shared]
data = "mine.py:squares"
seed = "0-1"
steps = 4
batch = 4
latents = 2
architecture = "mlp"
[[methods]]
name = "mine.py:MyVAE"
gamma = [1, 4]
[[methods]]
name = "beta_vae"
"""
# Commands of one line share a process: every new one would import torch, or compile metrics, again.
COMMANDS = """
import sys
from pathlib import Path


class NoTorch:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "torch":
            raise ModuleNotFoundError("No module named 'torch'", name="torch")


if sys.argv[1] == "without_torch":
    sys.meta_path.insert(0, NoTorch())
import unweave
from unweave.cli import main

assert unweave.__file__.startswith(sys.prefix), f"unweave comes from {unweave.__file__}"
for line in sys.argv[2:]:
    runs = [str(path.parent) for path in Path("study", "runs").glob("*/spec.json")]
    sys.argv = ["unweave", *line.replace("RUN", (runs or [""])[0]).split()]
    print("$", *sys.argv, flush=True)
    try:
        main()
    except SystemExit as ended:
        assert not ended.code, ended.code
"""
MEASURE = (
    "data show dsprites -o sheet.png",
    "evaluate codes.npz --metrics mig,metric.py:spread --json scores.json",
)
TRAIN = ("study run study.toml -o study --device cpu --workers 1 --quiet", "explore RUN --export page.html")
REPORT = ("report study -o report",)
SERVE = ("explore study --no-open",)


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
    """Measure without torch, train, report without torch, and look at the page of the study without torch."""
    (folder / "metric.py").write_text(METRIC)
    write_plugin(folder)
    (folder / "study.toml").write_text(STUDY)
    generator = np.random.default_rng(0)
    factors = generator.integers(0, 3, (300, 2))
    np.savez(folder / "codes.npz", codes=factors + 0.1 * generator.normal(size=(300, 2)), factors=factors)
    subprocess.run([commands / "unweave", "cite"], cwd=folder, check=True)
    for torch, lines in (("without_torch", MEASURE), ("torch", TRAIN), ("without_torch", REPORT)):
        subprocess.run([commands / "python", "-c", COMMANDS, torch, *lines], cwd=folder, check=True)
    made = ["sheet.png", "scores.json", "study/results.parquet", "page.html", "report/index.html"]
    assert [name for name in made if not (folder / name).is_file()] == []
    assert "my_vae" in (folder / "report" / "index.html").read_text(encoding="utf-8")
    explore(commands, folder)


def explore(commands: Path, folder: Path) -> None:
    """Serve the study, and fetch the page, its scripts, its styles and its data."""
    words = [str(commands / "python"), "-c", COMMANDS, "without_torch", *SERVE]
    with subprocess.Popen(words, cwd=folder, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout
            address = next(found for line in server.stdout if (found := re.search(r"http://\S+/", line)))[0]
            page = fetched(address)
            parts = re.findall(r'(?:src|href)="([\w./-]+\.(?:js|css))"', page)
            assert len(parts) > 1, page
            for name in ["api/subject", *parts]:
                assert fetched(address + name)
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


if __name__ == "__main__":
    main(sys.argv[1:])
