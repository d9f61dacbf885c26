"""Where Triton's kernels are tested: on the GPU, or in Triton's interpreter. Import before the kernels."""

import os
from collections.abc import Iterator

import pytest
import torch

CUDA = torch.cuda.is_available()
if not CUDA:
    os.environ["TRITON_INTERPRET"] = "1"
# With NumPy of 2026 the interpreters of Triton 3.2 and 3.6 fail at sums over rows; that of 3.9 does not.
OLDEST = None if CUDA else "3.9"
pytest.importorskip("triton", OLDEST, reason="Triton, with an interpreter that works, is not installed")

DEVICE = "cuda" if CUDA else "cpu"
# The interpreter multiplies with NumPy, which has no bfloat16.
LOW = torch.bfloat16 if CUDA else torch.float16


def numbers(seed: int, *shape: int) -> torch.Tensor:
    """Numbers of mixed sign in float64, rounded to bfloat16 so that products of any precision start alike."""
    values = torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return values.bfloat16().double()


def distance(ours: torch.Tensor, exact: torch.Tensor) -> float:
    """How far off, as a share; NaN, with which memory is filled beforehand, is infinitely far."""
    far = float((ours.double().cpu() - exact).norm() / exact.norm())
    return far if far == far else float("inf")


@pytest.fixture(autouse=True)
def poison(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """New memory is full of NaN, so that a number which no program writes shows."""
    before = torch.are_deterministic_algorithms_enabled()
    torch.use_deterministic_algorithms(True, warn_only=True)
    monkeypatch.setattr(torch.utils.deterministic, "fill_uninitialized_memory", True)
    yield
    torch.use_deterministic_algorithms(before)
