"""Work that notes which GPUs its process sees, for machines without a GPU."""

import os
from dataclasses import dataclass
from pathlib import Path

from study.tiny import Pretend
from unweave.progress import Progress
from unweave.study import StudyFolder
from unweave.study.planner import Unit


@dataclass(frozen=True)
class NotesGPUs:
    """Pretended work; each task leaves a line with its kind, its process and the GPUs that this sees."""

    diary: Path
    seconds: float = 0.0

    def train(self, study: StudyFolder, unit: Unit, progress: Progress) -> None:
        """Pretend to train."""
        self._note("train")
        Pretend(self.seconds).train(study, unit, progress)

    def evaluate(self, study: StudyFolder, run_id: str, progress: Progress) -> None:
        """Pretend to measure."""
        self._note("evaluate")
        Pretend().evaluate(study, run_id, progress)

    def _note(self, kind: str) -> None:
        with self.diary.open("a") as file:
            file.write(f"{kind} {os.getpid()} {os.environ.get('CUDA_VISIBLE_DEVICES')}\n")


def gpus_by_process(diary: Path, kind: str) -> dict[str, str]:
    """The GPUs that each process saw while it did such tasks."""
    lines = [line.split() for line in diary.read_text().splitlines()]
    return {process: gpus for what, process, gpus in lines if what == kind}
