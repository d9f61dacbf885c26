"""Draws of a population are those of the streams, number by number."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from unweave.errors import UnweaveError
from unweave.nn.draws import PopulationDraws, philox_bits
from unweave.streams import Stream

SEEDS = [Stream.of(seed) for seed in (0, 1, 77)]
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def draws(step: int) -> PopulationDraws:
    return PopulationDraws(SEEDS, torch.tensor(step, device=DEVICE))


def stack(step: int, purpose: str, method: str, *arguments: object) -> np.ndarray:
    streams = [stream.child(*purpose.split("/")).at(step) for stream in SEEDS]
    return np.stack([getattr(stream, method)(*arguments) for stream in streams])


@given(step=st.integers(0, 400_000), rows=st.integers(1, 9), columns=st.integers(1, 9))
@settings(deadline=None, max_examples=30)
def test_bits_are_those_of_the_streams(step: int, rows: int, columns: int) -> None:
    population, expected = draws(step), stack(step, "batch/factors", "bits", rows, columns)
    got = population.bits("batch/factors", rows, columns)
    portable = philox_bits(population.keys("batch/factors"), population.step, rows, columns)
    assert got.dtype == portable.dtype == torch.int64
    np.testing.assert_array_equal(got.cpu().numpy(), expected)
    np.testing.assert_array_equal(portable.cpu().numpy(), expected)


@pytest.mark.parametrize("step", [0, 1, 299_999])
def test_other_draws_are_those_of_the_streams(step: int) -> None:
    population = draws(step)
    sizes = (3, 6, 40, 32, 32)
    np.testing.assert_array_equal(
        population.integers("a", 64, sizes).cpu().numpy(), stack(step, "a", "integers", 64, sizes)
    )
    np.testing.assert_array_equal(
        population.bytes("d", 7, 13).cpu().numpy(), stack(step, "d", "bytes", 7, 13)
    )
    np.testing.assert_array_equal(
        population.permutations("b", 10, 64).cpu().numpy(), stack(step, "b", "permutations", 10, 64)
    )
    np.testing.assert_array_equal(
        population.uniform("c", 5, 7).cpu().numpy(), stack(step, "c", "uniform", 5, 7).astype(np.float32)
    )
    np.testing.assert_allclose(
        population.normal("noise", 64, 9).cpu().numpy(), stack(step, "noise", "normal", 64, 9), atol=2e-6
    )


@pytest.mark.parametrize("first", [1, 6, 2**31 - 9])
def test_draws_start_at_the_first_row_of_the_streams(first: int) -> None:
    later = PopulationDraws([stream.skip(first) for stream in SEEDS], torch.tensor(3, device=DEVICE))
    expected = np.stack([stream.child("a").at(3).skip(first).bits(7, 5) for stream in SEEDS])
    np.testing.assert_array_equal(later.bits("a", 7, 5).cpu().numpy(), expected)
    portable = philox_bits(later.keys("a"), later.step, 7, 5, first)
    np.testing.assert_array_equal(portable.cpu().numpy(), expected)
    normal = np.stack([stream.child("a").at(3).skip(first).normal(7, 5) for stream in SEEDS])
    np.testing.assert_allclose(later.normal("a", 7, 5).cpu().numpy(), normal, atol=2e-6)


def test_streams_that_start_at_different_rows_are_refused() -> None:
    for streams in ([SEEDS[0], SEEDS[1].skip(4)], [SEEDS[0].skip(2**31)]):
        with pytest.raises(UnweaveError, match="must start at the same row below 2147483648; got rows"):
            PopulationDraws(streams, torch.tensor(0))


def test_names_with_strokes_and_several_keys() -> None:
    population = draws(0)
    table = population.key_table((("a", "b/c"), "a/b/c"))
    assert table.shape == (2, 3)
    for run, stream in enumerate(SEEDS):
        assert int(table[0, run]) % 2**64 == stream.child("a", "b/c").key
        assert int(table[1, run]) % 2**64 == stream.child("a", "b", "c").key
    assert torch.equal(population.keys("a/b/c"), table[1])


def test_normal_numbers_are_standard_normal() -> None:
    numbers = Stream.of(4).child("noise").normal(100_000, 3)
    np.testing.assert_allclose(numbers.mean(axis=0), 0, atol=4 / np.sqrt(1e5))
    np.testing.assert_allclose(numbers.std(axis=0), 1, rtol=0.01)
    np.testing.assert_allclose((numbers**4).mean(axis=0), 3, rtol=0.05)
    assert np.abs(np.corrcoef(numbers.T) - np.eye(3)).max() < 4 / np.sqrt(1e5)


def test_runs_keep_their_draws_in_other_populations() -> None:
    population = draws(5)
    whole = population.normal("noise", 8, 4)
    assert torch.equal(population.of_runs(1, 3).normal("noise", 8, 4), whole[1:])


def test_global_generator_plays_no_part() -> None:
    torch.manual_seed(0)
    state = torch.random.get_rng_state()
    first = draws(1).normal("noise", 8, 4)
    assert torch.equal(torch.random.get_rng_state(), state)
    torch.manual_seed(1)
    assert torch.equal(draws(1).normal("noise", 8, 4), first)
