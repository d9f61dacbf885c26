"""`inversion`: how well the encoder of a GAN inverts its generator, on generated and on real images."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from unweave.errors import UnweaveError
from unweave.evaluation.intervals import mean_and_interval
from unweave.evaluation.opened_run import opened_run
from unweave.runs.run import Run
from unweave.streams import Stream

IMAGES = 2000

Floats = NDArray[np.float64]


@runtime_checkable
class KnowsPriorCodes(Protocol):
    """A method that generates images from codes of known distribution, and guesses codes by an encoder."""

    def prior_codes(self, networks: Mapping[str, nn.Module], numbers: Tensor) -> Tensor:
        """(P, B, D): codes of standard normal numbers."""


class Measured(NamedTuple):
    """A mean over images, and the ends of its 95% interval."""

    mean: float
    low: float
    high: float


@dataclass(frozen=True)
class Inversion:
    """How well an encoder inverts a generator; all errors are mean squared ones, lower is better.

    `codes` is the error of the codes of generated images, relative to their variance: 0 at best, and 1 for
    an encoder that always says the mean. `generated` is the error of pixels, from 0 to 1, of generated images
    that are encoded and decoded, and `real` that of images of the data. `mean_generated` and `mean_real` are
    the errors of the mean image. All are of `images` images.
    """

    subject: str
    data: str
    images: int
    codes: Measured
    generated: Measured
    real: Measured
    mean_generated: Measured
    mean_real: Measured

    @property
    def real_share(self) -> float:
        """The error of real images relative to that of their mean: below 1 if codes know about the image."""
        return self.real.mean / self.mean_real.mean

    def __str__(self) -> str:
        lines = [f"{'inversion':22} {'error':>9}  95% interval, {self.images:,} images"]
        for name, measured in (
            ("codes, generated", self.codes),
            ("pixels, generated", self.generated),
            ("  of the mean image", self.mean_generated),
            ("pixels, real", self.real),
            ("  of the mean image", self.mean_real),
        ):
            lines.append(f"{name:22} {measured.mean:9.4f}  {measured.low:.4f} to {measured.high:.4f}")
        return "\n".join(lines)


def inversion(run: Run | str | Path, *, images: int = IMAGES, seed: int | Stream = 0) -> Inversion:
    """Measure how well the encoder of a run of `style_gan2`, or of that in a folder, inverts its generator.

    `images` images are generated, without noise, and as many are drawn from the data. The encoder was trained
    on generated images only, so a larger error on real ones says how far these are from generated ones.
    """
    run = opened_run(run, "inversion")
    method = run.spec.method
    if not isinstance(method, KnowsPriorCodes):
        raise UnweaveError(
            f"{method.name} has no encoder that was trained on generated images. Use a run of style_gan2."
        )
    if isinstance(images, bool) or not isinstance(images, int | np.integer) or images < 2:
        raise UnweaveError(f"images must be a whole number >= 2; got {images!r}.")
    stream = Stream.of(seed).child("inversion")
    numbers = torch.from_numpy(stream.normal(int(images), run.spec.latents)).float().to(run.device)
    with torch.no_grad():
        codes = method.prior_codes(run.networks, numbers[None])[0].cpu().numpy()
    generated = run.decode(codes)
    real = run.data.sample_images(int(images), stream).astype(np.float32) / 255
    spread = float(np.square(codes - codes.mean(axis=0)).mean())
    return Inversion(
        str(run.path),
        run.data.name,
        int(images),
        _measured(np.square(run.encode(generated) - codes).mean(axis=1) / spread),
        _measured(_errors(run.decode(run.encode(generated)), generated)),
        _measured(_errors(run.reconstruct(real), real)),
        _measured(_errors(generated.mean(axis=0), generated)),
        _measured(_errors(real.mean(axis=0), real)),
    )


def _errors(made: NDArray[Any], images: NDArray[Any]) -> Floats:
    """(n,): mean squared differences of pixels."""
    return np.asarray(np.square(made.astype(np.float64) - images).mean(axis=(1, 2, 3)))


def _measured(errors: NDArray[Any]) -> Measured:
    return Measured(*mean_and_interval(errors.astype(np.float64).tolist(), (0.0, np.inf)))
