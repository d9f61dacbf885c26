"""Images of any size are brought to a size that the networks take, and what was done is said."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import PIL.Image
import pytest

from data.own_pictures import write_pictures
from unweave.data import from_arrays, from_folder
from unweave.data.own import sizing
from unweave.data.own.sizing import chosen_size, description, size_named, suits_networks
from unweave.errors import UnweaveError
from unweave.nn.networks import published as networks
from unweave.streams import Stream


def noise(n: int, *shape: int) -> Any:
    return Stream.of(0).bytes(n, int(np.prod(shape))).reshape(n, *shape)


def images(data: Any, rows: Any = (0, 1)) -> Any:
    return data.images_at(np.array(rows))


def test_the_rule_is_that_of_the_networks() -> None:
    assert (sizing.SMALLEST, sizing.MULTIPLE) == (networks.SMALLEST, networks.MULTIPLE)


@pytest.mark.parametrize(
    ("size", "chosen"),
    [
        ((28, 28), (32, 32)),
        ((32, 32), (32, 32)),
        ((64, 64), (64, 64)),
        ((96, 96), (96, 96)),
        ((128, 128), (128, 128)),
        ((48, 100), (48, 112)),
        ((5, 128), (32, 128)),
        ((129, 64), (64, 64)),
        ((300, 200), (64, 64)),
    ],
)
def test_the_automatic_size(size: tuple[int, int], chosen: tuple[int, int]) -> None:
    assert chosen_size({size}, "auto", None) == (chosen, "pad")
    assert suits_networks(chosen)


def test_pictures_of_different_sizes_get_the_standard_size() -> None:
    assert chosen_size({(32, 32), (40, 40)}, "auto", None) == ((64, 64), "pad")


def test_padding_puts_images_in_the_middle_of_black() -> None:
    given = noise(3, 28, 25)
    data = from_arrays(given, size="auto")
    assert data.shape == (1, 32, 32)
    padded = images(data, range(3))
    np.testing.assert_array_equal(padded[:, 0, 2:30, 3:28], given)
    assert padded.astype(int).sum() == given.astype(int).sum()
    assert data.card.note == "Image size: 28 x 25 padded to 32 x 32."
    assert "(28 x 25 padded to 32 x 32)" in data.source


@pytest.mark.parametrize("kind", ["bytes", "floats", "booleans", "colour"])
def test_resized_arrays(kind: str) -> None:
    given = noise(2, 40, 60, 3) if kind == "colour" else noise(2, 40, 60)
    expected = given
    if kind == "floats":
        given = given / 255
    elif kind == "booleans":
        given = given > 127
        expected = given * np.uint8(255)
    data = from_arrays(given, size=(20, 30))
    resized = [
        np.asarray(PIL.Image.fromarray(one).resize((30, 20), PIL.Image.Resampling.LANCZOS))
        for one in expected
    ]
    size_found = images(data).transpose(0, 2, 3, 1)
    np.testing.assert_array_equal(size_found.reshape(2, *resized[0].shape), resized)
    assert data.binary is False
    assert "(40 x 60 resized to 20 x 30)" in data.source


def test_padding_keeps_booleans_binary() -> None:
    data = from_arrays(noise(2, 28, 28) > 127, size=32, fit="pad")
    assert data.binary
    assert set(np.unique(images(data))) == {0, 255}


def test_what_is_too_large_is_shrunk_before_it_is_padded() -> None:
    data = from_arrays(np.full((1, 100, 50), 255, np.uint8), size=64, fit="pad")
    [[image]] = images(data, [0])
    assert (image[:, 16:48] > 0).all()
    assert not image[:, :16].any()
    assert "(100 x 50 shrunk and padded to 64 x 64)" in data.source


def test_cropping_keeps_the_middle() -> None:
    given = np.zeros((1, 40, 80), np.uint8)
    given[:, :, 20:60] = 200
    data = from_arrays(given, size=40, fit="crop")
    assert (images(data, [0]) == 200).all()


def test_images_stay_as_they_are_unless_a_size_is_given() -> None:
    data = from_arrays(noise(2, 28, 28))
    assert (data.shape, data.card.note) == ((1, 28, 28), "")
    assert from_arrays(noise(2, 28, 28), size=28).source == data.source


def test_pictures_in_a_folder(tmp_path: Path) -> None:
    folder = write_pictures(tmp_path / "toys", 28, 40)
    assert from_folder(folder).shape == (1, 64, 64)
    padded = from_folder(folder, size="auto")
    assert padded.shape == (1, 32, 48)
    assert "(28 x 40 padded to 32 x 48)" in padded.source
    assert "resized to 64 x 64" in from_folder(folder).source
    assert from_folder(folder, size=(32, 64), fit="crop").shape == (1, 32, 64)


def test_pictures_that_need_nothing_are_the_same_whatever_the_rule(tmp_path: Path) -> None:
    folder = write_pictures(tmp_path / "toys", 64, 64)
    assert from_folder(folder).source == from_folder(folder, size="auto").source


def test_a_picture_from_a_camera_has_the_size_that_it_has_upright(tmp_path: Path) -> None:
    exif = PIL.Image.Exif()
    exif[0x0112] = 6
    PIL.Image.new("L", (40, 28), 9).save(tmp_path / "a.png", exif=exif)
    assert from_folder(tmp_path, size="auto").shape == (1, 48, 32)


@pytest.mark.parametrize("bad", [2, 0, -3, 1.5, "large", (64,), (64, 2), (1, 2, 3), True])
def test_bad_sizes(bad: Any) -> None:
    with pytest.raises(UnweaveError, match="size must be a whole number of pixels, 4 or more"):
        from_arrays(noise(2, 28, 28), size=bad)


def test_a_bad_fit() -> None:
    bad: Any = "padd"
    with pytest.raises(UnweaveError, match=r'there is no fit "padd"\. Did you mean "pad"\?'):
        from_arrays(noise(2, 28, 28), size=32, fit=bad)


def test_sizes_on_the_command_line() -> None:
    assert size_named("64") == (64, 64)
    assert size_named("64x96") == (64, 96)
    for bad in ("", "x", "64x", "1x2x3", "-4", "6.5"):
        with pytest.raises(UnweaveError, match="an image size is a number of pixels, or height x width"):
            size_named(bad)


def test_several_sizes_are_described_by_their_number() -> None:
    assert description({(28, 28), (30, 30)}, (64, 64), "resize") == "2 sizes resized to 64 x 64"
