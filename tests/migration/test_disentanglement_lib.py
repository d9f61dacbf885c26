"""Results of disentanglement_lib: folders and aggregated files become one table of results."""

import json
import math
from pathlib import Path
from shutil import rmtree

import pandas as pd
import pytest

import unweave
from command_line import run_here
from migration.dlib_files import HISTOGRAM, MIG, TrainedModel, aggregated, evaluation, write
from unweave.errors import UnweaveError
from unweave.metrics import METRICS
from unweave.migration import read_disentanglement_lib
from unweave.report.published import PROTOCOLS, published
from unweave.results import read_table

BETA_VAE = {"evaluation.evaluation_fn": "@beta_vae_sklearn"} | {
    f"beta_vae_sklearn.{name}": value
    for name, value in {"batch_size": "64", "num_train": "10000", "num_eval": "5000"}.items()
}
FACTOR_VAE = {
    "evaluation.evaluation_fn": "@factor_vae_score",
    "factor_vae_score.batch_size": "64",
    "factor_vae_score.num_train": "10000",
    "factor_vae_score.num_eval": "5000",
    "factor_vae_score.num_variance_estimate": "10000",
    "prune_dims.threshold": "0.05",
}
DCI = {"evaluation.evaluation_fn": "@dci", "dci.num_train": "10000", "dci.num_test": "5000"}
SAP = {
    "evaluation.evaluation_fn": "@sap_score",
    "sap_score.num_train": "10000",
    "sap_score.num_test": "5000",
    "sap_score.continuous_factors": "False",
}
MODULARITY = {
    "evaluation.evaluation_fn": "@modularity_explicitness",
    "modularity_explicitness.num_train": "10000",
    "modularity_explicitness.num_test": "5000",
    **HISTOGRAM,
}
UNSUPERVISED = {
    "evaluation.evaluation_fn": "@unsupervised_metrics",
    "unsupervised_metrics.num_train": "10000",
    **HISTOGRAM,
}
DOWNSTREAM = {
    "evaluation.evaluation_fn": "@downstream_task",
    "downstream_task.num_train": "[10, 100, 1000, 10000]",
    "downstream_task.num_test": "5000",
    "predictor.predictor_fn": "@gradient_boosting_classifier",
}
# The evaluations of the published study, with results that can be distinguished.
STUDY = [
    (BETA_VAE, {"train_accuracy": 0.11, "eval_accuracy": 0.12}),
    (FACTOR_VAE, {"train_accuracy": 0.21, "eval_accuracy": 0.22, "num_active_dims": 10}),
    (MIG, {"discrete_mig": 0.31}),
    (
        DCI,
        {
            "informativeness_train": 0.41,
            "informativeness_test": 0.42,
            "disentanglement": 0.43,
            "completeness": 0.44,
        },
    ),
    (SAP, {"SAP_score": 0.51}),
    (
        MODULARITY,
        {"modularity_score": 0.61, "explicitness_score_train": 0.62, "explicitness_score_test": 0.63},
    ),
]


def value_of(table: pd.DataFrame, score: str, representation: str = "mean") -> float:
    [value] = table[(table["score"] == score) & (table["representation"] == representation)]["value"]
    return float(value)


def in_order(table: pd.DataFrame) -> pd.DataFrame:
    """The rows of a table as plain text and numbers, sorted."""
    words = ["run", "representation", "score", "protocol"]
    return table.astype(dict.fromkeys(words, str)).sort_values(words, ignore_index=True)[[*words, "value"]]


def test_all_scores_of_the_study_keep_their_values_and_published_protocols(tmp_path: Path) -> None:
    model = TrainedModel({"vae.beta": "4.0"}, {"elbo": -60.5, "kl_loss": 20.25, "reconstruction_loss": 40.25})
    for i, (bindings, results) in enumerate(STUDY):
        evaluation(tmp_path / "metrics" / "mean" / str(i), model, results, bindings)
    read = read_disentanglement_lib(tmp_path)
    table = read.table
    assert read.notes == ()
    assert table["run"].nunique() == 1
    # The names and protocols with which the published scores of the same metrics are read.
    assert {
        s.partition(".")[0]: p for s, p in zip(table["score"], table["protocol"], strict=True)
    } == PROTOCOLS
    assert value_of(table, "beta_vae_score.eval_accuracy") == 0.12
    assert value_of(table, "factor_vae_score.train_accuracy") == 0.21
    assert value_of(table, "mig") == 0.31
    assert value_of(table, "dci.completeness") == 0.44
    assert value_of(table, "sap") == 0.51
    assert value_of(table, "explicitness.test") == 0.63
    assert value_of(table, "elbo.kl", "") == 20.25
    assert value_of(table, "elbo.elbo", "") == -60.5
    [row] = table[table["score"] == "mig"].to_dict("records")
    described = [row[name] for name in ("source", "data", "method", "setting", "strength", "seed")]
    assert described == ["disentanglement_lib", "dsprites", "beta_vae", "beta=4", 4.0, 0]


