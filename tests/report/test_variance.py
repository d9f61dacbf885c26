import numpy as np
import pandas as pd
import pytest
from scipy.stats import f as f_distribution

from unweave.errors import UnweaveError
from unweave.report.variance import variance_explained, variance_shares
from unweave.streams import Stream


@pytest.mark.parametrize(
    ("values", "groups", "expected"),
    [
        ([1, 3, 5, 7], ["aabb"], 0.8),  # 16 of 20
        ([1, 3, 5, 7], ["abab"], 0.2),  # group means 3 and 5: 4 of 20
        ([1, 3, 5, 7], ["aaaa"], 0.0),
        ([1, 3, 5, 7], ["aabb", "abab"], 1.0),  # four groups of one
        ([0.1, 0.1, 0.1], ["abc"], 0.0),
    ],
)
def test_variance_explained(values: list[float], groups: list[str], expected: float) -> None:
    assert variance_explained(values, *(list(each) for each in groups)) == pytest.approx(expected)


def test_variance_explained_needs_groups() -> None:
    with pytest.raises(UnweaveError, match="needs the groups"):
        variance_explained([1, 2])
    with pytest.raises(UnweaveError, match="one label for each of the 2 values; got 3"):
        variance_explained([1, 2], ["a", "b", "c"])


def test_variance_shares() -> None:
    runs = pd.DataFrame(
        {
            "data": "dsprites",
            "method": list("aaaabbbb"),
            "setting": ["1", "1", "2", "2"] * 2,
            "mig": [0, 2, 4, 6, 8, 10, 12, 14],  # squares 168: methods 128, settings 160
            "flat": 0.5,
            "half": [0, 1, np.nan, np.nan, 2, 3, np.nan, np.nan],  # squares 5: methods 4
            "none": np.nan,
        }
    )
    result = variance_shares(runs, ["mig", "flat", "half", "none"])
    assert result["score"].tolist() == ["mig", "flat", "half"]
    assert result["runs"].tolist() == [8, 8, 4]
    expected = [[128 / 168, 32 / 168, 8 / 168], [0, 0, 0], [0.8, 0, 0.2]]
    shares = result[["method", "setting", "seed"]].to_numpy(float)
    np.testing.assert_allclose(shares, np.array(expected), atol=1e-12)
    with pytest.raises(UnweaveError, match=r'no column "migg"\. Did you mean "mig"'):
        variance_shares(runs, ["migg"])


def noise_studies(methods: int, settings: int, seeds: int, studies: int) -> tuple[pd.DataFrame, list[str]]:
    """Runs of one data set with a column of noise for each study."""
    rows = [(m, s) for m in range(methods) for s in range(settings) for _ in range(seeds)]
    runs = pd.DataFrame(rows, columns=["method", "setting"]).astype(str).assign(data="d")
    scores = [f"s{i}" for i in range(studies)]
    noise = pd.DataFrame(Stream.of(1).normal(len(runs), studies), columns=scores)
    return pd.concat([runs, noise], axis=1), scores


@pytest.mark.parametrize("shape", [(2, 2, 2), (6, 6, 5)])
def test_shares_of_noise_are_those_of_chance(shape: tuple[int, int, int]) -> None:
    result = variance_shares(*noise_studies(*shape, studies=500))
    expected = result[["method by chance", "setting by chance", "seed by chance"]].to_numpy(float)
    assert expected.sum(1) == pytest.approx(1)
    assert result[["method", "setting", "seed"]].mean().to_numpy() == pytest.approx(expected[0], abs=0.02)
    if shape == (2, 2, 2):
        assert expected[0] == pytest.approx([1 / 7, 2 / 7, 4 / 7])  # degrees of freedom 1, 2, 4
    # Each study alone: Holm for its two tests is below 0.05 in at most 5%, plus two standard errors.
    p = np.sort(result[["method p", "setting p"]].to_numpy(float), axis=1)
    assert ((2 * p[:, 0] < 0.05) | (p[:, 1] < 0.05)).mean() <= 0.05 + 2 * np.sqrt(0.05 * 0.95 / 500)
    # All as one study of 500 scores.
    assert result[["method above chance", "setting above chance"]].to_numpy().sum() <= 1


def test_f_tests_by_hand() -> None:
    # Squares: methods 128 (1 degree), settings 32 (2), seeds 8 (4): F = 128 / 16 = 8 and 16 / 2 = 8.
    runs = pd.DataFrame(
        {"data": "d", "method": list("aaaabbbb"), "setting": list("11223344"), "mig": range(0, 16, 2)}
    )
    row = variance_shares(runs, ["mig"]).iloc[0]
    assert row["method p"] == pytest.approx(f_distribution.sf(8, 1, 2))
    assert row["setting p"] == pytest.approx(f_distribution.sf(8, 2, 4))
    # One setting a method: methods are tested against seeds, 128 / (40 / 6) = 19.2.
    row = variance_shares(runs.assign(setting="1"), ["mig"]).iloc[0]
    assert row["method p"] == pytest.approx(f_distribution.sf(19.2, 1, 6))
    assert np.isnan(row["setting p"])
    assert row["method above chance"]
    # One seed a setting: nothing is left to test settings against.
    row = variance_shares(runs[::2], ["mig"]).iloc[0]
    assert np.isnan(row["setting p"])
    assert row["method p"] == pytest.approx(f_distribution.sf(64 / 8, 1, 2))
