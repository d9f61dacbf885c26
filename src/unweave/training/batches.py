"""Batches for a population: drawn and looked up on the device, or made on the host.

Both ways give the same bytes. Single images at step t are what `GroundTruth.sample_factors` and `observe`
give for the run's stream child("batch").at(t); pairs, groups and sequences come from the same stream and
`unweave.data.supervision`. The labelled points of a run are drawn once, from its stream
child("labelled points").
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from unweave.data import Collection, GroundTruth, grid_table, variants
from unweave.data.supervision import Labelled as LabelledPoints
from unweave.data.supervision import labelled
from unweave.data.variants import Origin, origin
from unweave.errors import UnweaveError
from unweave.methods.method import Batch
from unweave.methods.supply import Groups, Images, Labels, Supply
from unweave.nn.draws import PopulationDraws, path_of
from unweave.nn.image_table import ImageTable, Paint
from unweave.nn.images import draw_images, look_up_images
from unweave.streams import Stream
from unweave.training.factors import FactorDraw, device_factors, host_factors, told

Data = GroundTruth | Collection
# Told (images done, images in all) while a table is made.
Progress = Callable[[int, int], None]


class Batches(Protocol):
    """A source of images for all runs of a population."""

    def on_device(self, supply: Supply) -> bool:
        """Whether such a batch needs nothing from the host, so that it can be part of a CUDA graph."""

    def label_sizes(self, supply: Supply) -> tuple[int, ...]:
        """How many values each label has; none where a batch has no labels."""

    def draw(self, draws: PopulationDraws, step: int, purpose: str, size: int, supply: Supply) -> Batch:
        """`size` images, pairs, groups or sequences for that step.

        Images are (P, size x images that belong together, c, h, w) bytes, channels-last in memory.
        """


class ResidentBatches:
    """A table of images in the device's memory, as bits or bytes, painted as they are drawn.

    Of a ground truth with colour, noise, a picture or hidden factors, the table is that of the ground truth
    that it is made from.
    """

    def __init__(self, ground_truth: GroundTruth, device: torch.device, progress: Progress | None) -> None:
        self.truth, self.device = ground_truth, device
        self.host = HostBatches(ground_truth, device)
        self._factors: dict[Supply, FactorDraw] = {}
        self._labelled: dict[tuple[tuple[Stream, ...], Labels], tuple[Tensor, Tensor]] = {}
        made = origin(ground_truth)
        sizes, strides = _numbering(made)
        self.table = ImageTable(
            images=torch.from_numpy(np.array(grid_table(made.base, progress))).to(device),
            shape=made.base.shape,
            streams=made.streams,
            sizes=torch.from_numpy(sizes).to(device),
            strides=torch.from_numpy(strides).to(device),
            paint=_paint(made.paint),
            picture=_picture(made.paint, device),
        )

    def on_device(self, supply: Supply) -> bool:  # noqa: ARG002
        """Every batch is."""
        return True

    def label_sizes(self, supply: Supply) -> tuple[int, ...]:
        """How many values each label has."""
        return self.host.label_sizes(supply)

    def draw(
        self,
        draws: PopulationDraws,
        step: int,  # noqa: ARG002
        purpose: str,
        size: int,
        supply: Supply,
    ) -> Batch:
        """The draws know the step themselves: nothing depends on the host."""
        if isinstance(supply, Images | Labels):
            batch = Batch(draw_images(self.table, draws, purpose, size))
            return batch if isinstance(supply, Images) else self._with_labelled(batch, draws, purpose, supply)
        if supply not in self._factors:
            self._factors[supply] = device_factors(self.truth, supply, self.device)
        factors = self._factors[supply](draws, path_of(purpose), size)
        images = look_up_images(self.table, draws, purpose, self._rows(factors))
        columns = [factors[..., column] for column in told(self.truth, supply)]
        return Batch(images, torch.stack(columns, dim=-1) if columns else None)

    def _with_labelled(self, batch: Batch, draws: PopulationDraws, purpose: str, supply: Labels) -> Batch:
        rows, labels = self._points(draws.streams, supply)
        purpose = f"{purpose}/labelled"
        index = draws.integers(purpose, batch.images.shape[1], [supply.points])
        return replace(
            batch,
            labelled_images=look_up_images(self.table, draws, purpose, rows.gather(1, index[..., 0])),
            labelled_labels=labels.gather(1, index.expand(-1, -1, labels.shape[2])),
            labelled_index=index[..., 0],
        )

    def _points(self, runs: tuple[Stream, ...], supply: Labels) -> tuple[Tensor, Tensor]:
        """The labelled points of each run: their rows in the table (P, n), and their labels (P, n, k)."""
        key = runs, supply
        if key not in self._labelled:
            points = [self.host.points(run, supply) for run in runs]
            factors, labels = (
                torch.from_numpy(np.stack(arrays)).to(self.device)
                for arrays in ([each.factors for each in points], [each.labels for each in points])
            )
            self._labelled[key] = self._rows(factors), labels
        return self._labelled[key]

    def _rows(self, factors: Tensor) -> Tensor:
        """The rows of the table where factors (..., k) are, but for hidden ones."""
        return (factors * self.table.strides[0, : factors.shape[-1]]).sum(-1)


class HostBatches:
    """Images made by NumPy, run by run, and sent to the device."""

    def __init__(self, data: Data, device: torch.device) -> None:
        self.data = data
        self.device = device
        self._labelled: dict[tuple[int, Labels], LabelledPoints] = {}

    def on_device(self, supply: Supply) -> bool:  # noqa: ARG002
        """No batch is."""
        return False

    def label_sizes(self, supply: Supply) -> tuple[int, ...]:
        """How many values each label has."""
        if isinstance(supply, Labels):
            return labelled(self._truth(supply), 1, 0, supply.labeller).sizes
        if isinstance(supply, Images):
            return ()
        if isinstance(self.data, Collection):
            _rows(self.data, 0, Stream.of(0), supply)  # says what is wrong with the supply
            return ()
        truth = self._truth(supply)
        return tuple(truth.sizes[column] for column in told(truth, supply))

    def draw(self, draws: PopulationDraws, step: int, purpose: str, size: int, supply: Supply) -> Batch:
        """Draws for one run after the other: a run's batch does not depend on its company."""
        path = purpose.split("/")
        runs = [self._draw(run, run.child(*path).at(step), size, supply) for run in draws.streams]
        return Batch(**{name: self._sent([run[name] for run in runs]) for name in runs[0]})

    def _draw(self, run: Stream, stream: Stream, size: int, supply: Supply) -> dict[str, NDArray[Any]]:
        """The batch of one run, by the names of Batch."""
        if isinstance(self.data, Collection):
            return {"images": self.data.images_at(_rows(self.data, size, stream, supply))}
        truth = self._truth(supply)
        factors = host_factors(truth, size, stream, supply)
        batch: dict[str, NDArray[Any]] = {"images": truth.observe(factors, stream)}
        if columns := told(truth, supply):
            batch["labels"] = factors[:, columns]
        if isinstance(supply, Labels):
            points = self.points(run, supply)
            index = stream.child("labelled").integers(size, [supply.points])[:, 0]
            images = truth.observe(points.factors[index], stream.child("labelled"))
            batch |= {
                "labelled_images": images,
                "labelled_labels": points.labels[index],
                "labelled_index": index,
            }
        return batch

    def points(self, run: Stream, supply: Labels) -> LabelledPoints:
        """The labelled points of a run."""
        key = run.key, supply
        if key not in self._labelled:
            points = labelled(
                self._truth(supply), supply.points, run.child("labelled points"), supply.labeller
            )
            self._labelled[key] = points
        return self._labelled[key]

    def _truth(self, supply: Supply) -> GroundTruth:
        if isinstance(self.data, Collection):
            raise _cannot_draw(self.data, supply)
        return self.data

    def _sent(self, runs: list[NDArray[Any]]) -> Tensor:
        together = np.stack(runs)
        if together.dtype != np.uint8:
            return torch.from_numpy(together).to(self.device)
        pixels = np.ascontiguousarray(together.transpose(0, 1, 3, 4, 2))
        return torch.from_numpy(pixels).to(self.device).permute(0, 1, 4, 2, 3)