def test_runs_are_described_like_published_ones(tmp_path: Path, reference: Path) -> None:
    models = [
        {"vae.beta": "16.0"},
        {"model.model": "@factor_vae()", "factor_vae.gamma": "10.0"},
        {
            "model.model": "@dip_vae()",
            "dip_vae.lambda_od": "5.0",
            "dip_vae.lambda_d_factor": "10.0",
            "dip_vae.dip_type": "'i'",
        },
        {
            "model.model": "@dip_vae()",
            "dip_vae.lambda_od": "50.0",
            "dip_vae.lambda_d_factor": "1.0",
            "dip_vae.dip_type": "'ii'",
        },
        {"model.model": "@beta_tc_vae()", "beta_tc_vae.beta": "6.0"},
        {
            "model.model": "@annealed_vae()",
            "annealed_vae.gamma": "1000",
            "annealed_vae.c_max": "25.0",
            "annealed_vae.iteration_threshold": "100000",
        },
    ]
    for i, bindings in enumerate(models):
        evaluation(tmp_path / str(i), TrainedModel(bindings), {"discrete_mig": 0.1})
    columns = ["data", "method", "setting", "strength"]
    ours = read_disentanglement_lib(tmp_path).table
    theirs = published(reference / "reference" / "published").table
    described = {tuple(row) for row in ours[columns].astype(object).itertuples(index=False)}
    assert len(described) == len(models)
    assert described <= {tuple(row) for row in theirs[columns].drop_duplicates().itertuples(index=False)}


def test_an_aggregated_file_has_the_same_rows_and_copies_count_once(tmp_path: Path) -> None:
    models = [
        TrainedModel({"vae.beta": "4.0", "model.random_seed": str(seed)}, {"elbo": -1.0}) for seed in range(2)
    ]
    folders = [
        evaluation(tmp_path / str(i) / kind, model, {"discrete_mig": 0.1 * i}, representation=kind)
        for i, model in enumerate(models)
        for kind in ("mean", "sampled")
    ]
    folders.append(evaluation(tmp_path / "dci", models[0], {"disentanglement": 0.5}, DCI))
    file = aggregated(tmp_path / "all.json", folders)
    for folder in folders:  # a folder as old versions of the tool leave it
        rmtree(folder / "gin")
        rmtree(folder / "json")
    from_folder = read_disentanglement_lib(tmp_path).table
    for places in ((file,), (tmp_path, file), (file, file)):
        table = read_disentanglement_lib(*places).table
        pd.testing.assert_frame_equal(in_order(table), in_order(from_folder))
    assert len(from_folder) == 4 + 1 + 2


def test_other_settings_of_an_estimator_are_stated_in_the_protocol(tmp_path: Path) -> None:
    model = TrainedModel({"vae.beta": "1.0"})
    fewer = {"sap_score.num_train": "600", "sap_score.num_test": "300"}
    changed = {
        "mig": (MIG | {"discretizer.num_bins": "10"}, {"discrete_mig": 0.1}),
        "sap": (SAP | fewer, {"SAP_score": 0.2}),
        "sap_correlation": (SAP | {"sap_score.continuous_factors": "True"}, {"SAP_score": 0.3}),
        "beta_vae_score.eval_accuracy": (
            BETA_VAE | {"beta_vae_sklearn.num_train": "100"},
            {"eval_accuracy": 0.4},
        ),
        "factor_vae_score.eval_accuracy": (
            FACTOR_VAE | {"prune_dims.threshold": "0.0"},
            {"eval_accuracy": 0.5},
        ),
    }
    for name, (bindings, results) in changed.items():
        evaluation(tmp_path / name, model, results, bindings)
    table = read_disentanglement_lib(tmp_path).table
    protocols = dict(zip(table["score"], table["protocol"], strict=True))
    usual = {metric.name: metric.protocol() for metric in METRICS}
    assert protocols["sap"] == "sap[svm-ovr,C0.01,n600+300,mean]"
    assert protocols["sap_correlation"] == usual["sap_correlation"]
    assert "discretizer.num_bins=10" in protocols["mig"]
    assert "beta_vae_sklearn.num_train=100" in protocols["beta_vae_score.eval_accuracy"]
    assert "prune_dims.threshold=0.0" in protocols["factor_vae_score.eval_accuracy"]
    for name in ("mig", "beta_vae_score.eval_accuracy", "factor_vae_score.eval_accuracy"):
        assert "[disentanglement_lib," in protocols[name]


