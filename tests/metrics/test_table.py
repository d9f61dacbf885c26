"""Every metric, one table: what must hold for all, and what each record declares about its metric."""

import dataclasses
import inspect
import itertools
import math
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import unweave.metrics
from metrics.grids import awkward_codes, drawn, grid, in_blocks, noise
from unweave.commands.metrics import metrics_app, page
from unweave.errors import UnweaveError
from unweave.metrics import METRICS, Metric, Representation, compute, metric_named
from unweave.metrics.examples import EXAMPLES, score_of_example, stored_scores
from unweave.metrics.metric import COUNTS, Change
from unweave.streams import Stream

pytestmark = pytest.mark.usefixtures("small_forests")
DOCS = Path(__file__).parents[2] / "docs/metrics"
SIZES = (3, 4, 4)
# Few draws, so that all tests together take seconds.
QUICK: dict[str, dict[str, Any]] = {
    "beta_vae_score": {"train": 300, "test": 100, "batch": 16},
    "factor_vae_score": {"train": 300, "test": 100, "batch": 16, "variance_points": 500},
    "downstream_strong": {"train": 60, "test": 60, "experiments": 2},
    "fairness_trees": {"train": 160, "points": 50},
    "fairness_logistic": {"train": 100, "points": 50},
    "mig_posterior": {"samples": 2000},
    "z_max_var": {"train": 300, "test": 100, "batch": 16, "variance_points": 500},
    "flatness": {"repeats": 64},
    "dci_es_forest": {"trees": 5},
    "dci_es_mlp": {"updates": 10},
    "factored_components": {"repeats": 64, "triplets": 16},
    "sepin": {"samples": 300},
    "block_separation": {"updates": 30},
    "block_mig": {"updates": 30},
    "r4": {"rounds": 5},
}
# Where a change moves random draws, ties between equally good codes, or where a solver stops, scores move a
# little with them.
TOLERANCE = {
    "mig_posterior": 0.02,
    "dci": 0.02,
    "dci_histogram": 0.02,
    "dci_svm": 1e-4,
    "unified_importance": 0.05,
    "r4": 0.02,
}
# Matrices to multiply three codes with.
CHANGES: dict[Change, NDArray[np.float64]] = {
    "permutation": np.eye(3)[:, [2, 0, 1]],
    "sign": np.diag([1.0, -1.0, -1.0]),
    "scale": np.diag([40.0, 0.01, 1.7]),
    "rotation": np.linalg.qr(Stream.of(3).normal(3, 3))[0],
    "copies": np.hstack([np.eye(3), np.eye(3)]),
    "dead": np.eye(3, 5),
}
# A squared distance of such codes has no place in a float.
HUGE = ("huge", "largest", "huge copied", "huge and dead", "huge and tiny")
REFUSED = {(name, kind) for name in ("wasserstein_correlation", "beta_vae_score", "elbo") for kind in HUGE}
# Scores that ask how much is known, not how it is laid out.
BLIND_TO_ROTATION = {
    "explicitness",
    "downstream_logistic",
    "fairness_logistic",
    "mcc_affine",
    "r2_linear",
    "r2_kernel",
    "r2_mlp",
    "downstream_circular",
    "z_max_var",
}
BLIND_NUMBERS = (
    "linear_ratio",
    "rank_correlation",
    "reconstructed",
    "reduced_accuracy",  # best at chance
)  # parts of a score that a rotation leaves as they are
# Changes that move a score only for some codes: a copy helps where one code is the best for two factors.
OFTEN_UNCHANGED: set[tuple[str, Change]] = {
    ("mcc", "copies"),
    ("fairness_trees", "copies"),
    ("fairness_trees", "dead"),
    ("mcc_spearman", "copies"),
    ("sap", "dead"),
    ("r4", "scale"),  # codes of few whole numbers are classes
    ("dci_histogram", "sign"),  # bins of codes with more than 64 values move
    *((metric.name, "scale") for metric in METRICS if "[bins20" in metric.estimator),  # values on edges move
}
# Scores whose models depend on the order of the points.
ORDERED = {
    "dci_forest",
    "dci_es_forest",
    "dci_es_mlp",
    "r2_kernel",
    "r2_mlp",
    "block_r2",
    "sepin",
    "block_separation",
    "block_mig",
    "swap_consistency",
    "r4",
}

with_each_metric = pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.name)


def standardised(factors: NDArray[np.int64]) -> NDArray[np.float64]:
    sizes = np.array(SIZES)
    return np.asarray((factors - (sizes - 1) / 2) / np.sqrt((sizes**2 - 1) / 12))


def quick(metric: Metric) -> Metric:
    return dataclasses.replace(metric, options={**metric.options, **QUICK.get(metric.name, {})})


