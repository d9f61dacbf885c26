"""Scores in the folder of a run: what has been measured is not measured again.

scores.json has one record for each representation, choice of points and seed; a further metric adds its
scores to the record and changes no other. codes.safetensors has the posteriors of the whole grid, where the
user asked to keep them (59 MB for dSprites and ten codes).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np
import torch

from unweave.data import GroundTruth
from unweave.errors import UnweaveError
from unweave.evaluation.encoders import Posterior
from unweave.evaluation.evaluate import Effort, measure_source, possible_metrics, source_of
from unweave.evaluation.scores import SCHEMA, Scores
from unweave.evaluation.sources import GroundTruthSource, Tell
from unweave.locks import hold
from unweave.metrics.metric import Metric
from unweave.metrics.table import metrics_named
from unweave.run import Run
from unweave.store import RunFolder, read_tensors, write_json, write_tensors
from unweave.training.batches import Data

SCORES, CODES = "scores.json", "codes.safetensors"
GRID_CHUNK = 8192  # images that are made at once


def evaluate_run(
    run: Run,
    metrics: str | Sequence[str] = "headline",
    representations: Sequence[str] = ("mean",),
    effort: Effort | None = None,
    *,
    data: Data | None = None,
    keep: bool = False,
    tell: Tell | None = None,
) -> list[Scores]:
    """The scores of a run that were asked for, one record a representation; new ones go into its folder.

    With `keep`, the codes of the whole grid are kept there too.
    """
    effort = effort or Effort()
    if run.result["outcome"] != "finished":
        raise UnweaveError(
            f"the run in {run.path} is {run.result['outcome']}, so its codes cannot be measured. Train it "
            "again with other settings."
        )
    source = source_of(run, effort, data=data, tell=tell)
    chosen, notes = possible_metrics(metrics, source)
    for representation in representations:
        records = _of_effort(kept_scores(run.folder), effort)
        missing = [
            metric
            for metric in chosen
            if not _is_kept(metric, metric.protocol(representation, source.rows), records, effort.repeats)
        ]
        if missing:
            if isinstance(source, GroundTruthSource) and source.grid is None:
                source.grid = _kept_grid(run, len(source.truth))
            now = measure_source(source, missing, representation, effort, str(run.path), notes, tell)
            _add(run.folder, now, effort)
    if keep and isinstance(source, GroundTruthSource) and not source.truth.stochastic:
        _keep_grid(run, source.encode_grid())
    kept = {record.representation: record for record in _of_effort(kept_scores(run.folder), effort)}
    # Scores of the run itself are kept once, so a representation may have none of its own.
    nothing = Scores(str(run.path), "", (), asked=effort.points, points=effort.points)
    return [
        _only(kept.get(representation, replace(nothing, representation=representation)), chosen, notes)
        for representation in representations
    ]


def all_kept(
    folder: RunFolder, metrics: Sequence[str], representations: Sequence[str], effort: Effort
) -> bool:
    """Whether a run's folder has all these scores, so that nobody need load its networks."""
    records = _of_effort(kept_scores(folder), effort)
    return all(
        _is_kept(metric, metric.protocol(representation), records, effort.repeats)
        for representation in representations
        for metric in metrics_named(metrics)
    )


def keep_codes(runs: Sequence[Run]) -> None:
    """Encode the whole grid of the data that runs share, and keep the codes of each in its folder.

    Images are made once for all: on a GPU, making them takes longer than one encoder's work.
    """
    open_runs = [run for run in runs if not (run.path / CODES).exists()]
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
        write_tensors(run.path / CODES, {"mean": mean, "log_var": log_var})


def drop_codes(folder: RunFolder) -> None:
    """Remove kept codes."""
    (folder.path / CODES).unlink(missing_ok=True)


def kept_scores(folder: RunFolder) -> list[Scores]:
    """All scores in a run's folder."""
    path = folder.path / SCORES
    try:
        record = json.loads(path.read_text())
    except FileNotFoundError:
        return []
    except (OSError, ValueError) as error:
        raise UnweaveError(f"cannot read {path}: {error}. Delete it to measure the run anew.") from error
    if not isinstance(record, dict) or "schema" not in record:
        return []  # of a version whose scores did not say from which points they are: measured anew
    try:
        return [Scores.from_dict(part) for part in record["evaluations"]]
    except (KeyError, TypeError, UnweaveError) as error:
        raise UnweaveError(f"cannot use {path}: {error} Delete it to measure the run anew.") from error


def _add(folder: RunFolder, now: Scores, effort: Effort) -> None:
    """Put scores into the folder, beside those that are there, also such that came meanwhile."""
    with hold(folder.path / "scores"):
        records = kept_scores(folder)
        mine = [r for r in _of_effort(records, effort) if r.representation == now.representation]
        others = [record for record in records if record not in mine]
        merged = _merged(mine[0], now) if mine else now
        ordered = sorted([*others, merged], key=lambda r: (r.representation, r.points, r.seed or 0))
        content = {"schema": SCHEMA, "evaluations": [record.to_dict() for record in ordered]}
        write_json(folder.path / SCORES, content)


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
    )


def _only(record: Scores, metrics: Sequence[Metric], notes: tuple[str, ...]) -> Scores:
    """The scores of some metrics, in their order."""
    order = {metric.name: i for i, metric in enumerate(metrics)}
    chosen = [score for score in record.scores if score.metric in order]
    return replace(record, scores=tuple(sorted(chosen, key=lambda s: order[s.metric])), notes=notes)


def _kept_grid(run: Run, points: int) -> Posterior | None:
    path = run.path / CODES
    if not path.exists():
        return None
    tensors = read_tensors(path)
    if set(tensors) != {"mean", "log_var"} or len(tensors["mean"]) != points:
        raise UnweaveError(f"{path} has no codes of all {points:,} points. Delete it to make them anew.")
    return Posterior(tensors["mean"].numpy(), tensors["log_var"].numpy())


def _keep_grid(run: Run, grid: Posterior) -> None:
    if not (run.path / CODES).exists() and grid.log_var is not None:
        tensors = {"mean": torch.from_numpy(grid.mean), "log_var": torch.from_numpy(grid.log_var)}
        write_tensors(run.path / CODES, tensors)
