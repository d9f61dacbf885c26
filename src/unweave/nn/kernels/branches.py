"""A second stream for work that the rest of a backward pass does not wait for.

The gradients of weights are needed by the optimiser only. A small population leaves most of the GPU idle, so
they are computed next to the gradients of the layers before. In a CUDA graph this is a parallel branch.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TypeVar

import torch
from torch import Tensor

Result = TypeVar("Result")

MOST_RUNS = 32  # larger populations fill the GPU without branches


class Branch:
    """Work on a second stream, of a population of so many runs. Its results may be used after `join`."""

    def __init__(self, x: Tensor) -> None:
        self._is_used = x.is_cuda and len(x) <= MOST_RUNS
        self._inputs: list[tuple[Tensor, ...]] = []  # their memory must not be used again before `join`

    def run(self, work: Callable[[], Result], *inputs: Tensor) -> Result:
        """Start the work, which reads the inputs."""
        if not self._is_used:
            return work()
        self._inputs.append(inputs)
        side = _side_stream(inputs[0].device)
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            return work()

    def join(self) -> None:
        """Let the current stream wait for all work."""
        if self._inputs:
            torch.cuda.current_stream().wait_stream(_side_stream(self._inputs[0][0].device))
            self._inputs.clear()


@cache
def _side_stream(device: torch.device) -> torch.cuda.Stream:
    return torch.cuda.Stream(device)
