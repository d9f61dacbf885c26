"""Bits per dimension: a mean, and what is refused."""

import numpy as np
import pytest

from unweave.errors import UnweaveError
from unweave.metrics import bits_per_dimension


def test_it_is_the_mean_over_images() -> None:
    assert bits_per_dimension(np.array([1.0, 2.5, 4.0])) == 2.5


def test_wrong_input_is_refused() -> None:
    with pytest.raises(
        UnweaveError, match=r"losses must be \(n,\), the bits per dimension of images; got \(2, 2\)"
    ):
        bits_per_dimension(np.ones((2, 2)))
    with pytest.raises(UnweaveError, match="losses must be finite; 1 are NaN or infinite"):
        bits_per_dimension([1.0, np.nan])