def test_unsupervised_and_downstream_scores_and_unknown_metrics(tmp_path: Path) -> None:
    model = TrainedModel({"vae.beta": "1.0"})
    measured = {
        "gaussian_total_correlation": 1.5,
        "gaussian_wasserstein_correlation": 0.25,
        "gaussian_wasserstein_correlation_norm": 0.125,
        "mutual_info_score": 0.5,
    }
    evaluation(tmp_path / "0", model, measured, UNSUPERVISED)
    accuracies = {
        "1000:mean_test_accuracy": 0.75,
        "1000:mean_train_accuracy": 1.0,
        "1000:min_test_accuracy": 0.5,
    }
    evaluation(tmp_path / "1", model, accuracies, DOWNSTREAM)
    own = {"evaluation.evaluation_fn": "@my_score", "my_score.size": "3"}
    evaluation(tmp_path / "2", model, {"total": 2.0, "label": "text"}, own, representation="other")
    table = read_disentanglement_lib(tmp_path).table
    protocols = dict(zip(table["score"], table["protocol"], strict=True))
    # unweave.metrics.total_correlation: "jitter=0 gives its numbers".
    assert protocols["total_correlation"] == "total_correlation[gaussian,jitter0,mean]"
    assert value_of(table, "wasserstein_correlation_normalised") == 0.125
    assert value_of(table, "mean_pairwise_information") == 0.5
    assert value_of(table, "downstream_trees.test_accuracy_1000") == 0.75
    assert protocols["downstream_trees.test_accuracy_1000"] == "downstream[trees100,10,100,1000,10000,mean]"
    assert protocols["my_score.total"] == "my_score[disentanglement_lib,my_score.size=3,other_representation]"
    assert len(table) == 6


def test_unfairness(tmp_path: Path) -> None:
    measured = {
        "mean_fairness:mean_pred:mean_sens": 0.125,
        "mean_fairness:max_pred:max_sens": 0.5,
        "mean_fairness:pred0:sens1": 0.25,
        "max_fairness:mean_pred:mean_sens": 0.75,
    }
    study = {
        "evaluation.evaluation_fn": "@fairness",
        "fairness.num_train": "10000",
        "fairness.num_test_points_per_class": "100",
        "predictor.predictor_fn": "@gradient_boosting_classifier",
    }
    model = TrainedModel({"vae.beta": "1.0"})
    evaluation(tmp_path / "0", model, measured, study)
    other = study | {"predictor.predictor_fn": "@logistic_regression_cv", "fairness.num_train": "500"}
    evaluation(tmp_path / "1", model, measured, other)
    table = read_disentanglement_lib(tmp_path).table
    protocols = dict(zip(table["score"], table["protocol"], strict=True))
    assert value_of(table, "fairness_trees.mean_unfairness") == 0.125
    assert value_of(table, "fairness_trees.max_unfairness") == 0.5
    trees = next(metric for metric in METRICS if metric.name == "fairness_trees")
    assert protocols["fairness_trees.mean_unfairness"] == trees.protocol()
    assert "fairness.num_train=500" in protocols["fairness_logistic.mean_unfairness"]
    assert len(table) == 4


def test_downstream_tasks_under_a_shift(tmp_path: Path) -> None:
    """Numbers of 10,000 training points have a metric in unweave; those of others keep their names."""
    published = {
        "evaluation.evaluation_fn": "@strong_downstream_task",
        "strong_downstream_task.num_train": "[10000]",
        "strong_downstream_task.num_test": "5000",
        "strong_downstream_task.n_experiment": "10",
        "predictor.predictor_fn": "@gradient_boosting_classifier",
    }
    model = TrainedModel({"vae.beta": "1.0"})
    measured = {"10000:mean_test_accuracy": 0.5, "10000:mean_strong_test_accuracy": 0.25}
    evaluation(tmp_path / "0", model, measured, published)
    few = published | {"strong_downstream_task.num_train": "[100]"}
    evaluation(tmp_path / "1", model, {"100:mean_strong_test_accuracy": 0.125}, few)
    table = read_disentanglement_lib(tmp_path).table
    protocols = dict(zip(table["score"], table["protocol"], strict=True))
    assert value_of(table, "downstream_strong.test_accuracy") == 0.5
    assert value_of(table, "downstream_strong.strong_test_accuracy") == 0.25
    strong = next(metric for metric in METRICS if metric.name == "downstream_strong")
    assert protocols["downstream_strong.test_accuracy"] == strong.protocol()
    assert value_of(table, "strong_downstream_task.100:mean_strong_test_accuracy") == 0.125
    assert len(table) == 3


