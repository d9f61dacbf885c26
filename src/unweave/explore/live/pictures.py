"""The traversals of the newest weights of a run: those of its last checkpoint while it trains."""

from __future__ import annotations

import io
from functools import lru_cache
from pathlib import Path

from unweave.errors import UnweaveError
from unweave.explore.api.study import PICTURE_IMAGES, traversal_png
from unweave.explore.live.watched_run import WatchedRun
from unweave.layout import WEIGHTS_FILE


def newest_traversals(run: WatchedRun, data_root: Path | None, place: str | None) -> bytes:
    """A PNG of what each latent does now; the same weights are drawn once."""
    if run.path is None or not run.weights:
        raise UnweaveError("the run has no checkpoint yet. --checkpoint-every sets how often one is written.")
    if run.weights == WEIGHTS_FILE:
        picture = traversal_png(run.path, data_root, place)
        if picture is None:
            raise UnweaveError("the run has no traversals: it diverged, or its data set is not available.")
        return picture
    try:
        changed = (run.path / run.weights).stat().st_mtime_ns
    except OSError:
        raise UnweaveError("the checkpoint was just replaced by a newer one. Ask again.") from None
    step = int(run.weights.removeprefix("checkpoint-").partition(".")[0])
    return _of_checkpoint(run.path, step, data_root, place, changed)


@lru_cache(maxsize=16)
def _of_checkpoint(path: Path, step: int, data_root: Path | None, place: str | None, _changed: int) -> bytes:
    from unweave.display.pictures import labelled_sheet
    from unweave.report.names import DATA, METHODS, label
    from unweave.runs.run import Run
    from unweave.runs.store import RunFolder
    from unweave.runs.views import traversals
    from unweave.streams import Stream

    run = Run(RunFolder(path), "cpu", place, data_root, checkpoint=step)
    images = run.data.sample_images(PICTURE_IMAGES, Stream.of(run.spec.seed).child("pictures"))
    file = io.BytesIO()
    method, data = label(run.spec.method.name, METHODS), label(run.spec.data, DATA)
    title = f"{method} on {data} after {step:,} steps"
    labelled_sheet(title, traversals(run, images)).save(file, "PNG")
    return file.getvalue()
