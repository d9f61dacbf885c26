"""Factors of any kind: what is inferred, and scores of real-valued, circular and missing factors."""

import dataclasses
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from metrics.grids import drawn, noise
from unweave.errors import UnweaveError
from unweave.metrics import METRICS, Metric, compute, dci, metric_named, mig, mutual_information, sap
from unweave.metrics.checks import MISSING
from unweave.metrics.factor_kinds import for_kinds
from unweave.metrics.kinds import (
    FactorKind,
    all_discrete,
    factor_labels,
    factor_numbers,
    kinds_of,
    parse_kinds,
)
from unweave.metrics.mixed import dci_mixed, sap_mixed
from unweave.streams import Stream

CONTINUOUS, ORDINAL = FactorKind("continuous"), FactorKind("ordinal")
ROWS = 600


def uniform(columns: int, n: int = ROWS) -> NDArray[np.float64]:
    return Stream.of(4).child("uniform").uniform(n, columns)


def scores(
    name: str, codes: Any, factors: NDArray[np.float64], kinds: list[FactorKind], missing: bool = False
) -> dict[str, float]:
    metric = for_kinds(metric_named(name), kinds, missing)
    middle = len(codes) * 2 // 3
    if metric.needs == "codes":
        return compute(metric, codes, factors)
    return compute(metric, codes[:middle], factors[:middle], test=(codes[middle:], factors[middle:]))


@pytest.mark.parametrize(
    ("column", "kind"),
    [
        (drawn([5], 200)[:, 0], "ordinal"),
        (drawn([5], 200)[:, 0] / 4 + 0.1, "ordinal"),
        (noise(200, 1)[:, 0], "continuous"),
        (np.round(noise(200, 1)[:, 0], 1), "continuous"),
        (np.arange(200) * 7, "ordinal"),
        (np.where(np.arange(200) < 50, np.nan, drawn([3], 200)[:, 0]), "ordinal"),
        (np.array([0.5, 1.5]), "ordinal"),
    ],
)
def test_inferred_kinds(column: NDArray[Any], kind: str) -> None:
    assert kinds_of(column.astype(np.float64)[:, None], ["x"])[0].name == kind


def test_stated_kinds() -> None:
    factors = np.stack([drawn([8], 50)[:, 0].astype(float), noise(50, 1)[:, 0], np.arange(50.0)], axis=1)
    stated: Any = {"hue": "circular", "angle": ("circular", 360), "id": "categorical"}
    kinds = kinds_of(factors, ["hue", "angle", "id"], stated)
    assert [str(kind) for kind in kinds] == [
        "circular with period 8",
        "circular with period 360",
        "categorical",
    ]
    assert kinds_of(factors[:, 1:2], ["angle"], {"angle": "circular"})[0].period == pytest.approx(2 * np.pi)


@pytest.mark.parametrize(
    ("kinds", "message"),
    [
        ({"angel": "circular"}, r'`kinds` names no factor "angel"\. Did you mean "angle"'),
        ({0: "circular"}, r'`kinds` names no factor "0"'),
        (["circular"], "`kinds` must state kinds by the name of the factor"),
        ({"angle": "round"}, "must be one of categorical, ordinal, continuous, circular"),
        ({"angle": ("circular", -1)}, 'period of "angle" must be a positive number'),
        ({"angle": ("ordinal", 3)}, "must be one of"),
    ],
)
def test_wrong_kinds(kinds: Any, message: str) -> None:
    with pytest.raises(UnweaveError, match=message):
        kinds_of(noise(9, 1), ["angle"], kinds)


@pytest.mark.parametrize("text", ["angle", "angle=", "=circular", "angle=circular:x", ""])
def test_wrong_texts_of_kinds(text: str) -> None:
    with pytest.raises(UnweaveError, match="Kinds are written NAME=KIND or NAME=circular:PERIOD"):
        parse_kinds(text)


