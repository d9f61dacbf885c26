"""Scores in the folder of a run: what has been measured is not measured again.

scores.json has one record for each representation, choice of points and seed; a further metric adds its
scores to the record and changes no other. scores-all.json and scores-held_out.json have the scores on all
combinations of factors, and on what was held out of the training data. codes.safetensors has the posteriors
of the whole grid, where the user asked to keep them (59 MB for dSprites and ten codes).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch

from unweave.data import GroundTruth
from unweave.errors import DiskFullError, UnweaveError
from unweave.evaluation.choice import Wanted, left_out_notes, meaningless_notes
from unweave.evaluation.effort import Effort
from unweave.evaluation.evaluate import source_of
from unweave.evaluation.likelihoods import Meaningless
from unweave.evaluation.measuring import measure_choice
from unweave.evaluation.parts import Part
from unweave.evaluation.posterior_memory import PosteriorMemory
from unweave.evaluation.posteriors import Posterior
from unweave.evaluation.scores import SCHEMA, Scores
from unweave.evaluation.sources import GroundTruthSource
from unweave.files import write_json
from unweave.layout import CODES_FILE, PART_SCORES_FILE, SCORES_FILE
from unweave.locks import hold
from unweave.metrics.lookup import Asked, metrics_named
from unweave.metrics.metric import Metric
from unweave.progress import Progress
from unweave.runs.run import Run
from unweave.runs.store import RunFolder, read_tensors, write_tensors
from unweave.training.batches import Data

GRID_CHUNK = 8192  # images that are made at once


def evaluate_run(
    run: Run,
    metrics: Asked = "headline",
    representations: Sequence[str] = ("mean",),
    effort: Effort | None = None,
    *,
    data: Data | None = None,
    on: Part = "training",
    keep: bool = False,
    lenient: bool = False,
    on_unwritable: Callable[[UnweaveError], None] | None = None,
    tell: Progress | None = None,
) -> list[Scores]:
    """The scores of a run that were asked for, one record a representation; new ones go into its folder.

    With `keep`, the codes of the whole grid are kept there too. Scores that cannot be written are an error,
    or `on_unwritable` gets it and the scores are returned. If `lenient`, metrics that cannot be measured are
    left out even if they were asked for by name.
    """
    effort, wanted = effort or Effort(), Wanted.of(metrics)
    if lenient:
        wanted = replace(wanted, by_name=frozenset())
    _check_finished(run)
    source = source_of(run, effort, data=data, on=on, lenient=wanted.lenient, tell=tell)
    if isinstance(source, GroundTruthSource) and source.truth.stochastic and len(representations) > 1:
        source.memory = PosteriorMemory()
    possible, conditions = wanted.possible(source), source.conditions(effort.points)
    found, failures = [], _Failures()
    for representation in representations:
        choice = possible.for_representation(representation, source)
        records = _of_effort(kept_scores(run.folder, on), effort)
        missing = [
            metric
            for metric in choice.metrics
            if not _is_kept(metric, metric.protocol(representation, conditions), records, effort.repeats)
        ]
        record = _record_of(records, representation)
        left_out = left_out_notes(choice.left_out)
        if missing:
            if isinstance(source, GroundTruthSource) and source.grid is None:
                source.grid = _kept_grid(run, len(source.truth))
            now, left_out = measure_choice(
                source, replace(choice, metrics=tuple(missing)), representation, effort, str(run.path), tell
            )
            now = replace(now, notes=(*run.code_notes, *now.notes))
            with failures.noted(scores_path(run.folder, on)):
                _add(run.folder, now, effort, on)
            record = now if record is None else _merged(record, now)
        notes = (*left_out, *run.code_notes, *meaningless_notes(choice.metrics, source))
        known = record or _nothing(run, representation, effort)
        found.append(_only(known, choice.metrics, source.meaningless, notes))
    if keep and isinstance(source, GroundTruthSource) and not source.truth.stochastic:
        with failures.noted(run.path / CODES_FILE):
            _keep_grid(run, source.encode_grid())
    if failures.first is not None:
        if on_unwritable is None:
            raise failures.first
        on_unwritable(failures.first)
    return found


def _check_finished(run: Run) -> None:
    outcome = run.result["outcome"]
    if outcome == "unfinished":
        raise UnweaveError(
            f"the run in {run.path} is not finished, so its codes cannot be measured. Train it to the end."
        )
    if outcome != "finished":
        raise UnweaveError(
            f"the run in {run.path} is {outcome}, so its codes cannot be measured. Train it "
            "again with other settings."
        )


def _record_of(records: Iterable[Scores], representation: str) -> Scores | None:
    return next((record for record in records if record.representation == representation), None)


def _nothing(run: Run, representation: str, effort: Effort) -> Scores:
    """A record without scores: those of the run itself are kept once, with the first representation."""
    return Scores(str(run.path), representation, (), asked=effort.points, points=effort.points)


@dataclass
class _Failures:
    """What kept files from being written; the first is enough to know."""

    first: UnweaveError | None = None

    @contextmanager
    def noted(self, path: Path) -> Iterator[None]:
        """Go on if a file cannot be written. Other errors are raised."""
        try:
            yield
        except (OSError, UnweaveError) as error:
            cause = error if isinstance(error, OSError) else error.__cause__
            if not isinstance(cause, OSError):
                raise
            kind = DiskFullError if isinstance(error, DiskFullError) else UnweaveError
            reason = (cause.strerror or str(cause)).lower()
            self.first = self.first or kind(f"the scores were not kept: cannot write {path}: {reason}.")


def all_kept(
    folder: RunFolder,
    metrics: Sequence[str],
    representations: Sequence[str],
    effort: Effort,
    on: Part = "training",
) -> bool:
    """Whether a run's folder has all these scores, so that its networks need not be loaded.

    Which points they are from depends on the data, which is not opened: any protocol of a metric counts.
    """
    records = _of_effort(kept_scores(folder, on), effort)
    return all(
        any(
            _is_kept(metric, score.protocol, [record], effort.repeats)
            for record in records
            for score in record.scores
            if score.representation in ("", representation) and score.protocol.startswith(_estimators(metric))
        )
        for representation in representations
        for metric in metrics_named(metrics)
    )


def _estimators(metric: Metric) -> tuple[str, ...]:
    """The beginnings of the protocols of a metric."""
    others = [metric.for_discrete_codes.estimator] if metric.for_discrete_codes else []
    return tuple(estimator.removesuffix("]") for estimator in (metric.estimator, *others))


def keep_codes(runs: Sequence[Run]) -> None:
    """Encode the whole grid of the data that runs share, and keep the codes of each in its folder.

    Images are made once for all: on a GPU, making them takes longer than one encoder's work.
    """
    open_runs = [run for run in runs if not (run.path / CODES_FILE).exists()]
    if not open_runs:
        return
    truth, device = open_runs[0].data, open_runs[0].device
    if not isinstance(truth, GroundTruth) or truth.stochastic:
        return
    tables = [[torch.empty(len(truth), run.spec.latents) for _ in range(2)] for run in open_runs]
    for start in range(0, len(truth), GRID_CHUNK):
        rows = slice(start, min(start + GRID_CHUNK, len(truth)))
        images = truth.observe(truth.factors_at(np.arange(rows.start, rows.stop)))
        on_device = torch.from_numpy(np.ascontiguousarray(images)).to(device)
        for run, (mean, log_var) in zip(open_runs, tables, strict=True):
            posterior = run.posterior(on_device)
            mean[rows], log_var[rows] = posterior.mean.cpu(), posterior.log_var.cpu()
    for run, (mean, log_var) in zip(open_runs, tables, strict=True):
        write_tensors(run.path / CODES_FILE, {"mean": mean, "log_var": log_var})


def drop_codes(folder: RunFolder) -> None:
    """Remove kept codes."""
    (folder.path / CODES_FILE).unlink(missing_ok=True)


def scores_path(folder: RunFolder, on: Part = "training") -> Path:
    """The file of the scores on a part of the data."""
    return folder.path / (SCORES_FILE if on == "training" else PART_SCORES_FILE.format(part=on))


def kept_scores(folder: RunFolder, on: Part = "training") -> list[Scores]:
    """All scores in a run's folder on a part of the data."""
    path = scores_path(folder, on)
    try:
        record = json.loads(path.read_text())
    except FileNotFoundError:
        return []
    except (OSError, ValueError) as error:
        raise UnweaveError(f"cannot read {path}: {error}. Delete it to measure the run again.") from error
    if not isinstance(record, dict) or "schema" not in record:
        return []  # of a version whose scores did not say from which points they are: measured again
    try:
        return [Scores.from_dict(part) for part in record["evaluations"]]
    except (KeyError, TypeError, UnweaveError) as error:
        raise UnweaveError(f"cannot use {path}: {error} Delete it to measure the run again.") from error


