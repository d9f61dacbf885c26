"""The script of a Slurm array: each job of the array does one shard of a study."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from unweave.errors import UnweaveError
from unweave.study.work import TrainAndScore, Work

WARNING = 120  # seconds before the time limit at which a job is asked to write its checkpoints and end


@dataclass(frozen=True)
class Resources:
    """What each job of the array asks Slurm for."""

    partition: str | None = None
    time: str | None = None
    gres: str | None = None
    cpus: int | None = None
    extra: str | None = None  # further arguments of sbatch

    def directives(self) -> list[str]:
        """The arguments of sbatch."""
        named = {
            "partition": self.partition,
            "time": self.time,
            "gres": self.gres,
            "cpus-per-task": self.cpus,
        }
        words = [f"--{name}={value}" for name, value in named.items() if value is not None]
        try:
            return words + shlex.split(self.extra or "")
        except ValueError as error:
            raise UnweaveError(f"cannot read the arguments of sbatch in {self.extra!r}: {error}.") from None


def job_script(name: str, folder: Path, command: str, resources: Resources) -> str:
    """The script of one array; `folder` gets a log and a file with the exit status of each job."""
    # Since Slurm 22.05, srun does not take over the --cpus-per-task of sbatch.
    cpus = f" --cpus-per-task={resources.cpus}" if resources.cpus else ""
    arguments = [
        f"--job-name={name}",
        f"--output={folder}/%A_%a.log",
        "--open-mode=append",
        "--requeue",
        f"--signal=TERM@{WARNING}",
        *resources.directives(),
    ]
    lines = [
        "#!/bin/bash",
        *(f"#SBATCH {shlex.quote(argument)}" for argument in arguments),
        f"cd {shlex.quote(str(folder))} || exit 1",
        f"srun{cpus} {command}",
        "status=$?",
        'name="${SLURM_ARRAY_JOB_ID}_${SLURM_ARRAY_TASK_ID}"',
        'echo "$status" > "$name.part" && mv "$name.part" "$name.status"',
        'exit "$status"',
    ]
    return "\n".join(lines) + "\n"


def shard_command(
    program: Sequence[str], study: Path, shards: int, work: Work, workers: int | None = None
) -> str:
    """The command line that does the shard of a job, with the options of the work."""
    if not isinstance(work, TrainAndScore):
        raise UnweaveError(
            f"the Slurm engine does TrainAndScore work only, by `unweave study run --shard`; got {work!r}."
        )
    words = [*program, "study", "run", str(study), "--device", work.device]
    words += ["--checkpoint-every", str(work.checkpoint_every)]
    words += ["--data-root", str(work.data_root.absolute())] if work.data_root else []
    words += ["--keep-codes"] if work.keep_codes else []
    words += [word for name in work.log_to for word in ("--log-to", name)]
    words += ["--workers", str(workers)] if workers else []
    return f'{shlex.join(words)} --shard "$SLURM_ARRAY_TASK_ID/{shards}"'
