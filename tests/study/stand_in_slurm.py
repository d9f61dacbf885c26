"""A Slurm of one machine for tests: sbatch, squeue, scancel, sacct and srun as small scripts.

A job is a local process group. The folder `queue` has one file for each job of an array with its process.
"""

import os
import signal
import sys
from dataclasses import dataclass
from pathlib import Path

HEAD = f"""#!{sys.executable} -IS
import os, re, signal, subprocess, sys
from pathlib import Path
ROOT = Path(__file__).resolve().parents[1]

def alive(file):
    try:
        return Path(f"/proc/{{file.read_text()}}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
"""
SBATCH = """
*_, array, script = sys.argv
numbers = array.removeprefix("--array=")
first, dash, last = numbers.partition("-")
indices = range(int(first), int(last) + 1) if dash else [int(number) for number in numbers.split(",")]
job = 100 + len((ROOT / "submitted").read_text().splitlines())
with (ROOT / "submitted").open("a") as file:
    file.write(f"{job} {numbers}\\n")
[output] = re.findall(r"#SBATCH '?--output=(.*?)'?\\n", Path(script).read_text())
for index in indices:
    task = {"SLURM_ARRAY_JOB_ID": str(job), "SLURM_ARRAY_TASK_ID": str(index)}
    with open(output.replace("%A", str(job)).replace("%a", str(index)), "a") as log:
        process = subprocess.Popen(
            ["bash", script], env=os.environ | task, start_new_session=True, stdout=log, stderr=log
        )
    (ROOT / "queue" / f"{job}_{index}").write_text(str(process.pid))
print(job)
"""
SQUEUE = """
if (ROOT / "down").exists():
    (ROOT / "down").unlink()
    sys.exit("slurm_load_jobs error: Unable to contact slurm controller")
for file in (ROOT / "queue").iterdir():
    if alive(file):
        print(*file.name.split("_"), "RUNNING")
print("99 N/A RUNNING")  # a job that is no array
"""
SCANCEL = """
for job in sys.argv[1:]:
    for file in (ROOT / "queue").glob(f"{job}_*"):
        if alive(file):
            (ROOT / "cancelled").open("a").write(file.name + "\\n")
            os.killpg(int(file.read_text()), signal.SIGKILL)
"""
SACCT = """
[task] = [word.removeprefix("--jobs=") for word in sys.argv if word.startswith("--jobs=")]
cancelled = (ROOT / "cancelled").read_text() if (ROOT / "cancelled").exists() else ""
print("CANCELLED by 1000" if task in cancelled.split() else "FAILED")
"""
SRUN = """
words = [word for word in sys.argv[1:] if not word.startswith("--cpus-per-task")]
sys.exit(subprocess.run(words).returncode % 256)
"""
SCRIPTS = {"sbatch": SBATCH, "squeue": SQUEUE, "scancel": SCANCEL, "sacct": SACCT, "srun": SRUN}


@dataclass(frozen=True)
class StandInSlurm:
    """The folder of a Slurm that runs jobs on this machine."""

    root: Path

    @classmethod
    def install(cls, root: Path) -> "StandInSlurm":
        """Write the scripts; they work once `root / "bin"` is on PATH."""
        for name in ("bin", "queue"):
            (root / name).mkdir(parents=True)
        (root / "submitted").write_text("")
        for name, text in SCRIPTS.items():
            (root / "bin" / name).write_text(HEAD + text)
            (root / "bin" / name).chmod(0o755)
        return cls(root)

    @property
    def submitted(self) -> list[str]:
        """The arrays that were submitted, as in ["100 0-3", "101 2"]."""
        return (self.root / "submitted").read_text().splitlines()

    def kill(self, task: str) -> None:
        """End a job at once, as when its machine dies."""
        os.killpg(int((self.root / "queue" / task).read_text()), signal.SIGKILL)

    def is_listed(self, task: str) -> bool:
        """Whether a job was ever queued."""
        return (self.root / "queue" / task).exists()

    def end(self) -> None:
        """Kill all jobs that are left."""
        for file in (self.root / "queue").iterdir():
            try:
                os.killpg(int(file.read_text()), signal.SIGKILL)
            except ProcessLookupError:
                continue