def _rows(collection: Collection, size: int, stream: Stream, supply: Supply) -> NDArray[np.int64]:
    """The rows of a batch from a collection: independent ones, or groups that share some factors."""
    if isinstance(supply, Images):
        return collection.sample_index(size, stream)
    if not isinstance(supply, Groups) or supply.labels or supply.chosen != "first":
        raise _cannot_draw(collection, supply)
    shared = supply.shared
    if isinstance(shared, int):
        shared = tuple(factor.name for factor in collection.factors[:shared])
    return collection.sample_groups(size, supply.together, stream, shared).ravel()


def _cannot_draw(collection: Collection, supply: Supply) -> UnweaveError:
    labelled = " with labels" if getattr(supply, "labels", False) else ""
    return UnweaveError(
        f"{collection.name} is a collection of images without a grid of factors, from which no "
        f"{type(supply).__name__.lower()}{labelled} can be drawn. Use a ground truth, or another method."
    )


def batches_of(data: Data, device: torch.device, progress: Progress | None = None) -> Batches:
    """The fastest way to batches: resident if images can be tabled, are drawn uniformly, and fit.

    On the CPU images are made as they are needed: a table would only take up memory.
    """
    if device.type != "cuda" or isinstance(data, Collection) or data.weight is not None:
        return HostBatches(data, device)
    base = origin(data).base
    size = math.prod(base.shape) * len(base) // (8 if base.binary else 1)
    if base.stochastic or size > _room(device):
        return HostBatches(data, device)
    return ResidentBatches(data, device, progress)


def _room(device: torch.device) -> float:
    """Bytes that a table may take: half of what is free."""
    free, _ = torch.cuda.mem_get_info(device)
    return 0.5 * free


def _numbering(made: Origin) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Sizes and strides of the base's factors in the grid, (streams, columns), where each is drawn."""
    columns = 4 * -(-max(column + 1 for _, column in made.columns) // 4)
    sizes, strides = np.zeros((2, len(made.streams), columns), np.int64)
    stride = 1
    for drawn, factor in zip(reversed(made.columns), reversed(made.base.factors), strict=True):
        sizes[drawn], strides[drawn] = factor.size, stride
        stride *= factor.size
    return sizes, strides


def _paint(paint: variants.Paint | None) -> Paint:
    match paint:
        case variants.Colour():
            return "colour"
        case variants.Noise():
            return "noise"
        case variants.Scream():
            return "scream"
    return "none"


def _picture(paint: variants.Paint | None, device: torch.device) -> Tensor | None:
    """The picture behind the images, (H, W, 3)."""
    if not isinstance(paint, variants.Scream):
        return None
    return torch.from_numpy(np.ascontiguousarray(paint.picture.transpose(1, 2, 0))).to(device)
