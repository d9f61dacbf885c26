"""What tests of training compare: runs that were stopped and went on, and runs that were not."""

import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
import torch

from unweave.runs.spec import RunSpec
from unweave.runs.store import RunFolder
from unweave.training.trainer import Stopped
from unweave.training.update import Update


@contextmanager
def stopped_after(step: int) -> Iterator[None]:
    """Training inside must be stopped by a signal that comes after that step."""
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


def check_resumed(
    train: Callable[[Path, list[RunSpec]], Sequence[RunFolder]], folder: Path, specs: list[RunSpec], step: int
) -> None:
    """Runs that were stopped after a step and went on are those that were not, bit for bit."""
    whole = train(folder / "whole", specs)
    with stopped_after(step):
        train(folder / "parts", specs)
    parts = train(folder / "parts", specs)
    for one, other in zip(whole, parts, strict=True):
        assert largest_difference(one, other) == 0
        assert one.log() == other.log()


def mean_difference(one: RunFolder, other: RunFolder) -> float:
    """Over all weights of two runs. In a game, a few weights follow the last digits of the others."""
    first, second = one.weights(), other.weights()
    assert first.keys() == second.keys()
    return float(torch.cat([(first[name] - second[name]).abs().flatten() for name in first]).mean())


def largest_difference(one: RunFolder, other: RunFolder) -> float:
    """Between any two weights of two runs."""
    first, second = one.weights(), other.weights()
    assert first.keys() == second.keys()
    return max(float((first[name] - second[name]).abs().max()) for name in first)
