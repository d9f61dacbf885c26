"""Images of chosen factors that are made and encoded on one device: factors are sent there, codes come back.

The images have the bytes that `GroundTruth.observe` gives on the host, so the codes of a device are the same
bits in both ways.
"""

from __future__ import annotations

from dataclasses import dataclass
from threading import Lock
from weakref import WeakKeyDictionary

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from unweave.data import GroundTruth
from unweave.evaluation.posteriors import Posterior, as_posterior, pair_of
from unweave.nn.draws import PopulationDraws
from unweave.nn.image_table import ImageTable
from unweave.nn.images import look_up_images
from unweave.runs.run import Run
from unweave.streams import Stream
from unweave.training.image_tables import has_room, image_table, table_rows

TABLE_SHARE = 0.1  # of the free memory of a GPU that a table may take; a population may train there meanwhile

# Tables are kept as long as their ground truth, since a study measures many runs on one data set.
_tables: WeakKeyDictionary[GroundTruth, dict[torch.device, ImageTable]] = WeakKeyDictionary()
_one_at_a_time = Lock()  # metrics ask for codes in several threads


@dataclass(frozen=True, eq=False)
class DeviceEncoder:
    """Make and encode images of a ground truth on the device of a run."""

    run: Run
    truth: GroundTruth

    def __call__(self, factors: NDArray[np.int64], stream: Stream) -> Posterior:
        """The posteriors of the images of factors (n, k); image i is drawn from row i of the stream."""
        table = _table_of(self.truth, self.run.device)
        # Triton launches kernels on the current GPU, which in a new thread is the first one.
        with torch.cuda.device_of(table.images):
            images = make_images(table, self.truth.check(factors), stream)
            return as_posterior(pair_of(self.run.posterior(images)), len(factors))


def can_make_images(truth: GroundTruth, device: torch.device) -> bool:
    """Whether a GPU has the table of a ground truth, or has room for it."""
    return device in _tables.get(truth, {}) or has_room(truth, device, TABLE_SHARE)


def make_images(table: ImageTable, factors: NDArray[np.int64], stream: Stream) -> Tensor:
    """The images (n, c, h, w) that `GroundTruth.observe` gives, uint8, on the device of the table."""
    device = table.images.device
    draws = PopulationDraws([stream], torch.tensor(stream.step, device=device))
    rows = table_rows(table, torch.from_numpy(factors).to(device))
    # Contiguous as images of the host are: another layout may be summed in another order.
    return look_up_images(table, draws, (), rows[None])[0].contiguous()


def _table_of(truth: GroundTruth, device: torch.device) -> ImageTable:
    with _one_at_a_time:
        tables = _tables.setdefault(truth, {})
        if device not in tables:
            tables[device] = image_table(truth, device)
        return tables[device]
