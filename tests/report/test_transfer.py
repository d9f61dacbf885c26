"""Transfer probabilities against a brute-force enumeration and Table 1 of the study; their intervals."""

from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import pytest

from unweave.errors import UnweaveError
from unweave.report.published import STUDY_SCORES
from unweave.report.transfer import transfer, transfer_of_the_study
from unweave.streams import Stream

KINDS = [["same", "same"], ["same", "other"], ["other", "same"], ["other", "other"]]


def study(scores: dict[str, dict[str, dict[str, float]]], seeds: int = 3) -> pd.DataFrame:
    """Runs whose scores depend on data set and setting but not on the seed: scores[score][data][setting]."""
    first = next(iter(scores.values()))
    return pd.DataFrame(
        [
            {"data": data, "method": "m", "setting": setting, "seed": seed}
            | {score: values[data][setting] for score, values in scores.items()}
            for data, settings in first.items()
            for setting in settings
            for seed in range(seeds)
        ]
    )


def random_study(
    data: int, scores: int, settings: int, seeds: int, stream: Stream, effect: float = 0.0
) -> Any:
    """Noise of each run plus effects of settings, and the names of scores."""
    rows = list(product(range(data), range(settings), range(seeds)))
    runs = pd.DataFrame(rows, columns=["data", "setting", "seed"]).assign(method="m")
    names = [f"s{i}" for i in range(scores)]
    by_setting = stream.child("effect").normal(settings, 1)[:, 0]
    for i, name in enumerate(names):
        noise = stream.child("noise", i).normal(len(rows), 1)[:, 0]
        runs[name] = effect * by_setting[runs["setting"]] + noise
    return runs.astype({"data": str, "setting": str}), names


def brute_force(runs: pd.DataFrame, scores: list[str]) -> dict[tuple[str, str], float]:
    """Loops over source, target, chosen setting and rival."""
    score_of: dict[Any, float] = {}
    for row in runs.to_dict("records"):
        for score in scores:
            if not np.isnan(row[score]):
                score_of[row["data"], score, row["setting"], row["seed"]] = row[score]
    data, settings, seeds = (list(dict.fromkeys(runs[name])) for name in ("data", "setting", "seed"))
    sums = {(d, s): [0.0, 0.0] for d, s in KINDS}
    places = list(product(data, scores, seeds))
    for source, target in product(places, places):
        if source[2] == target[2]:
            continue
        kind = tuple("same" if source[i] == target[i] else "other" for i in (0, 1))
        values = {
            k: score_of[source[0], source[1], k, source[2]]
            for k in settings
            if (source[0], source[1], k, source[2]) in score_of
        }
        there = {
            k: score_of[target[0], target[1], k, target[2]]
            for k in settings
            if (target[0], target[1], k, target[2]) in score_of
        }
        best = [k for k, value in values.items() if value == max(values.values())]
        for chosen in best:
            rivals = [k for k in there if k != chosen]
            if chosen in there and rivals:
                won = [(there[chosen] > there[k]) + (there[chosen] == there[k]) / 2 for k in rivals]
                sums[kind][0] += float(np.mean(won)) / len(best)  # type: ignore[index]
                sums[kind][1] += 1 / len(best)  # type: ignore[index]
    return {kind: total / count for kind, (total, count) in sums.items() if count}


def test_transfer_is_the_enumeration_of_all_choices() -> None:
    runs, scores = random_study(3, 2, 5, 3, Stream.of(1), effect=0.7)
    runs["s0"] = runs["s0"].round()  # ties
    runs.loc[[0, 7, 20], "s1"] = np.nan
    result = transfer(runs, scores).set_index(["data", "score"])["probability"]
    assert result.to_dict() == pytest.approx(brute_force(runs, scores), abs=1e-9)


HAND_MADE = study(
    {
        "p": {"d": {"a": 1, "b": 2, "c": 3}, "e": {"a": 3, "b": 2, "c": 1}},
        "q": {"d": {"a": 1, "b": 3, "c": 2}, "e": {"a": 3, "b": 1, "c": 2}},
    }
)


def test_transfer_by_hand() -> None:
    result = transfer(HAND_MADE, ["p", "q"])
    assert result[["data", "score"]].to_numpy().tolist() == KINDS
    # Two data sets, two scores and three seeds, each with two other seeds.
    assert result["comparisons"].tolist() == [24] * 4
    # Always the best again; c, b -> 1/2, a, a -> 1; always the worst; c, b -> 1/2, a, a -> 0.
    assert result["probability"].tolist() == pytest.approx([1, 3 / 4, 0, 1 / 4])
    assert result["random"].tolist() == [0.5] * 4
    assert result[["low", "high"]].isna().all(axis=None)  # three settings


