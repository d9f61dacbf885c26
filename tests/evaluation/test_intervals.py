"""Intervals of scores cover the mean over fresh samples of the same size."""

import math
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import unweave
from metrics.grids import drawn
from unweave.errors import UnweaveError
from unweave.evaluation.arrays import ArraySource
from unweave.evaluation.intervals import half_of, interval, probability_above_zero
from unweave.metrics.representation import Representation
from unweave.streams import Stream

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from benchmarks import intervals as simulation  # noqa: E402

RECORDED = ROOT / "benchmarks" / "results" / "2026-11-16-coverage.csv"
NOISY = drawn((4, 5, 6), 1000)
CODES = NOISY + 0.5 * Stream.of(1).normal(1000, 3)


def test_an_interval_is_students() -> None:
    # 2.776445 is the 97.5% quantile with 4 degrees of freedom in every table; the deviation is sqrt(2.5).
    reach = 2.776445 * math.sqrt(2.5)
    assert interval(10.0, [1, 2, 3, 4, 5]) == pytest.approx((10 - reach, 10 + reach), abs=1e-5)
    assert interval(10.0, [1, 2, 3, 4, 5], (8, 11)) == (8, 11)
    assert interval(1.0, [1.0, 1.0]) == (1.0, 1.0)
    assert interval(1.0, [1.0]) == (None, None)


def test_halves_have_no_row_twice_and_vary_like_fresh_samples() -> None:
    """The identity behind it: of a mean, the variance over halves is that of the mean of all rows."""
    rows, values = np.arange(400), Stream.of(0).normal(400, 1)[:, 0]
    halves = [half_of(rows, Stream.of(1).child(i)) for i in range(2000)]
    assert all(len(np.unique(half)) == 200 for half in halves)
    over_halves = np.var([values[half].mean() for half in halves], ddof=1)
    assert over_halves == pytest.approx(np.var(values, ddof=1) / 400, rel=0.1)


def test_how_sure_a_sign_is() -> None:
    # With one degree of freedom Student's distribution is Cauchy's, whose quartile is 1.
    assert probability_above_zero(math.sqrt(2), [0.0, 2.0]) == pytest.approx(0.75)
    assert probability_above_zero(-1.0, [-1.0, -1.0]) == 0


@pytest.mark.parametrize("metric", ["infomec", "mig", "explicitness"])
def test_intervals_are_as_wide_as_scores_vary(metric: str) -> None:
    """Bootstrap samples have rows twice: the interval of InfoM of such codes was 0.82 to 0.995."""
    scores = unweave.evaluate(CODES, NOISY, metrics=metric, repeats=8)
    fresh = []
    for i in range(8):
        factors = drawn((4, 5, 6), 1000, seed=100 + i)
        codes = factors + 0.5 * Stream.of(200 + i).normal(1000, 3)
        fresh.append(dict(unweave.evaluate(codes, factors, metrics=metric)))
    for score in scores.scores:
        values = [numbers[score.name] for numbers in fresh]
        assert score.low is not None
        assert score.high is not None
        assert score.low <= np.mean(values) <= score.high, score
        assert score.high - score.low <= 15 * np.std(values, ddof=1) + 1e-9, score


@pytest.mark.parametrize("metric", ["factor_vae_score", "beta_vae_score"])
def test_rows_of_metrics_that_intervene_are_halved(metric: str, monkeypatch: pytest.MonkeyPatch) -> None:
    counts = []
    from_rows = Representation.from_rows

    def counted(codes: np.ndarray, factors: np.ndarray, fit_rows: int | None = None) -> Representation:
        counts.append(len(codes))
        return from_rows(codes, factors, fit_rows)

    monkeypatch.setattr(Representation, "from_rows", counted)
    scores = unweave.evaluate(CODES[:200, ::2], NOISY[:200], metrics=metric, repeats=2)
    assert counts[0] == 200
    assert counts.count(100) >= 2  # both metrics split the rows once more, to fit on and to test on
    assert scores.score(f"{metric}.eval_accuracy").low is not None


def test_rows_of_metrics_that_intervene_vary_like_fresh_samples() -> None:
    """Of a difference of means of the rows to fit on and to test on, the variance is 4 V / n.

    It was 8 V / n: each repeat split the rows differently, so BetaVAE and FactorVAE had too wide intervals.
    """
    values, factors = Stream.of(0).normal(200, 1), Stream.of(1).integers(200, [2, 2])
    source, differences = ArraySource.of(values, factors), []
    fitted, tested = set(), set()
    for number in range(600):
        stream = Stream.of(2).child(number)
        fit, test = source.interventions("mean", stream).separated(stream.child("metric"))
        assert fit.rows is not None
        assert test.rows is not None
        assert len(fit.rows.codes) == len(test.rows.codes) == 50
        fitted |= set(fit.rows.codes[:, 0])
        tested |= set(test.rows.codes[:, 0])
        differences.append(fit.rows.codes.mean() - test.rows.codes.mean())
    assert (len(fitted), len(tested), fitted & tested) == (100, 100, set())
    assert np.var(differences, ddof=1) == pytest.approx(4 * np.var(values, ddof=1) / 200, rel=0.2)


