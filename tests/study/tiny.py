"""Studies small enough for tests, and work that only pretends."""

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from unweave.evaluation.scores import SCHEMA, Score, Scores
from unweave.files import write_json
from unweave.metrics import metric_named
from unweave.progress import Progress
from unweave.streams import Stream
from unweave.study import StudyFolder, StudySpec
from unweave.study.planner import Unit
from unweave.study.spec import grid

ORIGIN = {
    "image_shape": [1, 64, 64],
    "data_source": "pretended",
    "data_drawn": "uniformly",
    "data_licence": "none",
    "data_citation": "",
    "unweave": "0",
    "torch": "0",
    "python": "0",
    "device": "none",
}


def tiny_spec(seeds: str = "0-4", **fields: Any) -> StudySpec:
    """Ten runs of five steps, unless stated otherwise."""
    shared = {"data": "dsprites", "seed": seeds, "steps": 5, "batch": 4, "latents": 2}
    runs = grid([{"name": "beta_vae", "beta": [1, 4]}], **shared)
    return StudySpec("tiny", runs, **({"metrics": "mig, modularity", "points": (60, 30)} | fields))


@dataclass(frozen=True)
class Pretend:
    """Writes what a run leaves behind, with numbers made from its id, in no time or in so many seconds."""

    seconds: float = 0.0
    weights: bool = True
    fails: tuple[str, ...] = ()  # runs whose training fails
    diary: Path | None = None  # where each thing done is noted

    def train(self, study: StudyFolder, unit: Unit, progress: Progress) -> None:
        """Pretend to train."""
        time.sleep(self.seconds)
        self._note("train", *unit.runs)
        for run in unit.runs:
            if run in self.fails:
                raise RuntimeError(f"{run} cannot be trained")
            folder = study.run_folder(run)
            folder.create(study.runs[run], ORIGIN)
            result = {"outcome": "finished", "steps": 5, "seconds": 0.1, "runs_beside": 0, "terms": {}}
            if self.weights:
                folder.finish({"w": torch.zeros(1)}, result)
            else:
                write_json(folder.path / "result.json", result)
        progress(1, 1)

    def evaluate(self, study: StudyFolder, run_id: str, progress: Progress) -> None:
        """Pretend to measure."""
        self._note("evaluate", run_id)
        spec = study.spec
        records = []
        for kind in spec.representations:
            draws = Stream.of(int(run_id, 16) % 2**32).child(kind).uniform(1, len(spec.metrics))[0]
            scores = tuple(
                Score(metric, metric_named(metric).protocol(kind), kind, float(value))
                for metric, value in zip(spec.metrics, draws, strict=True)
            )
            records.append(
                Scores(run_id, kind, scores, asked=spec.points, points=spec.points, seed=spec.seed)
            )
        content = {"schema": SCHEMA, "evaluations": [record.to_dict() for record in records]}
        write_json(study.run_path(run_id) / "scores.json", content)
        progress(1, 1)

    def _note(self, *words: str) -> None:
        if self.diary is not None:
            with self.diary.open("a") as file:
                file.write(" ".join(words) + "\n")
