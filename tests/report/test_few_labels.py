"""What a few labels are worth, on made-up runs whose chosen scores are known."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from unweave.errors import UnweaveError
from unweave.report.few_labels import compare_few_labels
from unweave.report.sections.few_labels import few_labels
from unweave.report.sections.section import Material, Section
from unweave.study.table import write_table

SEEDS, STRENGTHS = 5, (1.0, 4.0, 16.0)
SCORE = "dci.disentanglement"
# The gain of semi-supervised training over unsupervised training with the same seed and strength.
GAIN = {(100, "perfect"): 0.2, (1000, "perfect"): 0.3, (100, "noisy"): 0.15, (100, "permuted"): -0.1}


def base_score(strength: float, seed: int) -> float:
    return 0.1 + 0.02 * strength + 0.01 * seed


def runs(held_out: Callable[[float], float] = lambda score: score) -> pd.DataFrame:
    """One row a run. Few labels rank unsupervised runs rightly; `held_out` makes the loss from the score."""
    rows = []
    for strength in STRENGTHS:
        for seed in range(SEEDS):
            score = base_score(strength, seed)
            rows.append(("beta_vae", f"beta={strength:g}", strength, seed, score, score, score, np.nan))
            rows += [
                (
                    "s2_beta_vae",
                    f"gamma_sup=1,labels={labels},labeller={labeller},beta={strength:g}",
                    strength,
                    seed,
                    score + gain + 0.001 * (seed % 2),
                    np.nan,
                    np.nan,
                    held_out(score),
                )
                for (labels, labeller), gain in GAIN.items()
            ]
    columns = ["method", "setting", "strength", "seed", SCORE]
    columns += ["few_labels.dci", "few_labels.dci_1000", "few_labels.xent"]
    frame = pd.DataFrame(rows, columns=columns)
    return frame.assign(source="own", data="dsprites", run=[f"run{i}" for i in range(len(frame))])


def test_paired_differences_are_the_gains() -> None:
    answers = compare_few_labels(runs(), [SCORE])
    assert list(answers.training["labels"]) == [100, 1000]
    assert list(answers.training["pairs"]) == [5, 5]
    # 0.001 is added in two of five seeds; the best strength is chosen on both sides.
    assert list(answers.training["difference"]) == pytest.approx([0.2004, 0.3004])
    best = np.mean([base_score(16, seed) for seed in range(SEEDS)])
    assert list(answers.training["mean against"]) == pytest.approx([best, best])
    assert (answers.training["improvement"] == 1).all()
    deviation = np.std([0, 0.001, 0, 0.001, 0], ddof=1)
    reach = 2.7764451 * deviation / np.sqrt(5)  # the 97.5% quantile of t with 4 degrees of freedom
    assert answers.training["high"].iloc[0] == pytest.approx(0.2004 + reach)
    against = answers.labellers.set_index(["labeller", "against"])["difference"]
    assert against["noisy", "perfect"] == pytest.approx(-0.05)
    assert against["noisy", "unsupervised"] == pytest.approx(0.1504)
    assert against["permuted", "unsupervised"] == pytest.approx(-0.0996)
    assert list(answers.choice.table["estimate"]) == [1, 1]


def test_semi_supervised_runs_are_chosen_by_their_held_out_loss_and_by_nothing_else() -> None:
    """A loss that prefers the worst runs chooses the smallest strength."""
    answers = compare_few_labels(runs(lambda score: -score), [SCORE])
    worst = np.mean([base_score(1, seed) for seed in range(SEEDS)]) + 0.2004
    assert answers.training["mean"].iloc[0] == pytest.approx(worst)
    without = runs().drop(columns="few_labels.xent")
    assert compare_few_labels(without, [SCORE]).training.empty


def test_the_number_of_labels_of_both_choices_is_the_same() -> None:
    frame = runs()
    # 1,000 labels would choose the worst unsupervised runs.
    frame["few_labels.dci_1000"] = -frame["few_labels.dci_1000"]
    answers = compare_few_labels(frame, [SCORE])
    worst, best = (np.mean([base_score(strength, seed) for seed in range(SEEDS)]) for strength in (1, 16))
    assert list(answers.training["mean against"]) == pytest.approx([best, worst])
    only_100 = compare_few_labels(frame.drop(columns="few_labels.dci_1000"), [SCORE])
    assert list(only_100.training["labels"]) == [100]


def test_the_section_states_effects_intervals_and_pairs() -> None:
    frame = runs()
    section = few_labels(Material("own", "mean", frame, {}, [SCORE]))
    assert isinstance(section, Section)
    assert section.finding.startswith("2 of 2 few-label scores correlate with the test metrics")
    assert "5 seeds a setting" in section.finding
    assert (
        "Labels in training, compared with labels for the choice only: with 100 labels, DCI rises (0.44 to "
        "0.64, difference +0.20 [0.20, 0.20], higher with probability 1.00; 5 pairs); with 1,000 labels, DCI "
        "rises" in section.finding
    )
    assert "compared with perfect labels: 100 noisy labels: DCI falls (0.64 to 0.59" in section.finding
    assert section.missing == ()
    for drawing in section.drawings:
        drawing.draw()
    one_seed = few_labels(Material("own", "mean", frame[frame["seed"] == 0], {}, [SCORE]))
    assert isinstance(one_seed, Section)
    assert "DCI changes by an unknown amount (one pair only)" in one_seed.finding


def test_what_is_missing_is_named() -> None:
    frame = runs()
    alone = frame[frame["method"] == "beta_vae"]
    section = few_labels(Material("own", "mean", alone, {}, [SCORE]))
    assert isinstance(section, Section)
    assert [lack.split()[0] for lack in section.missing] == ["training", "imprecise"]
    plain = alone.drop(columns=["few_labels.dci", "few_labels.dci_1000"])
    assert "unweave select STUDY --by few_labels" in str(
        few_labels(Material("own", "mean", plain, {}, [SCORE]))
    )
    with pytest.raises(UnweaveError, match="few labels cannot be compared: it needs scores of runs"):
        compare_few_labels(plain, [SCORE])
    for wrong, score in ((frame, "nope"), (frame.drop(columns="seed"), SCORE)):
        with pytest.raises(UnweaveError, match=r'"(nope|seed)"'):
            compare_few_labels(wrong, [score])
    with pytest.raises(UnweaveError, match='are chosen by "dci" or "mig" on few labels; got'):
        compare_few_labels(frame, by="sap")
    with pytest.raises(UnweaveError, match="the folder of a study must be named by its path; got 3"):
        compare_few_labels(3)  # type: ignore[arg-type]


def test_a_table_on_disk(tmp_path: Path) -> None:
    """A study's folder: its table, and the table of `unweave select`."""
    frame = runs()
    base = frame[["source", "run", "data", "method", "setting", "strength", "seed"]]
    chosen = [name for name in map(str, frame) if name.startswith("few_")]
    parts = {"results.parquet": [SCORE], "selection.parquet": chosen}
    for name, scores in parts.items():
        rows = [
            base.assign(
                representation="mean" if score == SCORE else "",
                score=score,
                protocol=f"{score}[x]",
                value=frame[score],
            ).dropna(subset=["value"])
            for score in scores
        ]
        write_table(pd.concat(rows, ignore_index=True), tmp_path / name)
    answers = compare_few_labels(tmp_path)
    assert list(answers.training["difference"]) == pytest.approx([0.2004, 0.3004])
