"""What is known of a data set before it is opened."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from unweave.data.files import OfficialFile, find
from unweave.data.grid import Card, Factor, GroundTruth
from unweave.progress import Progress


class Load(Protocol):
    """A function that opens a data set."""

    def __call__(self, root: Path, *, check: bool = ..., progress: Progress | None = ...) -> GroundTruth:
        """Open it; its files, if it needs any, are under root."""


@dataclass(frozen=True)
class Entry:
    """A data set: its name, how to open it, and what to say of it in a list.

    `files` can be fetched into the first of the `folders`. `wanted` are names, or patterns of names, of
    which one must be there before it can be opened; a data set that wants none needs no file.
    """

    name: str
    factors: tuple[Factor, ...]
    channels: int
    card: Card = field(repr=False)
    load: Load = field(repr=False)
    files: tuple[OfficialFile, ...] = field(default=(), repr=False)
    folders: tuple[str, ...] = ()
    wanted: tuple[str, ...] = ()
    looks: int = 1  # different images of one combination of factors, where they can be counted
    # Whether scores test on other images than they train on. The published study does not do that.
    disjoint: bool = False

    @property
    def images(self) -> int:
        """How many images there are, not counting what is drawn at random for each image."""
        return self.looks * math.prod(factor.size for factor in self.factors)

    def is_here(self, root: Path) -> bool:
        """Whether it can be opened without a download."""
        return not self.wanted or find(root, self.folders, self.wanted) is not None
