"""How the report calls things, in which order it shows them, and what each score is good for.

Names of the published study are short enough for the axes of its figures. Whatever is not listed is shown
under its own name, after the others, so a new method or metric needs no entry here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import pandas as pd

from unweave.data.catalogue import short_name
from unweave.report.published import STUDY_SCORES
from unweave.results import COLUMNS, METHOD_ORDER

PUBLISHED_METHODS = {
    "beta_vae": "β-VAE",
    "factor_vae": "FactorVAE",
    "dip_vae_i": "DIP-VAE-I",
    "dip_vae_ii": "DIP-VAE-II",
    "beta_tcvae": "β-TCVAE",
    "annealed_vae": "AnnealedVAE",
}
# The published study and those that follow it.
METHODS = {
    **PUBLISHED_METHODS,
    **{f"s2_{name}": f"S2-{words}" for name, words in PUBLISHED_METHODS.items()},
    "ada_gvae": "Ada-GVAE",
    "ada_ml_vae": "Ada-ML-VAE",
    "gvae_labels": "GVAE (labels)",
    "ml_vae_labels": "ML-VAE (labels)",
    "supervised": "Supervised",
}
DATA = {
    "dsprites": "dSprites",
    "color_dsprites": "Color-dSprites",
    "noisy_dsprites": "Noisy-dSprites",
    "scream_dsprites": "Scream-dSprites",
    "smallnorb": "SmallNORB",
    "cars3d": "Cars3D",
    "shapes3d": "Shapes3D",
}
SCORES = {
    "beta_vae_score.eval_accuracy": "BetaVAE score",
    "factor_vae_score.eval_accuracy": "FactorVAE score",
    "mig": "MIG",
    "dci.disentanglement": "DCI",
    "modularity": "Modularity",
    "sap": "SAP",
    "irs": "IRS",
    "d_lsbd": "D_LSBD",
    "d_lsbd.shared": "D_LSBD (shared)",
    "d_lsbd.chance": "D_LSBD (shuffled)",
    "equivariance": "Equivariance",
    "equivariance.rotation": "Equivariance (rotations)",
    "elbo.reconstruction": "Reconstruction",
    "elbo.kl": "KL",
    "elbo.elbo": "ELBO",
    "elbo.active": "Active codes",
    "total_correlation": "TC",
    "total_correlation (mean)": "TC (mean)",
    "total_correlation (sampled)": "TC (sampled)",
    "wasserstein_correlation": "Wasserstein",
    "wasserstein_correlation_normalised": "Wasserstein/norm",
    "mean_pairwise_information": "Pairwise MI",
    "mean_pairwise_information (mean)": "Pairwise MI (mean)",
    "mean_pairwise_information (sampled)": "Pairwise MI (sampled)",
    "udr.lasso": "UDR (lasso)",
    "udr.spearman": "UDR (Spearman)",
    "model_centrality": "Centrality",
    **{
        f"few_labels.{metric}{number}{labeller and '_'}{labeller}": (
            f"{metric.upper()} ({words}{labeller and ', '}{labeller})"
        )
        for metric in ("dci", "mig")
        for number, words in (("", "few labels"), ("_1000", "1,000 labels"))
        for labeller in ("", "binned", "noisy", "permuted", "partial")
    },
    "generalisation.accuracy": "Accuracy",
    "generalisation.r2": "R2",
    "generalisation.reconstruction": "Reconstruction loss",
    "generalisation.squared_error": "Squared error",
    "fairness_trees.mean_unfairness": "Unfairness (GBT)",
    "fairness_trees.mean_unfairness (adjusted)": "Unfairness (GBT, adj.)",
    "fairness_logistic.mean_unfairness": "Unfairness (LR)",
    "fairness_logistic.mean_unfairness (adjusted)": "Unfairness (LR, adj.)",
    "downstream_logistic.efficiency": "LR efficiency",
    "downstream_trees.efficiency": "GBT efficiency",
    **{f"downstream_logistic.test_accuracy_{n}": f"LR {n:,}" for n in (10, 100, 1000, 10_000)},
    **{f"downstream_trees.test_accuracy_{n}": f"GBT {n:,}" for n in (10, 100, 1000, 10_000)},
    "downstream_strong.strong_test_accuracy": "GBT shifted",
    **{
        f"reasoning.accuracy_{matrices}": f"{matrices:,} matrices"
        for matrices in (
            32 * digits * power for power in (10, 100, 1000, 10_000) for digits in (10, 15, 20, 30, 50)
        )
    },
}

# What can be measured without a label, in the order of the figures.
UNSUPERVISED = (
    "elbo.reconstruction",
    "elbo.kl",
    "elbo.elbo",
    "elbo.active",
    *(
        f"{score} ({codes})"
        for score in ("total_correlation", "mean_pairwise_information")
        for codes in ("sampled", "mean")
    ),
)
# What `unweave select` chooses by: how well a run agrees with others, or metrics on a few labels.
CHOOSERS = ("udr.lasso", "udr.spearman", "model_centrality", "few_labels.dci", "few_labels.mig")
_OF_NO_METRIC = (
    *("elbo", "total_correlation", "wasserstein_correlation", "mean_pairwise_information"),
    *("udr", "model_centrality", "few_labels"),
    *("fairness_trees", "fairness_logistic", "d_lsbd", "reasoning"),
    "generalisation",
)
REASONED = "reasoning.accuracy_"  # followed by the number of training matrices
USUAL_STRENGTHS = ("beta", "lambda_od", "c_max", "gamma")  # where several settings have the same values
NUMBER_SETTING = re.compile(r"(\w+)=(-?[0-9.]+(?:e[-+]?[0-9]+)?)")  # in the text of settings
MOST_SCORES = 8  # so many columns are legible

# A smaller value of this method's strength regularises more: c_max is a capacity.
CAPACITY = ("annealed_vae",)


def label(name: str, labels: Mapping[str, str]) -> str:
    """The label of a name, or the name.

    Data with a long condition of the literature are called by the name of that condition.

    >>> label("beta_vae", METHODS), label("my_vae", METHODS), label("dsprites:x~y=0.2", DATA)
    ('β-VAE', 'my_vae', 'dSprites:x~y=0.2')
    """
    if name.startswith(REASONED) and name.removeprefix(REASONED).isdecimal():
        return f"{int(name.removeprefix(REASONED)):,} matrices"
    if name in labels or ":" not in name:
        return labels.get(name, name)
    base, _, condition = short_name(name).partition(":")
    return f"{labels.get(base, base)}:{condition}"


def score_label(name: str) -> str:
    """The label of a score.

    >>> score_label("mig"), score_label("few_labels.mig_1000_noisy"), score_label("few_labels.dci_partial")
    ('MIG', 'MIG (1,000 labels, noisy)', 'DCI (few labels, partial)')
    >>> score_label("reasoning.accuracy_8000")  # the last check may be after any number
    '8,000 matrices'
    """
    return label(name, SCORES)


def in_order(names: Iterable[str], order: Iterable[str]) -> list[str]:
    """The names without repeats, those of the order first, the others by name.

    >>> in_order(["mine", "beta_vae", "a"], METHODS)
    ['beta_vae', 'a', 'mine']
    """
    place = {name: i for i, name in enumerate(order)}
    return sorted(set(names), key=lambda name: (place.get(name, len(place)), name))


def data_sets(runs: pd.DataFrame) -> list[str]:
    """The data sets of runs, in the order of the figures."""
    return in_order(runs["data"], DATA)


def methods(runs: pd.DataFrame) -> list[str]:
    """The methods of runs, in the order of the figures."""
    return in_order(runs["method"], METHOD_ORDER)


def measured(runs: pd.DataFrame, names: Iterable[str]) -> list[str]:
    """Those of the scores that some run has."""
    return [name for name in names if name in runs and runs[name].notna().any()]


def choosers_of(runs: pd.DataFrame) -> list[str]:
    """The scores of `unweave select` that some run has, those for any number of labels included."""
    known = sorted(map(str, runs))
    names = [name for base in CHOOSERS for name in known if name == base or name.startswith(f"{base}_")]
    return measured(runs, names)


def metric_scores(runs: pd.DataFrame) -> list[str]:
    """The scores that are compared: the study's six, or up to eight others if there is none of them."""
    own = [str(name) for name in runs if name not in COLUMNS]
    others = [
        name
        for name in own
        if name.split(".")[0].removesuffix("_normalised") not in _OF_NO_METRIC
        and not name.startswith("downstream_")
        and "train" not in name
    ]
    return measured(runs, STUDY_SCORES) or measured(runs, others)[:MOST_SCORES]


