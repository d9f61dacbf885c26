"""The codes that runs are compared by: all runs encode the same images, once.

Each run's folder keeps its mean codes and their KL divergences in codes-N.safetensors, N the number of images
(160 kB for 4,000 images and ten codes): encoding that was stopped goes on, and a further run adds its own.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from unweave.errors import UnweaveError
from unweave.evaluation.encoders import Posterior, encoder_of
from unweave.progress import Progress
from unweave.runs.run import Run
from unweave.runs.store import read_tensors, write_tensors
from unweave.selection.candidates import Candidate, Candidates
from unweave.streams import Stream
from unweave.training.batches import Data

IMAGES = 4000
LEAST_IMAGES = 100
CHUNK = 1000  # images that are drawn at once


@dataclass(frozen=True, eq=False)
class Codes:
    """Mean codes (n, d) of the images, and the mean KL divergence of each code from the prior, (d,)."""

    mean: NDArray[Any]
    kl: NDArray[Any]

    def digest(self, run: str) -> str:
        """A name made of the content and of the run's id, so that other codes have another one."""
        content = run.encode() + self.mean.tobytes() + self.kl.tobytes()
        return hashlib.blake2b(content, digest_size=8).hexdigest()


def codes_of(
    candidates: Candidates,
    images: int = IMAGES,
    device: str = "auto",
    data_root: Path | None = None,
    tell: Progress | None = None,
    place: str | Path | None = None,
) -> tuple[Candidates, list[Codes]]:
    """The runs that can be encoded, and the codes of each.

    Codes that are not in a run's folder are made and put there. A run whose weights cannot be used, or whose
    codes are not finite, is left out and noted.

    `place` is where the runs' own data lies now, if it has moved.
    """
    if images < LEAST_IMAGES:
        raise UnweaveError(f"runs are compared on {LEAST_IMAGES} images or more; got {images}.")
    drawn: NDArray[np.uint8] | None = None
    usable: list[tuple[Candidate, Codes]] = []
    notes: list[str] = []
    for i, candidate in enumerate(candidates.runs):
        codes = _stored_codes(candidate, images)
        if codes is None:
            run = candidate.attempt(partial(Run, candidate.folder, device, place, data_root), notes)
            if run is None:
                continue
            if drawn is None:
                drawn = drawn_images(run.data, images)
            codes = candidate.attempt(partial(encoded, run, drawn), notes)
            if codes is None:
                continue
            tensors = {"mean": torch.from_numpy(codes.mean), "kl": torch.from_numpy(codes.kl)}
            write_tensors(_path(candidate, images), tensors)
        usable.append((candidate, codes))
        if tell:
            tell(i + 1, len(candidates.runs), "encoding")
    if not usable:
        raise UnweaveError(f"no run in {candidates.path} can be encoded. {' '.join(notes)}")
    runs = tuple(candidate for candidate, _ in usable)
    left = replace(candidates, runs=runs, notes=(*candidates.notes, *notes))
    return left, [codes for _, codes in usable]


def drawn_images(data: Data, images: int) -> NDArray[np.uint8]:
    """The images that all runs on some data encode, (n, c, h, w), drawn as in training."""
    stream = Stream.of(0).child("selection")
    starts = range(0, images, CHUNK)
    return np.concatenate([data.sample_images(min(CHUNK, images - i), stream.skip(i)) for i in starts])


def encoded(run: Run, images: NDArray[np.uint8]) -> Codes:
    """The codes of a run.

    A run whose codes are not drawn from q(z|x), such as a plain autoencoder, has no KL divergence: its
    variances were never trained. All of its codes count.
    """
    posterior = encoder_of(run)(images)
    mean = np.ascontiguousarray(posterior.mean, np.float32)
    if posterior.log_var is None or not run.spec.method.has_divergence:
        return Codes(mean, np.ones(mean.shape[1], np.float32))
    return Codes(mean, mean_kl(posterior).astype(np.float32))


def mean_kl(posterior: Posterior) -> NDArray[np.float64]:
    """KL(q(z_j|x) || N(0, 1)) of each code, mean over the images, (d,)."""
    mean, log_var = (np.asarray(part, np.float64) for part in posterior)
    return np.asarray(0.5 * (mean**2 + np.exp(log_var) - log_var - 1).mean(axis=0))


def _path(candidate: Candidate, images: int) -> Path:
    return candidate.folder.path / f"codes-{images}.safetensors"


def _stored_codes(candidate: Candidate, images: int) -> Codes | None:
    path = _path(candidate, images)
    if not path.exists():
        return None
    tensors = read_tensors(path)
    wanted = {"mean": (images, candidate.spec.latents), "kl": (candidate.spec.latents,)}
    if {name: tuple(tensor.shape) for name, tensor in tensors.items()} != wanted:
        raise UnweaveError(f"{path} has no codes of {images:,} images. Delete it to compute them again.")
    return Codes(tensors["mean"].numpy(), tensors["kl"].numpy())
