"""`evaluate`: scores of codes, of any encoder, or of a run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from unweave.data import Collection, GroundTruth
from unweave.data.opening import open_data
from unweave.errors import UnweaveError
from unweave.evaluation.arrays import ArraySource, collection_source
from unweave.evaluation.choice import Request
from unweave.evaluation.effort import POINTS, REPRESENTATIONS, Effort
from unweave.evaluation.encoders import encoder_of
from unweave.evaluation.measuring import measure_choice, measure_source
from unweave.evaluation.scores import Scores
from unweave.evaluation.sources import GroundTruthSource, Source, Tell
from unweave.metrics.lookup import Asked
from unweave.metrics.table import METRICS
from unweave.streams import Stream

__all__ = ["POINTS", "REPRESENTATIONS", "Effort", "evaluate", "measure_source", "source_of"]


def evaluate(
    subject: Any,
    factors: Any = None,
    *,
    data: str | Path | GroundTruth | Collection | None = None,
    metrics: Asked = "headline",
    representation: str = "mean",
    log_var: Any = None,
    test: tuple[Any, Any] | None = None,
    points: tuple[int, int] = POINTS,
    repeats: int = 0,
    seed: int | Stream = 0,
    jobs: int | None = None,
    tell: Tell | None = None,
) -> Scores:
    """Scores of codes and factors, of an encoder on a data set, or of a run.

    - `evaluate(codes, factors)`: arrays, tensors or data frames (n, d) and (n, k). Factors are whole numbers
      or words, which are numbered in sorted order; columns of data frames keep their names. At most `points`
      rows, chosen at random, are used to train and to test on; a third is held out from what is fitted,
      unless `test=(codes, factors)` is given. Metrics that intervene look for rows that share a factor, or
      look points up if all combinations are there.
    - `evaluate(encode, data="dsprites")`: a function, a torch module or a transformer of scikit-learn; see
      `unweave.evaluation.encoders.encoder_of` for how each is called.
    - `evaluate(run)`, `evaluate("runs/...")`: a run, on the data that it was trained on, or on `data`.

    `metrics` are names, or quick, headline, study or all, or records of your own (`Metric`). Of a suite,
    what cannot be measured is left out and noted; a metric that is asked for by name is refused.
    `representation` is mean, or sampled: codes are then drawn from q(z|x). With `repeats`, each score is
    measured so many times more on points drawn anew (given arrays: on bootstrap samples of their rows),
    and gets an interval; its value stays the same.

    >>> import numpy as np
    >>> factors = np.stack(np.meshgrid(*map(np.arange, (4, 5, 6)), indexing="ij"), axis=-1).reshape(-1, 3)
    >>> scores = evaluate(factors * 0.5, factors, metrics="mig, factor_vae_score")
    >>> scores["mig"], scores["factor_vae_score.eval_accuracy"]
    (1.0, 1.0)
    """
    effort, request = Effort(points, repeats, seed, jobs), Request.of(metrics)
    opened = _open_run(subject)
    source = source_of(
        opened,
        effort,
        factors=factors,
        data=data,
        log_var=log_var,
        test=test,
        lenient=request.lenient,
        tell=tell,
    )
    choice = request.possible(source)
    scores, left_out = measure_choice(source, choice, representation, effort, _name_of(opened), tell)
    notes = (*left_out, *scores.notes)
    if not scores:
        raise nothing_measured(notes)
    return replace(scores, notes=notes)


def nothing_measured(notes: Sequence[str]) -> UnweaveError:
    """The error where nothing of a suite can be measured."""
    without = [metric.name for metric in METRICS if metric.needs == "unsupervised"]
    return UnweaveError(
        f"nothing that was asked for can be measured. {' '.join(notes)} Metrics that need no factors: "
        f"{', '.join(without)}."
    )


def source_of(
    subject: Any,
    effort: Effort,
    *,
    factors: Any = None,
    data: str | Path | GroundTruth | Collection | None = None,
    log_var: Any = None,
    test: tuple[Any, Any] | None = None,
    lenient: bool = False,
    tell: Tell | None = None,
) -> Source:
    """What can be asked about a subject.

    If `lenient`, factors that no metric can measure are left out and noted; otherwise they are refused.
    """
    is_run = hasattr(subject, "spec")
    if factors is not None:
        _refuse_two_subjects(subject, data, is_run)
        return ArraySource.of(subject, factors, log_var, test, lenient=lenient)
    if log_var is not None or test is not None:
        raise UnweaveError(
            "log_var and test belong to codes: evaluate(codes, factors, test=...). An encoder gives its log "
            "variances itself, and its test points are drawn from the data."
        )
    if data is None and not is_run and hasattr(subject, "__len__") and not callable(subject):
        raise UnweaveError(
            "codes need their factors: evaluate(codes, factors). Metrics that need none are functions of "
            "codes, such as unweave.metrics.total_correlation(codes)."
        )
    encode = encoder_of(subject)
    if data is None:
        if not is_run:
            raise UnweaveError(
                "an encoder needs data to encode: evaluate(encode, data='dsprites'). Codes need their "
                "factors: evaluate(codes, factors)."
            )
        data = subject.data
    opened = open_data(data) if isinstance(data, str | Path) else data
    losses = subject.losses if is_run else None
    if isinstance(opened, Collection):
        return collection_source(encode, opened, sum(effort.points), effort.stream, losses, lenient)
    if not isinstance(opened, GroundTruth):
        raise UnweaveError(
            "data must be the name of a data set, the path of your own, or what "
            f"unweave.data.from_arrays(images, factors) returns; got {type(opened).__name__}."
        )
    return GroundTruthSource(encode, opened, losses, tell=tell)


def _refuse_two_subjects(subject: Any, data: Any, is_run: bool) -> None:
    if data is not None:
        raise UnweaveError(
            "give either factors or data: evaluate(codes, factors) measures the rows that are given, and "
            "evaluate(encode, data=...) encodes the images of a data set."
        )
    if is_run or callable(subject):
        raise UnweaveError(
            "factors belong to codes: evaluate(codes, factors). A run, a module or a function is measured on "
            f"a data set: evaluate(encode, data=...). Got factors with a {type(subject).__name__}."
        )


def _open_run(subject: Any) -> Any:
    """The run in a folder; anything but a path is returned as it is."""
    if not isinstance(subject, str | Path):
        return subject
    path = Path(subject).expanduser()
    if not path.is_dir():
        raise UnweaveError(
            f"a text or path must be the folder of a run; {path} is "
            f"{'a file' if path.exists() else 'not there'}. Load codes from a file first: evaluate(codes, "
            "factors)."
        )
    # Here, because torch takes seconds to import and codes need none of it.
    from unweave.runs.run import load

    return load(path)


def _name_of(subject: Any) -> str:
    if hasattr(subject, "spec"):
        return str(subject.path)
    if callable(subject) or hasattr(subject, "transform"):
        return type(subject).__name__
    return "codes"
