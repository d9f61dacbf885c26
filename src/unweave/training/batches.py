"""Batches for a population: drawn and looked up on the device, or made on the host.

Both ways give the same bytes. Single images at step t are what `GroundTruth.sample_factors` and `observe`
give for the run's stream child("batch").at(t); pairs, groups and sequences come from the same stream and
`unweave.data.supervision`. The labelled points of a run are drawn once, from its stream
child("labelled points").
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from unweave.data import Collection, GroundTruth
from unweave.data.supervision import Labelled as LabelledPoints
from unweave.data.supervision import labelled
from unweave.data.supervision.choices import resolve_class
from unweave.data.supervision.labels import points_of_run
from unweave.data.supervision.row_labels import LabelledRows, labelled_rows, rows_of_run
from unweave.errors import UnweaveError
from unweave.methods.sampling import Groups, Images, Labels, Sampling
from unweave.methods.step import Batch, LabelledBatch
from unweave.nn.draws import PopulationDraws, path_of
from unweave.nn.images import draw_images, look_up_images
from unweave.streams import Stream
from unweave.training.balanced import BalancedRows
from unweave.training.factors import device_factors, host_factors, label_columns
from unweave.training.image_tables import has_room, image_table, table_rows
from unweave.training.weighted_factors import FactorDraw

Data = GroundTruth | Collection

TABLE_SHARE = 0.5  # of the free memory of a device that a table may take


class Batches(Protocol):
    """A source of images for all runs of a population."""

    def on_device(self, sampling: Sampling) -> bool:
        """Whether such a batch needs nothing from the host, so that it can be part of a CUDA graph."""

    def label_sizes(self, sampling: Sampling) -> tuple[int, ...]:
        """How many values each label has; none where a batch has no labels."""

    def draw(self, draws: PopulationDraws, step: int, purpose: str, size: int, sampling: Sampling) -> Batch:
        """`size` images, pairs, groups or sequences for that step.

        Images are (P, size x images that belong together, c, h, w) bytes, channels-last in memory.
        """


class ResidentBatches:
    """A table of images in the device's memory, as bits or bytes, painted as they are drawn.

    For variants with colour, noise, a picture or hidden factors, the table holds the images of the ground
    truth that they are derived from.
    """

    def __init__(self, ground_truth: GroundTruth, device: torch.device) -> None:
        self.truth, self.device = ground_truth, device
        self.host = HostBatches(ground_truth, device)
        self._factors: dict[Sampling, FactorDraw | None] = {}
        self._labelled: dict[tuple[tuple[Stream, ...], Labels], tuple[Tensor, Tensor]] = {}
        self._balanced: dict[tuple[tuple[Stream, ...], Labels], BalancedRows] = {}
        self.table = image_table(ground_truth, device)

    def on_device(self, sampling: Sampling) -> bool:
        """Whether the device draws such a batch: not, for example, groups of data with a condition."""
        return self.truth.weight is None or self._factor_draw(sampling) is not None

    def label_sizes(self, sampling: Sampling) -> tuple[int, ...]:
        """How many values each label has."""
        return self.host.label_sizes(sampling)

    def draw(
        self,
        draws: PopulationDraws,
        step: int,
        purpose: str,
        size: int,
        sampling: Sampling,
    ) -> Batch:
        """Draw a batch on the device; the step comes from the draws, not from the host."""
        if self.truth.weight is None and isinstance(sampling, Images | Labels):
            batch = Batch(draw_images(self.table, draws, purpose, size))
        else:
            draw = self._factor_draw(sampling)
            if draw is None:
                return self.host.draw(draws, step, purpose, size, sampling)
            batch = self._looked_up(draw(draws, path_of(purpose), size), draws, purpose, sampling)
        if isinstance(sampling, Labels):
            return self._with_labelled(batch, draws, purpose, sampling)
        return batch

    def _factor_draw(self, sampling: Sampling) -> FactorDraw | None:
        """How factors are drawn on the device; None if only the host can."""
        if sampling not in self._factors:
            self._factors[sampling] = device_factors(self.truth, sampling, self.device)
        return self._factors[sampling]

    def _looked_up(self, factors: Tensor, draws: PopulationDraws, purpose: str, sampling: Sampling) -> Batch:
        images = look_up_images(self.table, draws, purpose, table_rows(self.table, factors))
        columns = [factors[..., column] for column in label_columns(self.truth, sampling)]
        return Batch(images, torch.stack(columns, dim=-1) if columns else None)

    def _with_labelled(self, batch: Batch, draws: PopulationDraws, purpose: str, sampling: Labels) -> Batch:
        rows, labels = self._points(draws.streams, sampling)
        purpose = f"{purpose}/labelled"
        index = self._labelled_index(batch.images.shape[1], draws, purpose, sampling)
        taken = index.clamp(min=0)
        labelled_batch = LabelledBatch(
            images=look_up_images(self.table, draws, purpose, rows.gather(1, taken)),
            labels=labels.gather(1, taken.unsqueeze(-1).expand(-1, -1, labels.shape[2])),
            index=index,
        )
        return replace(batch, labelled=labelled_batch)

    def _labelled_index(self, size: int, draws: PopulationDraws, purpose: str, sampling: Labels) -> Tensor:
        """(P, rows): which labelled points are in a batch; -1 for places that stay empty."""
        if sampling.balance is None:
            return draws.integers(purpose, size, [sampling.points])[..., 0]
        key = draws.streams, sampling
        if key not in self._balanced:
            labels, sizes = self._points(*key)[1], self.label_sizes(sampling)
            self._balanced[key] = BalancedRows(labels, sizes, sampling.balance)

        def permutations(name: str, length: int) -> Tensor:
            return draws.permutations(f"{purpose}/{name}", 1, length)[:, 0]

        return self._balanced[key].draw(draws.step, permutations)

    def _points(self, runs: tuple[Stream, ...], sampling: Labels) -> tuple[Tensor, Tensor]:
        """The labelled points of each run: their rows in the table (P, n), and their labels (P, n, k)."""
        key = runs, sampling
        if key not in self._labelled:
            points = [self.host.points(run, sampling) for run in runs]
            factors, labels = (
                torch.from_numpy(np.stack(arrays)).to(self.device)
                for arrays in ([run.factors for run in points], [run.labels for run in points])
            )
            self._labelled[key] = table_rows(self.table, factors), labels
        return self._labelled[key]


class HostBatches:
    """Images made by NumPy, run by run, and sent to the device."""

    def __init__(self, data: Data, device: torch.device) -> None:
        self.data = data
        self.device = device
        self._labelled: dict[tuple[int, Labels], LabelledPoints] = {}
        self._rows: dict[tuple[int, Labels], LabelledRows] = {}

    def on_device(self, sampling: Sampling) -> bool:  # noqa: ARG002
        """Always false."""
        return False

    def label_sizes(self, sampling: Sampling) -> tuple[int, ...]:
        """How many values each label has."""
        if isinstance(sampling, Labels):
            if isinstance(self.data, Collection):
                # All of them, so that too few known labels are refused before training starts.
                return labelled_rows(self.data, sampling.points, 0, sampling.labeller).points.sizes
            return labelled(self.data, 1, 0, sampling.labeller).sizes
        if isinstance(sampling, Images):
            return ()
        if isinstance(self.data, Collection):
            _rows(self.data, 0, Stream.of(0), sampling)  # raises if the data cannot be sampled this way
            return ()
        truth = self._truth(sampling)
        return tuple(truth.sizes[column] for column in label_columns(truth, sampling))

    def draw(self, draws: PopulationDraws, step: int, purpose: str, size: int, sampling: Sampling) -> Batch:
        """Draw a batch for one run after another: a run's batch does not depend on the other runs."""
        path = purpose.split("/")
        runs = [self._draw(run, run.child(*path).at(step), size, sampling) for run in draws.streams]
        tensors = {name: self._sent([run[name] for run in runs]) for name in runs[0]}
        labelled_batch = None
        if "labelled_images" in tensors:
            labelled_batch = LabelledBatch(
                tensors["labelled_images"], tensors["labelled_labels"], tensors["labelled_index"]
            )
        return Batch(tensors["images"], tensors.get("labels"), labelled_batch)

    def _draw(self, run: Stream, stream: Stream, size: int, sampling: Sampling) -> dict[str, NDArray[Any]]:
        """The batch of one run, by names of its arrays."""
        if isinstance(self.data, Collection):
            return self._draw_rows(self.data, run, stream, size, sampling)
        truth = self._truth(sampling)
        factors = host_factors(truth, size, stream, sampling)
        batch: dict[str, NDArray[Any]] = {"images": truth.observe(factors, stream)}
        if columns := label_columns(truth, sampling):
            batch["labels"] = factors[:, columns]
        if isinstance(sampling, Labels):
            points, stream = self.points(run, sampling), stream.child("labelled")
            index = _labelled_index(points, size, stream, sampling)
            taken = index.clip(min=0)
            batch |= {
                "labelled_images": truth.observe(points.factors[taken], stream),
                "labelled_labels": points.labels[taken],
                "labelled_index": index,
            }
        return batch

    def _draw_rows(
        self, data: Collection, run: Stream, stream: Stream, size: int, sampling: Sampling
    ) -> dict[str, NDArray[Any]]:
        """The batch of one run from a collection."""
        batch: dict[str, NDArray[Any]] = {"images": data.images_at(_rows(data, size, stream, sampling))}
        if isinstance(sampling, Labels):
            known, stream = self.rows(data, run, sampling), stream.child("labelled")
            index = _labelled_index(known.points, size, stream, sampling)
            taken = index.clip(min=0)
            batch |= {
                "labelled_images": data.images_at(known.rows[taken]),
                "labelled_labels": known.points.labels[taken],
                "labelled_index": index,
            }
        return batch

    def rows(self, data: Collection, run: Stream, sampling: Labels) -> LabelledRows:
        """The labelled rows of a run on a collection."""
        key = run.key, sampling
        if key not in self._rows:
            self._rows[key] = rows_of_run(data, sampling.points, run, sampling.labeller)
        return self._rows[key]

    def points(self, run: Stream, sampling: Labels) -> LabelledPoints:
        """The labelled points of a run."""
        key = run.key, sampling
        if key not in self._labelled:
            truth = self._truth(sampling)
            self._labelled[key] = points_of_run(truth, sampling.points, run, sampling.labeller)
        return self._labelled[key]

    def _truth(self, sampling: Sampling) -> GroundTruth:
        if isinstance(self.data, Collection):
            raise _cannot_draw(self.data, sampling)
        return self.data

    def _sent(self, runs: list[NDArray[Any]]) -> Tensor:
        stacked = np.stack(runs)
        if stacked.dtype != np.uint8:
            return torch.from_numpy(stacked).to(self.device)
        pixels = np.ascontiguousarray(stacked.transpose(0, 1, 3, 4, 2))
        return torch.from_numpy(pixels).to(self.device).permute(0, 1, 4, 2, 3)


