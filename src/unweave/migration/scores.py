"""The metrics of disentanglement_lib: their scores under unweave's names, and how they were computed.

A score has the protocol of unweave only where both estimators are the same, so that the two can be compared.
Otherwise its protocol names disentanglement_lib and the settings.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from unweave.metrics.lookup import metric_named
from unweave.metrics.requests import PUBLISHED, Conditions
from unweave.migration.gin import Bindings, gin_value

SOURCE = "disentanglement_lib"
# Not scores; and both counts of active dimensions are wrong in disentanglement_lib.
NO_SCORES = ("uuid", "elapsed_time", "num_active_dims")
# Bindings of the step of evaluation that do not describe an estimator.
NO_SETTINGS = ("dataset.", "evaluation.")

HISTOGRAM = {"discretizer.discretizer_fn": "histogram_discretizer", "discretizer.num_bins": 20}
PREDICTORS = {"gradient_boosting_classifier": "trees", "logistic_regression_cv": "logistic"}
DOWNSTREAM_SIZES = [10, 100, 1_000, 10_000]
# Over all pairs of factors; the scores of single pairs are not read.
UNFAIRNESS = {
    "mean_fairness:mean_pred:mean_sens": "mean_unfairness",
    "mean_fairness:max_pred:max_sens": "max_unfairness",
}


class Equivalent(NamedTuple):
    """Scores of a metric under the names of unweave, and when its estimator is that of unweave."""

    scores: Mapping[str, str]
    same_if: Mapping[str, Any]  # bindings that the protocol of unweave implies
    sizes: Mapping[str, str] = {}  # numbers of points that the protocol states, and their bindings


def _same(metric: str, **settings: Any) -> dict[str, Any]:
    return {f"{metric}.{name}": value for name, value in settings.items()}


# By the name of the metric in gin.
METRICS = {
    "beta_vae_sklearn": Equivalent(
        {name: f"beta_vae_score.{name}" for name in ("train_accuracy", "eval_accuracy")},
        _same("beta_vae_sklearn", batch_size=64, num_train=10_000, num_eval=5_000),
    ),
    "factor_vae_score": Equivalent(
        {name: f"factor_vae_score.{name}" for name in ("train_accuracy", "eval_accuracy")},
        _same(
            "factor_vae_score", batch_size=64, num_train=10_000, num_eval=5_000, num_variance_estimate=10_000
        )
        | {"prune_dims.threshold": 0.05},
    ),
    "mig": Equivalent({"discrete_mig": "mig"}, HISTOGRAM, {"counted": "mig.num_train"}),
    "sap_score": Equivalent(
        {"SAP_score": "sap"},
        {"sap_score.continuous_factors": False},
        {"train": "sap_score.num_train", "test": "sap_score.num_test"},
    ),
    "dci": Equivalent(
        {
            name: f"dci.{name}"
            for name in ("disentanglement", "completeness", "informativeness_train", "informativeness_test")
        },
        {},
        {"train": "dci.num_train", "test": "dci.num_test"},
    ),
    "modularity_explicitness": Equivalent(
        {
            "modularity_score": "modularity",
            "explicitness_score_train": "explicitness.train",
            "explicitness_score_test": "explicitness.test",
        },
        HISTOGRAM,
        {
            "counted": "modularity_explicitness.num_train",
            "train": "modularity_explicitness.num_train",
            "test": "modularity_explicitness.num_test",
        },
    ),
    "strong_downstream_task": Equivalent(
        {
            "10000:mean_test_accuracy": "downstream_strong.test_accuracy",
            "10000:mean_strong_test_accuracy": "downstream_strong.strong_test_accuracy",
        },
        _same("strong_downstream_task", num_train=[10_000], num_test=5_000, n_experiment=10)
        | {"predictor.predictor_fn": "gradient_boosting_classifier"},
    ),
    "irs": Equivalent({"IRS": "irs"}, HISTOGRAM | {"irs.diff_quantile": 0.99}, {"counted": "irs.num_train"}),
    "unsupervised_metrics": Equivalent(
        {
            "gaussian_total_correlation": "total_correlation",
            "gaussian_wasserstein_correlation": "wasserstein_correlation",
            "gaussian_wasserstein_correlation_norm": "wasserstein_correlation_normalised",
            "mutual_info_score": "mean_pairwise_information",
        },
        HISTOGRAM,
        {"counted": "unsupervised_metrics.num_train"},
    ),
}


class Score(NamedTuple):
    """A score of one representation of a run."""

    name: str
    protocol: str
    value: float


def scores_of(results: Mapping[str, Any], bindings: Bindings, representation: str) -> list[Score]:
    """The scores in the results of one evaluation, whose settings are the bindings."""
    function = str(gin_value(bindings.get("evaluation.evaluation_fn", "unknown")))
    equivalent = _equivalent(function, bindings, results)
    scores = []
    for key, value in results.items():
        if key in NO_SCORES or isinstance(value, bool | str) or value is None:
            continue
        name = equivalent.scores.get(key) if equivalent else None
        if name and equivalent:
            scores.append(Score(name, _protocol(name, equivalent, bindings, representation), float(value)))
        elif not equivalent:
            protocol = _foreign_protocol(function, bindings, representation)
            scores.append(Score(f"{function}.{key}", protocol, float(value)))
    return scores


def _equivalent(function: str, bindings: Bindings, results: Mapping[str, Any]) -> Equivalent | None:
    if function == "sap_score" and gin_value(bindings.get("sap_score.continuous_factors")) is True:
        return Equivalent({"SAP_score": "sap_correlation"}, {}, {"counted": "sap_score.num_train"})
    if function == "strong_downstream_task" and gin_value(bindings.get(f"{function}.num_train")) != [10_000]:
        return None  # the metric of unweave has one number of points
    if function not in ("downstream_task", "fairness"):
        return METRICS.get(function)
    predictor = PREDICTORS.get(str(gin_value(bindings.get("predictor.predictor_fn"))))
    if predictor is None:
        return None
    if function == "fairness":
        return Equivalent(
            {key: f"fairness_{predictor}.{name}" for key, name in UNFAIRNESS.items()},
            _same("fairness", num_train=10_000, num_test_points_per_class=100),
        )
    sizes = [match[1] for key in results if (match := re.fullmatch(r"(\d+):mean_test_accuracy", key))]
    return Equivalent(
        {f"{size}:mean_test_accuracy": f"downstream_{predictor}.test_accuracy_{size}" for size in sizes},
        {"downstream_task.num_train": DOWNSTREAM_SIZES},
        {"test": "downstream_task.num_test"},
    )


def _protocol(score: str, equivalent: Equivalent, bindings: Bindings, representation: str) -> str:
    metric = metric_named(score.partition(".")[0])
    same = all(gin_value(bindings.get(name)) == value for name, value in equivalent.same_if.items())
    if not same or not all(place in bindings for place in equivalent.sizes.values()):
        return _foreign_protocol(metric.name, bindings, representation)
    sizes = {name: int(gin_value(bindings[place])) for name, place in equivalent.sizes.items()}
    counted, train, test = (
        sizes.get(name, getattr(PUBLISHED, name)) for name in ("counted", "train", "test")
    )
    conditions = Conditions(counted=counted, train=train, test=test)
    # disentanglement_lib adds nothing to the diagonal of the covariance.
    return metric.protocol(representation, conditions).replace("jitter1e-5", "jitter0")


def _foreign_protocol(name: str, bindings: Bindings, representation: str) -> str:
    """A protocol that names disentanglement_lib and all settings of the metric."""
    settings = [
        f"{setting}={gin_value(value)}".replace(" ", "")
        for setting, value in sorted(bindings.items())
        if not setting.startswith(NO_SETTINGS)
    ]
    return f"{name}[{','.join([SOURCE, *settings, representation])}]"
