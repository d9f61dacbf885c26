"""What to do when the memory of a device is full: the same with half as many runs."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import TypeVar

import torch

from unweave.errors import UnweaveError
from unweave.spec import RunSpec

Result = TypeVar("Result")


def with_what_fits(act: Callable[[int], Result], runs: int, example: RunSpec, device: str) -> Result:
    """What `act` gives for so many runs at a time; if there is no memory for them, for half as many."""
    while True:
        try:
            return act(runs)
        except torch.cuda.OutOfMemoryError:
            if runs == 1:
                raise UnweaveError(
                    f"not even one run of {example.method.name} fits into the memory of {device}, with "
                    f"batches of {example.batch}: end what else uses it, or take a smaller batch or "
                    "--device cpu."
                ) from None
        # Only here, after the handler, does the error no longer hold on to what is on the device.
        gc.collect()
        torch.cuda.empty_cache()
        runs //= 2
