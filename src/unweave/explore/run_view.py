"""A model as the explorer shows it: how much its latents are used, where its sliders start, its answers."""

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
from unweave.data.collection import obstacle_to_grid
from unweave.data.grid import Images
from unweave.errors import UnweaveError
from unweave.evaluation.posteriors import Posterior, joined
from unweave.explore.information import corrected_information
from unweave.explore.labels import labels_of
from unweave.explore.model import ExploredModel, MixesLevels, RunModel
from unweave.explore.nearest import NearestImages
from unweave.explore.sample import Sample, sample_of
from unweave.progress import Progress, no_progress
from unweave.runs.run import Run, load
from unweave.runs.store import RunFolder
from unweave.runs.views import REACH, code_spans, swapped
from unweave.streams import Stream

POINTS = 5000  # images from which the information in latents is estimated: two seconds on a CPU
CHUNK = 512  # images that are encoded between two reports of progress
EXAMPLES = 12  # true images to start from, where there are no factors to choose one by
DEAD = 0.01  # nats of KL divergence; with less, a sampled code is noise
LEAST_REACH = 3.0  # sliders go at least so far from 0
CONTENTS, STYLES = 4, 8  # images on a sheet of swaps: one a row, one a column; fewer of small data


@dataclass(frozen=True, eq=False)
class RunView:
    """A model, its ground truth if that is available, and else a sentence that says why not.

    Without a decoder, a code is shown as the true image whose code is nearest. Networks are used by one
    visitor at a time: two threads that share two cores are slower than one.
    """

    model: ExploredModel
    truth: GroundTruth | None
    note: str
    sample: Sample | None = field(repr=False)
    tell: Progress = field(default=no_progress, repr=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    @cached_property
    def description(self) -> dict[str, Any]:
        """All that the page shows before anything moves; the codes of the first image are the start."""
        card, model = self.model.card, self.model
        described: dict[str, Any] = {
            "id": card.id,
            "name": card.name,
            "method": card.method,
            "settings": dict(card.settings),
            "data": card.data,
            "seed": card.seed,
            "steps": card.steps,
            "shape": list(model.shape),
            "latents": model.latents,
            "scores": {name: round(value, 4) for name, value in model.scores.items()},
            "labels": labels_of([card.method], [card.data], model.scores),
            "note": self.note,
            "decodes": model.has_decoder,
            "images": self._distinct_images,
            "factors": [],
            "first_factors": None,
            "information": None,
            "points": 0,
            "swap": self._swap(),
        }
        return described | self._of_factors() | self._of_codes()

    def decode(self, codes: NDArray[np.float32]) -> Images:
        """Mean images of codes, (n, c, h, w), as bytes; without a decoder, the nearest true images."""
        if not self.model.has_decoder:
            return self._nearest.decode(codes)
        with self._lock:
            return self.model.decode(codes)

    def encode(self, factors: NDArray[np.int64]) -> Posterior:
        """Mean and, where the model has it, log_var of the images of factors, (n, d) each."""
        images = self.observe(factors)
        with self._lock:
            return self.model.posterior(images)

    def observe(self, factors: NDArray[np.int64]) -> Images:
        """True images of factors; those that a stochastic data set draws are always the same."""
        if self.truth is None:
            raise UnweaveError(self.note)
        return self.truth.observe(factors, Stream.of(0).child("explore"))

    @property
    def examples(self) -> Images | None:
        """True images to start from, for data without factors to choose one by."""
        return None if self.sample is None or self.truth is not None else self.sample.images[:EXAMPLES]

    @property
    def sheets(self) -> int:
        """How many sheets of swaps there are; 0 without images, or where content and style are one."""
        if self.sample is None or not (self.model.content or len(self.levels) > 1):
            return 0
        if len(self.sample.images) < 2:  # one image has nothing to swap with
            return 0
        return len(self.sample.images) // sum(self.sheet_shape)

    @property
    def sheet_shape(self) -> tuple[int, int]:
        """Rows and columns of a sheet of swaps: one row for two columns, also of fewer than 12 images."""
        images = 0 if self.sample is None else len(self.sample.images)
        rows = min(CONTENTS, max(1, images // 3))
        return rows, min(STYLES, images - rows)

    @cached_property
    def levels(self) -> tuple[str, ...]:
        """Names of the levels of the code, the coarsest first; empty without levels."""
        return self.model.levels if isinstance(self.model, MixesLevels) else ()

    def swaps(self, sheet: int, levels: int = 1) -> Images:
        """Images that give content, images that give style, and all pairs of them decoded, row by row.

        If codes have levels, content is the first `levels` of them.
        """
        if self.sample is None or self._codes is None:
            raise UnweaveError(self.note)
        rows, columns = self.sheet_shape
        shown = rows + columns
        chosen = slice(sheet * shown, (sheet + 1) * shown)
        images, codes = self.sample.images[chosen], self._codes.mean[chosen]
        if self.model.content or not isinstance(self.model, MixesLevels):
            made = self.decode(swapped(codes[:rows], codes[rows:], self.model.content))
        else:
            with self._lock:
                made = self.model.mix(images[:rows], images[rows:], levels)
        return np.concatenate([images, made])

    @cached_property
    def _codes(self) -> Posterior | None:
        """Means and log variances of the images, (n, d) each."""
        if self.sample is None:
            return None
        images, parts = self.sample.images, []
        for start in range(0, len(images), CHUNK):
            self.tell(start, len(images), "Encoding images")
            with self._lock:
                parts.append(self.model.posterior(images[start : start + CHUNK]))
        self.tell(len(images), len(images), "Encoding images")
        return joined(parts)

    @cached_property
    def _nearest(self) -> NearestImages:
        if self.sample is None or self._codes is None:
            raise UnweaveError(self.note)
        return NearestImages(self._codes.mean, self.sample.images)

    @property
    def _distinct_images(self) -> int:
        """How many true images the nearest one is chosen from; small grids are drawn from repeatedly."""
        if self.sample is None:
            return 0
        most = len(self.sample.images)
        return most if self.truth is None else min(most, len(self.truth))

    def _swap(self) -> dict[str, Any] | None:
        if not self.sheets:
            return None
        parts = {"content": self.model.content} if self.model.content else {"levels": list(self.levels)}
        rows, columns = self.sheet_shape
        return parts | {"rows": rows, "columns": columns, "sheets": self.sheets}

    def _of_factors(self) -> dict[str, Any]:
        if self.sample is None or self._codes is None or not self.sample.columns:
            return {}
        known = self.sample.rows
        factors = [
            {"name": f.name, "size": f.size, "kind": f.kind, "labels": f.labels} for f in self.sample.columns
        ]
        information = corrected_information(self._codes.mean[known], self.sample.factors)
        return {
            "factors": factors,
            "first_factors": None if self.truth is None else [size // 2 for size in self.truth.sizes],
            "information": information.round(4).tolist(),
            "points": len(known),
        }

    def _of_codes(self) -> dict[str, Any]:
        latents = self.model.latents
        if self._codes is None:
            return {
                "kl": None,
                "order": list(range(latents)),
                "dead": [False] * latents,
                "start": [0.0] * latents,
                "ranges": [[-LEAST_REACH, LEAST_REACH]] * latents,
                "spans": [[-REACH, REACH]] * latents,
            }
        codes, has_prior = self._codes.mean, self.model.has_prior
        used = use_of_latents(self._codes, has_prior)
        start = codes[0]
        if self.truth is not None:
            start = self.encode(np.array([[size // 2 for size in self.truth.sizes]])).mean[0]
        described = {
            "kl": used.astype(float).round(5).tolist() if has_prior else None,
            "order": np.argsort(-used, kind="stable").tolist(),
            "dead": (used < DEAD).tolist() if has_prior else (used == 0).tolist(),
            "start": start.astype(float).round(4).tolist(),
            "ranges": self._ranges(codes).astype(float).round(4).tolist(),
            "spans": code_spans(codes, has_prior).astype(float).round(4).tolist(),
        }
        if self.examples is not None:
            described["example_codes"] = codes[: len(self.examples)].astype(float).round(4).tolist()
        return described

    def _ranges(self, codes: NDArray[Any]) -> NDArray[Any]:
        """(d, 2): how far the sliders go: around 0, or, without a prior, a little further than the images."""
        if self.model.has_prior:
            reach = max(LEAST_REACH, math.ceil(np.abs(codes).max()))
            return np.tile([-reach, reach], (codes.shape[1], 1))
        low, high = codes.min(axis=0), codes.max(axis=0)
        beyond = np.where(high > low, 0.1 * (high - low), 1.0)
        return np.stack([low - beyond, high + beyond], axis=1)


def _obstacle(data: Collection) -> str:
    """Why images cannot be chosen by their factors."""
    if not data.factors:
        return "has no factors"
    one_each = "has several images of one combination of factors"
    return "is not a full grid of factors" if obstacle_to_grid(data) else one_each


def use_of_latents(posterior: Posterior, has_prior: bool) -> NDArray[Any]:
    """(d,): the mean KL divergence of each latent from the prior; without one, the deviation of its codes."""
    if not has_prior or posterior.log_var is None:
        return np.asarray(posterior.mean.std(axis=0))
    divergence = 0.5 * (posterior.mean**2 + np.expm1(posterior.log_var) - posterior.log_var)
    return np.asarray(divergence.mean(axis=0))


def open_run(
    path: Path,
    device: str = "cpu",
    data_root: Path | None = None,
    data: str | None = None,
    tell: Progress = no_progress,
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
    tell(0, 0, "Reading weights")
    return view_of(load(path, device, data_root, data), tell)


def view_of(run: Run, tell: Progress = no_progress) -> RunView:
    """A run, with images from its data where they are available."""
    model = RunModel(run)
    tell(0, 0, f"Reading {run.spec.data}")
    try:
        data = run.data
    except UnweaveError as error:
        return RunView(model, None, f"No true images: {error}", None, tell)
    return view_on(model, data, tell)


def view_on(model: ExploredModel, data: GroundTruth | Collection, tell: Progress = no_progress) -> RunView:
    """A model, with images from a data set."""
    tell(0, 0, f"Reading images of {data.name}")
    sample = sample_of(data, POINTS, Stream.of(0).child("explore"))
    if isinstance(data, Collection):
        return RunView(model, None, f"{data.name} {_obstacle(data)}.", sample, tell)
    return RunView(model, data, "", sample, tell)
