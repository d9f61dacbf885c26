"""The splits and correlations of the literature are those of the authors."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from data.test_conditions import GRID, canonical, support
from unweave.data import conditioned, load
from unweave.data.catalogue import entry_of
from unweave.data.conditions.parser import parse
from unweave.data.conditions.presets import PRESETS
from unweave.data.grid import Factor
from unweave.errors import UnweaveError

SPRITES = entry_of("dsprites").grid_factors


def latent_values() -> dict[str, NDArray[np.float64]]:
    """The values of dSprites, as its authors list them."""
    every = [factor.size for factor in SPRITES]
    grid = np.stack(np.unravel_index(np.arange(np.prod(every)), every), axis=1)
    steps = grid.astype(np.float64)
    return {
        "shape": steps[:, 0] + 1,
        "scale": 0.5 + steps[:, 1] / 10,
        "orientation": steps[:, 2] * 2 * np.pi / 39,
        "x": steps[:, 3] / 31,
        "y": steps[:, 4] / 31,
    }


def test_the_splits_of_montero_are_those_of_the_authors() -> None:
    """The filters on latent values in github.com/mmrl/disent-and-gen, scripts/configs/datasplits.py."""
    v, tiny = latent_values(), 1e-9  # stored values differ from the bounds by rounding
    expected = {
        "montero_extrapolation": v["x"] > 0.5,
        "montero_range": (v["shape"] == 1) & (v["x"] > 0.5),
        "montero_element": (v["shape"] == 2)
        & (v["scale"] > 0.6 + tiny)
        & (v["orientation"] > 2 * np.pi / 3 + tiny)
        & (v["orientation"] < 4 * np.pi / 3 - tiny)
        & (v["x"] > 0.66)
        & (v["y"] > 0.66),
    }
    for name, held in expected.items():
        assert np.array_equal(~support(load(f"dsprites:{name}")), held)


def test_the_splits_of_montero_for_mpi3d_are_those_of_the_authors() -> None:
    """MPI3D.cylinder2horz20, leave1out and exclude_horz_gt20 of the same file, which leaves out 20 itself."""
    factors = entry_of("mpi3d_real").grid_factors
    grid = np.indices([factor.size for factor in factors]).reshape(len(factors), -1)
    colour, shape, size, height, background, x, y = grid
    fixed = (colour == 5) & (shape == 2) & (size == 1) & (height == 1) & (background == 1)
    expected = {
        "montero_range": (x < 20) & (shape == 2),
        "montero_element": fixed & (x > 35) & (y > 35),
        "montero_extrapolation": x >= 20,
    }
    for name, held in expected.items():
        [box] = parse(name, factors).held
        assert np.array_equal(np.all([np.isin(grid[j], values) for j, values in box], axis=0), held)


SCHOTT = {
    "dsprites": {
        "interpolation": "hold(scale=1|4):hold(orientation=2|7|12|17|22|27|32|37):"
        "hold(x=2|7|11|15|20|24|29):hold(y=2|7|11|15|20|24|29)",
        "extrapolation": "hold(scale=4..5):hold(orientation=32..39):hold(x=25..31):hold(y=25..31)",
        "composition": "hold(orientation=4..39,x=3..31,y=3..31)",
        "trained": (240_000, 240_000, 192_312),
    },
    "shapes3d": {
        "interpolation": "hold(floor_hue=2|7):hold(wall_hue=2|7):hold(object_hue=2|7):hold(scale=2|5):"
        "hold(azimuth=2|7|12)",
        "extrapolation": "hold(floor_hue=8..9):hold(wall_hue=8..9):hold(object_hue=8..9):hold(scale=6..7):"
        "hold(azimuth=12..14)",
        "composition": "hold(floor_hue=1..9,wall_hue=1..9,object_hue=1..9,azimuth=1..14)",
        "trained": (147_456, 147_456, 153_408),
    },
    "mpi3d_real": {
        "interpolation": "hold(object_colour=3):hold(camera_height=1):hold(background_colour=1):"
        "hold(horizontal_axis=5|15|24|34):hold(vertical_axis=5|15|24|34)",
        "extrapolation": "hold(object_colour=5):hold(camera_height=2):hold(background_colour=2):"
        "hold(horizontal_axis=36..39):hold(vertical_axis=36..39)",
        "composition": "hold(horizontal_axis=6..39,vertical_axis=6..39)",
        "trained": (311_040, 311_040, 287_712),
    },
}


@pytest.mark.parametrize("data", SCHOTT)
def test_the_splits_of_schott_are_those_of_the_supplementary_code(data: str) -> None:
    """Held values and numbers of training images, from a run of the rule of openreview 9RUHPlladgh."""
    factors = entry_of(data).grid_factors
    for name, expected in zip(
        ("interpolation", "extrapolation", "composition"), SCHOTT[data]["trained"], strict=True
    ):
        condition = parse(f"schott_{name}", factors)
        assert condition.text(factors) == SCHOTT[data][name]
        sizes = [factor.size for factor in factors]
        grid = np.indices(sizes).reshape(len(sizes), -1)
        boxes = [[np.isin(grid[j], values) for j, values in box] for box in condition.held]
        held = np.any([np.all(box, axis=0) for box in boxes], axis=0)
        assert (~held).sum() == expected
    assert abs(support(load("dsprites:schott_random")).mean() - 0.3) < 0.01


def test_the_splits_of_schott_for_other_data_test_what_their_names_say() -> None:
    sizes = np.array([factor.size for factor in GRID.factors])
    ordinal = np.array([factor.kind == "ordinal" for factor in GRID.factors])
    for name in ("composition", "interpolation", "extrapolation"):
        truth = conditioned(GRID, f"schott_{name}")
        trained = truth.factors_at(np.flatnonzero(support(truth)))
        high = trained.max(axis=0)
        seen = np.array([len(np.unique(column)) for column in trained.T])
        assert (trained.min(axis=0) == 0).all()
        if name == "composition":  # all values occur, not all combinations
            assert (seen == sizes).all()
        if name == "interpolation":  # unseen values lie between seen ones
            assert (high == sizes - 1).all()
            assert ((seen < sizes) == ordinal).all()
        if name == "extrapolation":  # unseen values lie beyond seen ones
            assert ((high < sizes - 1) == ordinal).all()
            assert (seen == high + 1).all()
        assert 0.2 < support(truth).mean() < 0.4


def test_the_correlations_of_roth_have_their_default_strengths() -> None:
    assert canonical("roth_double_1", SPRITES) == "shape~x=0.1:scale~y=0.1"
    assert canonical("roth_double_1=0.04", SPRITES) == "shape~x=0.04:scale~y=0.04"
    assert canonical("roth_confounder_2", SPRITES).count("=0.2") == 4
    for preset in PRESETS:  # each is defined for one of these at least
        assert any(
            _readable(preset, entry_of(name).grid_factors)
            for name in ("dsprites", "shapes3d", "mpi3d_toy", "cars3d", "glyphs")
        )


def test_the_pairs_of_traeuble_are_those_of_the_authors() -> None:
    """`corr_indices` in github.com/ftraeuble/disentanglement_lib; those of dSprites count its colour."""
    pairs = {
        "traeuble_a": ("shapes3d", [3, 5]),
        "traeuble_b": ("dsprites", [3 - 1, 4 - 1]),
        "traeuble_c": ("mpi3d_real", [5, 6]),
        "traeuble_d": ("shapes3d", [2, 3]),
        "traeuble_e": ("shapes3d", [2, 5]),
    }
    for preset, (name, columns) in pairs.items():
        factors = entry_of(name).grid_factors
        first, second = (factors[column].name for column in columns)
        assert canonical(preset, factors) == f"{first}~{second}=0.2"
        assert canonical(f"{preset}=0.7", factors) == f"{first}~{second}=0.7"
    with pytest.raises(
        UnweaveError, match=r'"traeuble_b=0" at character 12: sigma must be greater than 0\. Write'
    ):
        canonical("traeuble_b=0", SPRITES)


def _readable(text: str, factors: tuple[Factor, ...]) -> bool:
    try:
        return bool(canonical(text, factors))
    except UnweaveError as error:
        return "is defined for" not in str(error)
