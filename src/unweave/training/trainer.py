"""The training loop: populations of runs, with logs, checkpoints and a clean end.

A run is finished after its own number of steps, or when its loss is no longer finite; the other runs of its
population continue. Each run writes to its own folder only. Training can stop at any moment: the next
call with the same specs resumes from the last checkpoints.
"""

from __future__ import annotations

import math
import platform
import signal
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

import torch
from torch import Tensor

from unweave import __version__
from unweave.cpu_settings import keep_freed_memory
from unweave.errors import UnweaveError
from unweave.methods import Method
from unweave.nn.layers.precision import Precision
from unweave.runs.spec import RunSpec
from unweave.runs.store import CheckpointOrigin, RunFolder
from unweave.training.batches import Batches, Data, HostBatches, batches_of
from unweave.training.population import Population
from unweave.training.resume import complete_endings, populations
from unweave.training.update import Update


@dataclass(frozen=True)
class Plan:
    """How to train: the device, and how often to log and save. It changes no number."""

    device: str = "auto"
    log_every: int = 100
    checkpoint_every: int = 10_000
    largest: int = 64  # runs in one population

    def __post_init__(self) -> None:
        for name in ("log_every", "checkpoint_every", "largest"):
            if getattr(self, name) < 1:
                raise UnweaveError(f"{name} must be a whole number >= 1; got {getattr(self, name)}.")


@dataclass(frozen=True)
class Report:
    """The state of a population, reported while it trains."""

    step: int
    steps: int
    runs: tuple[str, ...]
    terms: tuple[dict[str, float], ...]  # one for each run
    seconds: float


class Stopped(KeyboardInterrupt):
    """Training was stopped by a signal; all runs have a checkpoint.

    It derives from KeyboardInterrupt, so that `except Exception` does not swallow it.
    """


Tell = Callable[[Report], None]

# Signals that the main thread has noted for the trainings of other threads, which cannot handle signals.
SIGNALS: ContextVar[list[int]] = ContextVar("SIGNALS")


def train_runs(
    specs: Sequence[RunSpec], data: Data, folders: Sequence[Path], plan: Plan, tell: Tell | None = None
) -> list[RunFolder]:
    """Train all runs that are not finished yet; return their folders in the order of the specs."""
    device = use_device(plan.device)
    folders_by_id = {spec.id: RunFolder(path) for spec, path in zip(specs, folders, strict=True)}
    _refuse_changed_plugins([spec for spec in specs if not folders_by_id[spec.id].result])
    with ExitStack() as stack:
        _create_folders(specs, data, device, folders_by_id, stack)
        complete_endings(folders_by_id)
        open_specs = [spec for spec in dict.fromkeys(specs) if not folders_by_id[spec.id].result]
        if open_specs:
            batches = batches_of(data, device)
            stopped = stack.enter_context(noted_signals())
            for run_specs, step in populations(open_specs, folders_by_id, plan.largest):
                sizes = batches.label_sizes(run_specs[0].method.sampling)
                population = Population(run_specs, data.shape, device, sizes)
                _Training(population, step, folders_by_id, batches, len(data), plan, tell, stopped).run()
    return [folders_by_id[spec.id] for spec in specs]


def _refuse_changed_plugins(specs: Sequence[RunSpec]) -> None:
    """Refuse to continue a run whose plug-in source has changed: a run has one version of its method."""
    for spec in specs:
        for sentence in spec.changed_plugins():
            raise UnweaveError(
                f"{sentence} Restore that source to train the run {spec.id}, or start a new run instead."
            )


def _create_folders(
    specs: Sequence[RunSpec],
    data: Data,
    device: torch.device,
    folders: Mapping[str, RunFolder],
    stack: ExitStack,
) -> None:
    """Make the folders of the runs, and lock the unfinished ones against other processes.

    If training is refused before the first step, new folders are removed again.
    """
    source, origin = HostBatches(data, device), _origin(data, device)
    for spec in dict.fromkeys(specs):
        sizes = source.label_sizes(spec.method.sampling)
        folder = folders[spec.id]
        is_new = folder.create(spec, origin | ({"label_sizes": list(sizes)} if sizes else {}))
        if not folder.result:
            stack.enter_context(folder.claimed())
        if is_new:  # only with the lock: another process may have made the same folder at the same time
            stack.push(_discards_unused(folder))


