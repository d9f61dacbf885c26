"""Resuming: which runs form a population, and from which step they continue.

Runs of a population share kernels, and tensors of other shapes are summed in another order. So a resumed run
equals an uninterrupted one bit for bit only if it continues with the same runs from the same step. Each
checkpoint records the runs that it was written with, and the step of the checkpoint before it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby

from unweave.runs.spec import RunSpec
from unweave.runs.store import RunFolder
from unweave.training.population import shared_by

Start = tuple[int, tuple[str, ...]]  # the step, and the ids of the runs that were trained together until then


def populations(
    specs: Sequence[RunSpec], folders: Mapping[str, RunFolder], largest: int
) -> Iterator[tuple[list[RunSpec], int]]:
    """Runs that train together, and the step at which they start.

    They agree in the fields that a population shares, and in the checkpoint they resume from. `folders` are
    those of all requested runs, finished ones included.
    """
    reached = {run_id: None if folder.ended else folder.checkpoints() for run_id, folder in folders.items()}
    starts = {spec.id: _start(folders[spec.id], spec.id, reached) for spec in specs}

    def key(spec: RunSpec) -> tuple[str, Start]:
        return repr(shared_by(spec)), starts[spec.id]

    for (_, (step, _)), group in groupby(sorted(specs, key=key), key):
        runs = list(group)
        for first in range(0, len(runs), largest):
            yield runs[first : first + largest], step


def _start(folder: RunFolder, run_id: str, reached: Mapping[str, list[int] | None]) -> Start:
    """The last checkpoint that all runs of its population have reached; `reached` is None for ended runs.

    A kill may leave some runs without the newest checkpoint. Then all use the one before, or the start if
    there is none. Where a checkpoint is missing for another reason, such as a folder that was deleted, the
    run continues from its own newest one.
    """
    steps = folder.checkpoints()
    for step in reversed(steps):
        population = folder.checkpoint_origin(step).population
        others = [reached[other] for other in population if other in reached]
        if all(saved is None or step in saved for saved in others):
            return step, population
    if not steps or folder.checkpoint_origin(steps[0]).previous == 0:
        return 0, ()
    return steps[-1], (run_id,)


def complete_endings(folders: Mapping[str, RunFolder]) -> None:
    """End the runs that a kill left prepared to end, if all runs that were to end together are prepared."""
    for folder in folders.values():
        if (ending_ids := folder.ending) is None:
            continue
        others = [folders[run_id] for run_id in ending_ids if run_id in folders]
        if all(other.ending is not None or other.result for other in others):
            for other in others:
                if other.ending is not None:
                    other.complete()
        elif folder.result is None:
            folder.unprepare()
