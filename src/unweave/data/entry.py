"""What is known of a data set before it is opened."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from unweave.data.collection import Collection, Continuous
from unweave.data.files import OfficialFile, find
from unweave.data.grid import Card, Factor, GroundTruth
from unweave.errors import UnweaveError
from unweave.progress import Progress


class Load(Protocol):
    """A function that opens a data set."""

    def __call__(
        self, root: Path, *, check: bool = ..., progress: Progress | None = ...
    ) -> GroundTruth | Collection:
        """Open it; its files, if it needs any, are under root."""


@dataclass(frozen=True)
class Entry:
    """A data set: its name, how to open it, and what to say of it in a list.

    `files` can be fetched into the first of the `folders`. `wanted` are names, or patterns of names, of
    which one must be there before it can be opened; a data set that wants none needs no file. `rows` is the
    number of images of a collection, which is no full grid of its factors; of a grid, it is None. Images are
    `side` x `side` pixels.
    """

    name: str
    factors: tuple[Factor | Continuous, ...]
    channels: int
    card: Card = field(repr=False)
    load: Load = field(repr=False)
    files: tuple[OfficialFile, ...] = field(default=(), repr=False)
    folders: tuple[str, ...] = ()
    wanted: tuple[str, ...] = ()
    looks: int = 1  # different images of one combination of factors, where they can be counted
    # Whether scores test on other images than they train on. The published study does not do that.
    disjoint: bool = False
    rows: int | None = None
    side: int = 64

    @property
    def images(self) -> int:
        """How many images there are, not counting what is drawn at random for each image."""
        if self.rows is not None:
            return self.rows
        return self.looks * math.prod(factor.size for factor in self.grid_factors)

    @property
    def grid_factors(self) -> tuple[Factor, ...]:
        """The factors of a grid; a collection is refused."""
        discrete = tuple(factor for factor in self.factors if isinstance(factor, Factor))
        if self.rows is not None or len(discrete) < len(self.factors):
            raise _no_grid(self.name)
        return discrete

    def load_grid(self, root: Path, *, check: bool = True, progress: Progress | None = None) -> GroundTruth:
        """Open a data set that is a full grid of factors; a collection is refused."""
        if self.rows is not None:
            raise _no_grid(self.name)
        data = self.load(root, check=check, progress=progress)
        if isinstance(data, Collection):
            raise _no_grid(self.name)
        return data

    def is_here(self, root: Path) -> bool:
        """Whether it can be opened without a download."""
        return not self.wanted or find(root, self.folders, self.wanted) is not None


def _no_grid(name: str) -> UnweaveError:
    return UnweaveError(
        f"{name} is a collection of images without a full grid of factors, and a full grid is needed here. "
        f'Open it with unweave.data.open_data("{name}"), or use a data set with a full grid.'
    )
