"""A run as the explorer shows it: how much its latents are used, where its sliders start, what it answers."""

from __future__ import annotations

import math
import threading
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unweave.data import Collection, GroundTruth
from unweave.data.grid import Images
from unweave.display.pictures import to_bytes
from unweave.errors import UnweaveError
from unweave.evaluation.score_store import kept_scores
from unweave.explore.information import corrected_information
from unweave.methods import settings_of
from unweave.runs.run import Run, load
from unweave.runs.store import RunFolder
from unweave.runs.views import REACH, content_of, spans, swapped, use_of_dimensions
from unweave.streams import Stream

POINTS = 5000  # images from which the information in latents is estimated: two seconds on a CPU
DEAD = 0.01  # nats of KL divergence; with less, a sampled code is noise
LEAST_REACH = 3.0  # sliders go at least so far from 0
CONTENTS, STYLES = 4, 8  # images on a sheet of swaps: one a row, one a column


@dataclass(frozen=True, eq=False)
class RunView:
    """A run, its ground truth if that is available, and else a sentence that says why not.

    Networks are used by one visitor at a time: two threads that share two cores are slower than one.
    """

    run: Run
    truth: GroundTruth | None
    note: str
    _images: Images | None = field(repr=False)
    _factors: NDArray[np.int64] | None = field(repr=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    @cached_property
    def description(self) -> dict[str, Any]:
        """All that the page shows before anything moves; the codes of the first image are the start."""
        spec, run = self.run.spec, self.run
        described: dict[str, Any] = {
            "id": spec.id,
            "name": run.path.name,
            "method": spec.method.name,
            "settings": settings_of(spec.method),
            "data": spec.data,
            "seed": spec.seed,
            "steps": run.result.get("steps"),
            "shape": list(run.shape),
            "latents": spec.latents,
            "scores": self._scores(),
            "note": self.note,
            "factors": [],
            "first_factors": None,
            "information": None,
            "points": 0 if self._images is None else len(self._images),
            "swap": self._swap(),
        }
        return described | self._of_truth() | self._of_codes()

    def decode(self, codes: NDArray[np.float32]) -> Images:
        """Mean images of codes, (n, c, h, w), as bytes."""
        with self._lock:
            return to_bytes(self.run.decode(codes))

    def encode(self, factors: NDArray[np.int64]) -> tuple[NDArray[Any], NDArray[Any]]:
        """Mean and log_var of the images of factors, (n, d) each."""
        images = self.observe(factors)
        with self._lock:
            posterior = self.run.posterior(images)
        return posterior.mean.cpu().numpy(), posterior.log_var.cpu().numpy()

    def observe(self, factors: NDArray[np.int64]) -> Images:
        """True images of factors; those that a stochastic data set draws are always the same."""
        if self.truth is None:
            raise UnweaveError(self.note)
        return self.truth.observe(factors, Stream.of(0).child("explore"))

    @property
    def sheets(self) -> int:
        """How many sheets of swaps there are; 0 without images, or where content and style are one."""
        if self._images is None or not content_of(self.run):
            return 0
        return len(self._images) // (CONTENTS + STYLES)

    def swaps(self, sheet: int) -> Images:
        """Images that give content, images that give style, and all pairs of them decoded, row by row."""
        if self._images is None or self._codes is None:
            raise UnweaveError(self.note)
        shown = CONTENTS + STYLES
        chosen = slice(sheet * shown, (sheet + 1) * shown)
        codes = self._codes[0][chosen]
        pairs = swapped(codes[:CONTENTS], codes[CONTENTS:], content_of(self.run))
        return np.concatenate([self._images[chosen], self.decode(pairs)])

    @cached_property
    def _codes(self) -> tuple[NDArray[Any], NDArray[Any]] | None:
        """Means of the images, (n, d), and how much each latent is used, (d,)."""
        if self._images is None:
            return None
        with self._lock:
            posterior = self.run.posterior(self._images)
        return posterior.mean.cpu().numpy(), use_of_dimensions(self.run, posterior)

    def _swap(self) -> dict[str, int] | None:
        if not self.sheets:
            return None
        content = content_of(self.run)
        return {"content": content, "rows": CONTENTS, "columns": STYLES, "sheets": self.sheets}

    def _of_truth(self) -> dict[str, Any]:
        if self.truth is None or self._codes is None or self._factors is None:
            return {}
        factors = [
            {"name": f.name, "size": f.size, "kind": f.kind, "labels": f.labels} for f in self.truth.factors
        ]
        information = corrected_information(self._codes[0], self._factors)
        return {
            "factors": factors,
            "first_factors": [size // 2 for size in self.truth.sizes],
            "information": information.round(4).tolist(),
        }

    def _of_codes(self) -> dict[str, Any]:
        latents = self.run.spec.latents
        if self._codes is None:
            return {
                "kl": None,
                "order": list(range(latents)),
                "dead": [False] * latents,
                "start": [0.0] * latents,
                "ranges": [[-LEAST_REACH, LEAST_REACH]] * latents,
                "spans": [[-REACH, REACH]] * latents,
            }
        codes, used = self._codes
        start = codes[0]
        if self.truth is not None:
            start = self.encode(np.array([[size // 2 for size in self.truth.sizes]]))[0][0]
        drawn = self.run.spec.method.stochastic
        return {
            "kl": used.astype(float).round(5).tolist() if drawn else None,
            "order": np.argsort(-used, kind="stable").tolist(),
            "dead": (used < DEAD).tolist() if drawn else (used == 0).tolist(),
            "start": start.astype(float).round(4).tolist(),
            "ranges": self._ranges(codes).astype(float).round(4).tolist(),
            "spans": spans(self.run, codes).astype(float).round(4).tolist(),
        }

    def _ranges(self, codes: NDArray[Any]) -> NDArray[Any]:
        """(d, 2): how far the sliders go: around 0, or, without a prior, a little further than the images."""
        if self.run.spec.method.stochastic:
            reach = max(LEAST_REACH, math.ceil(np.abs(codes).max()))
            return np.tile([-reach, reach], (codes.shape[1], 1))
        low, high = codes.min(axis=0), codes.max(axis=0)
        beyond = np.where(high > low, 0.1 * (high - low), 1.0)
        return np.stack([low - beyond, high + beyond], axis=1)

    def _scores(self) -> dict[str, float]:
        of_means = [record for record in kept_scores(self.run.folder) if record.representation == "mean"]
        known = {name: value for record in of_means for name, value in record.items()}
        return {name: round(value, 4) for name, value in known.items() if math.isfinite(value)}


def open_run(
    path: Path, device: str = "cpu", data_root: Path | None = None, data: str | None = None
) -> RunView:
    """Load a finished run; its data may be missing, its weights may not. `data` is where it lies now."""
    result = RunFolder(path).result
    if result is None:
        raise UnweaveError(
            f"the run {path.name} has not finished: it still trains, or was stopped. Look again when it has."
        )
    if result["outcome"] != "finished":
        raise UnweaveError(
            f"the run {path.name} is {result['outcome']}, so there is nothing to see. Train it again with "
            "other settings."
        )
    run = load(path, device, data_root, data)
    return view_of(run)


def view_of(run: Run) -> RunView:
    """A run, with images from its data where they are available."""
    stream = Stream.of(0).child("explore")
    try:
        data = run.data
    except UnweaveError as error:
        return RunView(run, None, f"No true images: {error}", None, None)
    if isinstance(data, Collection):
        images = data.sample_images(POINTS, stream)
        return RunView(run, None, f"{data.name} is not a full grid of factors.", images, None)
    factors = data.sample_factors(POINTS, stream)
    return RunView(run, data, "", data.observe(factors, stream), factors)
