"""How long the runs of a study are measured here: its metrics on made-up codes, and the images they ask for.

Neither takes longer or shorter for what a network has learned, so nothing has to be trained for it.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray

from unweave.data import GroundTruth
from unweave.data.grid import Factors, Images
from unweave.evaluation.device_encoder import can_make_images
from unweave.evaluation.encoders import Posterior
from unweave.evaluation.evaluate import Effort, measure_source
from unweave.evaluation.generalisation import generalisation
from unweave.evaluation.likelihoods import CHUNK
from unweave.evaluation.parts import parts_to_measure
from unweave.evaluation.sources import GroundTruthSource
from unweave.methods.method import Blueprint
from unweave.metrics.lookup import metrics_named
from unweave.runs.run import CHUNK as AT_ONCE
from unweave.runs.spec import RunSpec
from unweave.streams import Stream
from unweave.study.measure import torch_threads
from unweave.study.spec import StudySpec
from unweave.training.batches import HostBatches

SECONDS = 1.0  # in which images are encoded
FEW = (300, 150)  # points for a first evaluation, which compiles what has to be compiled


@dataclass(frozen=True)
class EvaluationTime:
    """Seconds that runs take: of one process that measures, and of the GPU where that encodes for it."""

    seconds: float = 0.0
    gpu: float = 0.0


def evaluation_time(
    spec: StudySpec,
    runs: Sequence[RunSpec],
    data: Mapping[str, GroundTruth],
    device: torch.device,
    jobs: int = 1,
) -> EvaluationTime:
    """What measuring these runs takes, from one evaluation of made-up codes and some seconds of encoding.

    As in a study, a GPU encodes. Images of a grid are made once for many runs, those of stochastic data for
    each run: by the GPU, or by the cores if their table does not fit there. Without a GPU, `jobs` threads
    encode. They also measure, `jobs` metrics at a time.
    """
    metrics, asked = metrics_time(spec, data[runs[0].data], runs[0].latents, jobs)
    holding_out = [name for name in data if "held_out" in parts_to_measure(name, spec.on)][:1]
    comparing = sum(generalisation_time(spec, data[name], runs[0].latents) for name in holding_out)
    total, gpu = 0.0, 0.0
    for name, truth in data.items():
        alike = [run for run in runs if run.data == name]
        if not alike:
            continue
        parts = parts_to_measure(name, spec.on)
        kinds = len(spec.representations) * len(parts)
        # Codes of images that are drawn at random are kept for the other representation.
        images = len(parts) * asked if truth.stochastic else min(kinds * asked, len(truth))
        total += len(alike) * kinds * metrics
        if "held_out" in parts:
            total += len(alike) * comparing
        encoding = encoding_time(alike[0], truth, device, jobs)
        if device.type == "cuda":
            gpu += len(alike) * images * encoding
            if truth.stochastic and not can_make_images(truth, device):
                total += len(alike) * images * making_time(truth)
        else:
            total += len(alike) * images * (making_time(truth) + encoding)
    return EvaluationTime(total, gpu)


def metrics_time(spec: StudySpec, truth: GroundTruth, latents: int, jobs: int = 1) -> tuple[float, int]:
    """Seconds for the metrics of one representation, `jobs` at a time, and the images that they ask for."""
    metrics, points = metrics_named(spec.metrics), spec.points
    mixing = Stream.of(0).normal(len(truth.factors), latents)

    def render(factors: Factors, _stream: Stream) -> Images:
        return factors[:, None, None].astype(np.uint8)

    def encode(images: NDArray[np.uint8]) -> Posterior:
        codes = images[:, 0, 0] @ mixing
        return Posterior(codes, np.zeros_like(codes))

    def losses(images: NDArray[np.uint8], _codes: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.zeros(len(images))

    # Images that are their own factors: nothing is drawn, and each look at one is counted.
    pretended = replace(truth, shape=(1, 1, len(truth.factors)), render=render, stochastic=True, binary=False)
    for size in (tuple(map(min, FEW, points)), points):
        source = GroundTruthSource(encode, pretended, losses)
        start, effort = time.perf_counter(), Effort((size[0], size[1]), jobs=jobs)
        scores = measure_source(source, metrics, "mean", effort, "made-up codes")
        taken = time.perf_counter() - start
    return taken - scores.seconds["encoding"], scores.images


def generalisation_time(spec: StudySpec, truth: GroundTruth, latents: int) -> float:
    """Seconds of `generalisation`, with codes that are mixtures of the pixels."""
    mixing = Stream.of(0).normal(math.prod(truth.shape), latents)

    def encode(images: NDArray[np.uint8]) -> NDArray[np.float64]:
        return images.reshape(len(images), -1) / 255 @ mixing

    start = time.perf_counter()
    generalisation(encode, data=truth, points=spec.points, seed=spec.seed)
    return time.perf_counter() - start


def encoding_time(run: RunSpec, truth: GroundTruth, device: torch.device, threads: int = 1) -> float:
    """Seconds that a GPU, or so many threads, take to encode an image, as many at a time as a run does."""
    sizes = HostBatches(truth, device).label_sizes(run.method.sampling)
    plan = Blueprint([Stream.of(0)], truth.shape, run.latents, run.architecture, sizes, run.likelihood)
    networks = {name: network.to(device) for name, network in run.method.networks(plan).items()}
    factors, done = truth.sample_factors(CHUNK, 0), 0
    images = torch.from_numpy(truth.observe(factors, 0)).to(device)
    parts = images.split(AT_ONCE.get(device.type, CHUNK))
    with torch.no_grad(), torch_threads(threads):
        run.method.encode(networks, parts[0][None]).mean.cpu()
        start = time.perf_counter()
        while time.perf_counter() - start < SECONDS:
            for part in parts:
                run.method.encode(networks, part[None]).mean.cpu()
            done += CHUNK
    return (time.perf_counter() - start) / done


def making_time(truth: GroundTruth) -> float:
    """Seconds that a core takes to make an image."""
    factors, done = truth.sample_factors(CHUNK, 0), 0
    truth.observe(factors, 0)  # compiles what has to be compiled
    start = time.perf_counter()
    while time.perf_counter() - start < SECONDS / 4:
        truth.observe(factors, done)
        done += CHUNK
    return (time.perf_counter() - start) / done
