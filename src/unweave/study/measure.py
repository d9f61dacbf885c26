"""How long the runs of a study train here: some seconds of a real population, for each kind of run.

On a GPU a discriminator halves the rate, and three channels are slower than one, so a study's time is a sum
over the kinds of runs that it has.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path

import torch

from unweave.data.catalogue import entry_of
from unweave.data.own.reference import Reference
from unweave.runs.spec import RunSpec
from unweave.study.folder import StudyFolder, open_named
from unweave.study.planner import Unit, open_runs
from unweave.training.batches import Data, batches_of
from unweave.training.memory import halve_on_oom
from unweave.training.population import Population
from unweave.training.trainer import use_device
from unweave.training.update import Update

SECONDS = 20.0  # of all measurements together
MOST = 6  # kinds that are measured; no study with a name has more
WARM_UP = 3  # updates that also build what is built once
STAND_INS = {1: "dsprites", 3: "color_dsprites"}  # data that needs no file, by channels


@dataclass(frozen=True, order=True)
class Kind:
    """What decides how long a step takes, as far as it is known beforehand."""

    channels: int
    players: int  # networks with a loss of their own, besides an autoencoder
    images: int  # of a step
    architecture: str
    precision: str
    own: str = ""  # the method, if its networks are its own and not those of the architecture

    @classmethod
    def of(cls, run: RunSpec, reference: Reference | None = None) -> Kind:
        """The kind of a run on a data set of the catalogue, or on the one of the reference."""
        images = run.batch * run.method.sampling.together
        players = len(run.method.players)
        channels = entry_of(run.data).channels if reference is None else reference.channels
        own = run.method.name if run.method.own_networks else ""
        return cls(channels, players, images, run.architecture, run.precision, own)


@dataclass(frozen=True)
class Part:
    """Runs of one kind that are still to be trained, and a population of them to measure."""

    kind: Kind
    runs: int
    model_steps: int
    together: tuple[RunSpec, ...]
    reference: Reference | None = None  # to the data of that population, if it is not in the catalogue
    unit_steps: tuple[int, ...] = ()  # model-steps of each population, in the order of training


@dataclass(frozen=True)
class Timed:
    """A part of a study and how fast it trains."""

    part: Part
    rate: float  # model-steps a second
    measured: bool = True  # or taken from the slowest that was

    @property
    def seconds(self) -> float:
        """How long its runs train."""
        return self.part.model_steps / self.rate

    @property
    def unit_seconds(self) -> list[float]:
        """How long each of its populations trains."""
        return [steps / self.rate for steps in self.part.unit_steps or (self.part.model_steps,)]


def parts_of(study: StudyFolder, units: Sequence[Unit], missing: Sequence[str] = ()) -> list[Part]:
    """The kinds of runs that are left to train, the one with the most model-steps first.

    Of each, the largest population is to be measured: on data that is here, or else on a stand-in.
    """
    left = [[study.runs[run] for run in open_runs(study, unit)] for unit in units]
    reference = study.spec.reference
    by_kind = sorted(
        ((Kind.of(runs[0], reference(runs[0].data)), runs) for runs in left if runs),
        key=lambda pair: pair[0],
    )
    parts = []
    for kind, pairs in groupby(by_kind, key=lambda pair: pair[0]):
        populations = [runs for _, runs in pairs]
        best = max(populations, key=lambda runs: (runs[0].data not in missing, len(runs)))
        if best[0].data in missing:
            best = [replace(run, data=STAND_INS[kind.channels]) for run in best]
        steps = tuple(sum(run.steps for run in runs) for runs in populations)
        own = reference(best[0].data)
        parts.append(Part(kind, sum(map(len, populations)), sum(steps), tuple(best), own, steps))
    return sorted(parts, key=lambda part: -part.model_steps)


def timed(
    parts: Sequence[Part], device: str = "auto", data_root: Path | None = None, threads: int | None = None
) -> list[Timed]:
    """How fast each part trains: measured for the largest, the rest as slow as the slowest of these.

    `threads` are those of a worker; by default, those of this process.
    """
    seconds = SECONDS / min(len(parts), MOST)
    with torch_threads(threads or torch.get_num_threads()):
        measured = [
            Timed(part, measured_rate(part.together, device, data_root, seconds, part.reference))
            for part in parts[:MOST]
        ]
    slowest = min(part.rate for part in measured)
    return measured + [Timed(part, slowest, measured=False) for part in parts[MOST:]]


@contextmanager
def torch_threads(number: int) -> Iterator[None]:
    """Let torch use so many threads."""
    before = torch.get_num_threads()
    torch.set_num_threads(number)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def measured_rate(
    specs: Sequence[RunSpec],
    device: str = "auto",
    data_root: Path | None = None,
    seconds: float = SECONDS,
    reference: Reference | None = None,
) -> float:
    """Model-steps a second, after a warm-up, of some runs that train together, or of as many as fit."""
    chosen = use_device(device)
    data = open_named(specs[0].data, reference, data_root)
    try:
        return halve_on_oom(
            lambda runs: _rate(specs[:runs], chosen, data, seconds), len(specs), specs[0], str(chosen)
        )
    finally:  # the next population needs the memory
        gc.collect()
        torch.cuda.empty_cache()


def _rate(specs: Sequence[RunSpec], device: torch.device, data: Data, seconds: float) -> float:
    batches = batches_of(data, device)
    population = Population(specs, data.shape, device, batches.label_sizes(specs[0].method.sampling))
    update = Update(population, batches, len(data))
    never: list[int] = []
    update.run(WARM_UP, never)
    _wait(device)
    start, done, chunk = time.perf_counter(), 0, 1
    while time.perf_counter() - start < seconds:
        done += update.run(chunk, never)
        _wait(device)
        chunk = min(2 * chunk, 64)
    return len(specs) * done / (time.perf_counter() - start)


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)
