"""Evaluating real-valued, circular, mixed and missing factors."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray

import unweave
from unweave.data.sets.rooms_continuous import rooms_continuous
from unweave.errors import UnweaveError
from unweave.streams import Stream

ROWS = 360


def example(missing: bool = False) -> tuple[NDArray[np.float64], pd.DataFrame]:
    """Codes of a size, an angle in degrees (as cosine and sine) and a shape; the size may be missing."""
    stream = Stream.of(0).child("factor kinds")
    size, turn = stream.child("uniform").uniform(ROWS, 2).T
    shape = stream.child("shape").integers(ROWS, [3])[:, 0]
    codes = np.stack([size, np.cos(2 * np.pi * turn), np.sin(2 * np.pi * turn), shape / 2], axis=1)
    names = np.array(["box", "cone", "disc"])[shape]
    frame = pd.DataFrame({"size": size, "angle": 360 * turn, "shape": names})
    if missing:
        frame.loc[::6, "size"] = np.nan
    return codes + 0.01 * stream.child("noise").normal(ROWS, 4), frame


@pytest.mark.parametrize("suite", ["quick", "headline"])
def test_suites_measure_mixed_factors(suite: str) -> None:
    codes, factors = example()
    kinds = {"angle": ("circular", 360.0)}
    scores = unweave.evaluate(codes, factors, metrics=suite, points=(240, 120), kinds=kinds)
    assert set(scores) >= {"mig", "sap", "modularity", "explicitness.test"}
    assert scores.factors == ("size", "angle", "shape")
    assert (
        'Kinds of factors: "size" is continuous, "angle" is circular with period 360, "shape" is '
        "categorical. State others with kinds={name: kind}."
    ) in scores.notes
    protocols = {score.name: score.protocol for score in scores.scores}
    assert protocols["mig"] == "mig[bins20,factor-quantiles20,n240,mean]"
    assert protocols["sap"] == "sap[svm-ovr,C0.01,r2-of-numbers,sine-cosine,n240+120,mean]"
    if suite == "headline":
        assert "regression-trees,sine-cosine" in protocols["dci.disentanglement"]
        assert scores["dci.disentanglement"] > 0.9
        assert scores["factor_vae_score.eval_accuracy"] > 0.8


def test_metrics_by_name_take_real_factors_too() -> None:
    codes, factors = example()
    table = factors[["size", "angle"]].to_numpy()
    scores = unweave.evaluate(codes, table, metrics="mcc, dci, mig, irs", kinds={"v1": ("circular", 360)})
    assert scores["mcc"] == pytest.approx(1, abs=0.01)
    assert scores.matrices["mutual_information"].shape == (4, 2)


def test_missing_values_are_left_out() -> None:
    codes, factors = example(missing=True)
    scores = unweave.evaluate(codes, factors, metrics="mig, sap, explicitness, r2_linear")
    assert 'factor "size" is missing in 60 of 360 rows.' in scores.notes
    protocols = {score.name: score.protocol for score in scores.scores}
    assert "pairwise" in protocols["mig"]
    assert "complete-rows" in protocols["explicitness.test"]
    # The angle as a number has a seam, so its linear R^2 is below that of the others.
    assert 0.5 < scores["r2_linear"] < 1


def test_masked_values_are_missing() -> None:
    codes, factors = np.arange(90.0).reshape(45, 2), np.tile([[0, 1], [1, 0], [2, 1]], (15, 1))
    hidden = np.zeros(factors.shape, np.bool_)
    hidden[::7, 0] = True
    masked = unweave.evaluate(codes, np.ma.MaskedArray(factors, hidden), metrics="mig")
    known = unweave.evaluate(codes, np.where(hidden, np.nan, factors), metrics="mig")
    assert dict(masked) == dict(known)
    assert 'factor "v0" is missing in 7 of 45 rows.' in masked.notes


def test_none_in_a_column_of_numbers_is_missing() -> None:
    codes, factors = example()
    column: list[Any] = factors["size"].tolist()
    column[4] = None
    scores = unweave.evaluate(codes, {"size": column, "shape": factors["shape"]}, metrics="mig")
    assert 'factor "size" is missing in 1 of 360 rows.' in scores.notes
    words: list[Any] = factors["shape"].tolist()
    words[0] = None
    with pytest.raises(
        UnweaveError, match=r'factor "shape" has no value in 1 of 360 rows\. Leave those rows'
    ):
        unweave.evaluate(codes, {"shape": words}, metrics="mig")


def test_test_data_are_binned_like_the_rest() -> None:
    codes, factors = example()
    scores = unweave.evaluate(
        codes[:240], factors[:240], test=(codes[240:], factors[240:]), metrics="explicitness, dci, mcc_affine"
    )
    assert scores["mcc_affine"] > 0.9
    assert scores["explicitness.test"] > 0.8


def test_levels_that_are_not_whole_numbers_are_counted() -> None:
    """Their scores are those of the same levels, numbered."""
    codes, factors = example()
    numbers = pd.factorize(factors["shape"], sort=True)[0][:, None]
    half = unweave.evaluate(codes, numbers / 2, metrics="mig, sap")
    whole = unweave.evaluate(codes, numbers, metrics="mig, sap")
    assert dict(half) == dict(whole)
    assert [score.protocol for score in half.scores] == [score.protocol for score in whole.scores]


def test_whole_numbers_have_no_notes_on_kinds() -> None:
    factors = Stream.of(0).integers(90, [3, 4])
    assert unweave.evaluate(factors * 1.0, factors.astype(np.float64), metrics="mig").notes == ()


def test_wrong_kinds_are_refused() -> None:
    codes, factors = example()
    with pytest.raises(UnweaveError, match=r'`kinds` names no factor "angel"\. Did you mean "angle"'):
        unweave.evaluate(codes, factors, kinds={"angel": "circular"})
    with pytest.raises(UnweaveError, match="`kinds` belong to factors of your own"):
        unweave.evaluate(lambda images: images[:, 0, 0], data="dsprites", kinds={"shape": "categorical"})


def test_collections_with_real_factors_are_measured() -> None:
    rooms = rooms_continuous(12)

    def mean_colours(images: NDArray[np.float32]) -> NDArray[np.float32]:
        return np.asarray(images.mean(axis=(2, 3)))

    scores = unweave.evaluate(
        mean_colours, data=rooms, metrics="mcc, mig", kinds={"floor_hue": ("circular", 1.0)}
    )
    assert scores.factors == tuple(factor.name for factor in rooms.factors)
    assert any('"floor_hue" is circular with period 1' in note for note in scores.notes)
