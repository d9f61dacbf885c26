"""`unweave select`: the best runs by agreement or by a few labels, judged by supervised scores."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Hashable, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import pandas as pd

from unweave.commands.console import console, resume_line
from unweave.commands.listing import Listing
from unweave.errors import UnweaveError, did_you_mean
from unweave.methods import settings_of
from unweave.metrics.lookup import metric_named
from unweave.metrics.table import METRICS
from unweave.progress import Progress
from unweave.report.chosen import ALL, SEEDS, SETTINGS, choice_table
from unweave.report.names import measured, metric_scores, score_label
from unweave.report.published import STUDY_SCORES
from unweave.report.tables import correlation_table
from unweave.results import COLUMNS, check_table, combine, setting_text, wide
from unweave.runs.spec import RunSpec
from unweave.selection import Candidate, Selection, select
from unweave.selection.select import choosers_named

TITLES = {"udr": "UDR", "centrality": "ModelCentrality", "few_labels": "Few labels"}
EXPLAINED = (
    "percentile: of the chosen run among all. beats random run: the share of the other runs that it beats, "
    "where a random choice reaches 0.5.\nrandom setting: the same for a choice among the runs of each seed, "
    "mean over seeds. random seed: for a choice among the runs of each setting, mean over settings."
)
_SUPERVISED = tuple(m.name for m in METRICS if m.inputs.needs_factors)


def metrics_asked(text: str | None) -> list[str] | None:
    """The names in `--metrics`, of metrics or of their scores; checked before anything takes time."""
    if text is None:
        return None
    names = [name.strip() for name in text.split(",") if name.strip()]
    for name in names:
        metric = metric_named(name.partition(".")[0])
        if not metric.inputs.needs_factors:
            raise UnweaveError(f"a choice is judged by metrics that need labels; {metric.name} needs none.")
    if not names:
        raise UnweaveError("--metrics names no metric. See unweave metrics list.")
    return names


def selected(
    study: Path,
    by: str,
    within: str,
    images: int,
    labels: int,
    labeller: str,
    data: str | None,
    device: str,
    data_root: Path | None,
    tell: Progress | None,
) -> Selection:
    """The scores of the runs; on Ctrl-C, print how to resume."""
    try:
        return select(
            study,
            by=choosers_named(by),
            within=within,
            images=images,
            labels=labels,
            labeller=labeller,
            data=data,
            device=device,
            data_root=data_root,
            tell=tell,
        )
    except KeyboardInterrupt as stop:
        sys.stderr.write(resume_line(stop))
        sys.exit(130)


def show(selection: Selection, by: str, top: int) -> None:
    """Print the best runs, and notes on the others."""
    for note in selection.notes:
        print(note, file=sys.stderr)
    for chooser in choosers_named(by):
        _show_ranking(selection, chooser, top)


def _show_ranking(selection: Selection, chooser: str, top: int) -> None:
    from rich.markup import escape

    first, *others = selection.scores_by(chooser)
    ranking = selection.ranking(first)
    values = {score: dict(selection.ranking(score)) for score in others}
    varied = _varied_fields(selection.candidates.runs)
    table = Listing("rank", "run", "method", "setting", "seed", first, *others, below="setting")
    for run, value in ranking[:top]:
        rank = 1 + sum(other > value for _, other in ranking)
        numbers = [value, *(values[score][run] for score in others)]
        cells = [
            f"{rank}",
            run.id,
            run.spec.method.name,
            escape(_setting(run.spec, varied)),
            f"{run.spec.seed}",
        ]
        table.add_row(*cells, *(f"{number:.4f}" for number in numbers))
    screen = console()
    shown = min(top, len(ranking))
    screen.print(
        f"[bold]{TITLES[chooser]}[/bold]: the best {shown:,} of {len(ranking):,} runs", highlight=False
    )
    screen.print(table)
    best = [run for run, value in ranking if value == ranking[0][1]]
    if len(best) > 1:
        screen.print(f"{len(best):,} runs are alike at the top:", highlight=False)
    for run in best[:top]:
        print(f"chosen: {run.folder.path}")


def _varied_fields(runs: Sequence[Candidate]) -> list[str]:
    """Fields in which runs differ, besides method and seed."""
    apart = ("method", "seed", "plugins")
    names = [field.name for field in dataclasses.fields(RunSpec) if field.name not in apart]
    return [name for name in names if len({getattr(run.spec, name) for run in runs}) > 1]


def _setting(spec: RunSpec, varied: Sequence[str]) -> str:
    more = [f"{name}={getattr(spec, name)}" for name in varied]
    return ", ".join([text for text in [setting_text(settings_of(spec.method))] if text] + more)


def show_judgement(selection: Selection, by: str, metrics: Sequence[str] | None) -> None:
    """Print what supervised scores say of the choice, where the runs have some."""
    runs = scored_runs(selection)
    scores = supervised_scores(runs, metrics) if runs is not None else []
    if runs is None or not scores:
        print("There are no supervised scores of the runs to judge the choice by; see unweave evaluate.")
        return
    choosers = [score for chooser in choosers_named(by) for score in selection.scores_by(chooser)]
    rows = choice_table(runs, choosers, scores).to_dict("records")
    choices = {(row["chooser"], row["score"], row["among"]): row for row in rows}
    rows = correlation_table(runs, choosers, scores).to_dict("records")
    correlations = {(row["first"], row["second"]): row for row in rows}
    heads = ("percentile", "beats random run", "random setting", "random seed", "Spearman")
    table = Listing("chosen by", "metric", *heads, whole=("metric", heads[0]))
    for chooser, score in product(choosers, scores):
        if overall := choices.get((chooser, score, ALL)):
            pools = [choices.get((chooser, score, among)) for among in (ALL, SETTINGS, SEEDS)]
            cells = [f"{overall['percentile']:.0f}", *(_interval(pool, "beats") for pool in pools)]
            cells.append(_interval(correlations.get((chooser, score)), "estimate"))
            table.add_row(score_label(chooser), score_label(score), *cells)
    screen = console()
    screen.print("[bold]Judged by labels[/bold], with 95% intervals", highlight=False)
    screen.print(table)
    screen.print(EXPLAINED, style="dim", highlight=False)


def _interval(row: Mapping[Hashable, Any] | None, name: str) -> str:
    if row is None:
        return ""
    return f"{row[name]:.2f}" + ("" if pd.isna(row["low"]) else f" ({row['low']:.2f} to {row['high']:.2f})")


def scored_runs(selection: Selection) -> pd.DataFrame | None:
    """One row a run with all its scores, of mean codes; None where no run has any that is supervised."""
    scores = selection.candidates.scores()
    if "mean" not in set(scores["representation"]):
        return None
    return wide(combine(check_table(scores), check_table(selection.table)).table)


def supervised_scores(runs: pd.DataFrame, asked: Sequence[str] | None) -> list[str]:
    """The scores to judge by: those asked for, a metric's main one if it has several; or the study's."""
    if asked is None:
        return [name for name in metric_scores(runs) if name.partition(".")[0] in _SUPERVISED]
    known_scores = measured(runs, (str(name) for name in runs if name not in COLUMNS))
    chosen: list[str] = []
    for name in asked:
        of_metric = [score for score in known_scores if score.partition(".")[0] == name]
        main = [score for score in of_metric if score in STUDY_SCORES] or of_metric
        matching = [name] if name in known_scores else main
        if not matching:
            known = [score for score in known_scores if score.partition(".")[0] in _SUPERVISED]
            raise UnweaveError(f'the runs have no score "{name}". {did_you_mean(name, known)}')
        chosen += matching
    return list(dict.fromkeys(chosen))


def write(selection: Selection, output: Path | None) -> Path:
    """Write the table of the scores."""
    return selection.save(output)
