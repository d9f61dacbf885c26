"""Tiny data of classes and positions, small networks, and a probe of both parts of a code."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import unweave
from unweave.data.grid import Card, Factor, Factors, GroundTruth, Images
from unweave.methods.method import Method
from unweave.nn.networks.architectures import ARCHITECTURES, Architecture
from unweave.nn.networks.published import Plan, PublishedDecoder, PublishedEncoder
from unweave.runs.run import Run
from unweave.streams import Stream

FACTORS = (Factor("x", 4), Factor("y", 4), Factor("shape", 3, "categorical"))
NEIGHBOURS = 3
SMALL = Plan(convolutions=(), encoder=(64, 64), decoder=(64, 64), decoder_activation="relu", transposed=())


def _render(factors: Factors, _stream: Stream) -> Images:
    """A horizontal bar, a vertical bar or a square at one of 4 x 4 places."""
    shapes = np.zeros((3, 10, 10), np.uint8)
    shapes[0, 3:7] = shapes[1, :, 3:7] = shapes[2, 1:9, 1:9] = 255
    images = np.zeros((len(factors), 1, 16, 16), np.uint8)
    for image, (x, y, shape) in zip(images[:, 0], factors, strict=True):
        image[2 * y : 2 * y + 10, 2 * x : 2 * x + 10] = shapes[shape]
    return images


MARKS = GroundTruth("marks", FACTORS, (1, 16, 16), _render, Card("marks", "none", ""), "made up", binary=True)


@pytest.fixture
def small_networks(monkeypatch: pytest.MonkeyPatch) -> None:
    """An architecture "small" of dense layers, which trains in seconds."""
    use_small_networks(monkeypatch)


def use_small_networks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Add the architecture "small" for the time of a test."""
    builders = partial(PublishedEncoder, plan=SMALL), partial(PublishedDecoder, plan=SMALL)
    monkeypatch.setitem(ARCHITECTURES, "small", Architecture("small", "", *builders))


def trained(method: Method, folder: Path, **settings: Any) -> Run:
    """A run of 300 steps on the marks with the small networks and 4 latents.

    Learning rates are higher than by default, because a test has few steps.
    """
    fields: dict[str, Any] = {"architecture": "small", "batch": 16, "latents": 4, "seed": 0, "steps": 300}
    fields |= settings
    return unweave.train(method, MARKS, out=folder, device="cpu", progress=False, **fields)


def knowledge(codes: NDArray[np.floating[Any]]) -> dict[str, float]:
    """How often 3 nearest neighbours predict each factor of all 48 images, leaving out the image itself.

    An uninformative code is right in 1/4, 1/4 and 1/3 of the cases or less.
    """
    factors = MARKS.factors_at(np.arange(len(MARKS)))
    distances = np.square(codes[:, None] - codes).sum(-1)
    np.fill_diagonal(distances, np.inf)
    nearest = np.argsort(distances, axis=1, kind="stable")[:, :NEIGHBOURS]
    correct = {}
    for j, factor in enumerate(FACTORS):
        votes = [np.bincount(row, minlength=factor.size).argmax() for row in factors[nearest, j]]
        correct[factor.name] = float(np.mean(votes == factors[:, j]))
    return correct


def parts(run: Run) -> tuple[dict[str, float], dict[str, float]]:
    """What the first and the second part of the code know of each factor."""
    codes = np.asarray(run.encode(MARKS.observe(MARKS.factors_at(np.arange(len(MARKS))))))
    first = run.spec.method.content_dimensions(codes.shape[1])
    return knowledge(codes[:, :first]), knowledge(codes[:, first:])


def check_parts(run: Run, most_place: float, most_class: float) -> None:
    """The first part knows the class and not the place, the second the place and not the class.

    The limits are accuracies of the first part for a place, and of the second part for the class.
    """
    first, second = parts(run)
    assert first["shape"] > 0.9, first
    assert max(first["x"], first["y"]) < most_place, first
    assert second["shape"] < most_class, second
    assert second["x"] + second["y"] > 0.9, second


def check_swaps(run: Run) -> None:
    """Swapped images show the class of the one and the place of the other."""
    shape, place = swaps(run)
    assert shape > 0.7, shape
    assert place > 0.4, f"{place}; by chance 1/16"


def swaps(run: Run) -> tuple[float, float]:
    """How often a swap shows the class of the first image, and the place of the second one.

    The decoded images have the first part of one code and the second part of another, of the image half the
    data set further on. What they show is that of the nearest image.
    """
    factors = MARKS.factors_at(Stream.of(0).permutations(1, len(MARKS))[0])
    images = MARKS.observe(factors)
    codes = np.asarray(run.encode(images))
    first, others = run.spec.method.content_dimensions(codes.shape[1]), np.roll(factors, 24, axis=0)
    mixed = np.concatenate([codes[:, :first], np.roll(codes[:, first:], 24, axis=0)], axis=1)
    decoded = np.asarray(run.decode(mixed)).reshape(len(MARKS), -1)
    known = images.reshape(len(MARKS), -1) / 255
    shown = factors[np.square(decoded[:, None] - known).sum(-1).argmin(1)]
    places = (shown[:, :2] == others[:, :2]).all(1)
    return float(np.mean(shown[:, 2] == factors[:, 2])), float(np.mean(places))
