"""Linear read-outs: leaving one row out by hand, kinds of factors, and codes that become disentangled."""

import numpy as np
import pytest
from sklearn.linear_model import Ridge  # type: ignore[import-untyped]

import unweave
from directions.mixed import FACTORS, SOURCES, rotation
from unweave.directions import linear, regression
from unweave.errors import UnweaveError
from unweave.streams import Stream


def test_an_entangled_code_is_read_out() -> None:
    entangled = np.concatenate([SOURCES, Stream.of(8).normal(len(SOURCES), 5)], axis=1) @ rotation(8)
    found = linear(entangled[:700], FACTORS[:700])
    rest, factors = entangled[700:], FACTORS[700:]
    before, after = (
        unweave.evaluate(codes, factors, metrics="dci", points=(500, 300))["dci.disentanglement"]
        for codes in (rest, found.codes(rest))
    )
    assert before < 0.4
    assert after > 0.95
    assert found.explained == pytest.approx(np.ones(3), abs=1e-3)
    assert found.names == ("v0", "v1", "v2")
    assert found.codes(rest) + FACTORS[:700].mean(axis=0) == pytest.approx(factors, abs=0.05)


def test_the_penalty_is_chosen_by_leaving_one_row_out() -> None:
    codes, target = Stream.of(1).normal(12, 4), Stream.of(2).normal(12, 1)
    target = target + codes[:, :1]
    scaled = (codes - codes.mean(axis=0)) / codes.std(axis=0)

    def error(strength: float) -> float:
        missed = []
        for row in range(12):
            rest = np.arange(12) != row
            model = Ridge(strength).fit(scaled[rest], target[rest, 0])
            missed.append(float(model.predict(scaled[[row]])[0] - target[row, 0]) ** 2)
        return float(np.mean(missed))

    found = linear(codes, target)
    errors = [error(strength) for strength in regression.STRENGTHS]
    assert found.explained[0] == pytest.approx(max(0.0, 1 - min(errors) / target.var()), abs=1e-6)
    best = Ridge(regression.STRENGTHS[int(np.argmin(errors))]).fit(scaled, target[:, 0])
    assert found.codes(codes)[:, 0] == pytest.approx(best.predict(scaled) - target.mean(), abs=1e-9)


def test_categories_angles_words_and_missing_values() -> None:
    angle = np.arange(60) % 6 * 60.0
    shape = np.arange(60) % 3
    colour = np.where(np.arange(60) % 2, "red", "blue")
    codes = np.stack([np.cos(np.radians(angle)), np.sin(np.radians(angle)), shape == 1, shape == 2], axis=1)
    codes = np.concatenate([codes, np.arange(60)[:, None] % 2], axis=1)
    size = np.where(np.arange(60) < 6, np.nan, codes[:, 0])
    found = linear(
        codes,
        {"angle": angle, "shape": shape, "colour": colour, "size": size},
        kinds={"angle": ("circular", 360), "shape": "categorical"},
    )
    names = ("cos angle", "sin angle", "shape=0", "shape=1", "shape=2", "colour", "size")
    assert found.names == names
    assert found.fitted.rows == 54
    assert found.explained == pytest.approx(np.ones(7), abs=1e-3)


def test_moves_along_the_values_of_a_category_are_short() -> None:
    """Their read-outs add up to 0 up to rounding: one rises by 1 - 1/4, the others fall by 1/4."""
    shape = Stream.of(3).integers(500, [4])[:, 0]
    codes = np.eye(4)[shape] @ Stream.of(4).normal(4, 6) + 0.3 * Stream.of(5).normal(500, 6)
    found = linear(codes, {"shape": shape}, kinds={"shape": "categorical"})
    assert found.codes(codes).sum(axis=1) == pytest.approx(np.zeros(500), abs=1e-9)
    assert np.abs(found.directions).max() < 5
    change = (found.codes(found.move(codes, 2, 1.0)) - found.codes(codes)).mean(axis=0)
    assert change == pytest.approx([-0.25, -0.25, 0.75, -0.25])


def test_all_values_of_a_category_have_one_penalty() -> None:
    """Of two values that are easy to read and a rare one that is not, the sum stays constant too."""
    shape = np.where(np.arange(60) < 3, 2, np.arange(60) % 2)
    codes = np.stack([shape == 1, *Stream.of(7).normal(20, 60)], axis=1)
    found = linear(codes, {"shape": shape}, kinds={"shape": "categorical"})
    assert found.codes(codes).sum(axis=1) == pytest.approx(np.zeros(60), abs=1e-9)


def test_wrong_factors_are_refused() -> None:
    codes = SOURCES[:10]
    for factors, message in (
        (FACTORS[:9], "factors must have 10 rows like codes; got 9."),
        (np.ones((10, 1)), 'factor "v0" has the same value in all rows. Leave it out.'),
        (np.full((10, 1), np.nan), "needs 3 rows in which all factors are known; got 0."),
    ):
        with pytest.raises(UnweaveError) as caught:
            linear(codes, factors)
        assert message in str(caught.value)
    with pytest.raises(UnweaveError, match="codes must differ from each other"):
        linear(np.ones((10, 2)), FACTORS[:10])
