"""Kernels are launched with fewer stages where a GPU has too little shared memory for their pipelines."""

from typing import Any

import pytest

from nn.triton_device import poison  # noqa: F401

import triton  # isort: skip
from unweave.nn.kernels.launches import launch


class Kernel:
    """In place of a kernel that fits into the shared memory with so many stages."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.launches: list[tuple[Any, ...]] = []

    def __getitem__(self, grid: tuple[int, ...]) -> Any:
        def run(*arguments: Any, num_stages: int, **options: Any) -> None:
            if num_stages > self.most:
                raise triton.OutOfResources(num_stages * 49152, 101376, "shared memory")
            self.launches.append((grid, arguments, options, num_stages))

        return run


@pytest.mark.parametrize(("most", "expected"), [(9, 4), (4, 4), (3, 3), (1, 1)])
def test_as_many_stages_as_fit(most: int, expected: int) -> None:
    kernel = Kernel(most)
    launch(kernel, (3, 2), "x", 5, num_stages=4, num_warps=8)
    assert kernel.launches == [((3, 2), ("x", 5), {"num_warps": 8}, expected)]


def test_kernels_that_do_not_fit_at_all_fail() -> None:
    kernel = Kernel(0)
    with pytest.raises(triton.OutOfResources, match="shared memory"):
        launch(kernel, (1,), num_stages=3)
    assert kernel.launches == []
