"""Studies of held-out combinations and of correlated factors, on dSprites and Rooms with five seeds.

The splits and pairs of factors are those of `unweave.data.conditions.presets`. Rooms has the factors of
Shapes3D and needs no files.
"""

from __future__ import annotations

from typing import Any

from unweave.evaluation.parts import Part
from unweave.study.presets.published import METHODS, SHARED
from unweave.study.spec import StudySpec, grid

DATA = ("dsprites", "rooms")
SEEDS = "0-4"
# BetaVAE and FactorVAE scores need all combinations: they are measured on all.
SCORES = ("mig", "dci", "sap", "modularity", "elbo")
SCORES_ON_ALL = ("beta_vae_score", "factor_vae_score", *SCORES)
HELD_OUT: tuple[Part, ...] = ("training", "held_out")
CORRELATED: tuple[Part, ...] = ("training", "all")
MIDDLE = 2  # position of the strength that is used where each method has one

SCHOTT = ("schott_random", "schott_composition", "schott_interpolation", "schott_extrapolation")
MONTERO = ("montero_range", "montero_element", "montero_extrapolation")
# One pair of factors a data set, from no correlation to a strong one.
TRAEUBLE = {"dsprites": "traeuble_b", "rooms": "traeuble_a"}
SIGMAS = (0.7, 0.4, 0.2)
ROTH = ("roth_single_1", "roth_double_1", "roth_confounder_1")


def montero2021() -> StudySpec:
    """180 models: do disentangled codes generalise to unseen combinations? 3 splits, 6 settings, 5 seeds."""
    methods: list[dict[str, Any]] = [
        {"name": "beta_vae", "beta": [1, 8, 12]},
        {"name": "factor_vae", "gamma": [20, 50, 100], "steps": 150_000},
    ]
    return _study("montero2021", methods, _conditions(MONTERO), SCORES, HELD_OUT)


def schott2022() -> StudySpec:
    """160 models: does supervision help with held-out values? 4 splits, 4 settings, 5 seeds."""
    methods: list[dict[str, Any]] = [
        {"name": "beta_vae", "beta": [1, 4]},
        {"name": "ada_gvae"},
        {"name": "supervised", "labels": 1000},
    ]
    return _study("schott2022", methods, _conditions(SCHOTT), SCORES, HELD_OUT)


def traeuble2021() -> StudySpec:
    """280 models: do correlated factors stay entangled? 4 strengths of correlation, 7 methods, 5 seeds."""
    data = [
        name
        for base, pair in TRAEUBLE.items()
        for name in (base, *(f"{base}:{pair}={sigma}" for sigma in SIGMAS))
    ]
    return _study("traeuble2021", [*_middle(METHODS), {"name": "ada_gvae"}], data, SCORES_ON_ALL, CORRELATED)


def roth2023() -> StudySpec:
    """320 models: how many correlated factors are too many? 4 conditions, 8 settings, 5 seeds."""
    methods: list[dict[str, Any]] = [
        {"name": "beta_vae", "beta": [4, 16]},
        {"name": "annealed_vae", "c_max": [5, 25]},
        {"name": "factor_vae", "gamma": [10, 50], "steps": 150_000},
        {"name": "beta_tcvae", "beta": [4, 10]},
    ]
    return _study("roth2023", methods, [*DATA, *_conditions(ROTH)], SCORES_ON_ALL, CORRELATED)


def _conditions(presets: tuple[str, ...]) -> list[str]:
    return [f"{data}:{preset}" for data in DATA for preset in presets]


def _middle(methods: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The methods with one strength each."""
    return [
        {name: value[MIDDLE] if isinstance(value, list) else value for name, value in method.items()}
        for method in methods
    ]


def _study(
    name: str, methods: list[dict[str, Any]], data: list[str], metrics: tuple[str, ...], on: tuple[Part, ...]
) -> StudySpec:
    runs = grid(methods, data=data, seed=SEEDS, **SHARED)
    return StudySpec(name, runs, metrics=metrics, representations=("mean",), on=on)
