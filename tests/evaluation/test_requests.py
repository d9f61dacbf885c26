"""What a metric may ask for: every word of `needs`, also in metrics from outside the package."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
from numpy.typing import NDArray

import unweave
from unweave.data import from_arrays
from unweave.data.grid import Card, Factor, GroundTruth
from unweave.errors import UnweaveError
from unweave.evaluation.requests import REQUESTS
from unweave.metrics.metric import Metric, compute
from unweave.metrics.requests import INPUTS, Needs
from unweave.streams import Stream

POINTS = (40, 20)
FACTORS = np.stack(np.meshgrid(*map(np.arange, (3, 4, 5)), indexing="ij"), axis=-1).reshape(-1, 3)
# The first three pixels of an image are its factors.
IMAGES = np.zeros((60, 1, 32, 32), np.uint8)
IMAGES[:, 0, 0, :3] = FACTORS


def brightness(codes: NDArray[Any], factors: NDArray[Any], images: NDArray[np.uint8]) -> float:
    """Share of the images whose first pixels are their factors, if codes and images have as many rows."""
    assert len(codes) == len(images)
    return float((images[:, 0, 0, :3] == factors).all(axis=1).mean())


def content_share(codes: NDArray[Any], factors: NDArray[Any], blocks: Mapping[str, Sequence[int]]) -> float:
    """Share of the codes that are content."""
    assert len(codes) == len(factors)
    return len(blocks["content"]) / int(codes.shape[1])


PICTURES = Metric("brightness", brightness, "brightness", "images", "Do images show the factors?", "")
BLOCKS = Metric("content_share", content_share, "content_share", "blocks", "How many codes are content?", "")


def train(method: Any, tmp_path: Path) -> unweave.Run:
    data = from_arrays(IMAGES, FACTORS, name="pixels")
    return unweave.train(method, data, out=tmp_path, steps=2, batch=4, latents=4, device="cpu")


def test_every_word_has_inputs_and_a_request() -> None:
    assert set(INPUTS) == set(REQUESTS) == set(get_args(Needs))


def test_metrics_from_outside_get_images_and_blocks_of_a_run(tmp_path: Path) -> None:
    run = train(unweave.methods.GVAE(), tmp_path)
    content = run.spec.method.content_dimensions(4)
    assert 0 < content < 4
    scores = unweave.evaluate(run, metrics=[PICTURES, BLOCKS, "mig"], points=POINTS, repeats=2)
    assert scores["brightness"] == 1.0
    assert scores["content_share"] == content / 4
    assert scores.score("brightness").low == 1.0
    assert scores["mig"] == unweave.evaluate(run, metrics="mig", points=POINTS)["mig"]


def test_a_run_without_blocks_takes_those_that_are_given(tmp_path: Path) -> None:
    run = train(unweave.methods.VAE(), tmp_path)
    with pytest.raises(UnweaveError, match="content_share cannot be measured here: it needs blocks of codes"):
        unweave.evaluate(run, metrics=BLOCKS, points=POINTS)
    blocks: dict[str, Any] = {"content": np.array([0, 3]), "style": range(1, 2)}
    assert unweave.evaluate(run, metrics=BLOCKS, points=POINTS, blocks=blocks)["content_share"] == 0.5


def test_rows_of_collections_have_images_and_arrays_have_none() -> None:
    rows = from_arrays(IMAGES, FACTORS, grid=False)
    scores = unweave.evaluate(lambda x: x.reshape(len(x), -1)[:, :4], data=rows, metrics=[PICTURES])
    assert scores["brightness"] == 1.0
    with pytest.raises(UnweaveError, match="brightness cannot be measured here: it needs images: evaluate a"):
        unweave.evaluate(FACTORS * 0.1, FACTORS, metrics=[PICTURES])


@pytest.mark.parametrize("kind", ["mean", "sampled"])
def test_images_that_are_drawn_at_random_are_those_that_were_encoded(kind: str) -> None:
    def same(codes: NDArray[Any], factors: NDArray[Any], images: NDArray[np.uint8]) -> float:
        return float(np.abs(images.reshape(len(images), -1)[:, :2] / np.float32(255) - codes).max())

    metric = Metric("same", same, "same", "images", "Are codes and images of the same points?", "")

    def encode(images: NDArray[np.float32]) -> tuple[NDArray[Any], NDArray[Any]]:
        flat = images.reshape(len(images), -1)[:, :2]
        return flat, np.full(flat.shape, -np.float32(80))

    scores = unweave.evaluate(
        encode, data=stochastic_data(), metrics=metric, points=(3000, 10), representation=kind
    )
    assert scores["same"] < 1e-6


def stochastic_data() -> GroundTruth:
    def render(factors: NDArray[np.int64], stream: Stream) -> NDArray[np.uint8]:
        return stream.integers(len(factors), [256] * 4).astype(np.uint8).reshape(-1, 1, 2, 2)

    factors = (Factor("a", 3), Factor("b", 4))
    return GroundTruth(
        "noise", factors, (1, 2, 2), render, Card("noise", "CC0-1.0", ""), "drawn", stochastic=True
    )


def test_a_wrong_word_is_named_with_the_words_there_are() -> None:
    with pytest.raises(UnweaveError) as caught:
        Metric("mine", brightness, "mine", "pixels", "", "")  # type: ignore[arg-type]
    words = ", ".join(get_args(Needs))
    assert str(caught.value) == (
        f"a metric needs one of {words}; mine says needs='pixels'. Use one of these words."
    )


@pytest.mark.parametrize(
    "blocks", [3, {"content": 1}, {"content": []}, {"content": [0.5]}, {"content": [-1]}, {"content": ["a"]}]
)
def test_wrong_blocks_are_refused(blocks: Any) -> None:
    with pytest.raises(UnweaveError, match="blocks must name the codes of each block, such as"):
        unweave.evaluate(FACTORS * 0.1, FACTORS, metrics=BLOCKS, blocks=blocks)


def test_blocks_beyond_the_codes_are_refused() -> None:
    with pytest.raises(UnweaveError, match=r'codes from 0 to 2; block "content" has 3\.'):
        unweave.evaluate(FACTORS * 0.1, FACTORS, metrics=BLOCKS, blocks={"content": [3]})


def test_what_a_metric_lacks_is_named() -> None:
    with pytest.raises(UnweaveError, match="needs codes and factors and blocks; blocks was not given"):
        compute(BLOCKS, FACTORS, FACTORS)
