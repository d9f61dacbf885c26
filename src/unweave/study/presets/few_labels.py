"""The study of few labels: training without labels and choosing by them, against training with them.

Locatello, Tschannen, Bauer, Rätsch, Schölkopf, Bachem: Disentangling factors of variation using few labels,
ICLR 2020.

Both arms have the same base methods and strengths. The unsupervised runs are chosen by metrics on the labels.
The semi-supervised runs are trained on 90% of the labels and chosen by their supervised loss on the other
10%. `unweave select --by few_labels` computes the scores of both choices.
"""

from __future__ import annotations

from typing import Any

from unweave.study.presets.published import METHODS, SHARED
from unweave.study.spec import StudySpec, grid

# The methods of the paper; the values of their settings are those of Locatello et al. (2019).
BASES = ("beta_vae", "factor_vae", "dip_vae_i", "beta_tcvae")
DATA = ["dsprites", "smallnorb", "cars3d", "shapes3d"]
LABELS = [100, 1000]
LABELLERS = ["perfect", "binned", "noisy", "permuted", "partial"]
SEEDS = "0-4"


def locatello2020_few_labels() -> StudySpec:
    """280 models on dSprites: four methods, 2 strengths, 5 seeds; without labels, with 100 and with 1,000.

    40 models have no labels, 80 have 100 or 1,000 perfect labels, and 160 have 100 labels of the four other
    labellers.
    """
    bases = [
        {name: value[::3] if isinstance(value, list) else value for name, value in method.items()}
        for method in _bases()
    ]
    methods = [
        *bases,
        *_semi_supervised(bases, labels=LABELS),
        *_semi_supervised(bases, labels=LABELS[0], labeller=LABELLERS[1:]),
    ]
    return StudySpec("locatello2020_few_labels", grid(methods, data="dsprites", seed=SEEDS, **SHARED))


def locatello2020_few_labels_full() -> StudySpec:
    """14,880 models: the same on 4 data sets with 6 strengths, 3 weights and 5 labellers for both numbers."""
    bases = _bases()
    taught = _semi_supervised(bases, labels=LABELS, labeller=LABELLERS, gamma_sup=[1, 4, 16])
    runs = grid([*bases, *taught], data=DATA, seed=SEEDS, **SHARED)
    return StudySpec("locatello2020_few_labels_full", runs)


def _bases() -> list[dict[str, Any]]:
    return [method for method in METHODS if method["name"] in BASES]


def _semi_supervised(bases: list[dict[str, Any]], **settings: Any) -> list[dict[str, Any]]:
    """The methods with labels, of which 10% are held out."""
    return [base | {"name": f"s2_{base['name']}", "train_percentage": 90} | settings for base in bases]
