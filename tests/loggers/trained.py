"""Runs that train with a logger: interrupted, resumed, alone or in a population."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from training.tiny import TINY
from unweave.methods import BetaVAE
from unweave.runs.spec import RunSpec
from unweave.runs.store import RunFolder
from unweave.training.loggers.writer import LogWriter
from unweave.training.trainer import Plan, Report, train_runs

PLAN = Plan("cpu", log_every=2, checkpoint_every=4)
STEPS = [2, 4, 6, 8]
SCORES = {"mig": 0.25}
SMALL = f"{Path(__file__).parents[1] / 'integrations' / 'small_architecture.py'}:SMALL"


class KilledError(RuntimeError):
    """Ends training like a kill: without a last checkpoint."""


def specs(seeds: Sequence[int] = (0,)) -> list[RunSpec]:
    """Short runs that differ in their seeds."""
    return [
        RunSpec(BetaVAE(3.0), data=TINY.name, seed=seed, steps=8, batch=4, latents=2, architecture=SMALL)
        for seed in seeds
    ]


def folders(runs: Sequence[RunSpec], out: Path) -> list[Path]:
    """The folders of the runs."""
    return [out / f"seed{run.seed}" for run in runs]


def train(
    out: Path, *names: str, seeds: Sequence[int] = (0,), kill_at: int | None = None, finish: bool = True
) -> list[str]:
    """Train with loggers, killed after a step or to the end; returns the problems of the loggers."""
    runs, problems = specs(seeds), list[str]()
    paths = folders(runs, out)
    by_id = {run.id: (run, path) for run, path in zip(runs, paths, strict=True)}
    with LogWriter(names, by_id, problems.append) as logs:

        def tell(report: Report) -> None:
            logs(report)
            if report.step == kill_at:
                raise KilledError

        if kill_at is not None:
            with pytest.raises(KilledError):
                train_runs(runs, TINY, paths, PLAN, tell)
            return problems
        train_runs(runs, TINY, paths, PLAN, tell)
        for run in runs if finish else ():
            logs.finish(run.id, SCORES)
    return problems


def own_log(path: Path, term: str = "kl") -> list[tuple[int, float]]:
    """Steps and values of a term in the log of a run."""
    return [(line["step"], line[term]) for line in RunFolder(path).log()]