def _add(folder: RunFolder, now: Scores, effort: Effort, on: Part) -> None:
    """Merge scores into those of the folder, including those that another process has just written."""
    with hold(folder.path / "scores"):
        records = kept_scores(folder, on)
        mine = [r for r in _of_effort(records, effort) if r.representation == now.representation]
        others = [record for record in records if record not in mine]
        merged = _merged(mine[0], now) if mine else now
        ordered = sorted([*others, merged], key=lambda r: (r.representation, r.points, r.seed or 0))
        content = {"schema": SCHEMA, "evaluations": [record.to_dict() for record in ordered]}
        write_json(scores_path(folder, on), content)


def _of_effort(records: Iterable[Scores], effort: Effort) -> list[Scores]:
    return [r for r in records if (r.asked, r.seed) == (effort.points, effort.seed)]


def _is_kept(metric: Metric, protocol: str, records: Sequence[Scores], repeats: int) -> bool:
    """Whether a metric has its scores, with an interval where one is wanted."""
    return any(
        score.protocol == protocol and score.metric == metric.name and (not repeats or score.low is not None)
        for record in records
        for score in record.scores
    )


def _merged(before: Scores, now: Scores) -> Scores:
    fresh = {score.name for score in now.scores}
    return replace(
        now,
        scores=(*(score for score in before.scores if score.name not in fresh), *now.scores),
        matrices=before.matrices | now.matrices,
        repeats=max(before.repeats, now.repeats),
        images=before.images + now.images,
        seconds=before.seconds | now.seconds,
        notes=tuple(dict.fromkeys((*before.notes, *now.notes))),
    )