def _labelled_index(points: LabelledPoints, size: int, stream: Stream, sampling: Labels) -> NDArray[np.int64]:
    """(rows,): which labelled points are in a batch; -1 for places that stay empty."""
    if sampling.balance is None:
        return stream.integers(size, [sampling.points])[:, 0]
    balanced = BalancedRows(torch.from_numpy(points.labels)[None], points.sizes, sampling.balance)

    def permutations(name: str, length: int) -> Tensor:
        return torch.from_numpy(stream.child(name).permutations(1, length))

    index: NDArray[np.int64] = balanced.draw(torch.tensor(stream.step), permutations)[0].numpy()
    return index


def _rows(collection: Collection, size: int, stream: Stream, sampling: Sampling) -> NDArray[np.int64]:
    """The rows of a batch from a collection: independent ones, or groups that share some factors."""
    if isinstance(sampling, Images | Labels):
        return collection.sample_index(size, stream)
    if not isinstance(sampling, Groups) or sampling.labels or sampling.chosen != "first":
        raise _cannot_draw(collection, sampling)
    shared = sampling.shared
    if isinstance(shared, int):
        shared = tuple(factor.name for factor in collection.factors[:shared])
    names = resolve_class(shared, collection.factors)
    return collection.sample_groups(size, sampling.together, stream, names).ravel()


def _cannot_draw(collection: Collection, sampling: Sampling) -> UnweaveError:
    labelled = " with labels" if getattr(sampling, "labels", False) else ""
    return UnweaveError(
        f"{collection.name} is a collection of images without a grid of factors, from which no "
        f"{type(sampling).__name__.lower()}{labelled} can be drawn. Use a ground truth, or another method."
    )


def batches_of(data: Data, device: torch.device) -> Batches:
    """The fastest source of batches: resident if a table of all images exists and fits.

    On the CPU images are computed as they are needed: a table would only take up memory.
    """
    if device.type != "cuda" or isinstance(data, Collection) or not has_room(data, device, TABLE_SHARE):
        return HostBatches(data, device)
    return ResidentBatches(data, device)
