"""The sentences of the report: each says in numbers what a table shows."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np
import pandas as pd

from unweave.report.best import ALL_DATA
from unweave.report.names import DATA, METHODS, counted, label, listed, regularisation_steps, score_label

WEAK = 0.3  # rank correlations below are not called agreement


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
    over = f"On the mean over {count} data sets" if count > 1 else "On this data set"
    if pairs.max() < WEAK:
        sentence = (
            f"{over}, no two metrics agree: the highest rank correlation is that of {_pair(best)} "
            f"(Spearman {pairs.max():.2f})"
        )
        lowest = f", the lowest that of {_pair(worst)} ({pairs.min():.2f})"
    else:
        sentence = f"{over}, {_pair(best)} agree most (Spearman {pairs.max():.2f})"
        lowest = f" and {_pair(worst)} least ({pairs.min():.2f})"
    sentence += lowest if len(pairs) > 1 else ""
    known = table["low"].notna()
    if not known.any():
        return f"{sentence}; there are too few runs for intervals, so this may be chance."
    above = (table["low"] > 0)[known].mean()
    return f"{sentence}; of {counted(known.sum(), 'correlation')}, {above:.0%} have an interval above 0."


def _pair(names: tuple[str, str]) -> str:
    first, second = names
    return f"{score_label(first)} and {score_label(second)}"


TOO_FEW_SEEDS = "Too few seeds to say: with one seed a setting, the share of the seed is not known."


def on_variance(shares: pd.DataFrame, spread: pd.DataFrame) -> str:
    """Whether method, setting or seed explains most of the variance of a score, and whether chance would."""
    method, setting = (_share(shares, name) for name in ("method", "setting"))
    sentence = (
        f"On the mean over scores and data sets, the method explains {method} of the variance of a score, "
        f"its hyper-parameter another {setting}, and the seed the other {shares['seed'].mean():.0%}; "
    )
    counts = [int(shares[f"{name} above chance"].sum()) for name in ("method", "setting")]
    if not any(counts):
        sentence += "the runs are too few to tell this from chance"
    else:
        sentence += (
            f"of {counted(len(shares), 'pair')} of a data set and a score, the method is above chance in "
            f"{counts[0]} and the hyper-parameter in {counts[1]}"
        )
    if len(spread):
        sentence += (
            f"; the ranges over seeds of {spread['overlap'].mean():.0%} of the pairs of settings overlap"
        )
    return f"{sentence}."


def _share(shares: pd.DataFrame, name: str) -> str:
    """The mean of a share, and what chance alone gives."""
    return f"{shares[name].mean():.0%} (noise alone: {shares[f'{name} by chance'].mean():.0%})"


def on_choice(table: pd.DataFrame) -> str:
    """Which number that needs no label correlates with metrics."""
    strength = table["estimate"].abs().groupby(table["first"], sort=False).mean()
    name = str(strength.idxmax())
    of_name = table[table["first"] == name].sort_values("estimate", kind="stable")
    low, high = of_name.iloc[0], of_name.iloc[-1]
    numbers = counted(len(strength), "number")
    if strength.max() < WEAK:
        return (
            f"None of {numbers} that need no label follows the metrics: the highest mean |Spearman| is "
            f"{strength.max():.2f} ({score_label(name)})."
        )
    return (
        f"Of {numbers} that need no label, {score_label(name)} follows the metrics most (|Spearman| "
        f"{strength.max():.2f} on average), but from {low['estimate']:.2f} ({_where(low)}) "
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
    """How often a transferred choice beats a random other setting, and where this is more than chance."""
    parts = [
        f"{row['probability']:.3f}{_range(row)} {_KINDS[row['data'], row['score']]}"
        + _against_chance(row["low"], row["high"], row["random"])
        for row in table.to_dict("records")
    ]
    sentence = (
        "A setting that is the best by one metric on one data set beats a random other setting with "
        f"probability {listed(parts)}; a random choice reaches {table['random'].mean():.1f}"
    )
    if table["low"].isna().any():
        sentence += "; there are too few settings for intervals, so this may be chance"
    return f"{sentence}."


def _range(row: dict[Hashable, Any]) -> str:
    """The interval of a row in brackets, if it has one."""
    return "" if np.isnan(row["low"]) else f" [{row['low']:.3f}, {row['high']:.3f}]"


def _against_chance(low: float, high: float, chance: float) -> str:
    """What an interval says of a number that chance explains; nothing if it lies above."""
    if low <= chance <= high:
        return " (not distinguishable from a random choice)"
    return " (worse than a random choice)" if high < chance else ""


def on_downstream(table: pd.DataFrame, what: str) -> str:
    """Which metric correlates with a task."""
    means = table.groupby("second", sort=False)["estimate"].mean()
    best = score_label(str(means.idxmax()))
    sentence = f"{best} follows {what} most (mean Spearman {means.max():.2f})"
    if means.max() < WEAK:
        sentence = (
            f"no metric follows {what}: the highest mean Spearman is that of {best} ({means.max():.2f})"
        )
    if len(means) > 1:
        sentence += f", {score_label(str(means.idxmin()))} least ({means.min():.2f})"
    return sentence


def on_best(table: pd.DataFrame) -> str:
    """Whether one method is best, where and by how much; `table` is that of `best_methods`."""
    if table.empty:
        return "There are fewer than two methods with the same score, so none can be called the best."
    if table["p"].isna().all():
        return "Too few settings and seeds to say which method is best: two or more are needed."
    places = table[table["data"] != ALL_DATA]
    pairs = counted(len(places), "pair") + " of a data set and a score"
    # In units of its interval, since scores have different scales.
    clarity = table["margin"] / (table["high"] - table["low"])
    clearest = _records(table.loc[[clarity.idxmax()]])[0]
    if not table["best"].any():
        return (
            f"No method can be called the best: in none of {pairs} can the highest mean be told apart from "
            f"all others. The clearest lead: {_lead(clearest)}; p = {clearest['p']:.3f} for all pairs."
        )
    overall = _records(table[(table["data"] == ALL_DATA) & table["best"]])
    leads = [f"Overall: {_lead(row)}." for row in overall] or [f"The clearest lead: {_lead(clearest)}."]
    return " ".join([_where_best(places, pairs), *leads])


def _where_best(places: pd.DataFrame, pairs: str) -> str:
    """In how many pairs of a data set and a score one method is the best, and which."""
    sure = places[places["best"]]
    wins = [f"{label(str(name), METHODS)} in {n}" for name, n in sure["highest mean"].value_counts().items()]
    which = f" ({listed(wins)})" if wins else ""
    rest = (
        ", and in the others the highest cannot be told apart from all others"
        if len(sure) < len(places)
        else ""
    )
    return f"Of {pairs}, one method is the best in {len(sure)}{which}{rest}."


def _records(table: pd.DataFrame) -> list[dict[Hashable, Any]]:
    return table.to_dict("records")


def _lead(row: dict[Hashable, Any]) -> str:
    """A margin with its interval in words."""
    first, second = (label(str(row[name]), METHODS) for name in ("highest mean", "closest rival"))
    score, where = score_label(str(row["score"])), label(str(row["data"]), DATA)
    return (
        f"{first} over {second} by {row['margin']:.3f}{_range(row)} in {score} on {where} (a run of {first} "
        f"scores higher with probability {row['improvement']:.2f})"
    )
