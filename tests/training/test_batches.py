"""Batches: the bytes that a ground truth gives for the run's stream, whoever draws them."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from training.tiny import TINY
from unweave.data import Card, Collection, Factor, GroundTruth, from_arrays, variants
from unweave.data.grid import Factors, Images
from unweave.data.sets import dsprites
from unweave.data.supervision.restrict import hold_out
from unweave.errors import UnweaveError
from unweave.methods.sampling import Images as SingleImages
from unweave.nn.draws import PopulationDraws
from unweave.streams import Stream
from unweave.training import batches, image_tables
from unweave.training.batches import Batches, Data, HostBatches, ResidentBatches, batches_of

CPU = torch.device("cpu")
DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
SEEDS = (3, 4, 1_000_003)
PICTURE = Stream.of(5).bytes(80, 90 * 3).reshape(80, 90, 3)

SINGLE = SingleImages()


def _sprites() -> GroundTruth:
    """A part of dSprites that is quickly tabled: every fifth or tenth value."""
    whole = dsprites.rendered()
    every = np.array([1, 5, 10, 10, 10])
    factors = tuple(
        replace(f, size=-(-f.size // e), labels=None, period=None)
        for f, e in zip(whole.factors, every, strict=True)
    )

    def render(wanted: Factors, stream: Stream) -> Images:
        return whole.render(wanted * every, stream)

    return replace(whole, factors=factors, render=render, source="a part")


def _bytes(name: str, shape: tuple[int, int, int]) -> GroundTruth:
    """Images of random bytes, one for each of 7 x 4 values of two factors."""
    table = Stream.of(1).bytes(28, int(np.prod(shape))).reshape(28, *shape)

    def render(wanted: Factors, _stream: Stream) -> Images:
        return np.asarray(table[4 * wanted[:, 0] + wanted[:, 1]])

    return GroundTruth(
        name, (Factor("a/b", 7), Factor("c", 4)), shape, render, Card(name, "none", ""), "made up"
    )


SPRITES, GREY, COLOURED = _sprites(), _bytes("grey", (1, 16, 20)), _bytes("coloured", (3, 5, 7))
HIDDEN = variants.hide(variants.hide(SPRITES, ["x", "shape"], "one"), ["scale"], "two")
TRUTHS = {
    "sprites": SPRITES,
    "colour": variants.colour(SPRITES, "colour"),
    "noise": variants.noise(SPRITES, "noise"),
    "scream": variants.scream(SPRITES, "scream", PICTURE, "made up"),
    "hidden": HIDDEN,
    "hidden, then noise": variants.noise(HIDDEN, "both"),
    "colour, then hidden": variants.hide(variants.colour(SPRITES, "colour"), ["y"], "both"),
    "coloured": COLOURED,
    "coloured, hidden": variants.hide(COLOURED, ["a/b"], "c"),
    "grey, colour": variants.colour(GREY, "colour"),
    "grey, noise": variants.noise(GREY, "noise"),
    "grey, scream": variants.scream(GREY, "scream", PICTURE, "made up"),
    "odd, noise": variants.noise(_bytes("odd", (1, 5, 7)), "noise"),
}


def _collection() -> Collection:
    data = from_arrays(PICTURE.reshape(80, 9, 10, 3))
    assert isinstance(data, Collection)
    return data


def draws(step: int) -> PopulationDraws:
    return PopulationDraws([Stream.of(seed) for seed in SEEDS], torch.tensor(step, device=DEVICE))


def expected(truth: GroundTruth, step: int, purpose: str, size: int) -> np.ndarray:
    streams = [Stream.of(seed).child(purpose).at(step) for seed in SEEDS]
    return np.stack([truth.observe(truth.sample_factors(size, stream), stream) for stream in streams])


@pytest.mark.parametrize("name", TRUTHS)
@pytest.mark.parametrize("way", ["resident", "host"])
def test_batches_are_what_the_ground_truth_gives(name: str, way: str) -> None:
    truth = TRUTHS[name]
    source: Batches = ResidentBatches(truth, DEVICE) if way == "resident" else HostBatches(truth, DEVICE)
    for step, purpose, size in ((0, "batch", 1), (1, "other batch", 13), (299_999, "batch", 8)):
        images = source.draw(draws(step), step, purpose, size, SINGLE).images
        assert images.dtype == torch.uint8
        assert images.permute(0, 1, 3, 4, 2).is_contiguous(), "channels-last"
        np.testing.assert_array_equal(images.cpu().numpy(), expected(truth, step, purpose, size))


def test_parts_of_a_population_draw_their_own() -> None:
    source = ResidentBatches(TRUTHS["scream"], DEVICE)
    whole = source.draw(draws(7), 7, "batch", 5, SINGLE).images
    assert torch.equal(source.draw(draws(7).of_runs(1, 3), 7, "batch", 5, SINGLE).images, whole[1:])
    assert not torch.equal(whole[0], whole[1])


def test_collections_are_drawn_on_the_host() -> None:
    collection = _collection()
    images = HostBatches(collection, CPU).draw(draws(2), 2, "batch", 5, SINGLE).images
    for run, seed in enumerate(SEEDS):
        rows = collection.sample_index(5, Stream.of(seed).child("batch").at(2))
        np.testing.assert_array_equal(images[run].cpu().numpy(), collection.images_at(rows))


def test_what_becomes_resident(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches, "ResidentBatches", lambda *_: None)
    room = 3 * 2 * 4 * 4 * 4 * 64 * 64 // 8  # bytes of the part of dSprites, as bits
    monkeypatch.setattr(image_tables, "free_memory", lambda _: 2 * room)  # of which half may be taken
    cuda = torch.device("cuda")

    def resident(data: Data, device: torch.device = cuda) -> bool:
        return not isinstance(batches_of(data, device), HostBatches)

    assert [name for name in TRUTHS if not resident(TRUTHS[name])] == []
    assert not resident(SPRITES, CPU)
    assert not resident(_collection())
    assert resident(hold_out(TRUTHS["colour"], [{"shape": 0}]))
    assert not resident(replace(SPRITES, stochastic=True)), "what it draws is not known"
    room -= 1
    assert not resident(TRUTHS["noise"]), "too large"


def test_what_draws_in_its_own_way_is_not_tabled() -> None:
    with pytest.raises(UnweaveError, match="its images cannot be tabled"):
        ResidentBatches(replace(TINY, stochastic=True), CPU)