def test_labels_of_equal_frequency() -> None:
    values = noise(400, 1)
    labels = factor_labels(values, [CONTINUOUS])
    assert np.bincount(labels[:, 0]).tolist() == [20] * 20
    assert np.bincount(factor_labels(values[:50], [CONTINUOUS])[:, 0]).tolist() == [5] * 10
    # Only the order matters, and test rows get the bins of the training rows.
    assert (factor_labels(np.exp(values), [CONTINUOUS]) == labels).all()
    assert (factor_labels(values[:7], [CONTINUOUS], values) == labels[:7]).all()
    assert factor_labels(np.array([[0.3], [np.nan], [0.7]]), [ORDINAL])[:, 0].tolist() == [0, MISSING, 1]


def test_an_angle_has_no_seam() -> None:
    """Values that differ by a period are the same angle."""
    angles, kind = 720 * uniform(1), [FactorKind("circular", 360.0)]
    assert (factor_labels(angles, kind) == factor_labels(angles % 360, kind)).all()
    assert factor_numbers(angles, kind) == pytest.approx(factor_numbers(angles + 360, kind))


def test_whole_numbers_need_nothing() -> None:
    factors = drawn([3, 4], 50).astype(np.float64)
    assert all_discrete(kinds_of(factors, ["a", "b"]), factors)
    assert not all_discrete([ORDINAL], np.array([[0.5], [1.0]]))
    assert not all_discrete([ORDINAL], np.array([[np.nan], [1.0]]))


def test_information_of_a_uniform_code() -> None:
    """Evenly spaced values have the same 20 bins by width and by frequency: a perfect code names the bin."""
    order = Stream.of(9).permutations(2, 4000)
    factors = (order.T + 0.5) / 4000
    codes = np.hstack([factors * 3 - 1, noise(4000, 1)])
    assert scores("mig", codes, factors, [CONTINUOUS] * 2)["mig"] > 0.98
    lost = scores("mig", noise(4000, 3, seed=3), factors, [CONTINUOUS] * 2)["mig"]
    assert lost < 0.02


@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.name)
def test_every_metric_of_factors_takes_mixed_factors(metric: Metric) -> None:
    """Real, circular, discrete and missing factors give finite scores, and perfect codes beat noise."""
    adapted = for_kinds(metric, [CONTINUOUS, FactorKind("circular", 1.0), ORDINAL], missing=True)
    if not metric.inputs.needs_factors:
        assert adapted is metric
        return
    assert adapted.protocol() != metric.protocol()
    if metric.inputs.arguments != ("codes", "factors"):
        return  # their sources give labels
    factors = np.hstack([uniform(2, 240), drawn([3], 240)])
    codes = np.hstack([factors, noise(240, 1)])
    factors[::9, 0] = np.nan
    few = {"updates": 30} if metric.name == "dci_es_mlp" else {}
    small = dataclasses.replace(adapted, options={**adapted.options, **few})
    for table in (codes, noise(240, 4)):
        found = compute(small, table[:160], factors[:160], test=(table[160:], factors[160:]))
        assert np.isfinite(list(found.values())).all()


def test_missing_values_are_left_out_factor_by_factor() -> None:
    """With gaps in one factor, MIG is the mean of those of each factor on its known rows."""
    factors = drawn([3, 4], 300).astype(np.float64)
    codes = factors @ np.array([[1.0, 0.3, 0.5], [0.2, 1.0, 0.6]]) + 0.3 * noise(300, 3)
    gaps = factors.copy()
    known = np.arange(300) % 4 > 0
    gaps[~known, 1] = np.nan
    found = scores("mig", codes, gaps, [ORDINAL] * 2, missing=True)["mig"]
    # The bins of the codes are those of all rows, whose ends are the same here.
    labels = factor_labels(gaps, [ORDINAL] * 2)
    information = mutual_information(codes, labels)
    assert information[:, 0] == pytest.approx(mutual_information(codes, factors[:, :1])[:, 0])
    ends = np.concatenate([codes[known], [codes.min(axis=0), codes.max(axis=0)]])
    alone = mig(ends, np.append(factors[known, 1], [0, 0])[:, None])
    assert found == pytest.approx((mig(codes, factors[:, :1]) + alone) / 2, abs=0.02)


