"""What a method trains on: single images, pairs, groups, sequences, or images of which some have labels.

A batch is `batch` images, pairs, groups or sequences. The images of a pair, group or sequence are neighbours
in it: a batch of n groups of m has the images of the first group in rows 0 to m - 1, and so on.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from unweave.data.supervision import Labeller
from unweave.data.supervision.labels import PERFECT


@dataclass(frozen=True)
class Images:
    """Single images, independent of each other."""

    together: int = 1  # images that belong together


@dataclass(frozen=True)
class Pairs:
    """Two images that differ in a few factors; see `unweave.data.supervision.pairs`."""

    changed: int | Literal["random", "published"] = "random"
    together: int = 2
    labels: bool = False  # whether the method gets the factors as labels


@dataclass(frozen=True)
class Groups:
    """Images that share some factors; see `unweave.data.supervision.groups`."""

    together: int = 2
    shared: int | tuple[str, ...] = 1
    # Which factors, where `shared` is a number: random ones for each group, or always the data's first.
    chosen: Literal["random", "first"] = "random"
    # Whether the method gets the factors as labels: all, or those that are shared (named ones, or the first).
    labels: bool | Literal["shared"] = False


@dataclass(frozen=True)
class Sequences:
    """Frames in which some factors stay and the others move; see `unweave.data.supervision.sequences`."""

    together: int
    # Factors that stay constant besides categorical ones: their names, or the number of first factors.
    content: int | tuple[str, ...] = ()
    step: int = 1  # how many values a factor may move from one frame to the next


@dataclass(frozen=True)
class Labels:
    """Single images, and at each step as many images from a fixed labelled set."""

    points: int  # in the labelled set
    labeller: Labeller = PERFECT
    together: int = 1


Sampling: TypeAlias = Images | Pairs | Groups | Sequences | Labels


def factors_in(text: int | str) -> int | tuple[str, ...]:
    """A number of factors, or the names in a text: "shape, scale" -> ("shape", "scale")."""
    if isinstance(text, int):
        return text
    return tuple(name.strip() for name in text.split(",") if name.strip())
