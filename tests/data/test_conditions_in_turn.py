"""A condition on data that has one already."""

from pathlib import Path

import numpy as np
import pytest

from training.tiny import TINY
from unweave.data import conditioned, load, open_data
from unweave.data.grid import GroundTruth
from unweave.data.opening import open_reference
from unweave.data.supervision.restrict import held_out_part


@pytest.mark.parametrize(
    ("first", "second"),
    [("hold(y=0)", "hold(x=0)"), ("x~y=0.3", "noise:hold(x>=2)"), ("colour", "weigh(x=0)=0.5")],
)
def test_one_condition_after_another_is_both_at_once(first: str, second: str, tmp_path: Path) -> None:
    """Otherwise a run on such data records what cannot be opened again."""
    factors = TINY.factors_at(np.arange(len(TINY)))
    names = np.array([factor.name for factor in TINY.factors])
    np.savez(tmp_path / "mine.npz", images=TINY.observe(factors), factors=factors, factor_names=names)
    own = open_data(tmp_path / "mine.npz")
    assert isinstance(own, GroundTruth)
    for truth in (own, TINY, load("dsprites")):
        both = conditioned(truth, f"{first}:{second}")
        after = conditioned(conditioned(truth, first), second)
        assert (after.name, after.drawn) == (both.name, both.drawn)
        assert np.array_equal(after.sample_factors(50, 0), both.sample_factors(50, 0))
        assert after.reference == both.reference
    assert own.reference is not None
    record = conditioned(conditioned(own, first), second).reference
    assert record is not None
    assert open_reference(record).name == conditioned(own, f"{first}:{second}").name
    held = held_out_part(conditioned(TINY, "hold(x<2)"))  # its name has more than a condition
    assert conditioned(held, "hold(y=0)").name == "tiny:hold(x=0..1) (held out):hold(y=0)"
