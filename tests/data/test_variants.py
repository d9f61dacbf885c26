"""Colour, noise, Scream and hidden factors: pixel statistics against their definitions."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from unweave.data import variants
from unweave.data.grid import GroundTruth, Images
from unweave.data.sets import dsprites
from unweave.errors import UnweaveError
from unweave.streams import Stream

SPRITES = dsprites.rendered()
PICTURE = (np.arange(100 * 90 * 3) * 7 % 256).astype(np.uint8).reshape(100, 90, 3)
MADE: dict[str, GroundTruth] = {
    "colour": variants.colour(SPRITES, "colour"),
    "noise": variants.noise(SPRITES, "noise"),
    "scream": variants.scream(SPRITES, "scream", PICTURE, "made up"),
    "hidden": variants.hide(SPRITES, ["shape", "x"], "hidden"),
}


def drawn(name: str, n: int, seed: int = 0) -> tuple[Images, Images]:
    """Variant images of n random factors, and the plain sprites of the same factors."""
    factors = SPRITES.sample_factors(n, seed)
    return MADE[name].observe(factors, seed), SPRITES.observe(factors)


@pytest.mark.parametrize("name", MADE)
@given(n=st.integers(1, 20), start=st.integers(0, 20), seed=st.integers(0, 100))
@settings(deadline=None, max_examples=15)
def test_draws_do_not_depend_on_batches(name: str, n: int, start: int, seed: int) -> None:
    truth = MADE[name]
    factors, stream = truth.sample_factors(start + n, seed), Stream.of(seed)
    whole = truth.observe(factors, stream)
    assert whole.dtype == np.uint8
    assert whole.shape == (start + n, *truth.shape)
    np.testing.assert_array_equal(truth.observe(factors[start:], stream.skip(start)), whole[start:])
    np.testing.assert_array_equal(truth.observe(factors, seed), whole)


def test_colour_is_one_shade_a_channel_between_a_half_and_one() -> None:
    images, sprites = drawn("colour", 2000)
    assert not images[np.broadcast_to(sprites, images.shape) == 0].any(), "the background stays black"
    shades = images.max(axis=(2, 3))
    lit = np.broadcast_to(sprites > 0, images.shape)
    np.testing.assert_array_equal(images[lit], np.broadcast_to(shades[:, :, None, None], images.shape)[lit])
    assert shades.min() >= 127
    # U(0.5, 1) has mean 0.75 and standard deviation 0.5 / sqrt(12); channels are independent.
    np.testing.assert_allclose(shades.mean(axis=0) / 255, 0.75, atol=4 * 0.1443 / np.sqrt(2000))
    np.testing.assert_allclose(shades.std(axis=0) / 255, 0.5 / np.sqrt(12), rtol=0.05)
    assert np.abs(np.corrcoef(shades.T.astype(float)) - np.eye(3)).max() < 4 / np.sqrt(2000)


def test_noise_is_uniform_behind_a_white_sprite() -> None:
    images, sprites = drawn("noise", 60)
    lit = np.broadcast_to(sprites > 0, images.shape)
    assert (images[lit] == 255).all()
    background = images[~lit]
    counts = np.bincount(background, minlength=256)
    expected = len(background) / 256
    assert ((counts - expected) ** 2 / expected).sum() < 255 + 5 * np.sqrt(2 * 255)
    corner = images[:, :, :4, :4].reshape(60, -1).astype(float)
    assert np.abs(np.corrcoef(corner.T) - np.eye(48)).max() < 6 / np.sqrt(60)


def test_scream_is_a_shifted_patch_and_its_negative() -> None:
    images, sprites = drawn("scream", 40)
    windows = np.lib.stride_tricks.sliding_window_view(PICTURE, (64, 64), axis=(0, 1)).reshape(-1, 3, 64, 64)
    for image, sprite in zip(images, sprites, strict=True):
        background = np.where(sprite > 0, 255 - image, image).astype(float)
        # background = (patch + 255 u) / 2, so 2 background - patch is one constant in each channel.
        shifts = 2 * background - windows
        spread = shifts.max(axis=(2, 3)) - shifts.min(axis=(2, 3))
        fits = np.flatnonzero((spread <= 2.01).all(axis=1))
        assert len(fits), "no patch of the picture explains the background"
        shift = shifts[fits[0]].mean(axis=(1, 2)) / 255
        assert (shift > -0.01).all()
        assert (shift < 1.01).all()


def test_scream_offsets_and_shifts_are_uniform() -> None:
    height, width = np.mgrid[:72, :74]
    picture = np.stack([3 * (height % 80), 3 * (width % 80), 0 * height], axis=2).astype(np.uint8)
    truth = variants.scream(SPRITES, "ramp", picture, "made up")
    corner = truth.observe(SPRITES.sample_factors(20_000, 0), 0)[:, :, 0, 0].astype(float)
    # Channel 0 is (3 row + shift) / 2: row is uniform in 0..7, shift in (0, 255).
    assert corner[:, 0].mean() == pytest.approx((3 * 3.5 + 127.5) / 2, abs=1)
    assert corner[:, 1].mean() == pytest.approx((3 * 4.5 + 127.5) / 2, abs=1)
    assert corner[:, 2].mean() == pytest.approx(127.5 / 2, abs=1)
    assert corner[:, 2].max() <= 128


def test_hidden_factors_are_drawn_anew_and_the_others_kept() -> None:
    truth = MADE["hidden"]
    assert [factor.name for factor in truth.factors] == ["scale", "orientation", "y"]
    factors = np.tile([[5, 0, 16]], (3000, 1))
    images = truth.observe(factors, 0)
    whole = SPRITES.observe([[shape, 5, 0, x, 16] for shape in range(3) for x in range(32)])
    known = {image.tobytes(): i for i, image in enumerate(whole)}
    counts = np.bincount([known[image.tobytes()] for image in images], minlength=96)
    assert ((counts - 3000 / 96) ** 2 / (3000 / 96)).sum() < 95 + 5 * np.sqrt(2 * 95)


def test_the_origin_says_what_a_variant_is_made_of() -> None:
    assert variants.origin(SPRITES) == variants.Origin(
        SPRITES, None, (("factors",),), ((0, 0), (0, 1), (0, 2), (0, 3), (0, 4))
    )
    scream = variants.origin(MADE["scream"])
    assert isinstance(scream.paint, variants.Scream)
    np.testing.assert_array_equal(scream.paint.picture.transpose(1, 2, 0), PICTURE)
    both = variants.noise(variants.hide(MADE["hidden"], ["orientation"], "more"), "noise")
    result = variants.origin(both)
    assert result.base is SPRITES
    assert result.paint == variants.Noise()
    assert result.streams == (
        ("factors",),
        ("observe", "hidden", "orientation"),
        ("observe", "hidden", "shape", "x"),
    )
    assert result.columns == ((2, 0), (0, 0), (1, 1), (2, 3), (0, 1))


def test_the_origin_tells_how_to_draw_the_same_images() -> None:
    truth, stream = variants.hide(MADE["hidden"], ["orientation"], "more"), Stream.of(3).at(5)
    result = variants.origin(truth)
    sizes = [[0] * 5 for _ in result.streams]
    for factor, (i, j) in zip(result.base.factors, result.columns, strict=True):
        sizes[i][j] = factor.size
    drawn = [stream.child(*path).integers(20, row) for path, row in zip(result.streams, sizes, strict=True)]
    factors = np.stack([drawn[i][:, j] for i, j in result.columns], axis=1)
    np.testing.assert_array_equal(
        result.base.observe(factors), truth.observe(truth.sample_factors(20, stream), stream)
    )


def test_a_picture_is_shrunk_to_fit_the_box(tmp_path: Path) -> None:
    Image.new("L", (430, 548), 128).save(tmp_path / "large.png")
    picture, source = variants.read_picture(tmp_path / "large.png")
    assert picture.shape == (274, 215, 3)
    assert (picture == 128).all()
    assert source.startswith("large.png (sha256:")
    Image.new("RGB", (80, 70)).save(tmp_path / "small.png")
    assert variants.read_picture(tmp_path / "small.png")[0].shape == (70, 80, 3)


def test_the_scream_itself(reference: Path) -> None:
    picture, _ = variants.read_picture(reference / "data" / "the_scream.jpg")
    assert picture.shape == (274, 215, 3)
    images = variants.scream(SPRITES, "scream", picture, "").observe(SPRITES.sample_factors(10, 0), 0)
    assert images.shape == (10, 3, 64, 64)


def test_bad_input_is_refused(tmp_path: Path) -> None:
    (tmp_path / "note.jpg").write_text("not a picture")
    with pytest.raises(UnweaveError, match=r"note.jpg cannot be read as a picture"):
        variants.read_picture(tmp_path / "note.jpg")
    with pytest.raises(UnweaveError, match=r"larger than 64x64; got \(64, 90, 3\)"):
        variants.scream(SPRITES, "scream", PICTURE[:64], "")
    with pytest.raises(UnweaveError, match="are for images with one channel; colour has 3"):
        variants.noise(MADE["colour"], "both")
    with pytest.raises(UnweaveError, match="hide some of the factors"):
        variants.hide(SPRITES, [], "nothing")
    with pytest.raises(UnweaveError, match=r'dsprites has no factor "shap"\. Did you mean "shape"'):
        variants.hide(SPRITES, ["shap"], "typo")
