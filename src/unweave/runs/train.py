"""`unweave.train`: one model from a method and a data set."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import fields
from pathlib import Path
from typing import Any

from unweave.data import Collection, GroundTruth, open_data
from unweave.display.progress import TrainingProgress, training_display
from unweave.errors import UnweaveError, did_you_mean
from unweave.methods import method_named
from unweave.methods.method import Method
from unweave.runs.run import Run, folder_name
from unweave.runs.spec import RunSpec, spec_of
from unweave.runs.store import RunFolder
from unweave.training.batches import Data
from unweave.training.loggers.writer import LogWriter
from unweave.training.memory import train_what_fits
from unweave.training.trainer import Plan, Report, Tell, default_precision


def train(
    method: Method | type[Method] | str,
    data: str | Path | Data = "dsprites",
    *,
    out: str | Path = "runs",
    device: str = "auto",
    progress: bool | None = None,
    tell: Tell | None = None,
    log_to: str | Sequence[str] = (),
    **settings: Any,
) -> Run:
    """Train one model, or open it if it has been trained before; returns the run.

    `method` is a method with its settings, such as BetaVAE(beta=4), or the name of one for its defaults.
    `settings` are the fields of RunSpec: seed, steps, batch, latents, architecture, ... Without them a run
    has the defaults of its method (`Method.run_defaults`), or else those of RunSpec. `data` is the name of a
    data set, the path of your own (see `unweave.data.open_data`), or a ground truth or collection. The
    run's folder is made in `out`. If training is stopped, the same call resumes it. The default precision is
    bf16 on a GPU and float32 on a CPU.

    Progress is shown on standard error or in the notebook. `progress=False` shows nothing. `tell` is a
    function that gets a Report at each line of the log; progress is then shown only with `progress=True`.
    `log_to` names trackers that get the losses too: "tensorboard", "wandb", "mlflow", or your own logger,
    "file.py:Name". A tracker that fails causes a warning, and training continues.

    >>> import unweave
    >>> run = unweave.train(unweave.methods.BetaVAE(beta=4), data="dsprites", steps=1000)  # doctest: +SKIP
    """
    method, source = _as_method(method), _as_data(data)
    known = [f.name for f in fields(RunSpec)]
    for name in settings:
        if name not in known:
            raise UnweaveError(f'a run has no setting "{name}". {did_you_mean(name, known)}')
    settings.setdefault("precision", default_precision(device, method))
    spec = spec_of(method, data=source.name, **settings)
    folder = RunFolder(Path(out).expanduser() / folder_name(spec))
    shows = tell is None if progress is None else progress
    with _shown_progress(spec, folder, tell) if shows else nullcontext(tell) as report:
        _train_and_log(spec, source, folder, Plan(device), report, log_to)
    return Run(folder, data=source)


def _train_and_log(
    spec: RunSpec, data: Data, folder: RunFolder, plan: Plan, tell: Tell | None, log_to: str | Sequence[str]
) -> None:
    """Train a run, and send its losses to trackers."""
    names = [log_to] if isinstance(log_to, str) else log_to
    with LogWriter(names, {spec.id: (spec, folder.path)}, warnings.warn) as logs:
        train_what_fits([spec], data, [folder.path], plan, logs.after(tell))
        logs.finish(spec.id, {})


def _as_method(method: object) -> Method:
    """A method with its settings, given as such, as its class or by its name."""
    if isinstance(method, str):
        return method_named(method)()
    if isinstance(method, type) and issubclass(method, Method):
        return method()
    if not isinstance(method, Method):
        raise UnweaveError(
            "method must be a method with its settings, such as BetaVAE(beta=4), or a name, such as "
            f'"beta_vae"; got {_described(method)}.'
        )
    return method


def _as_data(data: object) -> Data:
    """A data set, given as such or by its name."""
    if isinstance(data, str | Path):
        return open_data(data)
    if isinstance(data, GroundTruth | Collection):
        return data
    raise UnweaveError(
        f"data must be the name or path of a data set, or data of your own; got {_described(data)}. Wrap "
        "images: data=unweave.data.from_arrays(images)."
    )


def _described(value: object) -> str:
    """What was given, in few words."""
    shape = getattr(value, "shape", None)
    return repr(value)[:60] if shape is None else f"an array of shape {tuple(shape)}"


@contextmanager
def _shown_progress(spec: RunSpec, folder: RunFolder, tell: Tell | None) -> Iterator[Tell | None]:
    """Show how training goes, unless the run is finished."""
    if folder.result is not None:
        yield tell
        return
    start = folder.newest_checkpoint
    with training_display(TrainingProgress({spec.id: spec.steps}, {spec.id: start})) as show:

        def show_and_forward(report: Report) -> None:
            show(report)
            if tell is not None:
                tell(report)

        yield show_and_forward
