"""What a method trains on: single images, pairs, groups, sequences, or images of which some have labels.

A batch is `batch` images, pairs, groups or sequences. The images of a pair, group or sequence are neighbours
in it: a batch of n groups of m has the images of the first group in rows 0 to m - 1, and so on.
"""

from __future__ import annotations

from collections.abc import Sequence
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
    # How many values a factor may move from one frame to the next; None: all frames are independent.
    step: int | None = 1


@dataclass(frozen=True)
class Balance:
    """At each step images of some values of one label; all labels that have several values take turns.

    A batch has `values` times `images` places. Neighbours have the same value. Only values with two images or
    more are drawn, and images are drawn without replacement; the index of an empty place is -1. The last
    `held_out` points of the labelled set are drawn in the same way into a second half of the batch, and never
    into the first.
    """

    values: int
    images: int
    held_out: int = 0


@dataclass(frozen=True)
class Labels:
    """Single images, and at each step images from a fixed labelled set: as many, or a balanced batch."""

    points: int  # in the labelled set
    labeller: Labeller = PERFECT
    together: int = 1
    balance: Balance | None = None
    unlabelled: bool = True  # whether the method learns from the single images too


Sampling: TypeAlias = Images | Pairs | Groups | Sequences | Labels


def images_per_step(sampling: Sampling, batch: int) -> int:
    """How many images one step learns from, labelled ones included; a batch is images, pairs or groups.

    >>> images_per_step(Pairs(), 64), images_per_step(Labels(100), 64)
    (128, 128)
    >>> images_per_step(Labels(100, unlabelled=False), 64)
    64
    """
    images = batch * sampling.together
    if not isinstance(sampling, Labels):
        return images
    if not sampling.unlabelled:
        images = 0
    if sampling.balance is None:
        return images + batch
    return images + sampling.balance.values * sampling.balance.images


def labels_in_turn(sizes: Sequence[int]) -> tuple[int, ...]:
    """The columns of the labels that take turns in balanced batches: those with more than one value."""
    return tuple(column for column, size in enumerate(sizes) if size > 1) or tuple(range(len(sizes)))


def factors_in(text: int | str) -> int | tuple[str, ...]:
    """A number of factors, or the names in a text: "shape, scale" -> ("shape", "scale")."""
    return text if isinstance(text, int) else names_in(text)


def names_in(text: str) -> tuple[str, ...]:
    """The names in a text with commas between them."""
    return tuple(name.strip() for name in text.split(",") if name.strip())


def label_dimensions(factors: str) -> int:
    """The number of codes for labels, one per factor; 0 for "all", whose number only the data set knows."""
    return 0 if factors == "all" else len(names_in(factors))
