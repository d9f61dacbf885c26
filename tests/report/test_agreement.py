from typing import Any

import numpy as np
import pandas as pd
import pytest

from report.made_up import settings, table
from unweave.report.agreement import agreement, agreement_sentence
from unweave.report.figures.agreement import own_and_published


def both(own: list[float], published: list[float], score: str = "mig") -> pd.DataFrame:
    """The comparison of one setting with these values."""

    def of(source: str, values: list[float]) -> pd.DataFrame:
        runs = settings(["dsprites"], ["beta_vae"], [4.0], len(values), source)
        return table(runs, {score: lambda at: values[at.seed]}).table

    return agreement(of("own", own), of("published", published))


PUBLISHED = [0.1, 0.2, 0.3, 0.4, 0.5]  # mean 0.3, standard deviation sqrt(0.025)


def test_the_allowed_difference_follows_the_formula() -> None:
    comparison = both([0.5, 0.7], PUBLISHED).iloc[0]
    assert comparison["own"] == pytest.approx(0.6)
    assert comparison["published"] == pytest.approx(0.3)
    assert comparison["allowed"] == pytest.approx(2.6 * np.sqrt(0.025) * np.sqrt(1 / 2 + 1 / 5))
    assert comparison["agrees"]
    assert comparison["in_range"] == 0.5
    assert (comparison["min"], comparison["max"], comparison["own_runs"], comparison["published_runs"]) == (
        0.1,
        0.5,
        2,
        5,
    )


@pytest.mark.parametrize(("shift", "agrees"), [(0.999, True), (1.001, False)])
def test_the_limit_is_sharp(shift: float, agrees: bool) -> None:
    allowed = 2.6 * np.sqrt(0.025) * np.sqrt(1 + 1 / 5)
    assert both([0.3 + shift * allowed], PUBLISHED)["agrees"].tolist() == [agrees]


def test_losses_are_compared_by_medians_because_some_runs_diverged() -> None:
    published = [20.0, 20.5, 21.0, 21.5, 22.0, 1e6]
    comparison = both([21.2], published, "elbo.reconstruction").iloc[0]
    assert comparison["published"] == 21.25
    deviation = (21.875 - 20.625) / 1.349
    assert comparison["allowed"] == pytest.approx(2.6 * deviation * np.sqrt(1 + 1 / 6) * np.sqrt(np.pi / 2))
    assert comparison["agrees"]


def test_equal_constants_agree_and_different_ones_do_not() -> None:
    assert both([1.0], [1.0, 1.0])["agrees"].tolist() == [True]
    assert both([0.9], [1.0, 1.0])["agrees"].tolist() == [False]


def test_only_the_same_setting_and_protocol_are_compared() -> None:
    own = table(settings(["dsprites"], ["beta_vae"], [1.0, 4.0], 2), {"mig": lambda _: 0.2})
    other = settings(["dsprites"], ["beta_vae"], [4.0, 16.0], 2, "published")
    comparison = agreement(own.table, table(other, {"mig": lambda _: 0.2}).table)
    assert comparison["strength"].tolist() == [4.0]
    assert agreement(own.table, table(other, {"mig": lambda _: 0.2}, mig="mig[other]").table).empty


def test_the_sentence_counts() -> None:
    parts = [both([0.3], PUBLISHED), both([0.9, 0.9], PUBLISHED, "sap")]
    assert agreement_sentence(pd.concat(parts)) == (
        "1 of 2 scores of 1 shared setting (50%) agree with the published ones within 2.6 standard errors "
        "(about 0 would miss by chance), for 1 to 2 own seeds each. The mean difference is 1.90 published "
        "standard deviations; 33% of the own values lie in the published range."
    )


def test_the_figure_shows_differences_in_units_of_what_is_allowed() -> None:
    comparison = pd.concat([both([0.5, 0.7], PUBLISHED), both([0.9], [1.0, 1.0], "sap")])
    figure: Any = own_and_published(comparison)
    first, second = figure.axes
    agreeing, differing = first.lines
    assert agreeing.get_xdata() == pytest.approx(0.3 / comparison["allowed"].iloc[0])
    assert len(differing.get_xdata()) == 0
    assert second.lines[1].get_xdata() == pytest.approx([-3])  # at the edge
    assert [text.get_text() for text in first.get_yticklabels()] == ["β-VAE 4"]