def _discards_unused(folder: RunFolder) -> Callable[..., None]:
    def leave(kind: type[BaseException] | None, _error: object, _trace: object) -> None:
        if kind is not None and issubclass(kind, Exception):
            folder.discard_unused()

    return leave


def pick_device(name: str) -> torch.device:
    """The device of that name; "auto" is the GPU where there is one."""
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        device = torch.device(name)
    except RuntimeError as error:
        raise UnweaveError(f'there is no device "{name}". Use auto, cpu, cuda or cuda:1.') from error
    if device.type not in ("cpu", "cuda"):
        raise UnweaveError(f'unweave does not run on the device "{name}". Use auto, cpu, cuda or cuda:1.')
    if device.type == "cuda" and not torch.cuda.is_available():
        raise UnweaveError("a GPU was requested, but torch finds none. Use --device cpu.")
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        raise UnweaveError(f'there is no device "{name}"; there are {torch.cuda.device_count()} GPUs.')
    return device


def use_device(name: str) -> torch.device:
    """The device of that name, ready for networks: a GPU with a number becomes this thread's current one.

    Triton launches its kernels, and torch records CUDA graphs, on the current GPU. On a CPU, freed memory is
    kept for the next tensors.
    """
    device = pick_device(name)
    if device.type == "cpu":
        keep_freed_memory()
    elif device.index is not None:
        torch.cuda.set_device(device)
    return device


def default_precision(device: str, method: Method) -> Precision:
    """The fastest arithmetic whose models score like those of float32: see docs/training.md."""
    if pick_device(device).type != "cuda":
        return "float32"
    if method.exact_products:
        return "float32"
    return "tf32" if method.exact_weights else "bf16"


