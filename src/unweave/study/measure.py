"""How fast a machine trains: some updates of a real population, timed."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

import torch

from unweave.data import load as load_data
from unweave.spec import RunSpec
from unweave.training.batches import batches_of
from unweave.training.population import Population
from unweave.training.trainer import pick_device
from unweave.training.update import Update

WARM_UP = 3  # updates that also build what is built once


def measured_rate(
    specs: Sequence[RunSpec], device: str = "auto", data_root: Path | None = None, seconds: float = 8.0
) -> float:
    """Model-steps a second of some runs that train together, after a warm-up."""
    chosen = pick_device(device)
    data = load_data(specs[0].data, data_root)
    update = Update(Population(specs, data.shape, chosen), batches_of(data, chosen), len(data))
    never: list[int] = []
    update.run(WARM_UP, never)
    _wait(chosen)
    start, done, chunk = time.perf_counter(), 0, 1
    while time.perf_counter() - start < seconds:
        done += update.run(chunk, never)
        _wait(chosen)
        chunk = min(2 * chunk, 64)
    return len(specs) * done / (time.perf_counter() - start)


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)
