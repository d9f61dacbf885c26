"""Draws of which nothing may be drawn, for losses whose random numbers a test knows."""

from collections.abc import Sequence

from torch import Tensor


class NoDraws:
    """A test allows what it expects by overriding it."""

    def normal(self, purpose: str, rows: int, columns: int) -> Tensor:
        raise AssertionError(f"drew {rows} x {columns} normal numbers for {purpose}")

    def uniform(self, purpose: str, rows: int, columns: int) -> Tensor:
        raise AssertionError(f"drew {rows} x {columns} uniform numbers for {purpose}")

    def integers(self, purpose: str, rows: int, sizes: Sequence[int]) -> Tensor:
        raise AssertionError(f"drew {rows} whole numbers below {sizes} for {purpose}")

    def permutations(self, purpose: str, rows: int, length: int) -> Tensor:
        raise AssertionError(f"drew {rows} orders of {length} for {purpose}")
