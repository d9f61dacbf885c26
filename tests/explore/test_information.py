"""The information of codes and factors without what chance adds to it."""

import numpy as np
import pytest

from explore.dots import dots
from unweave.data.conditions.naming import conditioned
from unweave.explore.information import corrected_information
from unweave.explore.sample import sample_of
from unweave.metrics.information import mutual_information
from unweave.streams import Stream

SIZES = (3, 40, 183)


def test_unrelated_codes_have_none_and_related_ones_what_many_images_say() -> None:
    stream = Stream.of(0)
    factors = stream.child("factors").integers(50_000, SIZES)
    noise = stream.child("noise").normal(50_000, 3)
    codes = np.stack([noise[:, 0], factors[:, 1] + 5 * noise[:, 1], factors[:, 0], noise[:, 2] > 9], axis=1)
    many = mutual_information(codes, factors)
    few, few_factors = codes[:5000].astype(np.float32), factors[:5000]
    plain, corrected = mutual_information(few, few_factors), corrected_information(few, few_factors)
    assert plain[0, 2] > 0.2, "the excess that is corrected"
    assert corrected[0] == pytest.approx([0, 0, 0], abs=0.02)
    assert corrected[1, 1] == pytest.approx(many[1, 1], abs=0.02)
    assert abs(plain[1, 1] - many[1, 1]) > 0.03
    assert corrected[2, 0] == pytest.approx(np.log(3), abs=0.01), "a code that knows a factor knows all of it"
    assert corrected[3].tolist() == [0, 0, 0], "a constant code knows nothing"


def test_images_of_small_data_are_used_once() -> None:
    data = dots()
    sample = sample_of(data, 100, Stream.of(0))
    positions = data.index(sample.factors)
    assert sorted(positions) == list(range(len(data)))
    assert list(positions) != sorted(positions), "some pages use the first images only"
    assert (sample.images == data.observe(sample.factors)).all()
    held_out = conditioned(data, "hold(x=0,y=0)")
    assert len(sample_of(held_out, 100, Stream.of(0)).images) == len(data) - 1
    assert len(sample_of(data, 24, Stream.of(0)).images) == 24
    correlated = conditioned(data, "x~y=0.5")
    assert len(sample_of(correlated, 100, Stream.of(0)).images) == 100, "not equally likely"


def test_unrelated_codes_of_small_data_have_little_information() -> None:
    data = dots()
    sample = sample_of(data, 5000, Stream.of(0))
    codes = Stream.of(1).normal(len(data), 50)[data.index(sample.factors)].astype(np.float32)
    information = corrected_information(codes, sample.factors)
    assert information.mean() < 0.15
    drawn = data.sample_factors(5000, Stream.of(0))
    codes = Stream.of(1).normal(len(data), 50)[data.index(drawn)].astype(np.float32)
    assert corrected_information(codes, drawn).mean() > 0.5, "if images are drawn repeatedly"
