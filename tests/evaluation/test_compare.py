"""Two encoders on the same points: differences with intervals, and a verdict."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import unweave
from metrics.grids import drawn
from training.tiny import TINY
from unweave.errors import UnweaveError
from unweave.evaluation import choice
from unweave.evaluation.compare import Comparison
from unweave.metrics.table import SUITES
from unweave.streams import Stream

SIZES = (3, 4, 6)
FACTORS = drawn(SIZES, 400)


def noisy(factors: np.ndarray, seed: int, spread: float) -> np.ndarray:
    return factors + spread * Stream.of(seed).normal(*factors.shape)


def test_a_clear_difference_is_found_whichever_way_round() -> None:
    good, bad = noisy(FACTORS, 1, 0.2), noisy(FACTORS, 2, 1.2)
    one = unweave.compare(good, bad, FACTORS, metrics="mig, sap, explicitness", repeats=8)
    other = unweave.compare(bad, good, FACTORS, metrics="mig, sap, explicitness", repeats=8)
    assert list(one) == ["mig", "sap", "explicitness.train", "explicitness.test"]
    for name in one:
        assert (one[name].verdict, other[name].verdict) == ("a better", "b better"), name
        assert one[name].difference == pytest.approx(-other[name].difference)
        assert one[name].low == pytest.approx(-(other[name].high or 0))
        assert (one[name].probability or 0) > 0.97
        assert (one[name].probability or 0) + (other[name].probability or 0) == pytest.approx(1)
    plain = unweave.evaluate(good, FACTORS, metrics="mig, sap, explicitness")
    assert {name: row.a for name, row in one.items()} == dict(plain)
    assert one["mig"].protocol == plain.score("mig").protocol


def test_equal_encoders_cannot_be_told_apart() -> None:
    """Of 40 pairs of equal quality, about 2 differ by chance; 6 is 3 deviations more."""
    told_apart = 0
    for i in range(40):
        factors = drawn(SIZES, 300, seed=i)
        one, other = noisy(factors, 1000 + i, 0.4), noisy(factors, 2000 + i, 0.4)
        found = unweave.compare(one, other, factors, metrics="mig", repeats=6, jobs=1)
        told_apart += found["mig"].verdict != "cannot tell"
    assert told_apart <= 6


def test_what_both_have_in_common_cancels_out() -> None:
    """The interval of the difference is narrower than that of a difference of two separate samples."""
    one = noisy(FACTORS, 1, 0.4)
    other = one + 0.05 * Stream.of(2).normal(*one.shape)
    widths = []
    for codes in (one, other):
        score = unweave.evaluate(codes, FACTORS, metrics="sap", repeats=12).score("sap")
        assert score.low is not None
        assert score.high is not None
        widths.append(score.high - score.low)
    row = unweave.compare(one, other, FACTORS, metrics="sap", repeats=12)["sap"]
    assert row.low is not None
    assert row.high is not None
    assert row.high - row.low < 0.7 * math.hypot(*widths)


def test_the_same_codes_are_never_told_apart() -> None:
    codes = noisy(FACTORS, 1, 0.4)
    row = unweave.compare(codes, codes, FACTORS, metrics="mig", repeats=2)["mig"]
    assert (row.difference, row.low, row.high, row.probability) == (0, 0, 0, 0.5)
    assert row.verdict == "cannot tell"


def test_lower_is_better_where_the_metric_says_so() -> None:
    one = Stream.of(1).normal(400, 3)
    entangled = one @ np.array([[1.0, 0.9, 0.9], [0.0, 0.4, 0.2], [0.0, 0.0, 0.4]])
    row = unweave.compare(one, entangled, FACTORS, metrics="total_correlation", repeats=4)[
        "total_correlation"
    ]
    assert row.difference < 0
    assert row.verdict == "a better"
    assert (row.probability or 0) > 0.9


def test_encoders_on_a_data_set() -> None:
    images = np.zeros((len(FACTORS), 1, 4, 4), np.uint8)
    images[:, 0, 0, :3] = FACTORS
    found = unweave.compare(
        lambda images: images[:, 0, 0, :3],
        lambda images: np.sin(900 * images[:, 0, 0, :3]),
        data=unweave.data.from_arrays(images, FACTORS),
        metrics="mig",
        repeats=4,
        points=(200, 100),
    )
    assert found["mig"].verdict == "a better"
    assert found.a == found.b == "function"


def test_log_variances_and_test_data_of_both() -> None:
    """Both get their own, as in two evaluations."""
    a, b = noisy(FACTORS, 1, 0.2), noisy(FACTORS, 2, 0.8)
    log_var = np.full_like(a, -6.0), np.full_like(b, -1.0)
    test = (a[300:], b[300:], FACTORS[300:])
    shared: dict[str, Any] = {"representation": "sampled", "metrics": "mig, sap"}
    rows = unweave.compare(
        a[:300],
        b[:300],
        FACTORS[:300],
        log_var=(log_var[0][:300], log_var[1][:300]),
        test=test,
        repeats=2,
        **shared,
    )
    for codes, variances, held_out, side in ((a, log_var[0], test[0], "a"), (b, log_var[1], test[1], "b")):
        alone = unweave.evaluate(
            codes[:300], FACTORS[:300], log_var=variances[:300], test=(held_out, test[2]), **shared
        )
        assert {name: getattr(row, side) for name, row in rows.items()} == dict(alone)
    assert rows["sap"].protocol == "sap[svm-ovr,C0.01,n300+100,sampled]"


def test_codes_of_both_are_standardised_if_asked() -> None:
    found = unweave.compare(
        1e-3 * FACTORS, FACTORS, FACTORS, metrics="factor_vae_score", repeats=2, standardise=True
    )
    row = found["factor_vae_score.eval_accuracy"]
    assert row.a == row.b == 1
    assert "standardised" in row.protocol


def test_transforms_of_both_or_of_each() -> None:
    images = np.zeros((len(FACTORS), 1, 4, 4), np.uint8)
    images[:, 0, 0, :3] = FACTORS
    data = unweave.data.from_arrays(images, FACTORS)
    module = torch.nn.Flatten()

    def blank(images: torch.Tensor) -> torch.Tensor:
        return 0 * images

    def keep(images: torch.Tensor) -> torch.Tensor:
        return images

    def scores(transform: object) -> tuple[float, float]:
        row = unweave.compare(
            module, module, data=data, metrics="mig", repeats=2, points=(200, 100), transform=transform
        )["mig"]
        return row.a, row.b

    assert scores(blank) == (0, 0)
    first, second = scores((keep, blank))
    assert first > 0.5
    assert second == 0


def test_scores_of_blocks_that_should_hold_other_factors_are_not_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = [
        unweave.train(
            unweave.methods.GVAE(shared=name), TINY, out=tmp_path, steps=2, batch=4, latents=4, device="cpu"
        )
        for name in ("size", "x")
    ]
    points = (60, 30)
    with pytest.raises(UnweaveError) as caught:
        unweave.compare(*runs, data=TINY, metrics="block_separation", repeats=2, points=points)
    assert str(caught.value) == (
        "block_separation cannot be compared: the blocks of a and b should hold different factors, "
        "factors:size|x+y and factors:size+y|x."
    )
    monkeypatch.setitem(SUITES, "quick", ("mig", "block_separation"))
    found = unweave.compare(*runs, data=TINY, metrics="quick", repeats=2, points=points)
    assert list(found) == ["mig"]
    assert any("block_separation was left out: the blocks of a and b should" in note for note in found.notes)


def test_results_are_shown_as_tables() -> None:
    found = unweave.compare(
        noisy(FACTORS, 1, 0.2), noisy(FACTORS, 2, 0.8), FACTORS, metrics="mig, factor_vae_score", repeats=2
    )
    assert isinstance(found, Comparison)
    assert list(found.table())[:4] == ["name", "a", "b", "difference"]
    assert len(found.table()) == len(found) == 3  # the number of active codes is no score
    assert "P(a better)" in found._repr_html_()
    assert "mig" in str(found)
    assert "mig a better" in repr(found)
    with pytest.raises(KeyError, match='no score "migg"'):
        found["migg"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"repeats": 0}, "a comparison needs at least 2 repeats; got 0"),
        ({"b": FACTORS[:300]}, "rows"),
        ({"metrics": "migg"}, "migg"),
        ({"factors": None}, "codes need their factors"),
        ({"log_var": FACTORS}, r"log_var of a comparison must be \(of_a, of_b\); got ndarray"),
        (
            {"test": (FACTORS, FACTORS)},
            r"test of a comparison must be \(codes_a, codes_b, factors\); got 2 p",
        ),
    ],
)
def test_mistakes_are_one_sentence(options: dict[str, object], message: str) -> None:
    given: dict[str, object] = {"a": FACTORS, "b": FACTORS, "factors": FACTORS, "metrics": "mig"} | options
    with pytest.raises(UnweaveError, match=message):
        unweave.compare(**given)  # type: ignore[arg-type]


def test_wide_and_narrow_codes_are_measured_in_the_same_way(monkeypatch: pytest.MonkeyPatch) -> None:
    """A suite approximates DCI for wide codes; a comparison does so for both or for none."""
    monkeypatch.setitem(SUITES, "quick", ("dci",))
    monkeypatch.setattr(choice, "WIDE", 5)
    factors = FACTORS[:60]
    wide = np.hstack([factors, Stream.of(1).normal(60, 5)])
    found = unweave.compare(factors, wide, factors, metrics="quick", repeats=2)
    assert "histogram" in found["dci.disentanglement"].protocol
    assert any("dci is approximate" in note for note in found.notes)
    alone = unweave.evaluate(factors, factors, metrics="quick")
    assert "histogram" not in alone.score("dci.disentanglement").protocol