def test_the_protocol_of_the_study_by_hand() -> None:
    result = transfer_of_the_study(HAND_MADE, ["p", "q"])
    # Settings that score no higher, itself among them: c, b -> 2/3, a, a -> 1; worst: 1/3.
    assert result["probability"].tolist() == pytest.approx([1, 5 / 6, 1 / 3, 1 / 2])
    assert result["random"].tolist() == pytest.approx([2 / 3] * 4)  # 1/3, 2/3, 1


def test_transfer_goes_to_another_seed() -> None:
    # The best setting of seed 0 is the worst of seed 1 and the other way round.
    runs = pd.DataFrame(
        {"data": "d", "method": "m", "setting": list("aabb"), "seed": [0, 1, 0, 1], "p": [1, 0, 0, 1]}
    )
    result = transfer(runs, ["p"])
    assert result[["data", "score"]].to_numpy().tolist() == [["same", "same"]]
    assert result["probability"].tolist() == [0]
    assert transfer_of_the_study(runs, ["p"])["probability"].tolist() == [0.5]  # itself is no worse
    with pytest.raises(UnweaveError, match="there is one seed only"):
        transfer(runs[runs["seed"] == 0], ["p"])


def test_of_equal_settings_each_is_chosen_or_the_first() -> None:
    runs = study({"p": {"d": {"a": 1, "b": 1}}, "q": {"d": {"a": 1, "b": 0}}})
    reverse = runs[::-1]
    # From p, a or b wins against the other; from q, a ties with b.
    assert transfer(runs, ["p", "q"])["probability"][1] == pytest.approx(0.5)
    assert transfer(reverse, ["p", "q"])["probability"][1] == pytest.approx(0.5)
    assert transfer_of_the_study(runs, ["p", "q"])["probability"][1] == 1.0
    assert transfer_of_the_study(reverse, ["p", "q"])["probability"][1] == pytest.approx(0.75)


def test_runs_without_scores_are_no_part_of_transfer() -> None:
    runs = HAND_MADE.copy()
    runs.loc[runs["setting"] == "c", "p"] = np.nan  # b is chosen on d, a on e
    assert transfer(runs, ["p"])["probability"].tolist() == pytest.approx([1, 0])
    assert transfer_of_the_study(runs, ["p"])["random"].tolist() == pytest.approx([3 / 4, 3 / 4])
    runs.loc[runs["data"] == "e", "p"] = np.nan
    result = transfer(runs, ["p"])
    assert result[["data", "score"]].to_numpy().tolist() == [["same", "same"]]
    assert result["comparisons"].tolist() == [6]


def test_transfer_needs_one_run_of_each() -> None:
    with pytest.raises(
        UnweaveError, match=r"several of m with a and seed 0 on d\. Take the runs of one source"
    ):
        transfer(pd.concat([HAND_MADE, HAND_MADE]), ["p"])
    with pytest.raises(UnweaveError, match="needs runs and scores; got 18 runs and 0 scores"):
        transfer(HAND_MADE, [])
    with pytest.raises(UnweaveError, match="got 0 runs and 1 scores"):
        transfer(HAND_MADE[:0], ["p"])


def test_intervals_depend_on_the_seed_only() -> None:
    runs, scores = random_study(2, 2, 12, 2, Stream.of(2))
    first, again, other = (transfer(runs, scores, subsets=50, seed=seed) for seed in (1, 1, 2))
    pd.testing.assert_frame_equal(first, again)
    assert not first.equals(other)
    assert first["probability"].equals(other["probability"])


def test_published_models_transfer_as_published(published_models: pd.DataFrame) -> None:
    # [1] states 0.807 and two digits of the others, from 10,000 trials.
    result = transfer_of_the_study(published_models, STUDY_SCORES).set_index(["data", "score"])
    expected = {
        ("same", "same"): 0.807,
        ("other", "same"): 0.56,
        ("same", "other"): 0.62,
        ("other", "other"): 0.54,
    }
    assert result["probability"].to_dict() == pytest.approx(expected, abs=0.006)
    # Without ties and comparisons with itself, the advantage over a random choice is smaller.
    exact = transfer(published_models, STUDY_SCORES, subsets=20).set_index(["data", "score"])
    assert exact.loc[("other", "other"), "probability"] == pytest.approx(0.517, abs=0.001)
    assert (exact["low"] < exact["probability"]).all()
    assert (exact["probability"] < exact["high"]).all()