def test_dci_of_whole_numbers_is_dci() -> None:
    factors = drawn([3, 4], 300)
    codes = factors @ np.array([[1.0, 0.3, 0.5], [0.2, 1.0, 0.6]]) + 0.3 * noise(300, 3)
    mixed = dci_mixed(codes, factors.astype(np.float64), kinds=[ORDINAL] * 2)
    expected = dci(codes, factors)
    assert mixed[:4] == expected[:4]
    assert (mixed.importance == expected.importance).all()


def test_dci_of_mixed_factors() -> None:
    factors = np.hstack([uniform(1), 2 * np.pi * uniform(2)[:, 1:], drawn([3], ROWS)])
    angle = factors[:, 1]
    codes = np.stack([factors[:, 2], np.cos(angle), np.sin(angle), factors[:, 0] ** 3], axis=1)
    kinds = [CONTINUOUS, FactorKind("circular", 2 * np.pi), ORDINAL]
    found = dci_mixed(codes, factors, kinds=kinds)
    assert found.disentanglement > 0.97
    assert found.informativeness_test > 0.97
    # The angle needs two codes of equal importance: completeness 1 - log 2 / log 4 for it, 1 for the others.
    assert found.completeness == pytest.approx((1 + 1 + 0.5) / 3, abs=0.02)
    lost = dci_mixed(noise(ROWS, 4), factors, kinds=kinds)
    assert lost.disentanglement < 0.1
    assert lost.informativeness_test < 0.2


def test_dci_lasso_of_whole_numbers_is_that_of_dci() -> None:
    factors = drawn([5, 4], 300)
    codes = factors @ np.array([[1.0, 0.3], [0.2, 1.0]]) + 0.3 * noise(300, 2)
    mixed = dci_mixed(codes, factors.astype(np.float64), kinds=[ORDINAL] * 2, model="lasso")
    assert mixed[:4] == pytest.approx(dci(codes, factors, model="lasso")[:4], abs=1e-9)


def test_sap_of_numbers_is_that_of_correlations() -> None:
    factors = uniform(2)
    codes = factors @ np.array([[1.0, 0.3, 0.5], [0.2, 1.0, 0.6]]) + 0.1 * noise(ROWS, 3)
    fitted = slice(0, 400)
    mixed = sap_mixed(
        codes[fitted], factors[fitted], kinds=[CONTINUOUS] * 2, test=(codes[400:], factors[400:])
    )
    assert mixed.score == pytest.approx(sap(codes[fitted], factors[fitted], continuous=True))


def test_sap_of_levels_is_sap() -> None:
    factors = drawn([3, 4], 300)
    codes = factors @ np.array([[1.0, 0.3, 0.5], [0.2, 1.0, 0.6]]) + 0.3 * noise(300, 3)
    mixed = sap_mixed(codes, factors.astype(np.float64), kinds=[ORDINAL] * 2)
    assert mixed.score == pytest.approx(sap(codes, factors))


def test_numbers_of_an_angle_are_predicted_without_a_seam() -> None:
    angles = 2 * np.pi * uniform(1)
    codes = np.hstack([np.cos(angles), np.sin(angles)])
    kinds = [FactorKind("circular", 2 * np.pi)]
    assert scores("r2_linear", codes, angles, kinds)["r2_linear"] == pytest.approx(1)
    assert scores("mcc", codes, angles, kinds)["mcc"] == pytest.approx(1)
    assert scores("r2_linear", codes, angles, [CONTINUOUS])["r2_linear"] < 0.8


def test_too_few_complete_rows() -> None:
    factors = np.full((30, 2), np.nan)
    factors[:15, 0] = drawn([3], 15)[:, 0]
    factors[15:, 1] = drawn([3], 15)[:, 0]
    with pytest.raises(UnweaveError, match=r"All factors are known in 0 of 10 rows; 3 are needed"):
        scores("explicitness", noise(30, 2), factors, [ORDINAL] * 2, missing=True)
