"""The study of the question: do circular factors act on codes as rotations, and do metrics notice."""

from __future__ import annotations

from typing import Any

from unweave.study.spec import StudySpec, grid

# dSprites has one circular factor, the orientation; rooms has three hues, a torus.
DATA = ["dsprites", "rooms"]
METHODS: list[dict[str, Any]] = [
    {"name": "beta_vae", "beta": [1, 4, 16]},
    {"name": "factor_vae", "gamma": [10, 40, 100]},
    {"name": "dip_vae_i", "lambda_od": [1, 5, 50]},
    {"name": "beta_tcvae", "beta": [1, 4, 10]},
    {"name": "ada_gvae", "beta": [1, 4, 16]},
]
# No metric that encodes all images, so that the study in small takes minutes without a GPU.
METRICS = "mig, dci, sap, modularity, explicitness, d_lsbd, equivariance"


def tonnaer2022() -> StudySpec:
    """150 models: five methods with 3 strengths on dSprites and rooms, 5 seeds, measured by D_LSBD."""
    runs = grid(METHODS, data=DATA, seed="0-4", steps=100_000, architecture="released", precision="bf16")
    return StudySpec("tonnaer2022", runs, metrics=METRICS)
