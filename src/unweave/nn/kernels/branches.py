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
    """Work on a second stream, of a population of so many runs. Its results may be used after the context.

    An error inside of the context also ends it in order: a CUDA graph with a loose branch cannot be ended.
    """

    def __init__(self, x: Tensor) -> None:
        self._side = _side_stream(torch.cuda.current_stream(x.device)) if _is_used(x) else None
        self._inputs: list[tuple[Tensor, ...]] = []  # their memory must not be used again before the end

    def __enter__(self) -> Branch:
        return self

    def __exit__(self, *_: object) -> None:
        """Let the current stream wait for all work."""
        if self._side is not None and self._inputs:
            torch.cuda.current_stream().wait_stream(self._side)
            self._inputs.clear()

    def run(self, work: Callable[[], Result], *inputs: Tensor) -> Result:
        """Start the work, which reads the inputs."""
        if self._side is None:
            return work()
        self._inputs.append(inputs)
        self._side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self._side):
            return work()


def _is_used(x: Tensor) -> bool:
    return x.is_cuda and len(x) <= MOST_RUNS


@cache
def _side_stream(stream: torch.cuda.Stream) -> torch.cuda.Stream:
    """The second stream next to a stream. Threads that record graphs must not share one."""
    return torch.cuda.Stream(stream.device)
