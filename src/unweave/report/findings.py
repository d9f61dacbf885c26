"""The sentences of the report: each says in numbers what a table shows."""

from __future__ import annotations

import pandas as pd

from unweave.report.names import DATA, METHODS, counted, label, listed, regularisation_steps, score_label


def on_regularisation(codes: dict[str, pd.DataFrame], pairs: pd.DataFrame | None, score: str) -> str:
    """How a score of sampled and of mean codes changes with regularisation, and which of them is larger."""
    parts = []
    for kind, runs in codes.items():
        known = runs[runs[score].notna()]
        step = regularisation_steps(known)
        strongest = step == step.groupby(known["method"]).transform("max")
        weak, strong = known.loc[step == 0, score].median(), known.loc[strongest, score].median()
        parts.append(f"that of {kind} codes from {weak:.2f} to {strong:.2f}")
    sentence = (
        f"From the weakest to the strongest regularisation of each method, the median of "
        f"{score_label(score)} goes: {listed(parts)}"
    )
    if pairs is not None and len(pairs):
        larger = (pairs["mean"] > pairs["sampled"]).mean()
        sentence += f"; it is larger for mean than for sampled codes in {larger:.0%} of {len(pairs):,} runs"
    return f"{sentence}."


def on_agreement_of_metrics(table: pd.DataFrame) -> str:
    """Which metrics agree most and least."""
    pairs = table.groupby(["first", "second"], sort=False)["estimate"].mean()
    count = table["data"].nunique()
    ordered = [*pairs.sort_values(kind="stable").index]
    best, worst = ordered[-1], ordered[0]
    above = (table["low"] > 0).mean()
    over = f"On the mean over {count} data sets" if count > 1 else "On this data set"
    sentence = f"{over}, {_pair(best)} agree most (Spearman {pairs.max():.2f})"
    if len(pairs) > 1:
        sentence += f" and {_pair(worst)} least ({pairs.min():.2f})"
    return f"{sentence}; {above:.0%} of the {len(table)} correlations have an interval above 0."


def _pair(names: tuple[str, str]) -> str:
    first, second = names
    return f"{score_label(first)} and {score_label(second)}"


def on_variance(shares: pd.DataFrame, spread: pd.DataFrame) -> str:
    """Whether method, setting or seed explains most of the variance of a score."""
    method, setting, seed = (shares[name].mean() for name in ("method", "setting", "seed"))
    sentence = (
        f"On the mean over scores and data sets, the method explains {method:.0%} of the variance of a "
        f"score, its hyper-parameter another {setting:.0%}, and the seed the other {seed:.0%}"
    )
    if len(spread):
        sentence += (
            f"; the ranges over seeds of {spread['overlap'].mean():.0%} of the pairs of settings overlap"
        )
    return f"{sentence}."


def on_methods(table: pd.DataFrame) -> str:
    """Which method is best, where there is only one seed, so no interval."""
    best = table.loc[table.groupby(["data", "score"], sort=False)["interquartile mean"].idxmax(), "method"]
    counts = best.value_counts()
    return (
        f"{label(str(counts.index[0]), METHODS)} has the highest interquartile mean in {counts.iloc[0]} of "
        f"{len(best)} pairs of a data set and a score; one run a setting does not say whether that is luck."
    )


def on_choice(table: pd.DataFrame) -> str:
    """Which number that needs no label correlates with metrics."""
    strength = table["estimate"].abs().groupby(table["first"], sort=False).mean()
    name = str(strength.idxmax())
    of_name = table[table["first"] == name].sort_values("estimate", kind="stable")
    low, high = of_name.iloc[0], of_name.iloc[-1]
    return (
        f"Of {len(strength)} numbers that need no label, {score_label(name)} goes along with the metrics "
        f"most (|Spearman| {strength.max():.2f} on average), but from {low['estimate']:.2f} ({_where(low)}) "
        f"to {high['estimate']:.2f} ({_where(high)})."
    )


def _where(row: pd.Series) -> str:
    return f"{score_label(row['second'])} on {label(row['data'], DATA)}"


_KINDS = {
    ("same", "same"): "on other seeds of the same data set",
    ("same", "other"): "for another metric",
    ("other", "same"): "on another data set",
    ("other", "other"): "for another metric on another data set",
}


def on_transfer(table: pd.DataFrame) -> str:
    """How often a transferred choice beats a random one."""
    parts = [
        f"{row['probability']:.3f} {_KINDS[row['data'], row['score']]}" for row in table.to_dict("records")
    ]
    return (
        "A setting that is the best by one metric on one data set scores at least as high as a random one "
        f"with probability {listed(parts)}; a random choice reaches {table['random'].mean():.3f}."
    )


def on_downstream(table: pd.DataFrame, what: str) -> str:
    """Which metric correlates with a task."""
    means = table.groupby("second", sort=False)["estimate"].mean()
    sentence = (
        f"{score_label(str(means.idxmax()))} goes along with {what} most (mean Spearman {means.max():.2f})"
    )
    if len(means) > 1:
        sentence += f", {score_label(str(means.idxmin()))} least ({means.min():.2f})"
    return sentence


def on_comparison(runs: pd.DataFrame, scores: list[str]) -> str:
    """Whether one method is best everywhere."""
    overall = [runs.groupby("method")[score].median().idxmax() for score in scores]
    places = [
        of_data.groupby("method")[score].median().idxmax()
        for _, of_data in runs.groupby("data", observed=True)
        for score in scores
        if of_data[score].notna().any()
    ]
    best, counts = pd.Series(overall).value_counts(), pd.Series(places).value_counts()
    return (
        f"Over everything, {label(str(best.index[0]), METHODS)} has the highest median of {best.iloc[0]} of "
        f"{counted(len(scores), 'score')}; data set by data set, {counted(len(counts), 'method')} came first "
        "somewhere, "
        f"{label(str(counts.index[0]), METHODS)} most often ({counts.iloc[0]} of {len(places)})."
    )
