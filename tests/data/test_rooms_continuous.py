"""Rooms with real-valued factors: smooth changes, circular hues, uniform draws."""

import numpy as np
import pytest

from unweave.data.sets.rooms_continuous import FACTORS, render, rooms_continuous
from unweave.errors import UnweaveError


def test_a_small_change_of_a_factor_is_a_small_change_of_the_image() -> None:
    values = np.array([0.33, 0.61, 0.05, 1.01, 2, 7.7])
    image = render(values).astype(int)
    for column in (0, 1, 2, 3, 5):
        moved = values.copy()
        moved[column] += 0.002
        change = np.abs(render(moved).astype(int) - image)
        assert change.any(), FACTORS[column].name
        assert change.mean() < 1, FACTORS[column].name


def test_a_hue_has_no_seam() -> None:
    values = np.array([0.0, 0.2, 0.4, 1.0, 1, 0.0])
    assert (render(values + np.array([1, 1, 1, 0, 0, 0])) == render(values)).all()


def test_the_collection_draws_factors_in_their_ranges() -> None:
    rooms = rooms_continuous(500)
    low, high = rooms.values.min(axis=0), rooms.values.max(axis=0)
    assert low == pytest.approx([0, 0, 0, 0.75, 0, -30], abs=0.6)
    assert high == pytest.approx([1, 1, 1, 1.25, 3, 30], abs=0.6)
    assert (rooms_continuous(20).values == rooms.values[:20]).all()
    assert not (rooms_continuous(20, seed=1).values == rooms.values[:20]).any(axis=0)[0]
    first = rooms.images_at([3])
    assert first.dtype == np.uint8
    assert (rooms.images_at([3, 3]) == first).all()


@pytest.mark.parametrize("images", [0, 2.5, True])
def test_the_number_of_images(images: object) -> None:
    with pytest.raises(UnweaveError, match="`images` must be a whole number, 1 or more"):
        rooms_continuous(images)  # type: ignore[arg-type]
