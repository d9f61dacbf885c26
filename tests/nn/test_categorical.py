"""Categorical variables: indicators, relaxed draws, numbers of a code, against other ways to compute them."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from unweave.nn.distributions.categorical import Categorical, from_code, indicators
from unweave.streams import Stream


def some(rows: int, values: int) -> Categorical:
    return Categorical(torch.from_numpy(Stream.of(0).normal(rows, values)).log_softmax(-1))


def test_log_density_at_indicators_is_the_logarithm_of_the_probability() -> None:
    q, labels = some(5, 4), torch.tensor([0, 3, 1, 2, 2])
    actual = q.log_density(indicators(labels, 4, q.log_probabilities))
    expected = torch.distributions.Categorical(logits=q.log_probabilities).log_prob(labels)
    torch.testing.assert_close(actual, expected)


@pytest.mark.parametrize("temperature", [0.1, 0.66, 5.0])
def test_relaxed_draws_are_largest_at_each_value_as_often_as_it_is_likely(temperature: float) -> None:
    q = Categorical(torch.tensor([0.5, 0.3, 0.2], dtype=torch.float64).log())
    drawn = q.sample(torch.from_numpy(Stream.of(1).uniform(20_000, 3)), temperature)
    torch.testing.assert_close(drawn.sum(-1), torch.ones(20_000, dtype=torch.float64))
    shares = np.bincount(drawn.argmax(-1).numpy(), minlength=3) / 20_000
    np.testing.assert_allclose(shares, [0.5, 0.3, 0.2], atol=0.015)


def test_cold_draws_are_indicators() -> None:
    drawn = some(100, 4).sample(torch.from_numpy(Stream.of(2).uniform(100, 4)), 1e-3)
    assert (drawn.max(-1).values > 0.99).sum() >= 98


def test_the_code_has_the_moments_of_the_value() -> None:
    """Uniform on 0 .. 4: mean 2, deviation sqrt(2)."""
    q = some(6, 5)
    code, weights = q.as_code(), q.log_probabilities.exp().numpy()
    values = (np.arange(5) - 2) / np.sqrt(2)
    mean = weights @ values
    np.testing.assert_allclose(code.mean[:, 0], mean)
    np.testing.assert_allclose(code.log_var.exp()[:, 0], weights @ values**2 - mean**2)
    uniform = Categorical(torch.full((5,), 0.2, dtype=torch.float64).log()).as_code()
    torch.testing.assert_close(uniform.log_var.exp(), torch.ones(1, dtype=torch.float64))


@given(st.integers(1, 9), st.data())
@settings(max_examples=30, deadline=None)
def test_a_certain_value_comes_back_from_its_code(size: int, data: st.DataObject) -> None:
    label = torch.tensor([data.draw(st.integers(0, size - 1))])
    indicator = indicators(label, size, torch.zeros((), dtype=torch.float64))
    code = Categorical(indicator.clamp(min=1e-30).log()).as_code()
    torch.testing.assert_close(from_code(code.mean, size), indicator)
    assert torch.isfinite(code.log_var).all()


def test_a_number_between_two_values_is_a_part_of_each() -> None:
    """Values 0, 1, 2 are at -1.2247, 0 and 1.2247."""
    actual = from_code(torch.tensor([[0.25 * 1.224745], [9.0], [-9.0]]), 3)
    expected = torch.tensor([[0.0, 0.75, 0.25], [0.0, 0.0, 1.0], [1.0, 0.0, 0.0]])
    torch.testing.assert_close(actual, expected, atol=1e-5, rtol=0)
