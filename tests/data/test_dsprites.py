"""dSprites: against the original images, against a slow independent rasteriser, and from its file."""

import hashlib
from pathlib import Path

import numpy as np
import pytest

from unweave.data.grid import Factor
from unweave.data.sets import dsprites
from unweave.errors import ChecksumError, UnweaveError

# Of all 737,280 images packed to bits, in grid order. If it changes, RULE counts up and CHANGELOG says so.
FINGERPRINT = "4a7798e7bc988468132d50c62c7c8fd669edea3f53a49eeb721be56dfe8ed071"
SET_PIXELS = 128_328_869


def test_rendered_images_equal_the_originals(reference: Path) -> None:
    with np.load(reference / "data" / "dsprites_real_46080.npz") as file:
        originals, index = file["imgs"], file["original_dataset_indices"]
    truth = dsprites.rendered()
    images = truth.observe(truth.factors_at(index.ravel()))
    differences = (images[:, 0] // 255 != originals).sum(axis=(1, 2))
    assert np.count_nonzero(differences) <= 2
    assert differences.max() <= 1


def test_the_whole_set() -> None:
    truth = dsprites.rendered()
    digest, set_pixels = hashlib.sha256(), 0
    for shape in range(3):
        for scale in range(6):
            position = truth.index([[shape, scale, 0, 0, 0]])[0] + np.arange(40 * 32 * 32)
            bits = np.packbits(
                truth.observe(truth.factors_at(position)).reshape(len(position), -1) > 0, axis=1
            )
            digest.update(bits.tobytes())
            set_pixels += int(np.bitwise_count(bits).sum())
            np.testing.assert_array_equal(bits[: 32 * 32], bits[-32 * 32 :])  # orientations 0 and 39
    assert set_pixels == SET_PIXELS
    assert digest.hexdigest() == FINGERPRINT


def slow_image(shape: int, scale: int, orientation: int, x: int, y: int) -> np.ndarray:
    """The image by the definition: winding of a float64 polygon round each pixel centre."""
    t = np.arange(150) * 2 * np.pi / 150
    outline = [
        np.array([(-9.6, -9.6), (9.6, -9.6), (9.6, 9.6), (-9.6, 9.6)]),
        np.stack([9.6 * 1.33 * np.cos(t * 1.5), 9.6 / 1.33 * np.sin(t * 1.5)], 1)[:100],
        np.stack(
            [
                9.6 * np.sin(t) ** 3,
                -19.2 / 29 * (13 * np.cos(t) - 5 * np.cos(2 * t) - 2 * np.cos(3 * t) - np.cos(4 * t)) - 1.44,
            ],
            1,
        ),
    ][shape] * (0.5 + 0.1 * scale)  # fmt: skip
    angle = -2 * np.pi * orientation / 39
    turn = np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])
    corners = outline @ turn + [16 + 32 * x / 31, 16 + 32 * y / 31]
    centres = np.stack(np.meshgrid(np.arange(64) + 0.5, np.arange(64) + 0.5), axis=-1)
    spokes = corners - centres[:, :, None]
    angles = np.arctan2(spokes[..., 1], spokes[..., 0])
    steps = np.diff(angles, axis=-1, append=angles[..., :1])
    winding = ((steps + np.pi) % (2 * np.pi) - np.pi).sum(axis=-1)
    return np.abs(winding) > np.pi  # type: ignore[no-any-return]


def test_rendered_images_equal_a_slow_rasteriser_but_for_the_rim() -> None:
    truth = dsprites.rendered()
    factors = truth.sample_factors(150, 0)
    images = truth.observe(factors)[:, 0] > 0
    wrong = [int((image != slow_image(*row)).sum()) for image, row in zip(images, factors, strict=True)]
    # Without snapping to 1/256 pixel a centre close to an edge may fall on its other side, now and then.
    assert max(wrong) <= 2
    assert sum(wrong) <= 15


def test_areas_and_centres_follow_the_factors() -> None:
    truth = dsprites.rendered()
    factors = truth.sample_factors(500, 1)
    images = truth.observe(factors)[:, 0] > 0
    scale = 0.5 + 0.1 * factors[:, 1]
    for shape, area in ((0, 19.2**2), (1, np.pi * 9.6**2)):
        position = factors[:, 0] == shape
        np.testing.assert_allclose(images[position].sum(axis=(1, 2)), area * scale[position] ** 2, rtol=0.12)
        columns = (images[position].sum(axis=1) @ (np.arange(64) + 0.5)) / images[position].sum(axis=(1, 2))
        np.testing.assert_allclose(columns, 16 + 32 * factors[position, 3] / 31, atol=0.5)
        rows = (images[position].sum(axis=2) @ (np.arange(64) + 0.5)) / images[position].sum(axis=(1, 2))
        np.testing.assert_allclose(rows, 16 + 32 * factors[position, 4] / 31, atol=0.5)


def test_images_are_black_and_white_and_never_touch_the_border() -> None:
    truth = dsprites.rendered()
    images = truth.observe(truth.sample_factors(5000, 2))
    assert images.dtype == np.uint8
    assert images.shape == (5000, 1, 64, 64)
    assert set(np.unique(images)) == {0, 255}
    assert not images[:, :, [0, -1]].any()
    assert not images[..., [0, -1]].any()


def write_official(folder: Path, images: np.ndarray) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / dsprites.FILES[0].name
    np.savez_compressed(path, imgs=images, metadata=np.array({"pickled": object}, dtype=object))
    return path


def test_the_official_file_is_used_where_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # A grid with fewer positions, so that the file is small; all else is as in the true one.
    factors = (*dsprites.FACTORS[:3], Factor("x", 2), Factor("y", 3))
    monkeypatch.setattr(dsprites, "FACTORS", factors)
    monkeypatch.setattr(dsprites, "SIZES", (3, 6, 40, 2, 3))
    truth = dsprites.rendered()
    every = truth.factors_at(np.arange(len(truth)))
    images = truth.observe(every)[:, 0] // 255
    images[truth.index([[1, 2, 3, 1, 2]]), 0, 0] = 1  # tells the file from the rendered images
    write_official(tmp_path / "dsprites", images)
    loaded = dsprites.load(tmp_path, check=False)
    assert loaded.source.startswith(dsprites.FILES[0].name)
    assert loaded.source.endswith("unverified")
    np.testing.assert_array_equal(loaded.observe(every)[:, 0] // 255, images)
    assert loaded.observe([[1, 2, 3, 1, 2]])[0, 0, 0, 0] == 255
    with pytest.raises(ChecksumError, match="dsprites_ndarray"):
        dsprites.load(tmp_path)


def test_a_file_of_another_shape_is_refused(tmp_path: Path) -> None:
    write_official(tmp_path, np.zeros((10, 64, 64), np.uint8))
    with pytest.raises(UnweaveError, match=r"shape \(737280, 64, 64\) in uint8; got \(10, 64, 64\)"):
        dsprites.load(tmp_path, check=False)


def test_without_a_file_the_images_are_rendered(tmp_path: Path) -> None:
    assert dsprites.load(tmp_path).source == "rendered by unweave, dsprites rule 1"
