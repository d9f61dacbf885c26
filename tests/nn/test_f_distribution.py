"""The F distribution of two groups, against scipy."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import f
from torch import Tensor

from unweave.nn.distributions.f_distribution import log_f_cdf


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-6), (torch.float32, 3e-5)])
@pytest.mark.parametrize("freedom", [1, 2, 3, 7, 20, 62, 126])
def test_against_scipy(freedom: int, dtype: torch.dtype, tolerance: float) -> None:
    ratios = np.logspace(-6, 4, 200)
    between, within = torch.tensor(3 * ratios / freedom, dtype=dtype), torch.full((200,), 3.0, dtype=dtype)
    actual = log_f_cdf(between, within, torch.full((200,), float(freedom), dtype=dtype))
    np.testing.assert_allclose(actual, f.logcdf(ratios, 1, freedom), rtol=tolerance, atol=tolerance)


@given(st.floats(1e-3, 50), st.floats(1e-3, 50), st.integers(1, 60))
@settings(max_examples=30, deadline=None)
def test_gradients(between: float, within: float, freedom: int) -> None:
    squares = [torch.tensor([value], dtype=torch.float64, requires_grad=True) for value in (between, within)]
    degrees = torch.tensor([float(freedom)], dtype=torch.float64)

    def log_cdf(between: Tensor, within: Tensor) -> Tensor:
        return log_f_cdf(between, within, degrees)

    assert torch.autograd.gradcheck(log_cdf, squares, atol=1e-5)
