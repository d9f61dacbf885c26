"""How often a run predicts the labels of images that it was not trained on: M1, M2 and other classifiers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol, runtime_checkable

import numpy as np
import torch
from torch import Tensor, nn

from unweave.data.grid import GroundTruth
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
    method, sampling, truth = run.spec.method, run.spec.method.sampling, run.data
    if not isinstance(method, Predicts) or not isinstance(sampling, Labels):
        raise UnweaveError(
            f"{method.name} predicts no labels. m1, m2, generalized_m2, m1_m2 and supervised do."
        )
    if not isinstance(truth, GroundTruth):
        raise UnweaveError(f"accuracy needs the true factors of images; {truth.name} has none.")
    stream = Stream.of(seed).child("label accuracy")
    factors = truth.sample_factors(images, stream)
    known = HostBatches(truth, torch.device("cpu")).points(Stream.of(run.spec.seed), sampling).factors
    factors = factors[~np.isin(truth.index(factors), truth.index(known))]
    if not len(factors):
        raise UnweaveError(
            f"all {images:,} images of {truth.name} that were drawn have labels. Train with fewer labels."
        )
    labels = sampling.labeller(truth, factors, stream)
    right = np.zeros(labels.labels.shape, bool)
    for start in range(0, len(factors), CHUNK):
        part = slice(start, start + CHUNK)
        batch = torch.from_numpy(truth.observe(factors[part], stream.skip(start))).to(run.device)
        predicted = method.predict(run.networks, batch[None].float() / 255)[0].cpu().numpy()
        right[part] = predicted == labels.labels[part]
    return dict(zip(labels.names, right.mean(axis=0).tolist(), strict=True))
