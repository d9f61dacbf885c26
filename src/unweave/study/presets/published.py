"""The published studies of unsupervised and weakly supervised learning, and a small one for a first look."""

from __future__ import annotations

import dataclasses
from typing import Any

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
# The settings of Locatello et al. (2020), whose GVAE and ML-VAE know which factors of a pair have
# changed. Pairs and variances follow the released code.
BETAS = [1, 2, 4, 6, 8, 16]
ON_PAIRS: list[dict[str, Any]] = [
    {"name": "ada_gvae"},
    {"name": "ada_ml_vae", "variance": "published"},
    {"name": "gvae_labels"},
    {"name": "ml_vae_labels", "variance": "published"},
]
WEAK_DATA = ["dsprites", "smallnorb", "cars3d", "shapes3d", "mpi3d_toy"]
SHARED: dict[str, Any] = {"steps": 300_000, "architecture": "released", "precision": "bf16"}


def locatello2019() -> StudySpec:
    """The 12,600 models of Challenging common assumptions: 7 data sets, 36 settings, 50 seeds."""
    return StudySpec("locatello2019", grid(METHODS, data=DATA, seed="0-49", **SHARED))


def locatello2019_dsprites() -> StudySpec:
    """The 1,800 models of the same study on dSprites."""
    return StudySpec("locatello2019_dsprites", grid(METHODS, data="dsprites", seed="0-49", **SHARED))


def locatello2019_mini() -> StudySpec:
    """The 72 models of its 36 settings on dSprites with two seeds each: the study in small."""
    return StudySpec("locatello2019_mini", grid(METHODS, data="dsprites", seed="0-1", **SHARED))


def locatello2020_weak() -> StudySpec:
    """150 models on dSprites: four methods that learn from pairs and the beta-VAE, 6 betas, 5 seeds."""
    runs = grid(_weak_methods(["published"]), data="dsprites", seed="0-4", **SHARED)
    return StudySpec("locatello2020_weak", runs)


def locatello2020_weak_full() -> StudySpec:
    """The same on 5 data sets with 50 seeds, for pairs that differ in one factor and in several: 13,500."""
    runs = grid(_weak_methods([1, "published"]), data=WEAK_DATA, seed="0-49", **SHARED)
    return StudySpec("locatello2020_weak_full", runs)


def hartmann2021() -> StudySpec:
    """The 10,800 models that Hartmann compared: the same without Shapes3D."""
    return StudySpec("hartmann2021", grid(METHODS, data=DATA[:-1], seed="0-49", **SHARED))


def smoke() -> StudySpec:
    """Twelve short runs, some minutes on a CPU, to see that everything works."""
    methods = [{k: v[:1] if isinstance(v, list) else v for k, v in method.items()} for method in METHODS]
    runs = grid(methods, data="dsprites", seed="0-1", batch=32, learning_rate=1e-3)
    short = tuple(dataclasses.replace(run, steps=200) for run in runs)
    return StudySpec("smoke", short, metrics="mig, sap, modularity, dci, elbo", points=(2_000, 1_000))


def _weak_methods(changed: list[Any]) -> list[dict[str, Any]]:
    """Pairs that differ in so many factors, and single images."""
    on_pairs = [method | {"beta": BETAS, "changed": changed} for method in ON_PAIRS]
    return [*on_pairs, {"name": "beta_vae", "beta": BETAS}]
