"""What tests of training compare: runs that were stopped and went on, and runs that were not."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import pytest

from unweave.store import RunFolder
from unweave.training.trainer import Stopped
from unweave.training.update import Update


@contextmanager
def stopped_after(step: int) -> Iterator[None]:
    """What is trained here must be stopped, by a signal that comes after that step."""
    real = Update.run

    def interrupted(self: Update, steps: int, stop: Any = ()) -> int:
        done = 0
        while done < steps and not stop:
            done += real(self, 1, stop)
            if int(self.population.step) == step and isinstance(stop, list):
                stop.append(signal.SIGTERM)
        return done

    with patch.object(Update, "run", interrupted), pytest.raises(Stopped, match=f"after step {step}"):
        yield


def largest_difference(one: RunFolder, other: RunFolder) -> float:
    """Between any two weights of two runs."""
    first, second = one.weights(), other.weights()
    assert first.keys() == second.keys()
    return max(float((first[name] - second[name]).abs().max()) for name in first)
