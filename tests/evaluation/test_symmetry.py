"""Symmetry of runs, encoders and arrays: D_LSBD and equivariance curves, and why they cannot be measured."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import unweave
from unweave.data import load
from unweave.data.grid import Card, Factor, GroundTruth
from unweave.data.supervision import hold_out
from unweave.errors import UnweaveError
from unweave.evaluation import equivariance
from unweave.streams import Stream

ANGLES, SIZES_OF_SHAPES = 8, 40
GRID = np.stack(np.meshgrid(*map(np.arange, (3, 12)), indexing="ij"), axis=-1).reshape(-1, 2)


def clock() -> GroundTruth:
    """Images of 4 pixels: cosine and sine of an angle, a size and a shape."""

    def render(factors: NDArray[np.int64], stream: Stream) -> NDArray[np.uint8]:
        angles = 2 * np.pi * factors[:, 2] / ANGLES
        pixels = [127 + 100 * np.cos(angles), 127 + 100 * np.sin(angles), factors[:, 1] * 5, factors[:, 0]]
        return np.stack(pixels, axis=1).round().astype(np.uint8).reshape(-1, 1, 2, 2)

    factors = (
        Factor("shape", 3, "categorical"),
        Factor("size", SIZES_OF_SHAPES),
        Factor("angle", ANGLES, "circular"),
    )
    return GroundTruth("clock", factors, (1, 2, 2), render, Card("clock", "CC0-1.0", ""), "drawn")


def pixels(images: NDArray[np.float32]) -> NDArray[np.float32]:
    return images.reshape(len(images), -1)


def test_an_encoder_of_circles_is_symmetric_and_the_grid_is_not_encoded() -> None:
    encoded = []

    def encode(images: NDArray[np.float32]) -> NDArray[np.float32]:
        encoded.append(len(images))
        return pixels(images)

    scores = unweave.evaluate(encode, data=clock(), metrics="d_lsbd", repeats=2)
    assert scores["d_lsbd"] < 1e-3
    assert scores["d_lsbd.angle"] == scores["d_lsbd"]
    assert scores["d_lsbd.chance"] > 0.7
    assert scores.score("d_lsbd").low is not None
    assert scores.score("d_lsbd").protocol == "d_lsbd[orbits200,frequencies10,mean]"
    assert sum(encoded) == 3 * 200 * ANGLES
    assert unweave.evaluate(pixels, data=clock(), metrics="equivariance")["equivariance"] > 0.99


def test_curves_of_a_circular_and_of_an_ordinal_factor(tmp_path: Path) -> None:
    curve = equivariance(pixels, data=clock())
    assert (curve.factor, curve.circular, curve.data) == ("angle", True, "clock")
    assert list(curve.frame()["shift"]) == list(range(1, ANGLES))
    assert curve.frame()[["linear", "rotation"]].min().min() > 0.99
    assert curve.gain > 0.99
    # Opposite codes are the farthest from each other.
    assert curve[4].identity == min(row.identity for row in curve.rows)
    assert all(abs(row.chance) < 0.3 for row in curve.rows)
    curve.plot(tmp_path / "curve.png")
    assert (tmp_path / "curve.png").stat().st_size > 1000
    lines = str(curve).splitlines()
    assert lines[0].startswith("angle (circular) of clock: gain 1.000; R2 on ")
    assert len(lines) == 2 + len(curve.rows)
    with pytest.raises(KeyError, match="shifts go from 1 to 7"):
        curve[8]
    sizes = equivariance(pixels, data=clock(), factor="size", orbits=20)
    assert not sizes.circular
    assert sizes[SIZES_OF_SHAPES - 1].linear > 0.99


def test_curves_of_codes_and_of_a_run(tmp_path: Path) -> None:
    codes = np.stack([np.cos(2 * np.pi * GRID[:, 1] / 12), np.sin(2 * np.pi * GRID[:, 1] / 12)], axis=1)
    curve = equivariance(codes, GRID, kinds={"v1": "circular"})
    assert curve.gain == pytest.approx(1)
    images = np.zeros((36, 1, 32, 32), np.uint8)
    images[:, 0, 0, :2] = GRID * 20
    data = unweave.data.from_arrays(images, GRID, name="pixels")
    run = unweave.train("vae", data, out=tmp_path, steps=2, batch=4, latents=4, device="cpu")
    of_run = equivariance(run, factor="factor_1", orbits=10)
    assert len(of_run.rows) == 11
    assert np.isfinite(of_run.frame().drop(columns="factor").to_numpy(float)).all()


def test_rows_with_complete_orbits() -> None:
    angle = np.deg2rad(30 * GRID[:, 1])
    codes = np.stack([np.cos(angle), np.sin(angle), GRID[:, 0]], axis=1)
    degrees = GRID * [1, 30]
    kinds: Any = {"v1": ("circular", 360)}
    scores = unweave.evaluate(codes, degrees, metrics="d_lsbd", kinds=kinds)
    assert scores["d_lsbd"] == pytest.approx(0, abs=1e-9)
    assert scores.score("d_lsbd").protocol == "d_lsbd[orbits200,frequencies10,rows36,mean]"
    # Rows with a missing value are left out, with their orbit.
    missing = degrees.astype(float)
    missing[0, 0] = np.nan
    scores = unweave.evaluate(codes, missing, metrics="d_lsbd", kinds=kinds)
    assert scores["d_lsbd"] == pytest.approx(0, abs=1e-9)
    assert "complete-rows" in scores.score("d_lsbd").protocol


def test_one_orbit_is_enough() -> None:
    """Twelve points of a circle, and two circles of which one lacks a point."""
    points = np.stack([np.cos(np.arange(12) * np.pi / 6), np.sin(np.arange(12) * np.pi / 6)], axis=1)
    kinds: Any = {"v0": ("circular", 12)}
    scores = unweave.evaluate(points, np.arange(12)[:, None], metrics=["d_lsbd", "equivariance"], kinds=kinds)
    assert scores["d_lsbd"] == pytest.approx(0, abs=1e-9)
    assert scores["equivariance"] == pytest.approx(1)
    both = np.delete(np.concatenate([points, points]), 17, axis=0)
    factors = np.delete(GRID[:24], 17, axis=0)
    of_two = unweave.evaluate(both, factors, metrics="d_lsbd", kinds={"v1": ("circular", 12)})
    assert of_two["d_lsbd"] == pytest.approx(0, abs=1e-9)


def test_the_last_value_may_be_the_first_again() -> None:
    """Orientations 0 and 39 of dSprites are the same image, and so are 0 and 360 degrees."""
    orientation = load("dsprites").factors[2]
    assert (orientation.size, orientation.period) == (40, 39)
    factors = np.stack(np.meshgrid(np.arange(3), np.arange(0, 361, 30), indexing="ij"), axis=-1)
    factors = factors.reshape(-1, 2)
    angle = 3 * np.deg2rad(factors[:, 1])
    codes = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    kinds: Any = {"v1": ("circular", 360)}
    assert unweave.evaluate(codes, factors, metrics="d_lsbd", kinds=kinds)["d_lsbd"] < 1e-9
    assert len(equivariance(codes, factors, factor="v1", kinds=kinds).rows) == 11
    with pytest.raises(UnweaveError, match=r"got period 41\. Only a circular factor has a period"):
        Factor("angle", 40, "circular", period=41)


@pytest.mark.parametrize(
    ("factors", "kinds", "message"),
    [
        (GRID, None, "it needs a circular factor with 5 values or more"),
        (GRID, {"v0": "circular"}, "it needs a circular factor with 5 values or more"),
        (
            GRID,
            {"v1": ("circular", 360)},
            "whole numbers at equal distances that go once round its period of 360",
        ),
        (GRID / [1, 3], {"v1": ("circular", 4)}, "must be whole numbers at equal distances"),
        (
            np.stack([np.linspace(0, 1, 36), GRID[:, 1]], axis=1),
            {"v1": "circular"},
            'a few values that repeat, and "v0" is continuous',
        ),
    ],
)
def test_rows_without_orbits_are_refused_with_a_reason(
    factors: NDArray[Any], kinds: dict[str, Any] | None, message: str
) -> None:
    with pytest.raises(UnweaveError, match=message):
        unweave.evaluate(GRID * 1.0, factors, metrics="d_lsbd", kinds=kinds)


def test_what_cannot_be_shifted_is_refused() -> None:
    with pytest.raises(UnweaveError, match='"shape" is categorical, so its values cannot be shifted'):
        equivariance(pixels, data=clock(), factor="shape")
    with pytest.raises(UnweaveError, match=r'there is no factor "angel"\. Did you mean "angle"\?'):
        equivariance(pixels, data=clock(), factor="angel")
    with pytest.raises(UnweaveError, match="the circular ones are none, and all factors are v0, v1"):
        equivariance(GRID * 1.0, GRID)
    restricted = hold_out(clock(), [{"shape": 0, "angle": [1, 2]}])
    with pytest.raises(UnweaveError, match='Pass on="all"'):
        equivariance(pixels, data=restricted)
    with pytest.raises(UnweaveError, match="some are held out: measure it with --on all"):
        unweave.evaluate(pixels, data=restricted, metrics="d_lsbd")
    assert equivariance(pixels, data=restricted, on="all").gain > 0.99
