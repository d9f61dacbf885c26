"""The sentences that open the sections of the report, each with effect, interval and number of seeds.

They say so if the data cannot tell. A claim is made only if it is significant at 5% after Holm, and
its words fit the size of the effect.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np
import pandas as pd

from unweave.report.best import ALL_DATA, LEVEL
from unweave.report.names import DATA, METHODS, counted, label, listed, score_label
from unweave.report.statistics import Interval
from unweave.report.tables import Change

WEAK, STRONG = 0.3, 0.7  # rank correlations below are not called agreement; those above are called strong
CANNOT_TELL = "The data cannot tell"
ONE_SEED = f"{CANNOT_TELL}: every setting has one seed only, so the share of the seed is not known."


def seed_words(seeds: int) -> str:
    """How many seeds a setting has."""
    return f"{counted(seeds, 'seed')} a setting"


def bounds(low: float, high: float, digits: int = 2) -> str:
    """An interval in brackets with a space before it; empty if it is not known.

    >>> bounds(0.123, 0.456)
    ' [0.12, 0.46]'
    """
    return "" if np.isnan(low) or np.isnan(high) else f" [{low:.{digits}f}, {high:.{digits}f}]"


def on_regularisation(
    changes: Mapping[str, Change | None], pairs: pd.DataFrame | None, score: str, seeds: int
) -> str:
    """How a score of sampled and of mean codes changes with regularisation, and which of them is larger."""
    known = {kind: change for kind, change in changes.items() if change is not None}
    if not known:
        return f"{CANNOT_TELL} what regularisation changes: no method has two strengths of it."
    what = score_label(score)
    parts = [
        f"{_change_words(change.difference)} the {what} of {kind} codes (mean {change.weakest:.3g} to "
        f"{change.strongest:.3g}, difference {change.difference.estimate:+.3g}{_change_bounds(change)})"
        for kind, change in known.items()
    ]
    sentence = f"Stronger regularisation {listed(parts)}; {seed_words(seeds)}"
    if any(np.isnan(change.difference.low) for change in known.values()):
        sentence += f". {CANNOT_TELL} how sure this is, since a setting has one seed"
    if pairs is not None and len(pairs):
        larger = (pairs["mean"] > pairs["sampled"]).mean()
        sentence += f". Mean codes have the larger {what} in {larger:.0%} of {len(pairs):,} runs"
    return f"{sentence}."


def _change_words(difference: Interval) -> str:
    if difference.low > 0:
        return "raises"
    if difference.high < 0:
        return "lowers"
    return "does not distinguishably change"


def _change_bounds(change: Change) -> str:
    _, low, high = change.difference
    return "" if np.isnan(low) else f" [{low:+.3g}, {high:+.3g}]"


def on_agreement_of_metrics(means: pd.DataFrame, data: int, seeds: int) -> str:
    """How many pairs of metrics agree, and the extremes; `means` is of `mean_correlations` by both names."""
    ordered = means.sort_values("estimate", kind="stable").to_dict("records")
    worst, best = ordered[0], ordered[-1]
    extremes = _pair(best) if len(ordered) == 1 else f"from {_pair(best)} to {_pair(worst)}"
    over = f"means over {counted(data, 'data set')}, {seed_words(seeds)}"
    if means["p"].isna().all():
        return (
            f"{CANNOT_TELL} whether metrics agree: ten runs of a data set are needed. Spearman's "
            f"correlation here: {extremes}; {over}."
        )
    sure = means.loc[means["p"] < LEVEL, "estimate"]
    strong, agree, oppose = (int(count.sum()) for count in (sure >= STRONG, sure >= WEAK, sure <= -WEAK))
    opposite = f", {oppose} rank runs the opposite way ({-WEAK} or less)" if oppose else ""
    return (
        f"Of {counted(len(means), 'pair')} of metrics, {strong} agree strongly (Spearman {STRONG} or more), "
        f"{agree - strong} moderately ({WEAK} to {STRONG}){opposite} and {len(means) - agree - oppose} "
        f"weakly or not: {extremes}; {over}."
    )


def _pair(row: dict[Hashable, Any]) -> str:
    names = f"{score_label(row['first'])} and {score_label(row['second'])}"
    return f"{row['estimate']:.2f}{bounds(row['low'], row['high'])} ({names})"


def on_correlation(means: pd.DataFrame, names: str, target: str, seeds: int) -> str:
    """Which scores correlate with a target; `means` is of `mean_correlations` by one name, its first column.

    `names` is what the scores are ("metric", "label-free number").
    """
    column = str(means.columns[0])
    ordered = means.loc[means["estimate"].abs().sort_values(ascending=False, kind="stable").index]
    clearest = ordered.to_dict("records")[0]
    described = (
        f"{score_label(clearest[column])}: mean Spearman "
        f"{clearest['estimate']:.2f}{bounds(clearest['low'], clearest['high'])}, single ones from "
        f"{clearest['lowest']:.2f} to {clearest['highest']:.2f}"
    )
    what = counted(len(means), names)
    if means["p"].isna().all():
        return (
            f"{CANNOT_TELL} whether {what} correlate with {target}: ten runs of a data set are needed. The "
            f"largest correlation is that of {described}; {seed_words(seeds)}."
        )
    related = ordered[(ordered["p"] < LEVEL) & (ordered["estimate"].abs() >= WEAK)]
    if related.empty:
        return (
            f"None of {what} correlates with {target} (|Spearman| below {WEAK} or not distinguishable from "
            f"0); the largest correlation is that of {described}; {seed_words(seeds)}."
        )
    others = [
        f"{score_label(row[column])} ({row['estimate']:.2f}{bounds(row['low'], row['high'])})"
        for row in related.to_dict("records")[1:4]
    ]
    also = f" Next: {listed(others)}." if others else ""
    verb = "correlates with" if len(related) == 1 else "correlate with"
    return (
        f"{len(related)} of {what} {verb} {target} (|Spearman| {WEAK} "
        f"or more). The largest correlation is that of {described}; {seed_words(seeds)}.{also}"
    )


def on_variance(shares: pd.DataFrame, means: Mapping[str, Interval], spread: pd.DataFrame, seeds: int) -> str:
    """Whether method, setting or seed explains the variance of a score, and whether chance would."""
    method, setting = (
        f"{_percent(means[name])} (noise alone: {shares[f'{name} by chance'].mean():.0%})"
        for name in ("method", "setting")
    )
    sentence = (
        f"the method explains {method} of the variance of a score, its hyper-parameter another {setting}, "
        f"and the seed the other {_percent(means['seed'])}; means over {counted(len(shares), 'pair')} of a "
        f"data set and a score, {seed_words(seeds)}"
    )
    counts = [int(shares[f"{name} above chance"].sum()) for name in ("method", "setting")]
    if not any(counts):
        return f"{CANNOT_TELL} this from chance: {sentence}."
    sentence = sentence[0].upper() + sentence[1:]
    sentence += (
        f". The method is above chance in {counts[0]} of these pairs and the hyper-parameter in {counts[1]}"
    )
    if len(spread):
        overlap = spread["overlap"].mean()
        sentence += f"; the ranges over seeds of {overlap:.0%} of the pairs of settings overlap"
    return f"{sentence}."


def _percent(share: Interval) -> str:
    estimate, low, high = share
    return f"{estimate:.0%}" + ("" if np.isnan(low) else f" [{100 * low:.0f}, {100 * high:.0f}]")


_KINDS = {
    ("same", "same"): "on other seeds of the same data set",
    ("same", "other"): "for another metric",
    ("other", "same"): "on another data set",
    ("other", "other"): "for another metric on another data set",
}


def on_transfer(table: pd.DataFrame, settings: int, seeds: int) -> str:
    """How often a transferred choice beats a random other setting, and where this is more than chance."""
    parts = [
        f"{row['probability']:.3f}{bounds(row['low'], row['high'], 3)} {_KINDS[row['data'], row['score']]}"
        + _against_chance(row["low"], row["high"], row["random"])
        for row in table.to_dict("records")
    ]
    size = f"{counted(settings, 'setting')}, {counted(seeds, 'seed')}"
    sentence = (
        f"beats a random other setting with probability {listed(parts)}; a random choice reaches 0.5; {size}"
    )
    subject = "a setting that is the best by one metric on one data set"
    if table["low"].isna().any():
        return f"{CANNOT_TELL}: there are too few settings for intervals. In these runs {subject} {sentence}."
    return f"{subject[0].upper()}{subject[1:]} {sentence}."


def _against_chance(low: float, high: float, chance: float) -> str:
    """What an interval says of a number that chance explains; nothing if it lies above."""
    if low <= chance <= high:
        return " (not distinguishable from a random choice)"
    return " (worse than a random choice)" if high < chance else ""


def on_best(table: pd.DataFrame, seeds: int) -> str:
    """Whether one method is best, where and by how much; `table` is that of `best_methods`."""
    if table.empty:
        return f"{CANNOT_TELL}: fewer than two methods have the same score, so none can be called the best."
    if table["p"].isna().all():
        return f"{CANNOT_TELL} which method is best: two settings or two seeds of each are needed."
    places = table[table["data"] != ALL_DATA]
    pairs = counted(len(places), "pair") + " of a data set and a score"
    # In units of its interval, since scores have different scales.
    clarity = table["margin"] / (table["high"] - table["low"])
    clearest = table.loc[[clarity.idxmax()]].to_dict("records")[0]
    if not table["best"].any():
        return (
            f"No method can be called the best: in none of {pairs} can the highest mean be distinguished "
            f"from all others. The clearest lead: {_lead(clearest)}; p = {clearest['p']:.3f} for all pairs, "
            f"{seed_words(seeds)}."
        )
    overall = table[(table["data"] == ALL_DATA) & table["best"]].to_dict("records")
    leads = [f"Overall: {_lead(row)}" for row in overall] or [f"The clearest lead: {_lead(clearest)}"]
    return f"{' '.join([_where_best(places, pairs), '. '.join(leads)])}; {seed_words(seeds)}."


def _where_best(places: pd.DataFrame, pairs: str) -> str:
    """In how many pairs of a data set and a score one method is the best, and which."""
    sure = places[places["best"]]
    wins = [f"{label(str(name), METHODS)} in {n}" for name, n in sure["highest mean"].value_counts().items()]
    which = f" ({listed(wins)})" if wins else ""
    rest = (
        ", and in the others the highest cannot be distinguished from all others"
        if len(sure) < len(places)
        else ""
    )
    return f"Of {pairs}, one method is the best in {len(sure)}{which}{rest}."


def _lead(row: dict[Hashable, Any]) -> str:
    """A margin with its interval in words."""
    first, second = (label(str(row[name]), METHODS) for name in ("highest mean", "closest rival"))
    score, where = score_label(str(row["score"])), label(str(row["data"]), DATA)
    return (
        f"{first} over {second} by {row['margin']:.3f}{bounds(row['low'], row['high'], 3)} in {score} on "
        f"{where} (a run of {first} scores higher with probability {row['improvement']:.2f})"
    )


def on_chosen(means: pd.DataFrame) -> str:
    """Whether agreement between runs chooses good ones; `means` is that of `mean_choices`."""
    parts = [
        f"{score_label(row['chooser'])} {row['beats']:.2f}{bounds(row['low'], row['high'])} among "
        f"{row['among']} ({counted(row['choices'], 'choice')}{_verdict(row['low'], row['high'])})"
        for row in means.to_dict("records")
    ]
    return (
        "The share of other runs that the chosen one beats, on the mean over metrics and choices, where a "
        f"random choice reaches 0.5: {'; '.join(parts)}."
    )


def _verdict(low: float, high: float) -> str:
    if np.isnan(low):
        return ", too few to tell"
    return (
        _against_chance(low, high, 0.5).replace(" (", ", ").replace(")", "")
        or ", better than a random choice"
    )
