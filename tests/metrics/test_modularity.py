"""Modularity: published values, dead codes, one factor."""

from pathlib import Path

import numpy as np
import pytest

from metrics.grids import drawn, grid, noise
from metrics.reference_cases import NAMES, load_case
from unweave.errors import UnweaveError
from unweave.metrics import modularity, mutual_information

# The predecessor gave 0.611 for this case, because rounding woke dead codes up.
INTENDED = {"dsp_dead_dims": 0.49997975219293067}


@pytest.mark.parametrize("name", NAMES)
def test_published_values(reference: Path, name: str) -> None:
    case = load_case(reference, name)
    expected = INTENDED.get(name, case.expected["mi_matrix"]["modularity"])
    assert modularity(*case.train) == pytest.approx(expected, abs=1e-9)


def test_the_formula_for_one_code() -> None:
    factors = drawn([3, 4, 5], 400)
    codes = (factors[:, :1] + 2 * factors[:, 1:2]) + 0.3 * noise(400, 1)
    squares = mutual_information(codes, factors)[0] ** 2
    expected = 1 - (squares.sum() - squares.max()) / (squares.max() * 2)
    assert modularity(codes, factors) == pytest.approx(expected, abs=1e-12)


def test_dead_codes_count_nothing_or_are_left_out() -> None:
    factors = grid(3, 4)
    codes = np.hstack([factors, np.full((12, 3), 0.7)])
    assert modularity(codes, factors) == pytest.approx(2 / 5, abs=1e-12)
    assert modularity(codes, factors, dead="leave out") == pytest.approx(1, abs=1e-12)
    for dead in ("zero", "leave out"):
        assert modularity(codes[:, 2:], factors, dead=dead) == 0


def test_with_one_factor_a_code_knows_nothing_else() -> None:
    factors = grid(4, repeats=3)
    codes = np.hstack([factors, 0 * factors])
    assert modularity(codes, factors) == 0.5


def test_noise_scores_about_0_7() -> None:
    assert modularity(noise(10_000, 10), drawn([3, 6, 40, 32, 32], 10_000)) == pytest.approx(0.7, abs=0.05)


def test_dead_is_one_of_two_words() -> None:
    with pytest.raises(UnweaveError, match='dead must be "zero" or "leave out"; got \'drop\''):
        modularity(noise(10, 1), drawn([2], 10), dead="drop")  # type: ignore[arg-type]
