"""Splits and correlations of the literature, written as conditions.

- schott_*: Schott et al., "Visual representation learning does not generalize strongly within the same
  domain", ICLR 2022: see `schott.py`.
- montero_*: Montero et al., "The role of disentanglement in generalisation", ICLR 2021 [1], as in the code of
  the authors, which has MPI3D for "Lost in latent space", NeurIPS 2022.
- traeuble_*: Träuble et al., "On disentangled representations learned from correlated data", ICML 2021 [2]:
  the pairs A to E of the paper, whose strengths are sigma 0.2, 0.4 and 0.7.
- roth_*: Roth et al., "Disentanglement of correlated factors via Hausdorff factorized support", ICLR 2023
  [3], as in the code of the authors; the formula is that of [2].
- ojha_imbalance: Ojha et al., "Elastic-InfoGAN: unsupervised disentangled representation learning in
  class-imbalanced data", NeurIPS 2020: the first of the 50 imbalances of ten classes in the authors' code.

Differs from [1]: on MPI3D, the authors train on a horizontal axis below 20 and test above 20; here 20 is held
out with the others.
Differs from [2]: the formula is that of the paper; the code of the authors draws a blurred line of width
sigma instead.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias, TypeVar

from unweave.data.conditions.factor_names import CARS, MPI, SHAPES, SPRITES
from unweave.data.conditions.schott import SCHOTT
from unweave.data.grid import Factor
from unweave.data.supervision.choices import class_factor
from unweave.errors import UnweaveError

# The names of factors that a preset was written for -> its condition.
ByFactors: TypeAlias = Mapping[tuple[str, ...], str]

_Text = TypeVar("_Text", str, tuple[str, ...])

MONTERO: Mapping[str, ByFactors] = {
    "montero_range": {
        SPRITES: "hold(shape=0,x=16..31)",
        SHAPES: "hold(object_hue=5..9,shape=3)",
        MPI: "hold(object_shape=2,horizontal_axis=0..19)",
    },
    "montero_element": {
        SPRITES: "hold(shape=1,scale=2..5,orientation=14..25,x=21..31,y=21..31)",
        SHAPES: "hold(floor_hue=8..9,wall_hue=8..9,object_hue=8..9,scale=5..7,shape=1,azimuth=12..14)",
        MPI: "hold(object_colour=5,object_shape=2,object_size=1,camera_height=1,background_colour=1,"
        "horizontal_axis=36..39,vertical_axis=36..39)",
    },
    "montero_extrapolation": {
        SPRITES: "hold(x=16..31)",
        SHAPES: "hold(floor_hue=5..9)",
        MPI: "hold(horizontal_axis=20..39)",
    },
}

# Pairs of factors; "*" stands for all other factors.
ROTH: Mapping[str, Mapping[tuple[str, ...], tuple[str, ...]]] = {
    "roth_single_1": {
        SPRITES: ("shape~scale",),
        SHAPES: ("floor_hue~wall_hue",),
        MPI: ("camera_height~background_colour",),
        CARS: ("elevation~azimuth",),
    },
    "roth_single_2": {
        SPRITES: ("x~y",),
        SHAPES: ("shape~scale",),
        MPI: ("object_colour~object_size",),
        CARS: ("elevation~object",),
    },
    "roth_single_3": {
        SPRITES: ("shape~y",),
        SHAPES: ("shape~wall_hue",),
        MPI: ("horizontal_axis~vertical_axis",),
        CARS: ("azimuth~object",),
    },
    "roth_single_4": {SHAPES: ("shape~object_hue",)},
    "roth_double_1": {
        SPRITES: ("shape~x", "scale~y"),
        SHAPES: ("scale~floor_hue", "shape~wall_hue"),
        MPI: ("object_colour~object_shape", "horizontal_axis~vertical_axis"),
    },
    "roth_double_2": {
        SPRITES: ("shape~scale", "x~y"),
        SHAPES: ("scale~shape", "floor_hue~wall_hue"),
        MPI: ("object_colour~horizontal_axis", "object_shape~vertical_axis"),
    },
    "roth_double_3": {SHAPES: ("shape~object_hue", "shape~scale")},
    "roth_triple_1": {
        SHAPES: ("scale~azimuth", "shape~wall_hue", "object_hue~floor_hue"),
        MPI: (
            "object_colour~background_colour",
            "camera_height~horizontal_axis",
            "object_shape~vertical_axis",
        ),
    },
    "roth_triple_2": {
        SHAPES: ("object_hue~azimuth", "shape~scale", "floor_hue~wall_hue"),
        MPI: (
            "object_colour~object_shape",
            "horizontal_axis~vertical_axis",
            "background_colour~camera_height",
        ),
    },
    "roth_confounder_1": {
        SPRITES: ("shape~*",),
        SHAPES: ("shape~*",),
        MPI: ("object_shape~*",),
        CARS: ("elevation~*",),
    },
    "roth_confounder_2": {
        SPRITES: ("x~*",),
        SHAPES: ("wall_hue~*",),
        MPI: ("horizontal_axis~*",),
        CARS: ("azimuth~*",),
    },
    "roth_confounder_3": {CARS: ("object~*",)},
}
TRAEUBLE: Mapping[str, Mapping[tuple[str, ...], tuple[str, ...]]] = {
    "traeuble_a": {SHAPES: ("scale~azimuth",)},
    "traeuble_b": {SPRITES: ("orientation~x",)},
    "traeuble_c": {MPI: ("horizontal_axis~vertical_axis",)},
    "traeuble_d": {SHAPES: ("object_hue~scale",)},
    "traeuble_e": {SHAPES: ("object_hue~azimuth",)},
}
CORRELATED = {**TRAEUBLE, **ROTH}
# How often each class is drawn, relative to the most frequent one.
OJHA = (1.0, 0.252, 0.223, 0.974, 0.923, 0.775, 0.385, 0.76, 0.972, 0.53)
ROTH_SIGMA, SIGMA = 0.1, 0.2  # of pairs of Roth et al., and of all others


def expanded(name: str, sigma: float | None, factors: Sequence[Factor]) -> str:
    """The condition that a preset stands for; sigma is for correlations."""
    names = tuple(factor.name for factor in factors)
    if name in CORRELATED:
        default = ROTH_SIGMA if name in ROTH and "confounder" not in name else SIGMA
        pairs = _for_factors(name, CORRELATED[name], names)
        return ":".join(f"{pair}={default if sigma is None else sigma!r}" for pair in pairs)
    if sigma is not None:
        raise UnweaveError(f"{name} correlates no factors and has no sigma. Leave out the number")
    if name in MONTERO:
        return _for_factors(name, MONTERO[name], names)
    return BY_RULE[name](factors)


def _for_factors(name: str, texts: Mapping[tuple[str, ...], _Text], names: tuple[str, ...]) -> _Text:
    if names not in texts:
        known = " or ".join(f"({', '.join(wanted)})" for wanted in texts)
        raise UnweaveError(f"{name} is defined for data with the factors {known}")
    return texts[names]


def _imbalance(factors: Sequence[Factor]) -> str:
    """Weights of the values of the class factor, which must have ten."""
    label = class_factor(factors)
    [size] = [factor.size for factor in factors if factor.name == label]
    if size != len(OJHA):
        raise UnweaveError(f"ojha_imbalance needs a class of {len(OJHA)} values; {label} has {size}")
    return ":".join(f"weigh({label}={value})={share!r}" for value, share in enumerate(OJHA) if share < 1)


BY_RULE: Mapping[str, Callable[[Sequence[Factor]], str]] = {**SCHOTT, "ojha_imbalance": _imbalance}
PRESETS = (*BY_RULE, *MONTERO, *CORRELATED)
