"""Runs of a study in experiment trackers: what workers send to the loggers of their runs."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from unweave.evaluation.score_store import kept_scores
from unweave.plugins.loading import absolute
from unweave.study.folder import StudyFolder
from unweave.training.loggers.logger import logger_named
from unweave.training.loggers.writer import LogWriter

MAIN = "mean"  # scores of these codes have their plain names


def checked_loggers(names: str | Sequence[str]) -> tuple[str, ...]:
    """The names of loggers for workers, each once; a logger that cannot be used is refused at once.

    Files get their whole path, because a worker may have another working directory.
    """
    chosen = tuple(dict.fromkeys(absolute(name) for name in ([names] if isinstance(names, str) else names)))
    for name in chosen:
        logger_named(name)
    return chosen


def study_logs(names: Sequence[str], study: StudyFolder, runs: Sequence[str]) -> LogWriter:
    """The loggers of some runs. A logger that fails is mentioned on standard error of the worker."""
    return LogWriter(names, {run: (study.runs[run], study.run_path(run)) for run in runs}, _mention)


def log_end(names: Sequence[str], study: StudyFolder, run: str) -> None:
    """Send the scores of a run on its training data, and its pictures."""
    wanted = (study.spec.points, study.spec.seed)
    scores = {
        score.name
        if score.representation in ("", MAIN)
        else f"{score.name} ({score.representation})": score.value
        for record in kept_scores(study.run_folder(run), "training")
        if (record.asked, record.seed) == wanted
        for score in record.scores
    }
    with study_logs(names, study, [run]) as logs:
        logs.finish(run, scores)


def _mention(sentence: str) -> None:
    sys.stderr.write(f"{sentence}\n")
