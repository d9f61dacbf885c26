"""The page of follow-up studies shows the runs that were measured."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from scipy.stats import ttest_1samp

import unweave
from unweave.report.adjustment import adjusted_for
from unweave.report.correlated_factors import (
    condition_table,
    differences,
    runs_on_all,
    strongest_differences,
)
from unweave.report.few_labels import compare_few_labels
from unweave.report.generalisation import held_out_means, held_out_pairs
from unweave.report.rank_correlation import correlations, mean_correlations

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/follow_up_studies.md").read_text()
ROWS = [line.split(" | ") for line in PAGE[PAGE.index("| claim |") :].splitlines() if line.startswith("| ")]
DCI, FACTOR_VAE = "dci.disentanglement", "factor_vae_score.eval_accuracy"
METRICS = [DCI, "mig", "sap", "modularity", "beta_vae_score.eval_accuracy", FACTOR_VAE]
LABELS = r"labels=(?P<labels>\d+),labeller=(?P<labeller>\w+).*train_percentage=(?P<share>\d+),(?P<rest>.*)"


def results(name: str, measured: str = "2026-11-16-h200") -> pd.DataFrame:
    table = pd.read_csv(ROOT / f"benchmarks/results/{measured}-{name}.csv")
    return table.assign(source="own", strength=float("nan"))


def part(table: pd.DataFrame, on: str) -> pd.DataFrame:
    return table[table["on"] == on].drop(columns="on")


def shown(claim: str, numbers: Sequence[str]) -> None:
    """The row of the claim has these numbers, in this order."""
    [row] = [cells for cells in ROWS if cells[0].startswith(f"| {claim}")]
    at = 0
    for number in numbers:
        match = re.compile(rf"(?<![\d.]){re.escape(number)}(?![\d])").search(row[2], at)
        assert match, f'"{number}" is not where it belongs in the row "{claim}"'
        at = match.end()


def cells(table: pd.DataFrame, digits: int = 2) -> list[str]:
    """For example -0.80 (-0.88 to -0.73), for each row."""
    middle = "estimate" if "estimate" in table else "difference"
    columns = zip(table[middle], table["low"], table["high"], strict=True)
    return [_cell(*numbers, digits=digits) for numbers in columns]


def _cell(middle: float, low: float, high: float, digits: int = 2) -> str:
    return f"{middle:.{digits}f} ({low:.{digits}f} to {high:.{digits}f})"


def spread(values: pd.Series[float]) -> str:
    return _cell(values.median(), values.min(), values.max())


def test_every_claim_has_four_cells() -> None:
    assert ROWS[0] == ["| claim", "published", "here", "verdict |"]
    assert len(ROWS) == 17
    assert {len(row) for row in ROWS} == {4}


@pytest.mark.parametrize(
    ("page", "claims"),
    {
        "correlated_data": ["Correlated factors", "Correlated pairs"],
        "downstream": ["Disentangled codes help to predict"],
        "fairness": ["Predictions"],
        "few_labels": ["100 labels", "1,000 labels", "Labels are worth more", "Imprecise labels"],
        "generalisation": ["Unseen combinations", "Unseen values", "A small block", "Models fail outside"],
        "reasoning": ["Disentangled codes help abstract", "True factors"],
        "symmetry": ["VAEs do not"],
    }.items(),
)
def test_pages_of_studies_have_the_numbers_of_the_table(page: str, claims: Sequence[str]) -> None:
    text = (ROOT / f"docs/{page}.md").read_text()
    found = text.partition("## What was found")[2].partition("\n## ")[0]
    numbers = set(re.findall(r"-?\d+\.\d+", found))
    shown_here = " ".join(cells[2] for cells in ROWS for claim in claims if cells[0].startswith(f"| {claim}"))
    assert len(numbers) > 4
    assert numbers <= set(re.findall(r"-?\d+\.\d+", shown_here))


def test_times_of_small_versions() -> None:
    table = pd.read_csv(ROOT / "benchmarks/results/2026-11-19-cpu-forecasts.csv")
    rows = zip(table["study"], table["runs"], table["forecast"], table["measured"], strict=True)
    for study, runs, forecast, measured in rows:
        assert f"| `{study}` | {runs} | {forecast:.0f} | {measured:.0f} |\n" in PAGE
    off = (table["forecast"] / table["measured"] - 1).round(2)
    assert off.abs().max() < 0.15
    assert f"within {off.abs().max():.0%}" in PAGE
    assert f"they were {-off.min():.0%} too\nlow to {off.max():.0%} too high" in (
        ROOT / "docs/studies.md"
    ).read_text(encoding="utf-8")


def test_fairness_and_prediction() -> None:
    runs = results("follow-up-scores")
    unfairness, accuracy = "fairness_trees.mean_unfairness", "downstream_trees.test_accuracy_{}"
    raw = mean_correlations(correlations(runs, [unfairness], METRICS), ["second"])
    equal = adjusted_for(runs, [unfairness, *METRICS], accuracy.format(10_000))
    adjusted = mean_correlations(correlations(equal, [unfairness], METRICS), ["second"])
    shown("Predictions", [f"{len(runs)} runs", *cells(raw.iloc[[0, 1, 3]]), *cells(adjusted.iloc[:2])])
    clear = raw[(raw["p"] < 0.05) & (raw["estimate"] < 0)]
    assert set(METRICS) - set(clear["second"]) == {"modularity"}
    accuracies = [accuracy.format(labels) for labels in (10, 100, 1_000, 10_000)]
    predicted = mean_correlations(correlations(runs, accuracies, METRICS), ["second"])
    efficiency = mean_correlations(correlations(runs, ["downstream_trees.efficiency"], METRICS), ["second"])
    shown("Disentangled codes help to predict", [*cells(predicted[:2]), *cells(efficiency.iloc[[2, 0]])])
    assert list(efficiency[efficiency["p"] < 0.05]["second"]) == ["sap"]


def test_reasoning() -> None:
    runs = results("follow-up-scores").dropna(subset=["reasoning.accuracy_480000"])
    steps = [f"reasoning.accuracy_{n}" for n in (6_400, 16_000, 32_000, 64_000, 160_000, 480_000)]
    shown(
        "Disentangled codes help abstract",
        [f"{len(runs)} runs", *cells(correlations(runs, steps, [DCI]).table)],
    )
    at = [6_400, 16_000, 480_000]
    known = results("follow-up-reasoning-baselines").set_index(["subject", "matrices"])["accuracy"]
    numbers = [known[subject, n] for subject in ("values", "one_hot") for n in at]
    some = runs[[f"reasoning.accuracy_{n}" for n in at]]
    numbers += [*some.median(), *some.max(), known["end_to_end", 480_000]]
    shown("True factors", [f"{number:.2f}" for number in numbers])


def test_held_out_combinations_and_values() -> None:
    runs = results("follow-up-held-out")
    names = ["generalisation.accuracy", "generalisation.r2", "generalisation.reconstruction"]
    names.append("dci.informativeness_test")
    tables = {}
    for data in ("dsprites:hold(shape=0,x=16..31)", "dsprites:hold(x=16..31)"):
        trained, held = (part(runs[runs["data"] == data], on) for on in ("training", "held_out"))
        tables[data] = held_out_means(held_out_pairs(trained, held, names)).set_index("score")
    combinations, values = tables.values()
    accuracy, r2, loss = (combinations.loc[name] for name in names[:3])
    numbers = [f"{accuracy['training']:.2f}", f"{accuracy['held out']:.2f}", *_falls(accuracy)]
    numbers += [
        f"{r2['training']:.2f}",
        f"{r2['held out']:.2f}",
        f"{loss['training']:.1f}",
        f"{loss['held out']:.0f}",
    ]
    shown("Unseen combinations", [f"{accuracy['runs']:.0f} runs", *numbers])
    informative = values.loc["dci.informativeness_test"]
    numbers = [f"{informative['training']:.2f}", f"{informative['held out']:.2f}", *_falls(informative)]
    columns = runs[runs["data"] == "dsprites:hold(x=16..31)"].pivot(index="run", columns="on")
    r2, loss = columns["generalisation.r2"].dropna(), columns["generalisation.reconstruction"].dropna()
    ratio = loss["held_out"] / loss["training"]
    numbers += [
        f"{len(r2)} of them",
        f"{r2['training'].min():.2f} or more",
        f"{r2['held_out'].max():.2f} or less",
    ]
    shown(
        "Unseen values",
        [f"{informative['runs']:.0f} runs", *numbers, f"{ratio.min():.0f} to {ratio.max():,.0f}"],
    )


def test_a_small_block_of_unseen_combinations() -> None:
    runs = results("follow-up-element", "2026-11-19-cpu")
    names = ["generalisation.accuracy", "generalisation.r2", "generalisation.reconstruction"]
    pairs = held_out_pairs(part(runs, "training"), part(runs, "held_out"), names)
    accuracy, r2, _ = (held_out_means(pairs).set_index("score").loc[name] for name in names)
    numbers = [f"{accuracy['runs']:.0f} runs"]
    numbers += [f"{accuracy['training']:.2f} to {accuracy['held out']:.2f}", *_falls(accuracy)]
    numbers += [f"{r2['training']:.2f} in training and {r2['held out']:.2f}"]
    losses = pairs[pairs["score"] == names[2]].groupby("setting")[["training", "held out"]].mean()
    for setting in ("beta=1", "beta=8", "gamma=50,second_batch=False"):
        numbers.append("from {:.0f} to {:.0f}".format(*losses.loc[setting]))
    shown("A small block", numbers)


def test_splits_of_schott() -> None:
    runs = results("follow-up-schott", "2026-11-19-cpu")
    names = ["generalisation.r2", "generalisation.reconstruction"]
    numbers, losses = [], []
    for split in ("random", "interpolation", "composition", "extrapolation"):
        of_split = runs[runs["data"] == unweave.data.load(f"dsprites:schott_{split}").name]
        pairs = held_out_pairs(part(of_split, "training"), part(of_split, "held_out"), names)
        assert set(pairs["method"]) == {"beta_vae", "ada_gvae", "supervised"}
        r2, loss = (held_out_means(pairs).set_index("score").loc[name] for name in names)
        assert r2["runs"] == 9
        ends = [f"{r2[end]:.2f}" for end in ("difference", "low", "high")]
        change, low, high = (end.replace("-0.00", "0.00") for end in ends)
        name, prefix = (split, "change ") if split == "random" else (split.capitalize(), "")
        both = f"{r2['training']:.2f} and {r2['held out']:.2f}"
        numbers.append(f"{name} {both} ({prefix}{change}, {low} to {high})")
        losses.append(f"{loss['training']:.0f} and {loss['held out']:.0f}")
    by_method = pairs[pairs["score"] == names[0]].groupby("method")["held out"].mean()
    methods = [f"{by_method[name]:.2f}" for name in ("beta_vae", "ada_gvae", "supervised")]
    shown("Models fail outside", ["9 runs", *numbers, "; ".join(losses), *methods])


def _falls(row: Any) -> list[str]:
    return [f"by {-row['difference']:.2f}, {-row['high']:.2f} to {-row['low']:.2f}"]


def test_few_labels() -> None:
    runs = results("choice")
    few = ["few_labels.dci", "few_labels.mig"]
    table = correlations(runs, few, [DCI, "mig", "sap"]).table.set_index(["first", "second"])
    order = table.loc[[(few[0], DCI), (few[1], "mig"), (few[0], "sap")]]
    shown("100 labels can choose", [f"{len(runs)} runs", *cells(order)])
    runs = results("follow-up-few-labels").query("steps == 25000")
    unsupervised = runs[~runs["method"].str.startswith("s2_")].groupby("seed")
    assert set(unsupervised.size()) == {12}
    best = [f"{value:.2f}" for name in ("mig", DCI) for value in unsupervised[name].max()]
    taught = runs[(runs["method"] == "s2_beta_vae") & runs["setting"].str.endswith("beta=16")]
    shown("Labels are worth more", [*best, *(spread(taught[name]) for name in ("mig", DCI))])


def test_1000_labels() -> None:
    runs = results("follow-up-few-labels", "2026-11-19-cpu")
    alone = runs[~runs["method"].str.startswith("s2_")]
    chosen = ["few_labels.dci_1000", "few_labels.mig_1000", "few_labels.dci", "few_labels.mig"]
    table = correlations(alone, chosen, [DCI, "mig"]).table.set_index(["first", "second"])
    order = table.loc[list(zip(chosen, [DCI, "mig"] * 2, strict=True))]
    shown("1,000 labels can choose", [f"{len(alone)} runs", *cells(order)])
    numbers = []
    training = compare_few_labels(runs, ["mig", DCI]).training.set_index("score")
    assert set(training["pairs"]) == {3}
    for name in ("mig", DCI):
        row = training.loc[name]
        numbers += [f"{row['mean']:.2f} and {row['mean against']:.2f}"]
        numbers += [_cell(*row[["difference", "low", "high"]])]
    runs = runs.join(runs["setting"].str.extract(LABELS))
    taught = runs[(runs["share"] + runs["rest"]) == "100beta=16"].groupby("labeller")["mig"]
    numbers += [f"{name} {spread(taught.get_group(name))}" for name in ("perfect", "permuted")]
    shown("1,000 labels are worth more", numbers)


def test_imprecise_labels() -> None:
    runs = results("follow-up-labels")
    runs = runs.join(runs["setting"].str.extract(LABELS))
    assert set(runs["share"] + runs["rest"]) == {"100beta=16"}
    groups = {key: spread(group["mig"]) for key, group in runs.groupby(["labels", "labeller"])}
    kinds = ["perfect", "binned", "noisy", "partial", "permuted"]
    numbers = [f"{kind} {groups['100', kind]}" for kind in kinds]
    numbers += [f"{kind} {groups['1000', kind]}" for kind in kinds[1:4]]
    shown("Imprecise labels", numbers)
    assert len(groups) == len(numbers)


def test_correlated_factors() -> None:
    runs, scores = results("follow-up-correlated"), ["mig", DCI, FACTOR_VAE]
    found = {}
    for pair in ("x~y=0.2", "orientation~x=0.2"):
        some = runs[runs["data"].isin(["dsprites", f"dsprites:{pair}"])]
        found[pair] = runs_on_all(part(some, "training"), part(some, "all"), scores)
    changes = [strongest_differences(values).set_index("score") for values in found.values()]
    assert set(changes[0]["runs"]) == {9}
    pairs = condition_table(found["x~y=0.2"])
    pairs = pairs[(pairs["method"] == "ada_gvae") & (pairs["pairs"] == 1)].set_index("score")
    pairs = pairs.drop(columns=["low", "high"])
    pairs = pairs.rename(columns={"difference low": "low", "difference high": "high"})
    numbers = [*cells(changes[0].loc[scores], 3), *cells(changes[1].loc[[DCI]], 3)]
    shown("Correlated factors", [*numbers, *cells(pairs.loc[[DCI, FACTOR_VAE]], 3)])


def test_correlated_pairs() -> None:
    runs, scores = results("follow-up-correlations", "2026-11-19-cpu"), [DCI, "mig"]
    assert set(runs["method"]) == {"ada_gvae"}
    values = runs_on_all(part(runs, "training"), part(runs, "all"), scores)
    table = condition_table(values)
    assert set(table["runs"]) == {3}
    rows = table.set_index(["score", "condition"])
    of_roth = [
        unweave.data.load(f"dsprites:roth_{name}_1").name.partition(":")[2]
        for name in ("single", "double", "confounder")
    ]
    numbers = [f"{runs['run'].nunique()} runs", _cell(*rows.loc[(DCI, "none"), ["mean", "low", "high"]])]
    changes = ["difference", "difference low", "difference high"]
    changed = [(score, name) for score in scores for name in of_roth] + [(DCI, "x~y=0.2")]
    numbers += [_cell(*rows.loc[key, changes]) for key in changed]
    groups = differences(values).groupby(["score", "condition"])["difference"]
    p = [float(ttest_1samp(group, 0).pvalue) for _, group in groups]
    assert len(p) == 8
    assert (groups.mean() < 0).all()
    trial = results("follow-up-correlations-trial", "2026-11-19-cpu").query("data == 'dsprites'")
    shown("Correlated pairs", [*numbers, f"{8 * min(p):.2f}", "12 runs", f"{trial['mig'].mean():.2f}"])


def test_symmetry() -> None:
    runs = results("follow-up-symmetry")
    assert set(runs.groupby("data").size()) == {12}
    numbers = []
    for data in ("rooms", "dsprites"):
        for name in ("d_lsbd", "d_lsbd.shared"):
            values = runs.loc[runs["data"] == data, name]
            numbers.append(f"{values.min():.2f} to {values.max():.2f}")
    numbers.append(f"{runs.loc[runs['data'] == 'dsprites', 'd_lsbd.chance'].mean():.2f}")
    means = mean_correlations(correlations(runs, ["d_lsbd"], [DCI, "mig"]), ["second"])
    shown("VAEs do not", [*numbers, *cells(means)])
