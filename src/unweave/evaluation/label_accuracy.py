"""How often a run predicts the labels of images that it was not trained on: M1, M2 and other classifiers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np
import torch
from torch import Tensor, nn

from unweave.data.collection import Collection
from unweave.data.grid import GroundTruth, Images
from unweave.data.supervision import Labelled
from unweave.data.supervision.row_labels import known_rows, labels_of_rows, rows_of_run
from unweave.errors import UnweaveError
from unweave.methods.sampling import Labels
from unweave.runs.run import Run
from unweave.streams import Stream
from unweave.training.batches import HostBatches

CHUNK = 500


@runtime_checkable
class Predicts(Protocol):
    """A method that predicts labels."""

    def predict(self, networks: Mapping[str, nn.Module], images: Tensor) -> Tensor:
        """(P, B, k): the value of each labelled factor, for images (P, B, c, h, w)."""


def label_accuracy(run: Run, images: int = 5000, seed: int | Stream = 0) -> dict[str, float]:
    """The share of images whose label the run predicts, by the names of the labelled factors.

    Images are drawn at random; those that the run has labels of are left out.
    """
    method, sampling = run.spec.method, run.spec.method.sampling
    if not isinstance(method, Predicts) or not isinstance(sampling, Labels):
        raise UnweaveError(
            f"{method.name} predicts no labels. m1, m2, generalized_m2, m1_m2 and supervised do."
        )
    stream = Stream.of(seed).child("label accuracy")
    data, trained = run.data, Stream.of(run.spec.seed)
    drawn = (
        _unlabelled_rows(data, trained, sampling, images, stream)
        if isinstance(data, Collection)
        else _unlabelled_points(data, trained, sampling, images, stream)
    )
    if not len(drawn.labels):
        raise UnweaveError(
            f"all {images:,} images of {data.name} that were drawn have labels. Train with fewer labels."
        )
    labels = drawn.labels.labels
    right = np.zeros(labels.shape, bool)
    for start in range(0, len(labels), CHUNK):
        part = slice(start, start + CHUNK)
        batch = torch.from_numpy(drawn.images(part)).to(run.device)
        predicted = method.predict(run.networks, batch[None].float() / 255)[0].cpu().numpy()
        right[part] = predicted == labels[part]
    return dict(zip(drawn.labels.names, right.mean(axis=0).tolist(), strict=True))


class _Drawn(NamedTuple):
    """Images without a label in training: their true labels, and the images of a part of them."""

    labels: Labelled
    images: Callable[[slice], Images]


def _unlabelled_points(
    truth: GroundTruth, trained: Stream, sampling: Labels, count: int, stream: Stream
) -> _Drawn:
    factors = truth.sample_factors(count, stream)
    known = HostBatches(truth, torch.device("cpu")).points(trained, sampling).factors
    factors = factors[~np.isin(truth.index(factors), truth.index(known))]

    def images(part: slice) -> Images:
        return truth.observe(factors[part], stream.skip(part.start))

    return _Drawn(sampling.labeller(truth, factors, stream), images)


def _unlabelled_rows(
    data: Collection, trained: Stream, sampling: Labels, count: int, stream: Stream
) -> _Drawn:
    labelled = rows_of_run(data, sampling.points, trained, sampling.labeller).rows
    rows = np.setdiff1d(known_rows(data, stream, sampling.labeller), labelled)
    if len(rows):
        rows = rows[stream.integers(count, [len(rows)])[:, 0]]

    def images(part: slice) -> Images:
        return data.images_at(rows[part])

    return _Drawn(labels_of_rows(data, rows, stream, sampling.labeller), images)