def _only(
    record: Scores, metrics: Sequence[Metric], meaningless: Meaningless, notes: tuple[str, ...]
) -> Scores:
    """The scores of some metrics, in their order; folders of earlier versions may have meaningless ones."""
    order = {metric.name: i for i, metric in enumerate(metrics)}
    chosen = [score for score in record.scores if score.metric in order and score.name not in meaningless]
    scores = tuple(sorted(chosen, key=lambda s: order[s.metric]))
    return replace(record, scores=scores, notes=tuple(dict.fromkeys((*notes, *record.notes))))


def _kept_grid(run: Run, points: int) -> Posterior | None:
    path = run.path / CODES_FILE
    if not path.exists():
        return None
    tensors = read_tensors(path)
    if set(tensors) != {"mean", "log_var"} or len(tensors["mean"]) != points:
        raise UnweaveError(f"{path} has no codes of all {points:,} points. Delete it to compute them again.")
    return Posterior(tensors["mean"].numpy(), tensors["log_var"].numpy())


def _keep_grid(run: Run, grid: Posterior) -> None:
    if not (run.path / CODES_FILE).exists() and grid.log_var is not None:
        tensors = {"mean": torch.from_numpy(grid.mean), "log_var": torch.from_numpy(grid.log_var)}
        write_tensors(run.path / CODES_FILE, tensors)