def downstream_scores(runs: pd.DataFrame) -> tuple[list[str], list[str]]:
    """The accuracies of downstream tasks, and their statistical efficiencies."""
    names = measured(runs, in_order((str(name) for name in runs if name not in COLUMNS), SCORES))
    tasks = [name for name in names if name.startswith("downstream_")]
    return (
        [name for name in tasks if ".test_accuracy_" in name or name.endswith(".strong_test_accuracy")],
        [name for name in tasks if name.endswith(".efficiency")],
    )


def setting_labels(runs: pd.DataFrame) -> pd.Series[str]:
    """One label for each method with its setting."""
    return runs["method"] + " " + runs["setting"]


def regularisation_steps(runs: pd.DataFrame) -> pd.Series[int]:
    """For each run the place of its strength among those of its method, 0 for the weakest regularisation.

    Methods have strengths of different scales; their places can share an axis. Runs without a strength are
    at place 0.
    """
    strength = runs["strength"].where(~runs["method"].isin(CAPACITY), -runs["strength"])
    rank = strength.groupby(runs["method"]).rank("dense").fillna(1.0)
    return (rank - 1).astype(np.int64).rename("step")


def strength_names(runs: pd.DataFrame) -> dict[str, str]:
    """For each method the name of the setting whose values are its strengths; "strength" if there is none.

    >>> runs = pd.DataFrame({"method": ["m", "m"], "setting": ["a=1,b=4", "a=1,b=6"], "strength": [4.0, 6.0]})
    >>> strength_names(runs)
    {'m': 'b'}
    """
    names = {}
    for method, part in runs.drop_duplicates(["method", "setting", "strength"]).groupby("method", sort=False):
        parsed = [dict(NUMBER_SETTING.findall(text)) for text in part["setting"]]
        strengths = part["strength"].tolist()
        fitting = [
            name
            for name in parsed[0]
            if all(float(row.get(name, "nan")) == value for row, value in zip(parsed, strengths, strict=True))
        ]
        usual = [name for name in USUAL_STRENGTHS if name in fitting]
        names[str(method)] = [*usual, *fitting, "strength"][0]
    return names


def setting_label(method: str, strength: float, setting: str) -> str:
    """A short name of a setting: the method and its strength.

    >>> setting_label("beta_vae", 4.0, "beta=4")
    'β-VAE 4'
    """
    return (
        f"{label(method, METHODS)} {strength:g}" if np.isfinite(strength) else f"{method} {setting}".strip()
    )


def listed(words: Sequence[str]) -> str:
    """Words as a part of a sentence.

    >>> listed(["MIG", "DCI", "SAP"])
    'MIG, DCI and SAP'
    """
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def counted(number: int, what: str) -> str:
    """So many of something.

    >>> counted(1, "run"), counted(12600, "run")
    ('1 run', '12,600 runs')
    """
    return f"{number:,} {what}{'' if number == 1 else 's'}"
