"""All latents of a trained flow, such as Glow [1]: images, samples, likelihoods and attribute directions.

[1] Kingma, Dhariwal: Glow: generative flow with invertible 1x1 convolutions, NeurIPS 2018.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from unweave.data.grid import GroundTruth
from unweave.data.supervision.choices import whole_number
from unweave.errors import UnweaveError, did_you_mean
from unweave.evaluation.opened_run import opened_run
from unweave.methods.glow import FLOW, Glow, continuous
from unweave.methods.step import network_of
from unweave.nn.layers import as_numbers
from unweave.nn.networks.flow import Flow
from unweave.runs.run import Run
from unweave.streams import Stream

TEMPERATURE = 0.7  # of samples; [1] shows samples at this one
CHUNK = {"cpu": 64, "cuda": 1024}  # images at a time


def is_flow(run: Run) -> bool:
    """Whether a run maps images to latents of the same size, and so has a density of images."""
    return isinstance(run.spec.method, Glow)


@final
class FlowLatents:
    """All latents of images, (n, D), by the flow of a run, or of that in a folder.

    D is the number of pixels times channels.
    """

    def __init__(self, run: Run | str | Path) -> None:
        run = opened_run(run, "FlowLatents")
        if not isinstance(run.spec.method, Glow):
            raise UnweaveError(
                f"{run.spec.method.name} is no flow with latents of images. Use a run of glow."
            )
        self.run, self.method = run, run.spec.method
        self.flow = network_of(run.networks, FLOW, Flow)

    def encode(self, images: NDArray[Any]) -> NDArray[np.float32]:
        """Latents (n, D) of images (n, c, h, w) in the middle of their grey levels."""
        bits = self.method.n_bits_x
        parts = self._checked(images).split(self._chunk)
        return self._of_parts(lambda part: self.flow(continuous(part, bits)).latents, parts)

    def decode(self, latents: NDArray[Any]) -> NDArray[np.float32]:
        """Images (n, c, h, w) in [0, 1] of latents (n, D)."""
        tensor = torch.from_numpy(np.array(latents, np.float32))
        size = int(np.prod(self.run.shape))
        if tensor.ndim != 2 or tensor.shape[1] != size:
            raise UnweaveError(f"latents must be (n, {size}); got {tuple(tensor.shape)}.")
        return self._of_parts(lambda part: self.method.images_of(self.flow, part), tensor.split(self._chunk))

    def sample(self, n: int, temperature: float = TEMPERATURE, seed: int | Stream = 0) -> NDArray[np.float32]:
        """Images of n latents from the prior, whose deviations are multiplied by the temperature."""
        count = whole_number(n, "n", 0)
        if not isinstance(temperature, int | float | np.number) or not 0 <= temperature < np.inf:
            raise UnweaveError(f"temperature must be a number >= 0; got {temperature!r}.")
        noise = Stream.of(seed).child("flow samples").normal(count, int(np.prod(self.run.shape)))
        return self.decode(temperature * noise)

    def bits_per_dimension(self, images: NDArray[Any], seed: int | Stream = 0) -> NDArray[np.float64]:
        """Bits per pixel and channel of each image, (n,), with uniform noise of the width of a grey level.

        Its mean is an upper bound of the bits of a code for such images with `n_bits_x` bits.
        """
        bits, parts = self.method.n_bits_x, self._checked(images).split(self._chunk)
        uniform, size = Stream.of(seed).child("dequantisation"), int(np.prod(self.run.shape))

        def noisy(number: int, part: Tensor) -> Tensor:
            drawn = uniform.skip(number * self._chunk).uniform(len(part), size)
            return continuous(part, bits, torch.from_numpy(drawn).float().view(part.shape))

        def bits_of(part: Tensor) -> Tensor:
            return self.method.bits_per_dimension(self.flow(part).log_density, part)

        drawn_parts = (noisy(number, part) for number, part in enumerate(parts))
        return self._of_parts(bits_of, drawn_parts).astype(np.float64)

    def attribute_directions(self, points: int = 2000, seed: int | Stream = 0) -> AttributeDirections:
        """The direction of each factor of the data, from so many drawn images with known factors."""
        truth = self.run.data
        if not isinstance(truth, GroundTruth):
            raise UnweaveError(f"attribute directions need images with known factors; {truth.name} has none.")
        stream = Stream.of(seed).child("attribute directions")
        factors = truth.sample_factors(whole_number(points, "points", 2), stream)
        latents = self.encode(truth.observe(factors, stream))
        varied = [column for column, factor in enumerate(truth.factors) if factor.size > 1]
        directions = [
            attribute_direction(latents, factors[:, column], truth.factors[column].size) for column in varied
        ]
        names = tuple(truth.factors[column].name for column in varied)
        return AttributeDirections(self, names, np.stack(directions))

    def _checked(self, given: NDArray[Any]) -> Tensor:
        array = np.array(given)
        if array.ndim != 4 or array.shape[1:] != self.run.shape:
            shape = ", ".join(map(str, self.run.shape))
            raise UnweaveError(f"images must be (n, {shape}); got {array.shape}.")
        if array.dtype == np.uint8:
            return torch.from_numpy(array)
        images = as_numbers(torch.from_numpy(array)).float()
        if len(images) and not (images.min() >= 0 and images.max() <= 1):
            raise UnweaveError(
                f"images must be uint8, or numbers in [0, 1]; these reach from {array.min():g} to "
                f"{array.max():g}."
            )
        return images

    @torch.no_grad()
    def _of_parts(self, function: Callable[[Tensor], Tensor], parts: Iterable[Tensor]) -> NDArray[np.float32]:
        return np.concatenate([function(part.to(self.run.device)[None])[0].cpu().numpy() for part in parts])

    @property
    def _chunk(self) -> int:
        return CHUNK.get(self.run.device.type, CHUNK["cpu"])


@final
@dataclass(frozen=True, eq=False)
class AttributeDirections:
    """One direction of the latents for each factor, (k, D).

    The function `codes` is an encoder for `unweave.evaluate`.
    """

    latents: FlowLatents
    names: tuple[str, ...]
    directions: NDArray[np.float64]

    def codes(self, images: NDArray[Any]) -> NDArray[np.float64]:
        """Where images are along each direction, (n, k), in multiples of its length."""
        squares = np.maximum(np.square(self.directions).sum(1), np.finfo(np.float64).tiny)
        return np.asarray(self.latents.encode(images) @ self.directions.T / squares)

    def moved(self, images: NDArray[Any], name: str, amount: float) -> NDArray[np.float32]:
        """Images (n, c, h, w) in [0, 1] after a move along the direction of one factor."""
        if name not in self.names:
            raise UnweaveError(f'there is no factor "{name}". {did_you_mean(name, self.names)}')
        direction = self.directions[self.names.index(name)]
        return self.latents.decode(self.latents.encode(images) + amount * direction)


def attribute_direction(latents: NDArray[Any], values: NDArray[Any], size: int) -> NDArray[np.float64]:
    """The mean of latents (n, D) of large values of a factor minus that of small ones; [1], section 5.

    Values are 0 to size - 1; large and small are the upper and the lower half of them.

    Differs from [1]: attributes there have two values.
    """
    large, small = values >= (size + 1) // 2, values < size // 2
    if not large.any() or not small.any():
        raise UnweaveError("a direction needs images with large and with small values. Use more points.")
    return np.asarray(latents[large].mean(0, dtype=np.float64) - latents[small].mean(0, dtype=np.float64))
