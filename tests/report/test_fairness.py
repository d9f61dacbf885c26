"""The section on fairness: what it says of tables whose answers are known, and scores at equal accuracy."""

import numpy as np
import pandas as pd
import pytest

from report.made_up import At, Rule, settings, table
from unweave.errors import UnweaveError
from unweave.report.adjustment import adjusted_for, nearest
from unweave.report.sections.fairness import fairness
from unweave.report.sections.section import Material, Section, material
from unweave.streams import Stream

RUNS = settings(["dsprites"], strengths=[1.0, 2.0, 4.0, 8.0], seeds=13)  # 2 methods: 104 runs
ACCURACY, TREES = "downstream_trees.test_accuracy_10000", "fairness_trees.mean_unfairness"


def noise(name: str) -> Rule:
    """A number for each run that depends on nothing but its place."""

    def drawn(at: At) -> float:
        return float(Stream.of(0).child(name, at.method, at.strength, at.seed).normal(1, 1)[0, 0])

    return drawn


def made(rules: dict[str, Rule], runs: pd.DataFrame = RUNS) -> Material:
    built = material(table(runs, rules), "own")
    assert isinstance(built, Material)
    return built


def accuracy(at: At) -> float:
    return 0.5 + 0.1 * at.strength + 0.01 * noise("accuracy")(at)


CONFOUNDED: dict[str, Rule] = {
    "mig": lambda at: accuracy(at) + 0.03 * noise("mig")(at),
    ACCURACY: accuracy,
    TREES: lambda at: 1 - accuracy(at) + 0.03 * noise("unfairness")(at),
}
# What is special about a run beyond its accuracy makes it both more disentangled and fairer.
FAIRER: dict[str, Rule] = {
    "mig": lambda at: accuracy(at) + 0.1 * noise("special")(at),
    ACCURACY: accuracy,
    TREES: lambda at: 1 - accuracy(at) - 0.1 * noise("special")(at) + 0.01 * noise("unfairness")(at),
}


def answer(rules: dict[str, Rule], runs: pd.DataFrame = RUNS) -> Section:
    built = fairness(made(rules, runs))
    assert isinstance(built, Section), built
    return built


def interval(built: Section, unfairness: str) -> tuple[float, float]:
    """The bounds of the mean correlation of unfairness with the only metric."""
    means = built.sheets[1].table
    [(low, high)] = means.loc[means["first"] == unfairness, ["low", "high"]].to_numpy(float).tolist()
    return low, high


def test_what_accuracy_explains_is_gone_at_equal_accuracy() -> None:
    built = answer(CONFOUNDED)
    finding = built.finding
    assert finding.startswith(
        "1 of 1 metric (0 at equal accuracy) goes with fairer predictions by boosted trees (Spearman -0.3 or "
        "less). The lowest correlation is that of MIG: mean Spearman with unfairness -0.9"
    )
    assert finding.endswith("; 13 seeds a setting.")
    assert interval(built, TREES)[1] < -0.8
    low, high = interval(built, f"{TREES} (adjusted)")
    assert low < 0 < high


def test_what_accuracy_does_not_explain_stays() -> None:
    built = answer(FAIRER)
    assert built.finding.startswith("1 of 1 metric (1 at equal accuracy) goes with fairer predictions")
    assert interval(built, f"{TREES} (adjusted)")[1] < -0.7
    assert set(built.sheets[0].table["second"]) == {"mig", ACCURACY}
    for drawing in built.drawings:
        assert "Unfairness" in drawing.caption or "unfairness" in drawing.caption
        drawing.draw()


def test_what_is_missing() -> None:
    assert fairness(made({"mig": accuracy})) == (
        "it needs fairness_trees or fairness_logistic, a metric, and three runs"
    )
    without = answer({name: rule for name, rule in FAIRER.items() if name != ACCURACY})
    assert without.missing == ("unfairness at equal accuracy needs downstream_trees",)
    assert without.finding.startswith("1 of 1 metric goes with fairer predictions")
    assert "at equal accuracy" not in without.finding
    smaller = answer(FAIRER, settings(["dsprites"], seeds=5))
    assert smaller.finding.startswith("1 of 1 metric goes with")
    assert ", at equal accuracy -" in smaller.finding
    assert smaller.missing == (
        "for a claim about equal accuracy, 100 runs of each data set: the 5 runs nearest in accuracy are not "
        "near among fewer",
    )
    few = answer(FAIRER, settings(["dsprites"], ["beta_vae"], seeds=2)).finding
    assert few.startswith("The data cannot tell whether 1 metric go with fairer predictions by boosted trees")


def test_both_predictors_and_the_largest_training_size() -> None:
    both = {
        **FAIRER,
        "downstream_trees.test_accuracy_100": noise("few"),
        "downstream_logistic.test_accuracy_1000": noise("other"),
        "fairness_logistic.mean_unfairness": noise("logistic"),
    }
    built = answer(both)
    assert "by boosted trees" in built.finding
    assert built.finding.count("0 of 1 metric (0 at equal accuracy)") == 1, "logistic regression is noise"
    assert set(built.sheets[0].table["second"]) == {
        "mig",
        ACCURACY,
        "downstream_logistic.test_accuracy_1000",
    }


def test_unfairness_is_no_metric_of_disentanglement() -> None:
    assert made(FAIRER).scores == ["mig"]
    assert made({TREES: accuracy, "irs": accuracy}).scores == ["irs"]


def test_nearest_is_what_a_slow_search_gives() -> None:
    numbers = Stream.of(1).normal(30, 1)[:, 0].round(1)
    for i, places in enumerate(nearest(numbers, 5)):
        others = np.delete(np.arange(30), i)
        expected = np.sort(np.abs(numbers[others] - numbers[i]))[:5]
        np.testing.assert_allclose(np.sort(np.abs(numbers[places] - numbers[i])), expected)
        assert i not in places
        assert len(set(places)) == 5


def test_adjusted_scores() -> None:
    """By hand: five other runs of the same accuracy and data set are the neighbours."""
    runs = pd.DataFrame(
        {
            "data": ["a"] * 6 + ["b"] * 3,
            "mig": [1.0, 2, 3, 4, 5, 6, 7, 8, 9],
            "accuracy": [0.5] * 9,
        }
    )
    adjusted = adjusted_for(runs, ["mig"], "accuracy")
    # Six runs with the sum 21: x - (21 - x) / 5.
    np.testing.assert_allclose(adjusted["mig"][:6], [x - (21 - x) / 5 for x in range(1, 7)])
    assert adjusted["mig"][6:].isna().all()
    runs.loc[0, "mig"] = np.nan
    assert adjusted_for(runs, ["mig"], "accuracy")["mig"].isna().all(), "five runs are left"
    with pytest.raises(UnweaveError, match='the runs have no column "accurac"'):
        adjusted_for(runs, ["mig"], "accurac")
