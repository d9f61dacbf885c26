"""Fixtures of the tests of training."""

from collections.abc import Iterator

import pytest

from training.tiny import narrow_discriminators


@pytest.fixture(autouse=True)
def quick_discriminators() -> Iterator[None]:
    """Use narrow discriminators in all tests of training."""
    with narrow_discriminators():
        yield
