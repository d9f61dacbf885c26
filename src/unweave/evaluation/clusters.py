"""`found_clusters`: the categories that a GAN found, and their probabilities, against the true classes.

[1] Ojha, Singh, Hsieh, Lee: Elastic-InfoGAN: unsupervised disentangled representation learning in
class-imbalanced data, NeurIPS 2020.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor, nn

from unweave.data.collection import Collection, as_ground_truth
from unweave.data.grid import Factor, GroundTruth, Images
from unweave.data.supervision.choices import CLASS, resolve_class, whole_number
from unweave.errors import UnweaveError
from unweave.evaluation.judges import judge_of
from unweave.evaluation.opened_run import opened_run
from unweave.metrics.information import entropies, information_of_labels
from unweave.nn.networks.classes import nearest_class
from unweave.nn.networks.gan import Generator
from unweave.progress import Progress
from unweave.runs.run import Run
from unweave.streams import Stream

Floats = NDArray[np.float64]

CHUNK = 500
IMAGES = 5000
PER_CLUSTER = 1000  # generated images of each cluster, as in the authors' evaluation


@runtime_checkable
class HasClusters(Protocol):
    """A method whose first code is the number of a cluster that images are generated from."""

    def cluster_prior(self, networks: Mapping[str, nn.Module]) -> Tensor:
        """(P, K): the probabilities of the clusters."""

    def cluster_generator(self, networks: Mapping[str, nn.Module]) -> Generator:
        """The network that makes images of a cluster."""


class Agreement(NamedTuple):
    """How well clusters agree with classes: NMI, higher is better, and ENT, in nats, lower is better."""

    nmi: float
    entropy: float


@dataclass(frozen=True, eq=False)
class FoundClusters:
    """Clusters against the values of one factor of the data, the class.

    `images` is the agreement for images of the data, whose cluster is the likeliest one by Q. `generated` is
    that for generated images, whose class a classifier predicts. `prior` (K,) are the probabilities of the
    clusters, `frequencies` (C,) those of the classes, and `table` (K, C) counts images of the data.
    """

    factor: str
    images: Agreement
    generated: Agreement | None
    prior: Floats
    frequencies: Floats
    table: NDArray[np.int64]

    @property
    def prior_distance(self) -> float:
        """Total variation distance of prior and frequencies, both sorted; from 0 to 1, lower is better."""
        return float(np.abs(self._differences()).sum() / 2)

    @property
    def prior_rmse(self) -> float:
        """Root mean square difference of prior and frequencies, both sorted; lower is better."""
        return float(np.sqrt(np.square(self._differences()).mean()))

    @property
    def used(self) -> int:
        """How many clusters images of the data fall into."""
        return int((self.table.sum(axis=1) > 0).sum())

    def _differences(self) -> Floats:
        most = max(len(self.prior), len(self.frequencies))
        prior, frequencies = (
            np.sort(np.pad(part, (0, most - len(part)))) for part in (self.prior, self.frequencies)
        )
        return np.asarray(prior - frequencies)


def found_clusters(
    run: Run | str | Path,
    factor: str = CLASS,
    *,
    images: int = IMAGES,
    generated: bool = False,
    seed: int | Stream = 0,
    progress: Progress | None = None,
) -> FoundClusters:
    """Compare the clusters of a trained `elastic_info_gan`, or `info_gan` with categories, with the classes.

    `run` is the trained run, or its folder. The class is a factor of the data, by default the first
    categorical one. `images` of the data are drawn as in training, from those whose class is known. With
    `generated`, a classifier judges 1,000 generated images of each cluster, as in [1]. It is trained on the
    data set once, which takes minutes on a CPU, and kept in the cache folder.

    Clusters have no names, so their probabilities are compared with the frequencies of classes by rank.
    """
    run = opened_run(run, "found_clusters")
    method, data = run.spec.method, run.data
    if not isinstance(method, HasClusters):
        raise UnweaveError(
            f"{method.name} finds no clusters. Train elastic_info_gan, or info_gan with categories."
        )
    count = whole_number(images, "images", 1)
    prior = method.cluster_prior(run.networks)[0].cpu().numpy().astype(np.float64)
    column, stream = _class_column(data, factor), Stream.of(seed).child("clusters")
    drawn = _draw(data, column, count, stream)
    clusters = _clusters_of(run, drawn, len(prior))
    judged = None
    if generated:
        truth = _of_one_factor(data, column)
        read = _generated_classes(run, method.cluster_generator(run.networks), truth, stream, progress)
        position = truth.position(data.factors[column].name)
        judged = agreement(np.repeat(np.arange(len(prior)), PER_CLUSTER), read[:, position])
    frequencies = class_frequencies(data, column)
    table = np.zeros((len(prior), len(frequencies)), np.int64)
    np.add.at(table, (clusters, drawn.classes), 1)
    name = data.factors[column].name
    return FoundClusters(name, agreement(clusters, drawn.classes), judged, prior, frequencies, table)


def agreement(clusters: ArrayLike, classes: ArrayLike) -> Agreement:
    """NMI and ENT of the cluster and the class of each image, whole numbers (n,).

    NMI = 2 I(k; c) / (H(k) + H(c)), from 0 to 1, and 0 if there is one cluster and one class. ENT is the mean
    of the entropies of all rows and columns of the table of clusters and classes [1]: H(c|k) of each cluster
    k in use, and H(k|c) of each class c that occurs.

    >>> agreement([0, 0, 1, 1], [2, 2, 0, 0])
    Agreement(nmi=1.0, entropy=0.0)
    """
    pair = np.stack([np.asarray(clusters, np.int64), np.asarray(classes, np.int64)], axis=1)
    if not len(pair):
        raise UnweaveError("clusters and classes have no rows. Give one number for each image.")
    shared = float(information_of_labels(pair[:, :1], pair[:, 1:])[0, 0])
    total = float(entropies(pair).sum())
    parts = [
        entropies(pair[pair[:, one] == value, 1 - one][:, None])[0]
        for one in (0, 1)
        for value in np.unique(pair[:, one])
    ]
    nmi = min(2 * shared / total, 1.0) if total > 0 else 0.0  # rounding may exceed 1
    return Agreement(nmi, float(np.mean(parts)))


def class_frequencies(data: GroundTruth | Collection, column: int) -> Floats:
    """(C,): how often images of the data have each value of a factor."""
    if isinstance(data, Collection):
        classes = data.values[_known_rows(data, column), column].astype(np.int64)
        shares = np.bincount(classes, minlength=_discrete(data, column).size).astype(np.float64)
        return np.asarray(shares / shares.sum())
    index = np.arange(len(data)) if data.members is None else data.members
    factors = data.factors_at(index)
    weights = None if data.weight is None or data.members is not None else data.weight(factors)
    shares = np.bincount(factors[:, column], weights, data.sizes[column]).astype(np.float64)
    return np.asarray(shares / shares.sum())


@dataclass(frozen=True, eq=False)
class _Drawn:
    """The classes (n,) of images that were drawn, and the images of a range of them."""

    classes: NDArray[np.int64]
    images: Callable[[int, int], Images]


def _class_column(data: GroundTruth | Collection, factor: str) -> int:
    if not data.factors:
        raise UnweaveError(f"found_clusters needs the class of images; {data.name} has no factors.")
    [name] = resolve_class([factor], data.factors)
    column = data.position(name)
    _discrete(data, column)
    return column


def _discrete(data: GroundTruth | Collection, column: int) -> Factor:
    factor = data.factors[column]
    if not isinstance(factor, Factor):
        raise UnweaveError(
            f'found_clusters needs a factor with separate values, and "{factor.name}" is continuous. '
            "Name another factor."
        )
    return factor


def _known_rows(data: Collection, column: int) -> NDArray[np.int64]:
    rows = np.flatnonzero(~np.isnan(data.values[:, column]))
    if not len(rows):
        raise UnweaveError(f'no image of {data.name} has a known "{data.factors[column].name}".')
    return rows


def _draw(data: GroundTruth | Collection, column: int, count: int, stream: Stream) -> _Drawn:
    """Images with a known class, drawn as in training."""
    if isinstance(data, GroundTruth):
        factors = data.sample_factors(count, stream)
        return _Drawn(
            factors[:, column],
            lambda start, stop: data.observe(factors[start:stop], stream.skip(start)),
        )
    known = _known_rows(data, column)
    rows = known[stream.child("rows").integers(count, [len(known)])[:, 0]]
    classes = data.values[rows, column].astype(np.int64)
    return _Drawn(classes, lambda start, stop: data.images_at(rows[start:stop]))


def _of_one_factor(data: GroundTruth | Collection, column: int) -> GroundTruth:
    """What a classifier is trained on: images of a collection with a known class, and this class alone."""
    if isinstance(data, GroundTruth):
        return data
    rows = _known_rows(data, column)
    values = data.values[rows][:, [column]]
    return as_ground_truth(
        replace(
            data,
            factors=(_discrete(data, column),),
            values=values,
            look=lambda index: data.look(rows[index]),
            source=f"{data.source}; {data.factors[column].name} alone",
        )
    )


def _clusters_of(run: Run, drawn: _Drawn, count: int) -> NDArray[np.int64]:
    """(n,): the likeliest cluster of each image."""
    parts = []
    for start in range(0, len(drawn.classes), CHUNK):
        images = drawn.images(start, min(start + CHUNK, len(drawn.classes)))
        parts.append(nearest_class(torch.from_numpy(run.encode(images)[:, 0]), count).long().numpy())
    return np.concatenate(parts)


def _generated_classes(
    run: Run, generator: Generator, truth: GroundTruth, stream: Stream, progress: Progress | None
) -> NDArray[np.int64]:
    """(K x PER_CLUSTER, k): what a classifier reads off generated images, cluster by cluster."""
    judge = judge_of(truth, progress=progress)
    parts: list[NDArray[Any]] = []
    for cluster in range(generator.categories):
        for start in range(0, PER_CLUSTER, CHUNK):
            numbers = torch.full((1, CHUNK), cluster, device=run.device)
            with torch.no_grad():
                images = generator.category_images(numbers, stream.child("generated", cluster).skip(start))
            parts.append(judge.read(images[0].cpu().numpy()))
    return np.concatenate(parts)
