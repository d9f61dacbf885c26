"""The rank of own runs among the published ones of their setting."""

import pytest

from report.made_up import settings, table
from unweave.errors import UnweaveError
from unweave.report.rank_among_published import outside, rank_among_published

SEEDS = 5
PUBLISHED = table(settings(seeds=SEEDS, source="published"), {"mig": lambda at: 10 * at.strength + at.seed})


def test_ranks_count_the_published_seeds_below_and_equals_half() -> None:
    own = table(settings(seeds=2), {"mig": lambda at: 10 * at.strength + 2 + 1.5 * at.seed})
    ranks = rank_among_published(own.table, PUBLISHED.table, ["mig"])
    assert len(ranks) == 2 * 2 * 3 * 2
    assert set(ranks["seeds"]) == {SEEDS}
    # Published are 0 .. 4 above ten times the place of the strength: 2 equals one, 3.5 none.
    assert set(ranks[ranks["seed"] == 0]["below"]) == {2.5}
    assert set(ranks[ranks["seed"] == 1]["below"]) == {4.0}
    strongest = ranks[ranks["strength"] == 4].iloc[0]
    assert (strongest["low"], strongest["median"], strongest["high"]) == (20, 22, 24)
    assert not outside(ranks).any()


def test_what_no_published_seed_reaches_is_outside() -> None:
    own = table(settings(seeds=3), {"mig": lambda at: 10 * at.strength + (-0.5, 4, 4.5)[at.seed]})
    ranks = rank_among_published(own.table, PUBLISHED.table, ["mig"])
    assert outside(ranks).groupby(ranks["seed"]).all().tolist() == [True, False, True]
    assert not outside(ranks)[ranks["seed"] == 1].any()


def test_runs_without_a_counterpart_have_no_row() -> None:
    runs = settings(methods=("beta_vae", "ada_gvae"), strengths=(1.0, 3.0), seeds=1)
    own = table(runs, {"mig": lambda at: 0.0, "sap": lambda at: 0.0})  # noqa: ARG005
    ranks = rank_among_published(own.table, PUBLISHED.table, ["mig", "sap"])
    assert set(ranks["method"]) == {"beta_vae"}
    assert set(ranks["strength"]) == {1.0}
    assert set(ranks["score"]) == {"mig"}
    stranger = table(settings(methods=("ada_gvae",)), {"mig": lambda at: 0.0})  # noqa: ARG005
    with pytest.raises(UnweaveError, match="none of the runs has the data, method and settings"):
        rank_among_published(stranger.table, PUBLISHED.table, ["mig"])