def test_coverage_by_simulation() -> None:
    """About 95 of 100 intervals cover the mean; 87 is 3.7 deviations below."""
    records: list[dict[str, object]] = []
    for kind in (*simulation.CODES, simulation.GROUND_TRUTH):
        for number in range(20):
            records += simulation.measured(
                simulation.Case(kind, 300, number, "mig, sap, modularity", repeats=6)
            )
    shares = simulation.overall(simulation.coverage(pd.DataFrame(records))).set_index("score")
    assert (shares["cases"] == 100).all()
    assert shares["covered"].between(0.87, 1).all(), shares


def test_intervals_of_width_0_are_counted_apart() -> None:
    """Of the two others, one misses the mean of the other values, 1, and one contains it, 0.9."""
    values, low, high = [1.0, 1.0, 0.7, 1.0], [1.0, 1.0, 0.6, 0.85], [1.0, 1.0, 0.8, 1.0]
    records = pd.DataFrame({"score": "s", "n": 9, "kind": "k", "value": values, "low": low, "high": high})
    table = simulation.coverage(records)
    assert table.drop(columns="deviation").to_dict("records") == [
        {"score": "s", "n": 9, "kind": "k", "cases": 4, "degenerate": 2, "covered": 0.5, "mean": 0.925}
        | {"width": 0.175}
    ]
    saturated = table.assign(kind="saturated", degenerate=4, covered=math.nan)
    shares = simulation.overall(pd.concat([table, saturated]))
    assert shares.to_dict("records") == [{"score": "s", "n": 9, "cases": 8, "degenerate": 6, "covered": 0.5}]


def test_a_simulation_goes_on_where_it_stopped(tmp_path: Path) -> None:
    seconds = {("dci", 90): 9.0, ("mig", 90): 0.5, ("mig", 200): 1.0}
    cases = simulation.ordered_cases(seconds, ["rotated", "tied"], 2, repeats=2)
    assert [(case.metrics, case.n, case.number, case.kind) for case in cases[:5]] == [
        ("mig", 90, 0, "rotated"),
        ("mig", 90, 0, "tied"),
        ("mig", 90, 1, "rotated"),
        ("mig", 90, 1, "tied"),
        ("mig", 200, 0, "rotated"),
    ]
    assert cases[-1].metrics == "dci"
    path = tmp_path / "records.csv"
    assert simulation.missing_cases(cases, simulation.read_records(path)) == cases
    pd.DataFrame(simulation.measured(cases[0])).to_csv(path, index=False)
    records = simulation.read_records(path)
    assert list(records) == simulation.RECORD_COLUMNS
    assert simulation.missing_cases(cases, records) == cases[1:]


def test_recorded_coverage() -> None:
    """The large simulation: every headline score, from 1,000 and from 10,000 points."""
    table = pd.read_csv(RECORDED)
    assert list(table) == simulation.COLUMNS
    left_out = table["score"].isin(["dci.informativeness_train", "factor_vae_score.active"])
    shares = simulation.overall(table[~left_out])
    assert set(shares["n"]) == {1_000, 10_000}
    assert (shares["cases"] >= 200).all()
    assert shares["covered"].between(0.9, 0.99).all(), shares
    page = (ROOT / "docs" / "evaluation.md").read_text()
    for name, of_score in shares.groupby("score"):
        small, large = (f"{share:.0%}" for share in of_score.sort_values("n")["covered"])
        assert f"| `{name}` | {small} | {large} |" in page


def test_training_accuracy_of_trees_has_no_interval_from_halves() -> None:
    scores = unweave.evaluate(CODES[:60], NOISY[:60], metrics="dci", repeats=2)
    without = [score.name for score in scores.scores if score.low is None]
    assert without == ["dci.informativeness_train"]
    assert scores.notes == ("No interval for dci.informativeness_train: fewer than 2 repeats can be used.",)
    case = simulation.Case(simulation.GROUND_TRUTH, 100, 0, "dci", 2)
    assert all(score.low is not None for score in simulation.scores_of(case).scores)


def test_one_repeat_is_refused() -> None:
    with pytest.raises(UnweaveError, match="an interval needs at least 2 repeats; got 1"):
        unweave.evaluate(CODES, NOISY, metrics="mig", repeats=1)


def test_a_score_that_fails_on_repeats_has_no_interval_and_a_note() -> None:
    def all_rows(codes: np.ndarray, factors: np.ndarray) -> float:
        if len(codes) < 1000:
            raise ValueError("too few")
        return 1.0

    scores = unweave.evaluate(CODES, NOISY, metrics=["mig", all_rows], repeats=2)
    assert scores.score("mig").low is not None
    assert scores.score("all_rows").low is None
    assert scores.notes == ("No interval for all_rows: fewer than 2 repeats can be used.",)


def test_sampled_codes_keep_their_noise_in_repeats() -> None:
    """Noise that is drawn once more for each repeat would be counted twice."""
    log_var = np.zeros_like(CODES)
    seen = []

    def record(codes: np.ndarray, factors: np.ndarray) -> float:
        seen.append(codes)
        return 0.0

    unweave.evaluate(CODES, NOISY, metrics=[record], representation="sampled", log_var=log_var, repeats=2)
    rows = {tuple(row) for row in seen[0]}
    assert all(tuple(row) in rows for half in seen[1:] for row in half)
