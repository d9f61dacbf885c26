"""Launches of Triton kernels whose pipelines may need more shared memory than a GPU has.

A block of an H200 may use 227 KB of it, one of a consumer GPU 99 KB. Each stage of a pipeline holds a tile of
each operand. Kernels in float32 with the stages that are fastest on an H200 need up to 192 KB.
"""

from __future__ import annotations

from typing import Any

import triton


def launch(kernel: Any, grid: tuple[int, ...], *arguments: Any, num_stages: int, **options: Any) -> None:
    """Launch a kernel with a pipeline of so many stages, or of as many as the GPU has shared memory for."""
    for stages in range(num_stages, 1, -1):
        try:
            kernel[grid](*arguments, num_stages=stages, **options)
            return
        except triton.OutOfResources:
            continue
    kernel[grid](*arguments, num_stages=1, **options)
