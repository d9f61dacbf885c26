"""Studies that have a name: the published one, parts of it, and a small one for a first look."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

from unweave.errors import UnweaveError, did_you_mean
from unweave.spec import RunSpec
from unweave.study.spec import StudySpec, grid

# The settings of Locatello et al. (2019). The published FactorVAE models made half of the updates of the
# others.
METHODS: list[dict[str, Any]] = [
    {"name": "beta_vae", "beta": [1, 2, 4, 6, 8, 16]},
    {"name": "annealed_vae", "c_max": [5, 10, 25, 50, 75, 100]},
    {"name": "factor_vae", "gamma": [10, 20, 30, 40, 50, 100], "steps": 150_000},
    {"name": "dip_vae_i", "lambda_od": [1, 2, 5, 10, 20, 50]},
    {"name": "dip_vae_ii", "lambda_od": [1, 2, 5, 10, 20, 50]},
    {"name": "beta_tcvae", "beta": [1, 2, 4, 6, 8, 10]},
]
DATA = [
    "dsprites",
    "color_dsprites",
    "noisy_dsprites",
    "scream_dsprites",
    "smallnorb",
    "cars3d",
    "shapes3d",
]
SHARED: dict[str, Any] = {"steps": 300_000, "architecture": "released", "precision": "bf16"}


def locatello2019() -> StudySpec:
    """The 12,600 models of Challenging common assumptions: 7 data sets, 36 settings, 50 seeds."""
    return StudySpec("locatello2019", grid(METHODS, data=DATA, seed="0-49", **SHARED))


def locatello2019_dsprites() -> StudySpec:
    """The 1,800 models of the same study on dSprites."""
    return StudySpec("locatello2019_dsprites", grid(METHODS, data="dsprites", seed="0-49", **SHARED))


def hartmann2021() -> StudySpec:
    """The 10,800 models that Hartmann compared: the same without Shapes3D."""
    return StudySpec("hartmann2021", grid(METHODS, data=DATA[:-1], seed="0-49", **SHARED))


def smoke() -> StudySpec:
    """Twelve short runs, some minutes on a CPU, to see that everything works."""
    methods = [{k: v[:1] if isinstance(v, list) else v for k, v in method.items()} for method in METHODS]
    runs = grid(methods, data="dsprites", seed="0-1", batch=32, learning_rate=1e-3)
    short = tuple(dataclasses.replace(run, steps=200) for run in runs)
    return StudySpec("smoke", short, metrics="mig, sap, modularity, dci, elbo", points=(2_000, 1_000))


PRESETS: dict[str, Callable[[], StudySpec]] = {
    "locatello2019": locatello2019,
    "locatello2019_dsprites": locatello2019_dsprites,
    "hartmann2021": hartmann2021,
    "smoke": smoke,
}


def preset_named(name: str) -> StudySpec:
    """The study of that name."""
    if name not in PRESETS:
        raise UnweaveError(f'there is no study "{name}". {did_you_mean(name, PRESETS)}')
    return PRESETS[name]()


def with_fields(spec: StudySpec, **fields: Any) -> StudySpec:
    """The same study with some fields of all runs changed, such as a shorter training."""
    changed = {name: value for name, value in fields.items() if value is not None}
    return dataclasses.replace(spec, runs=tuple(_with(run, changed) for run in spec.runs))


def _with(run: RunSpec, fields: dict[str, Any]) -> RunSpec:
    return dataclasses.replace(run, **fields)
