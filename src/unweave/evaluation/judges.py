"""Judges: networks that read the factors off images, to see what decoded images show.

A judge is trained on images of the data set with their factors, once for each data set, and kept in the cache
folder. Half of its images are blurred, as decoded images are.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from safetensors import safe_open
from safetensors.torch import save
from torch import Tensor

from unweave.data.cache import fingerprint
from unweave.data.grid import GroundTruth
from unweave.files import write_bytes
from unweave.locks import hold
from unweave.nn.networks.architectures import ARCHITECTURES
from unweave.nn.networks.vae import Encoder
from unweave.places import cache_folder
from unweave.progress import Progress
from unweave.streams import Stream
from unweave.training.trainer import pick_device

RULE = 1  # counts up when a judge of the same data is trained in another way
STEPS = 4000
BATCH = 64
RATE = 1e-3  # of Adam; it falls linearly to 0
TESTED = 5000  # images that the accuracy is measured on
CHUNK = 500
# Of these the first that takes images of the data's shape.
SHAPED = ("released", "resnet", "mlp")


@dataclass(frozen=True, eq=False)
class ImageJudge:
    """A network, the sizes of the factors that it reads, and its accuracy on images of the data, (k,)."""

    network: Encoder
    sizes: tuple[int, ...]
    accuracy: NDArray[np.float64]

    def read(self, images: NDArray[Any]) -> NDArray[np.int64]:
        """The factors (n, k) of images (n, c, h, w) of bytes or of numbers in [0, 1]."""

        def values(batch: Tensor) -> Tensor:
            parts = _logits(self.network, batch).split(self.sizes, -1)
            return torch.stack([part.argmax(-1) for part in parts], -1)

        return self._in_parts(values, images)

    def features(self, images: NDArray[Any]) -> NDArray[np.float32]:
        """The features (n, width) of such images in the last hidden layer."""
        return self._in_parts(lambda batch: self.network.features(batch[None])[0], images)

    def _in_parts(self, function: Callable[[Tensor], Tensor], images: NDArray[Any]) -> NDArray[Any]:
        device = next(self.network.parameters()).device
        parts = []
        for start in range(0, len(images), CHUNK):
            batch = torch.from_numpy(np.ascontiguousarray(images[start : start + CHUNK])).to(device)
            with torch.no_grad():
                parts.append(function(_numbers(batch)).cpu().numpy())
        return np.concatenate(parts)


@dataclass(frozen=True, eq=False)
class DecodedJudge:
    """Reads the factors off the images that a decoder makes of codes."""

    decode: Callable[[NDArray[Any]], NDArray[Any]]
    judge: ImageJudge
    columns: NDArray[np.int64]  # the factors that are asked for

    @property
    def accuracy(self) -> NDArray[np.float64]:
        """The accuracy on images of the data set, (k,)."""
        return self.judge.accuracy[self.columns]

    def __call__(self, codes: NDArray[Any]) -> NDArray[np.int64]:
        """The factors (n, k) that images decoded from codes (n, d) show."""
        return self.judge.read(self.decode(codes.astype(np.float32)))[:, self.columns]


def judge_of(truth: GroundTruth, steps: int | None = None, progress: Progress | None = None) -> ImageJudge:
    """The judge of a data set, from the cache folder; it is trained if it is not there."""
    steps = steps or STEPS
    truth = replace(truth, weight=None)  # restricted draws share the judge of all combinations
    key = fingerprint(f"{truth.source} {truth.sizes} {truth.shape} rule {RULE} steps {steps}")
    path = cache_folder() / "judges" / f"{key}.safetensors"
    with hold(path):
        if not path.exists():
            _train(truth, path, steps, progress)
    device = pick_device("auto")
    network = _network(truth)
    with safe_open(path, "pt") as file:
        network.load_state_dict({name: file.get_tensor(name) for name in file.keys()})  # noqa: SIM118
        accuracy = json.loads(file.metadata()["accuracy"])
    return ImageJudge(network.to(device), truth.sizes, np.asarray(accuracy))


def _train(truth: GroundTruth, path: Path, steps: int, progress: Progress | None) -> None:
    device, stream = pick_device("auto"), Stream.of(0).child("judge")
    network = _network(truth).to(device)
    optimiser = torch.optim.Adam(network.parameters(), lr=RATE)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimiser, lambda step: 1 - step / steps)
    for step in range(steps):
        draws = stream.child("step", step)
        factors = truth.sample_factors(BATCH, draws)
        images = _numbers(torch.from_numpy(truth.observe(factors, draws)).to(device))
        blur = torch.from_numpy(draws.child("blur").uniform(BATCH, 1).astype(np.float32)).to(device)
        logits = _logits(network, _blurred(images, 2 * blur - 1))
        labels = torch.from_numpy(factors).to(device)
        parts = zip(logits.split(truth.sizes, -1), labels.T, strict=True)
        loss = torch.stack([F.cross_entropy(part, label) for part, label in parts]).sum()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        schedule.step()
        if progress is not None and (step + 1) % 100 == 0:
            progress(step + 1, steps, "training a judge of images")
    accuracy = _accuracy(ImageJudge(network, truth.sizes, np.zeros(0)), truth, stream.child("test"))
    weights = {name: value.cpu().contiguous() for name, value in network.state_dict().items()}
    write_bytes(path, save(weights, {"accuracy": json.dumps(accuracy.tolist())}))


def _accuracy(judge: ImageJudge, truth: GroundTruth, stream: Stream) -> NDArray[np.float64]:
    factors = truth.sample_factors(TESTED, stream)
    return np.asarray((judge.read(truth.observe(factors, stream)) == factors).mean(axis=0))


def _network(truth: GroundTruth) -> Encoder:
    """An encoder whose means are the logits of all values of all factors."""
    name = next(name for name in SHAPED if ARCHITECTURES[name].sizes.accepts(truth.shape))
    streams = [Stream.of(0).child("judge weights")]
    return ARCHITECTURES[name].encoder(streams, truth.shape, sum(truth.sizes))


def _logits(network: Encoder, images: Tensor) -> Tensor:
    return network.encode(images[None]).mean[0]


def _numbers(images: Tensor) -> Tensor:
    return images.float() / 255 if images.dtype == torch.uint8 else images.float()


def _blurred(images: Tensor, share: Tensor) -> Tensor:
    """Images mixed with their means over 5 x 5 pixels; a share (n, 1) below 0 leaves an image sharp."""
    soft = F.avg_pool2d(images, 5, stride=1, padding=2, count_include_pad=False)
    return torch.lerp(images, soft, share.clamp(min=0)[:, :, None, None])
