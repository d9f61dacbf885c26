"""The Triton kernel of image batches: the same bytes as plain operations, on random shapes."""

import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st

from nn.triton_device import DEVICE

from unweave.nn.kernels import image as image_kernels  # isort: skip
from unweave.nn.draws import PopulationDraws
from unweave.nn.image_table import ImageTable, Paint
from unweave.nn.images import look_up_images, plain_pixels
from unweave.streams import Stream

ROWS = 24
PICTURE = torch.from_numpy(Stream.of(0).child("picture").bytes(33, 40 * 3).reshape(33, 40, 3).copy())


def made_table(shape: tuple[int, int, int], packed: bool, paint: Paint, streams: int) -> ImageTable:
    """24 random images; which one is drawn by one stream (4 x 3 x 2) or by two (4 x 2 and 3)."""
    channels, height, width = shape
    pixels = channels * height * width
    images = torch.from_numpy(Stream.of(0).bytes(ROWS, pixels // 8 if packed else pixels).copy())
    sizes, strides = torch.zeros(2, streams, 8, dtype=torch.int64)
    for column, (size, stride) in enumerate([(4, 6), (3, 2), (2, 1)]):
        where = (1, 4) if streams == 2 and column == 1 else (0, column)
        sizes[where], strides[where] = size, stride
    return ImageTable(
        (images if packed else images.view(ROWS, *shape)).to(DEVICE),
        shape,
        (("factors",), ("observe", "hidden", "a/b"))[:streams],
        sizes.to(DEVICE),
        strides.to(DEVICE),
        paint,
        PICTURE.to(DEVICE) if paint == "scream" else None,
    )


def assert_same(table: ImageTable, runs: int, batch: int, step: int, first: int = 0) -> None:
    streams = [Stream.of(run).skip(first) for run in range(runs)]
    draws = PopulationDraws(streams, torch.tensor(step, device=DEVICE))
    keys = draws.key_table(table.purposes("other batch"))
    pixels = image_kernels.draw_pixels(table, keys, draws.step, batch, first=first)
    assert pixels.is_contiguous()
    assert torch.equal(pixels, plain_pixels(table, draws, "other batch", batch))
    rows = (draws.integers("rows", batch, [4, 2]) * table.strides[0, [0, 2]]).sum(-1)  # of two factors
    looked_up = image_kernels.draw_pixels(table, keys, draws.step, batch, rows, first)
    assert torch.equal(looked_up, plain_pixels(table, draws, "other batch", batch, rows))


@given(
    st.sampled_from([(1, 8, 8), (3, 8, 8), (1, 4, 12), (3, 5, 8), (2, 12, 4)]),
    st.booleans(),
    st.sampled_from(["none", "colour", "noise", "scream"]),
    st.integers(1, 2),
    st.integers(1, 3),
    st.integers(1, 5),
    st.integers(0, 2**31),
    st.sampled_from([0, 1, 16, 2049, 2**31 - 6]),
)
@example((1, 32, 32), True, "noise", 1, 1, 1, 5, 3)
@example((3, 5, 7), False, "none", 2, 2, 3, 5, 0)
@example((1, 8, 8), True, "scream", 2, 1, 5, 7, 2047)
@settings(deadline=None, max_examples=15)
def test_the_kernel_gives_the_plain_bytes(
    shape: tuple[int, int, int],
    packed: bool,
    paint: Paint,
    streams: int,
    runs: int,
    batch: int,
    step: int,
    first: int,
) -> None:
    if paint != "none":
        shape = (1, *shape[1:])
    if paint == "noise" and shape[1] * shape[2] % 16:
        shape = (1, 4, 4)
    assert_same(made_table(shape, packed, paint, streams), runs, batch, step, first)


@pytest.mark.parametrize("paint", ["none", "colour", "noise", "scream"])
def test_images_of_several_tiles(monkeypatch: pytest.MonkeyPatch, paint: Paint) -> None:
    monkeypatch.setattr(image_kernels, "TILE_PIXELS", 64)
    assert_same(made_table((1, 12, 20), True, paint, 1), 2, 3, 300_000)


@pytest.mark.parametrize("streams", [1, 2])
def test_given_rows_are_looked_up_and_hidden_factors_added(streams: int) -> None:
    table = made_table((1, 8, 8), False, "none", streams)
    draws = PopulationDraws([Stream.of(run) for run in range(3)], torch.tensor(9, device=DEVICE))
    rows = torch.tensor([[0, 7, 7, 18]], device=DEVICE).expand(3, 4)
    expected = rows
    if streams == 2:  # one of three values, two rows apart, from column 4 of the second stream
        hidden = draws.bits(("batch", "observe", "hidden", "a/b"), 4, 8)[..., 4] * 3 >> 32
        assert len(hidden.unique()) == 3
        expected = rows + 2 * hidden
    assert torch.equal(look_up_images(table, draws, "batch", rows), table.images[expected])