def test_a_model_without_equivalent_keeps_its_name_and_a_note_says_so(tmp_path: Path) -> None:
    for i, beta in enumerate(("1.0", "2.0")):
        model = TrainedModel({"model.model": "@my_vae()", "my_vae.beta": beta, "my_vae.layers": "[1, 2]"})
        evaluation(tmp_path / str(i), model, {"discrete_mig": 0.1})
    results = read_disentanglement_lib(tmp_path)
    assert set(results.table["method"]) == {"my_vae"}
    assert set(results.table["setting"]) == {f"my_vae.beta={b},my_vae.layers=[1, 2]" for b in (1, 2)}
    assert sorted(results.table["strength"]) == [1.0, 2.0]
    assert len([note for note in results.notes if note.startswith("my_vae keeps its name")]) == 1


def test_the_lowest_seed_of_repeated_evaluations_is_kept(tmp_path: Path) -> None:
    model = TrainedModel({"vae.beta": "1.0"})
    for seed in (2, 0, 1):
        evaluation(tmp_path / str(seed), model, {"discrete_mig": 0.1 * (seed + 1)}, seed=seed)
    results = read_disentanglement_lib(tmp_path)
    assert value_of(results.table, "mig") == 0.1
    assert results.notes == ("2 scores were measured again; those of the lowest evaluation seed are kept.",)


def test_nan_is_left_out_and_wrapped_lines_are_read(tmp_path: Path) -> None:
    long = "'" + "x" * 90 + "'"
    model = TrainedModel({"vae.beta": "1.0", "dataset.name": long})
    folder = evaluation(tmp_path, model, {"discrete_mig": 0.1, "other": math.nan})
    assert json.loads((folder / "json" / "train_config.json").read_text())["dataset.name"] == "\\"
    assert set(read_disentanglement_lib(tmp_path).table["data"]) == {"x" * 90}


def test_wrong_input_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UnweaveError, match="name what to read"):
        read_disentanglement_lib()
    with pytest.raises(UnweaveError, match=r"there is no .*absent"):
        read_disentanglement_lib(tmp_path / "absent")
    with pytest.raises(UnweaveError, match="has no results of disentanglement_lib"):
        read_disentanglement_lib(tmp_path)
    for text, words in (
        ("{", "cannot be read as JSON"),
        ("[]", "must hold a JSON object"),
        ('{"a": 1}', "is not a file of"),
    ):
        with pytest.raises(UnweaveError, match=words):
            read_disentanglement_lib(write(tmp_path / "wrong.json", text))
    record = {"evaluation_results.discrete_mig": {"0": 0.1}}
    with pytest.raises(UnweaveError, match=r"row 0 has no complete train_config: .*dataset\.name"):
        read_disentanglement_lib(write(tmp_path / "bare.json", json.dumps(record)))


@pytest.mark.usefixtures("quick_fonts")
def test_the_command_writes_a_table_that_a_report_reads(tmp_path: Path) -> None:
    for seed in range(3):
        for beta in ("1.0", "4.0"):
            model = TrainedModel({"vae.beta": beta, "model.random_seed": str(seed)})
            evaluation(
                tmp_path / "old" / f"{seed}-{beta}", model, {"discrete_mig": 0.1 * seed + float(beta) / 10}
            )
    ended = run_here("migrate", "disentanglement_lib", "old", "-o", "old.parquet", cwd=tmp_path)
    assert ended.returncode == 0, ended.stderr
    assert "6 runs, 6 scores" in ended.stdout
    assert len(read_table(tmp_path / "old.parquet").table) == 6
    unweave.report.make_report(tmp_path / "old.parquet", out=tmp_path / "report", scores=["mig"])
    assert "disentanglement_lib" in (tmp_path / "report" / "index.html").read_text()
    assert run_here("migrate", "disentanglement_lib", cwd=tmp_path).returncode == 2