def measure(
    metric: Metric, matrix: NDArray[np.float64], spread: float = 0.2, rows: Any = slice(None), seed: int = 0
) -> dict[str, float]:
    """Scores of codes = (standardised factors + noise) times a matrix."""

    def encode(factors: NDArray[np.int64], stream: Stream) -> NDArray[np.float64]:
        return np.asarray((standardised(factors) + spread * stream.normal(len(factors), 3)) @ matrix)

    representation = Representation(encode, SIZES)
    codes, factors = representation.draw(160, seed=0)
    variance = 0.04 * (matrix**2).sum(axis=0)
    log_var = np.log(np.where(variance > 0, variance, 1.0)) * np.ones_like(codes)
    return compute(
        quick(metric),
        codes[rows],
        factors[rows],
        test=representation.draw(90, seed=1),
        log_var=log_var[rows],
        losses=np.ones(len(codes))[rows],
        representation=representation,
        **in_blocks(codes, factors),
        seed=seed,
    )


def from_arrays(metric: Metric, codes: NDArray[Any], factors: NDArray[np.int64]) -> dict[str, float]:
    """Scores of given codes of a whole grid of factors, whose sizes are those of the values."""
    sizes = tuple(int(size) for size in factors.max(axis=0) + 1)
    order = np.lexsort(factors.T[::-1])
    one_a_point = codes[order][:: len(codes) // math.prod(sizes)]
    return compute(
        quick(metric),
        codes,
        factors,
        test=(codes, factors),
        log_var=np.full(codes.shape, -3.0),
        losses=np.ones(len(codes)),
        **in_blocks(codes, factors),
        representation=Representation.from_table(one_a_point, sizes),
    )


# Codes that are slightly mixed, so that no score is at an end of its range.
MIXED = np.eye(3) + 0.5 * Stream.of(1).normal(3, 3)


@cache
def mixed_scores(name: str) -> dict[str, float]:
    return measure(metric_named(name), MIXED)


def largest_move(metric: Metric, changed: dict[str, float]) -> float:
    before = mixed_scores(metric.name)
    assert changed.keys() == before.keys()
    return max(abs(changed[key] - before[key]) for key in before if key.split(".")[-1] not in COUNTS)


def assert_in_range(metric: Metric, scores: dict[str, float]) -> None:
    low, high = metric.range
    for name, value in scores.items():
        assert isinstance(value, float)
        assert math.isfinite(value), name
        if name.split(".")[-1] not in COUNTS:
            assert low - 1e-9 <= value <= high + 1e-9, name


FIRST = ("codes", "mean", "representation", "losses")  # what a metric takes first


def test_no_metric_is_missing() -> None:
    public = [getattr(unweave.metrics, name) for name in unweave.metrics.__all__]
    takes_codes = {
        function
        for function in public
        if inspect.isfunction(function)
        and next(iter(inspect.signature(function).parameters))
        in ("codes", "mean", "representation", "losses")
    }
    # A matrix, not a score.
    assert takes_codes - {unweave.metrics.mutual_information} == {metric.function for metric in METRICS}


def test_names_and_protocols_are_unique_and_names_are_functions() -> None:
    assert (
        len({metric.name for metric in METRICS})
        == len({metric.protocol() for metric in METRICS})
        == len(METRICS)
    )
    for metric in METRICS:
        assert getattr(unweave.metrics, metric.function.__name__) is metric.function
        assert metric.protocol().startswith(metric.function.__name__ + "[")
        assert metric.citation.startswith("@")
        assert metric.summary
        assert metric.flaws


@with_each_metric
def test_changes_of_the_codes(metric: Metric) -> None:
    """A declared change leaves the score alone, and one that is not declared does not."""
    for change, matrix in CHANGES.items():
        move = largest_move(metric, measure(metric, MIXED @ matrix))
        if change in metric.unchanged_by:
            assert move <= TOLERANCE.get(metric.name, 1e-6), change
        elif change not in ("permutation", "sign") and (metric.name, change) not in OFTEN_UNCHANGED:  # ties
            assert move > 1e-8, change


@with_each_metric
def test_order_of_the_points(metric: Metric) -> None:
    if "row order" in metric.unchanged_by:
        rows = Stream.of(5).permutations(1, 160)[0]
        assert largest_move(metric, measure(metric, MIXED, rows=rows)) <= TOLERANCE.get(metric.name, 1e-9)
    else:
        draws = metric.needs in ("representation", "interventions")
        why = draws or metric.name in ORDERED or "downstream" in metric.name
        assert why, "only what draws points itself, or takes the first ones, may depend on their order"


@with_each_metric
def test_same_seed_same_value(metric: Metric) -> None:
    assert measure(metric, MIXED) == mixed_scores(metric.name)
    if metric.name in ("beta_vae_score", "mig_posterior", "dci_forest"):
        assert measure(metric, MIXED, seed=1) != mixed_scores(metric.name)


@with_each_metric
def test_perfect_beats_rotated_and_noise(metric: Metric) -> None:
    perfect = measure(metric, np.eye(3), spread=0.0)
    rotated = measure(metric, CHANGES["rotation"], spread=0.0)
    lost = measure(metric, 1e-3 * np.eye(3), spread=1e4)
    for scores in (perfect, rotated, lost):
        assert_in_range(metric, scores)
    if metric.needs in ("unsupervised", "likelihood", "density", "orbits") or metric.name == "sepin":
        return  # they know no factors, or ask for circles
    sign = 1 if metric.higher_is_better else -1
    for name in perfect:
        # Trees fit noise as well, and what cannot be known is known with the least capacity.
        if name.split(".")[-1] in (*COUNTS, *BLIND_NUMBERS, "informativeness_train") or name in (
            "dci_es.explicitness",
            "dci_es_forest.explicitness",
            "dci_es_mlp.explicitness",
        ):
            continue
        assert sign * perfect[name] > sign * lost[name]
        if metric.name not in BLIND_TO_ROTATION and "explicit" not in name and "informative" not in name:
            assert sign * perfect[name] > sign * rotated[name]


@with_each_metric
def test_inputs_are_left_alone(metric: Metric) -> None:
    factors = grid(2, 3, repeats=8)
    codes = factors + 0.1 * noise(len(factors), 2)
    before, factors_before = codes.copy(), factors.copy()
    codes.flags.writeable = factors.flags.writeable = False
    from_arrays(metric, codes, factors)
    assert (codes == before).all()
    assert (factors == factors_before).all()


@with_each_metric
def test_awkward_codes_give_a_number_or_a_sentence(metric: Metric) -> None:
    factors = grid(3, 4, repeats=10)
    for kind, codes in awkward_codes().items():
        if (metric.name, kind) in REFUSED:
            with pytest.raises(UnweaveError, match=r"squared distance|too far apart|not fit a float"):
                from_arrays(metric, codes, factors)
        else:
            assert_in_range(metric, from_arrays(metric, codes, factors))


@with_each_metric
def test_any_number_of_codes_and_factors(metric: Metric) -> None:
    for sizes, d in itertools.product(((4,), (2, 3, 2, 3)), (1, 2, 6)):
        factors = grid(*sizes, repeats=72 // math.prod(sizes))
        factors = factors[Stream.of(2).permutations(1, len(factors))[0]]
        codes = (factors @ noise(len(sizes), d, seed=1)) + 0.1 * noise(len(factors), d)
        assert_in_range(metric, from_arrays(metric, codes, factors))


def test_what_is_missing_is_named() -> None:
    codes, factors = noise(20, 2), drawn((2, 2), 20)
    with pytest.raises(
        UnweaveError, match="beta_vae_score needs representation; representation was not given"
    ):
        compute(metric_named("beta_vae_score"), codes, factors)
    with pytest.raises(
        UnweaveError, match="mig_posterior needs codes and log_var and factors; log_var was not"
    ):
        compute(metric_named("mig_posterior"), codes, factors)
    with pytest.raises(UnweaveError, match="sap needs codes and factors; factors was not given"):
        compute(metric_named("sap"), codes, None)
    with pytest.raises(UnweaveError, match=r'there is no metric "migg"\. Did you mean "mig"\?'):
        metric_named("migg")


def test_commands(capsys: pytest.CaptureFixture[str]) -> None:
    metrics_app()(["list"], result_action="return_value")
    listed = capsys.readouterr().out
    assert all(metric.protocol() in listed and metric.name in listed for metric in METRICS)
    metrics_app()(["explain", "mig"], result_action="return_value")
    assert capsys.readouterr().out == page(metric_named("mig"))


def test_flat_names() -> None:
    assert list(mixed_scores("explicitness")) == ["explicitness.train", "explicitness.test"]
    assert list(mixed_scores("mig")) == ["mig"]
    assert "dci.importance" not in mixed_scores("dci")
    sizes = [name.split("_")[-1] for name in mixed_scores("downstream_trees")]
    assert sizes == ["10", "100"]


@pytest.mark.parametrize("example", EXAMPLES)
@pytest.mark.parametrize("name", ["mig", "sap_correlation", "modularity"])
def test_stored_scores_are_current(name: str, example: str) -> None:
    assert score_of_example(metric_named(name), example)[name] == pytest.approx(
        stored_scores()[name][example], abs=5.1e-5
    )


def test_stored_scores_are_those_that_the_flaws_speak_of() -> None:
    scores = stored_scores()
    assert scores["mig"]["perfect"] == pytest.approx(0.896, abs=5e-4)
    assert scores["sap"]["perfect"] == pytest.approx(0.246, abs=0.01)
    assert scores["modularity"]["noise"] == pytest.approx(0.7, abs=0.05)


@with_each_metric
def test_page_is_current(metric: Metric) -> None:
    """Written by `unweave metrics explain NAME > docs/metrics/NAME.md`."""
    assert (DOCS / f"{metric.name}.md").read_text() == page(metric)
    assert f"]({metric.name}.md)" in (DOCS / "index.md").read_text()
    assert {name.split(".")[0] for name in stored_scores()} == {metric.name for metric in METRICS}
