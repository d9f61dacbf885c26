"""Own runs compared with published ones: whether means over own seeds agree with those of published seeds.

For each setting, representation and score that both have, under the same protocol, the k own values are
compared with the n published ones: they agree if

    |own - published| <= 2.6 std sqrt(1 / k + 1 / n)

with the means and the published standard deviation, which about one of a hundred equal settings would miss by
chance. A few published runs diverged, which moves means of losses far: scores of `elbo` are compared by their
medians, with the quartile distance / 1.349 for the deviation and its 1.25 times larger error.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from unweave.report.names import counted
from unweave.report.statistics import Interval, mean_interval

LIMIT = 2.6  # standard errors
KEY = ["data", "method", "setting", "strength", "representation", "score", "protocol"]
_BY_MEDIAN = "elbo."
_MEDIAN_ERROR = np.sqrt(np.pi / 2)  # of a median, in standard errors of a mean
_QUARTILES = 1.349  # the quartile distance of a normal distribution, in standard deviations


def agreement(own: pd.DataFrame, published: pd.DataFrame) -> pd.DataFrame:
    """One row for each setting and score that both tables of results have; empty if they share none.

    Columns: those that name the setting and the score; own_runs, own, published_runs, published (means or
    medians), std, allowed (the largest difference that agrees), agrees, min and max of the published values,
    and in_range, the share of own values between them.
    """
    ours, theirs = (_plain(table) for table in (own, published))
    shared = ours[KEY].drop_duplicates().merge(theirs[KEY].drop_duplicates(), on=KEY)
    groups = [
        {key: part.to_numpy() for key, part in table.merge(shared, on=KEY).groupby(KEY, sort=False)["value"]}
        for table in (ours, theirs)
    ]
    rows = [(*key, *_compare(values, groups[1][key], str(key[5]))) for key, values in groups[0].items()]
    columns = [*KEY, "own_runs", "own", "published_runs", "published", "std", "allowed", "agrees"]
    comparison = pd.DataFrame(rows, columns=[*columns, "min", "max", "in_range"])
    order = ["data", "method", "strength", "setting", "representation", "score"]
    return comparison.sort_values(order, kind="stable", ignore_index=True)


def _plain(table: pd.DataFrame) -> pd.DataFrame:
    words = {name: str for name in KEY if name != "strength"}
    # NaN is no key; a method without strength has the same setting text anyway.
    return table[[*KEY, "value"]].astype(words).fillna({"strength": 0.0})


def _compare(
    own: NDArray[np.float64], published: NDArray[np.float64], score: str
) -> tuple[int, float, int, float, float, float, bool, float, float, float]:
    error = np.sqrt(1 / len(own) + 1 / len(published))
    if score.startswith(_BY_MEDIAN):
        ours, theirs = np.median(own), np.median(published)
        deviation = np.subtract(*np.quantile(published, [0.75, 0.25])) / _QUARTILES
        allowed = LIMIT * deviation * error * _MEDIAN_ERROR
    else:
        ours, theirs, deviation = own.mean(), published.mean(), published.std(ddof=min(1, len(published) - 1))
        allowed = LIMIT * deviation * error
    low, high = published.min(), published.max()
    inside = ((own >= low) & (own <= high)).mean()
    agrees = bool(abs(ours - theirs) <= allowed + 1e-12)
    return (
        len(own),
        float(ours),
        len(published),
        float(theirs),
        float(deviation),
        float(allowed),
        agrees,
        float(low),
        float(high),
        float(inside),
    )


def agreement_sentence(table: pd.DataFrame) -> str:
    """How many scores agree, how many misses chance explains, and the mean difference."""
    agree, total = int(table["agrees"].sum()), len(table)
    settings = len(table.drop_duplicates(["data", "method", "setting"]))
    seeds = table["own_runs"]
    k = f"{seeds.min()}" if seeds.min() == seeds.max() else f"{seeds.min()} to {seeds.max()}"
    inside = np.average(table["in_range"], weights=seeds)
    estimate, low, high = mean_difference(table)
    interval = "" if np.isnan(low) else f" [{low:.2f}, {high:.2f}]"
    return (
        f"{agree} of {total} scores of {counted(settings, 'shared setting')} ({100 * agree / total:.0f}%) "
        f"agree with the published ones within {LIMIT} standard errors (about {0.01 * total:.0f} would miss "
        f"by chance), for {k} own seeds each. The mean difference is {estimate:.2f}{interval} published "
        f"standard deviations; {100 * inside:.0f}% of the own values lie in the published range."
    )


def mean_difference(table: pd.DataFrame) -> Interval:
    """The mean of own - published in published standard deviations, with a t-interval over settings.

    Scores of a setting are of the same runs, so they are averaged first. Scores that do not vary are left
    out.
    """
    known = table[table["std"] > 0]
    if known.empty:
        return Interval(0.0, np.nan, np.nan)
    scaled = (known["own"] - known["published"]) / known["std"]
    of_settings = scaled.groupby([known[name] for name in ("data", "method", "setting")]).mean()
    return mean_interval(of_settings.to_numpy())
