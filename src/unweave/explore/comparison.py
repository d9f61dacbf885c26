"""The record of a comparison of runs: everything that the page shows before anything moves."""

from __future__ import annotations

import base64
import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unweave.data.grid import GroundTruth, Images
from unweave.evaluation.score_store import kept_scores
from unweave.evaluation.scores import Score
from unweave.explore.compare import ScoreRow, aligned_latents, differing_settings, score_rows
from unweave.explore.labels import labels_of
from unweave.explore.model import ExploredModel, RunModel
from unweave.explore.run_view import DEAD, LEAST_REACH, RunView, use_of_latents
from unweave.methods import settings_of
from unweave.progress import Progress, no_progress
from unweave.runs.spec import RunSpec

POINTS = 1000  # images whose codes are correlated: half a second a run on a CPU
EXAMPLES = 12  # true images to choose from, for data that are not a grid of factors
GIVEN = "as given"  # the protocol of scores that a user gives with a model


@dataclass(frozen=True, eq=False)
class Encoded:
    """Mean codes (n, d) of the shared images, the live latents by use, and the dead ones."""

    mean: NDArray[np.float64]
    live: list[int]
    dead: list[int]


def comparison(views: Sequence[RunView], tell: Progress = no_progress) -> dict[str, Any]:
    """What the page needs, as plain data.

    runs: one record each; settings: those that differ; scores: one record a score, with its protocols; rows:
    the aligned latents, or None if there are no images (`note` says why); codes: for each run, the mean and
    deviation of its codes and the dead latents; what to choose images by: factors, or examples.
    """
    models = [view.model for view in views]
    settings = differing_settings([_settings(model) for model in models])
    scores = score_rows([_finite_scores(model) for model in models])
    methods, names = [model.card.method for model in models], [row.name for row in scores]
    record: dict[str, Any] = {
        "data": models[0].card.data,
        "labels": labels_of(methods, [models[0].card.data], names),
        "runs": [_described(model) for model in models],
        "settings": [{"name": name, "values": values} for name, values in settings.items()],
        "scores": [_score_record(row) for row in scores],
        "rows": None,
        "note": next((view.note for view in views if view.sample is None), ""),
    }
    images = next((_some(view.sample.images) for view in views if view.sample is not None), None)
    if images is None or record["note"]:
        return record
    encoded = []
    for k, view in enumerate(views):
        tell(k, len(views), "Encoding images in all runs")
        encoded.append(_encoded(view, images))
    return record | _latents(encoded, images, views[0].truth)


def _some(images: Images) -> Images:
    """At most `POINTS` of the images, evenly spread, because a user's images may be sorted."""
    return images if len(images) <= POINTS else images[np.linspace(0, len(images) - 1, POINTS).astype(int)]


def run_settings(spec: RunSpec) -> dict[str, object]:
    """All settings of a run by name: the method, its settings, the fields of the spec, hashes of plug-ins."""
    kept = [f.name for f in dataclasses.fields(spec) if f.name not in ("method", "plugins")]
    fields = {name: getattr(spec, name) for name in kept}
    own = {
        f"method.{name}" if name in fields else name: value
        for name, value in settings_of(spec.method).items()
    }
    sources = {f"source of the {plugin.kind}": plugin.hash[:8] for plugin in spec.plugins}
    return {"method": spec.method.name, **own, **fields, **sources}


def _settings(model: ExploredModel) -> dict[str, object]:
    """The settings of a run; of a user's model, those that it names."""
    if isinstance(model, RunModel):
        return run_settings(model.run.spec)
    return {"method": model.card.method, **model.card.settings}


def _described(model: ExploredModel) -> dict[str, Any]:
    card = model.card
    described = {"id": card.id, "name": card.name, "method": card.method, "seed": card.seed}
    return described | {"latents": model.latents}


def _finite_scores(model: ExploredModel) -> list[Score]:
    if not isinstance(model, RunModel):
        return [Score(name, GIVEN, "mean", value) for name, value in model.scores.items()]
    records = kept_scores(model.run.folder)
    return [score for record in records for score in record.scores if math.isfinite(score.value)]


def _score_record(row: ScoreRow) -> dict[str, Any]:
    values = [
        score and {"value": score.value, "low": score.low, "high": score.high, "protocol": score.protocol}
        for score in row.values
    ]
    return {
        "name": row.name,
        "representation": row.representation,
        "comparable": row.comparable,
        "protocols": row.protocols,
        "values": values,
    }


def _latents(encoded: Sequence[Encoded], images: Images, truth: GroundTruth | None) -> dict[str, Any]:
    """The aligned latents, where their codes lie, and the images to choose from."""
    rows = aligned_latents([one.mean for one in encoded], [one.live for one in encoded])
    factors = () if truth is None else truth.factors
    return {
        "rows": [[match and dataclasses.asdict(match) for match in row] for row in rows],
        "codes": [
            {
                "mean": _plain(one.mean.mean(axis=0)),
                "deviation": _plain(one.mean.std(axis=0)),
                "dead": one.dead,
            }
            for one in encoded
        ],
        "reach": max(LEAST_REACH, *(_reach(one) for one in encoded)),
        "factors": [{"name": f.name, "size": f.size, "kind": f.kind, "labels": f.labels} for f in factors],
        "first_factors": None if truth is None else [size // 2 for size in truth.sizes],
        "shape": list(images.shape[1:]),
        "examples": [] if truth is not None else _examples(images, encoded),
    }


def _encoded(view: RunView, images: Images) -> Encoded:
    posterior = view.model.posterior(images)
    used = use_of_latents(posterior, view.model.has_prior)
    is_dead = used < DEAD if view.model.has_prior else used == 0
    order = np.argsort(-used, kind="stable")
    return Encoded(
        posterior.mean.astype(np.float64),
        order[~is_dead[order]].tolist(),
        np.flatnonzero(is_dead).tolist(),
    )


def _reach(one: Encoded) -> int:
    """How many standard deviations the codes of live latents go from their means."""
    codes = one.mean[:, one.live]
    deviation = codes.std(axis=0)
    moving = deviation > 0
    distance = np.abs(codes - codes.mean(axis=0))[:, moving] / deviation[moving]
    return math.ceil(float(distance.max(initial=0.0)))


def _examples(images: Images, encoded: Sequence[Encoded]) -> list[dict[str, Any]]:
    """Images to choose from, with their code in each run."""
    return [
        {
            "image": base64.b64encode(np.ascontiguousarray(image).tobytes()).decode(),
            "codes": [_plain(one.mean[i]) for one in encoded],
        }
        for i, image in enumerate(images[:EXAMPLES])
    ]


def _plain(numbers: NDArray[np.float64]) -> list[float]:
    rounded: list[float] = numbers.round(5).tolist()
    return rounded
