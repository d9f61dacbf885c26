"""The published results [1, 2]: scores of the mean codes of 10,800 released models, six data sets.

The files are read as they were published, one for each data set. They are not part of this package. Columns
`loss` and `regularizer` are not read, because they mean something else for each method.

[1] Locatello et al.: Challenging common assumptions in the unsupervised learning of disentangled
representations, ICML 2019.
[2] J. Hartmann, ISS-Seminar, 2021: the scores of the released models of [1] in files.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from unweave.errors import UnweaveError, did_you_mean
from unweave.results import Results, check_table, long_table, read_frame, setting_text

RUNS_OF_A_DATA_SET = 1800  # 6 methods x 6 settings x 50 seeds

# The six scores that the study compares.
STUDY_SCORES = (
    "beta_vae_score.eval_accuracy",
    "factor_vae_score.eval_accuracy",
    "mig",
    "dci.disentanglement",
    "modularity",
    "sap",
)

DATA = {
    "dsprites_full": "dsprites",
    "color_dsprites": "color_dsprites",
    "noisy_dsprites": "noisy_dsprites",
    "scream_dsprites": "scream_dsprites",
    "smallnorb": "smallnorb",
    "cars3d": "cars3d",
}

# The estimators of the study, as unweave.metrics states them.
PROTOCOLS = {
    "beta_vae_score": "beta_vae_score[pairs64,logistic-ovr,train10000,test5000,mean]",
    "factor_vae_score": "factor_vae_score[batch64,std0.05,train10000,test5000,mean]",
    "mig": "mig[bins20,mean]",
    "dci": "dci[trees100,depth3,rate0.1,mean]",
    "sap": "sap[svm-ovr,C0.01,mean]",
    "modularity": "modularity[bins20,dead0,mean]",
    "explicitness": "explicitness[logistic-ovr,auc,mean]",
    "elbo": "elbo[sample1]",
}

SCORES = {
    "beta_vae_score.train_accuracy": "beta_vae_train_accuracy",
    "beta_vae_score.eval_accuracy": "beta_vae_eval_accuracy",
    "factor_vae_score.train_accuracy": "factor_vae_train_accuracy",
    "factor_vae_score.eval_accuracy": "factor_vae_eval_accuracy",
    "mig": "mig_discrete_mig",
    "dci.disentanglement": "dci_disentanglement",
    "dci.completeness": "dci_completeness",
    "dci.informativeness_train": "dci_informativeness_train",
    "dci.informativeness_test": "dci_informativeness_test",
    "sap": "sap_score",
    "modularity": "modularity_score",
    "explicitness.train": "modularity_explicitness_score_train",
    "explicitness.test": "modularity_explicitness_score_test",
    "elbo.reconstruction": "reconstruction_loss",
    "elbo.kl": "kl_loss",
    "elbo.elbo": "elbo",
}


class PublishedMethod(NamedTuple):
    """How a method is called here, the column of its strength, and all its settings given a row."""

    name: str
    strength: str
    settings: Callable[[Mapping[str, Any]], dict[str, Any]]


def _dip_settings(row: Mapping[str, Any]) -> dict[str, Any]:
    return {"lambda_od": row["dip_vae_lambda_od"], "lambda_d_factor": row["dip_vae_lambda_d_factor"]}


METHODS = {
    "beta_vae": PublishedMethod("beta_vae", "vae_beta", lambda row: {"beta": row["vae_beta"]}),
    "factor_vae": PublishedMethod(
        "factor_vae",
        "factor_vae_gamma",
        lambda row: {"gamma": row["factor_vae_gamma"], "second_batch": False},
    ),
    "dip_vae_i": PublishedMethod("dip_vae_i", "dip_vae_lambda_od", _dip_settings),
    "dip_vae_ii": PublishedMethod("dip_vae_ii", "dip_vae_lambda_od", _dip_settings),
    "beta_tc_vae": PublishedMethod(
        "beta_tcvae",
        "beta_tc_vae_beta",
        lambda row: {"alpha": 1, "beta": row["beta_tc_vae_beta"], "gamma": 1, "estimator": "weighted"},
    ),
    "annealed_vae": PublishedMethod(
        "annealed_vae",
        "annealed_vae_c_max",
        lambda row: {"gamma": 1000, "c_max": row["annealed_vae_c_max"], "iteration_threshold": 100_000},
    ),
}

_DESCRIPTION = (
    "model_num",
    "dataset",
    "model_name",
    "vae_beta",
    "factor_vae_gamma",
    "dip_vae_lambda_d_factor",
    "dip_vae_lambda_od",
    "beta_tc_vae_beta",
    "annealed_vae_c_max",
    "model_random_seed",
)


def published(folder: str | Path) -> Results:
    """The results in a folder of files results_<data set>.csv; the notes say what is missing.

    Files of averages, results_<data set>_aggregated.csv, are passed over.
    """
    paths = [
        path for path in sorted(Path(folder).glob("results_*.csv")) if not path.stem.endswith("_aggregated")
    ]
    if not paths:
        raise UnweaveError(
            f"{folder} has no file of published results; they are called results_dsprites_full.csv and so on."
        )
    results = check_table(pd.concat([_read(path) for path in paths], ignore_index=True))
    runs = results.table.drop_duplicates("run")["data"].value_counts()
    short = [
        f"published: {runs.get(data, 0):,} of {RUNS_OF_A_DATA_SET:,} runs on {data}."
        for data in DATA.values()
        if runs.get(data, 0) != RUNS_OF_A_DATA_SET
    ]
    return Results(results.table, (*short, *results.notes))


def is_published(frame: pd.DataFrame) -> bool:
    """Whether a table has the columns that describe published runs."""
    return set(_DESCRIPTION) <= set(frame.columns)


def _read(path: Path) -> pd.DataFrame:
    frame = read_frame(path)
    absent = [name for name in (*_DESCRIPTION, *SCORES.values()) if name not in frame]
    if absent:
        raise UnweaveError(
            f"{path} is not a file of published results: it has no column {', '.join(absent)}."
        )
    for column, known in (("dataset", DATA), ("model_name", METHODS)):
        frame[column] = frame[column].astype(str).str.strip("'\"")
        for name in frame[column].unique():
            if name not in known:
                raise UnweaveError(f'{path} has "{name}" as {column}. {did_you_mean(name, known)}')
    runs = pd.DataFrame([_run(row) for row in frame[list(_DESCRIPTION)].to_dict("records")])
    scores = pd.DataFrame({name: frame[column] for name, column in SCORES.items()})
    table = long_table(runs, scores, {name: PROTOCOLS[name.split(".")[0]] for name in SCORES})
    of_the_run = table["score"].str.startswith("elbo.")
    table["representation"] = of_the_run.map({True: "", False: "mean"})
    return table


def _run(row: Mapping[Any, Any]) -> dict[str, Any]:
    data, method = DATA[row["dataset"]], METHODS[row["model_name"]]
    return {
        "source": "published",
        "run": f"published-{data}-{row['model_num']}",
        "data": data,
        "method": method.name,
        "setting": setting_text(method.settings(row)),
        "strength": row[method.strength],
        "seed": row["model_random_seed"],
    }
