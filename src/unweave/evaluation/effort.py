"""How much is measured, and from which seed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unweave.errors import UnweaveError
from unweave.evaluation.intervals import LEAST_REPEATS
from unweave.metrics.requests import PUBLISHED
from unweave.streams import Stream

POINTS = (PUBLISHED.train, PUBLISHED.test)  # as in the published study
REPRESENTATIONS = ("mean", "sampled")


@dataclass(frozen=True)
class Effort:
    """How much is measured, and from which seed."""

    points: tuple[int, int] = POINTS
    repeats: int = 0
    seed: int | Stream = 0
    jobs: int | None = None

    def __post_init__(self) -> None:
        given = self.points
        if not isinstance(given, tuple | list) or len(given) != 2 or not all(_is_count(n, 1) for n in given):
            raise UnweaveError(
                f"points are two whole numbers, how many to train and to test on, such as {POINTS}; got "
                f"{given!r}."
            )
        object.__setattr__(self, "points", (int(given[0]), int(given[1])))
        if not _is_count(self.repeats, 0):
            raise UnweaveError(f"repeats must be a whole number, 0 or more; got {self.repeats!r}.")
        if 0 < self.repeats < LEAST_REPEATS:
            raise UnweaveError(
                f"an interval needs at least {LEAST_REPEATS} repeats; got {self.repeats}. Pass for example "
                "repeats=20, or repeats=0 for no interval."
            )
        if self.jobs is not None and not _is_count(self.jobs, 1):
            raise UnweaveError(f"jobs must be a whole number, 1 or more, or None; got {self.jobs!r}.")
        Stream.of(self.seed)  # refuses what is no seed

    @property
    def stream(self) -> Stream:
        """What everything random comes from."""
        return Stream.of(self.seed).child("evaluation")


def _is_count(value: object, least: int) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool) and int(value) >= least
