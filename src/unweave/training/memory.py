"""Out-of-memory handling: retry with half as many runs."""

from __future__ import annotations

import gc
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import torch

from unweave.errors import UnweaveError
from unweave.runs.spec import RunSpec
from unweave.runs.store import RunFolder
from unweave.training.batches import Data
from unweave.training.trainer import Plan, Tell, pick_device, train_runs

Result = TypeVar("Result")


def train_what_fits(
    specs: Sequence[RunSpec], data: Data, paths: Sequence[Path], plan: Plan, tell: Tell | None = None
) -> list[RunFolder]:
    """Train all runs; halve the size of populations until they fit into the memory of the device."""
    return halve_on_oom(
        lambda largest: train_runs(specs, data, paths, replace(plan, largest=largest), tell),
        min(plan.largest, len(specs)),
        specs[0],
        str(pick_device(plan.device)),
    )


def halve_on_oom(action: Callable[[int], Result], runs: int, example: RunSpec, device: str) -> Result:
    """Return `action(runs)`; if the device runs out of memory, retry with half as many runs, down to one."""
    while True:
        try:
            return action(runs)
        except torch.cuda.OutOfMemoryError:
            if runs == 1:
                raise UnweaveError(
                    f"not even one run of {example.method.name} fits into the memory of {device}, with "
                    f"batches of {example.batch}: end other programs on it, or use a smaller batch or "
                    "--device cpu."
                ) from None
        # Outside of the handler: inside, the error still holds references to tensors on the device.
        gc.collect()
        torch.cuda.empty_cache()
        runs //= 2