class _Training:
    """The training of one population from its current step to its end."""

    def __init__(
        self,
        population: Population,
        step: int,
        folders: dict[str, RunFolder],
        batches: Batches,
        data_size: int,
        plan: Plan,
        tell: Tell | None,
        stopped: list[int],
    ) -> None:
        self.population, self.step, self.folders = population, step, folders
        self.batches, self.data_size = batches, data_size
        self.plan, self.tell, self.stopped = plan, tell, stopped
        self.saved = step  # the step of the newest checkpoint
        self.started = time.monotonic()
        self.update = self._new_update(self._resume())

    def run(self) -> None:
        """Train until every run is finished, or until asked to stop."""
        while len(self.population):
            self.step += self.update.run(self._next_event() - self.step, self.stopped)
            terms = self._log() if self._log_is_due() else None
            self._settle(terms)
            if not len(self.population):
                return
            due = self.stopped or self.step % self.plan.checkpoint_every == 0
            if due and self.step != self.saved:
                self._checkpoint()
            if self.stopped:
                raise Stopped(f"stopped by signal {self.stopped[0]} after step {self.step}")

    def _next_event(self) -> int:
        """The next step at which a log line, a checkpoint or a result is due."""
        log, save = self.plan.log_every, self.plan.checkpoint_every
        ends = [spec.steps for spec in self.population.specs if spec.steps > self.step]
        return min(*ends, (self.step // log + 1) * log, (self.step // save + 1) * save)

    def _log_is_due(self) -> bool:
        is_last_step = self.step in {spec.steps for spec in self.population.specs}
        # After a signal there may be no update since the last log line.
        return self.update.counted > 0 and (self.step % self.plan.log_every == 0 or is_last_step)

    def _log(self) -> list[dict[str, float]]:
        terms: list[dict[str, float]] = []
        for group in self.update.take_terms():
            runs = len(next(iter(group.values())))
            terms += [{name: float(values[run]) for name, values in group.items()} for run in range(runs)]
        for spec, line in zip(self.population.specs, terms, strict=True):
            self.folders[spec.id].append_log([{"step": self.step, **_finite(line)}])
        if self.tell is not None:
            ids = tuple(spec.id for spec in self.population.specs)
            longest = max(spec.steps for spec in self.population.specs)
            self.tell(Report(self.step, longest, ids, tuple(terms), time.monotonic() - self.started))
        return terms

    def _settle(self, terms: list[dict[str, float]] | None) -> None:
        """Write the results of finished and diverged runs, and continue without them."""
        keep, outcomes = [], {}
        for run, spec in enumerate(self.population.specs):
            diverged = terms is not None and not all(math.isfinite(value) for value in terms[run].values())
            if diverged or self.step >= spec.steps:
                outcomes[run] = "diverged" if diverged else "finished"
            else:
                keep.append(run)
        ended_ids = [self.population.specs[run].id for run in outcomes]
        if ended_ids and keep:  # after a kill, the remaining runs resume here, without the ended ones
            self._save(keep)
        for run, outcome in outcomes.items():
            self._prepare(run, outcome, terms[run] if terms else {}, ended_ids)
        for run_id in ended_ids:
            self.folders[run_id].complete()
        if ended_ids and keep:
            self._drop_older(keep)
            logs = [self.update.log_state(run) for run in keep]
            self.population.select(keep)
            self.update = self._new_update(logs)
        elif not keep:
            self.population.specs = []

    def _prepare(self, run: int, outcome: str, terms: dict[str, float], ended_ids: Sequence[str]) -> None:
        spec = self.population.specs[run]
        result = {
            "outcome": outcome,
            "steps": self.step,
            "seconds": round(time.monotonic() - self.started, 3),
            "runs_beside": len(self.population) - 1,
            "terms": _finite(terms),
        }
        self.folders[spec.id].prepare(self.population.trained_weights(run), result, ended_ids)

    def _checkpoint(self) -> None:
        """All runs get the new checkpoint before any loses its old one: they stay at the same step."""
        runs = range(len(self.population))
        self._save(runs)
        self._drop_older(runs)

    def _save(self, runs: Sequence[int]) -> None:
        ids = tuple(sorted(spec.id for spec in self.population.specs))
        for run in runs:
            state = self.population.run_state(run) | self.update.log_state(run)
            folder = self.folders[self.population.specs[run].id]
            folder.save_checkpoint(self.step, state, CheckpointOrigin(ids, self.saved))

    def _drop_older(self, runs: Sequence[int]) -> None:
        for run in runs:
            self.folders[self.population.specs[run].id].drop_checkpoints(keep=self.step)
        self.saved = self.step

    def _resume(self) -> list[dict[str, Tensor]]:
        """Load the checkpoints of this step, unless it is step 0; return the logged sums they hold."""
        logs: list[dict[str, Tensor]] = []
        for run, spec in enumerate(self.population.specs):
            folder = self.folders[spec.id]
            folder.cut_log(self.step)
            if self.step:
                state = folder.load_checkpoint(self.step)
                logs.append({name: state.pop(name) for name in list(state) if name.startswith("log.")})
                try:
                    self.population.load_run_state(run, state)
                except UnweaveError as error:
                    raise UnweaveError(
                        f"cannot resume from step {self.step} of {folder.path}: {error} "
                        "Delete that checkpoint and run the same command again."
                    ) from error
        self.population.step.fill_(self.step)
        return logs

    def _new_update(self, logs: Sequence[Mapping[str, Tensor]]) -> Update:
        update = Update(self.population, self.batches, self.data_size)
        if logs:
            update.load_log_states(logs)
        return update


@contextmanager
def noted_signals() -> Iterator[list[int]]:
    """A list of received SIGINT and SIGTERM signals; a second signal is no longer held back."""
    received: list[int] = []

    def note(number: int, _frame: FrameType | None) -> None:
        received.append(number)
        signal.signal(number, before[signal.Signals(number)])

    try:
        before = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM)}
    except ValueError:  # not the main thread: only that can handle signals
        yield SIGNALS.get(received)
        return
    try:
        yield received
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _finite(terms: Mapping[str, float]) -> dict[str, float | None]:
    """Terms with None for values that are not finite, which JSON cannot represent."""
    return {name: value if math.isfinite(value) else None for name, value in terms.items()}


def _origin(data: Data, device: torch.device) -> dict[str, Any]:
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else platform.processor() or "cpu"
    return {
        "unweave": __version__,
        "torch": torch.__version__,
        "python": platform.python_version(),
        "image_shape": list(data.shape),
        "data_source": data.source,
        "data_drawn": data.drawn,
        **({"data_reference": data.reference.to_dict()} if data.reference else {}),
        "data_licence": data.card.licence,
        "data_citation": data.card.citation,
        "device": name,
    }
