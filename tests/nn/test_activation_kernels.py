"""Bias and activation by Triton's kernels against torch's own, in float64."""

import torch
import torch.nn.functional as F
from hypothesis import example, given, settings
from hypothesis import strategies as st

from nn.triton_device import DEVICE, LOW, distance, numbers, poison  # noqa: F401

from unweave.nn.kernels import activation as kernels  # isort: skip

WHOLE = torch.float32


@settings(max_examples=15, deadline=None)
@given(
    st.integers(1, 3),
    st.integers(1, 150),
    st.sampled_from([1, 3, 32, 40, 64]),
    st.sampled_from([0.0, 0.2, 1.0]),
    st.sampled_from([WHOLE, LOW]),
    st.booleans(),
)
@example(2, 300, 70, 0.2, WHOLE, True)
def test_values_and_gradients(
    runs: int, rows: int, features: int, slope: float, dtype: torch.dtype, to_bias: bool
) -> None:
    x, bias = numbers(1, runs, rows, features).requires_grad_(), numbers(2, runs, features).requires_grad_()
    product = x + bias[:, None]
    expected = F.leaky_relu(product, slope)
    actual = x.detach().to(DEVICE, dtype)
    kernels.activate(actual, bias.detach().float().to(DEVICE), slope)
    near = 1e-5 if dtype == WHOLE else 1e-2
    size = float(product.detach().norm())
    assert float((actual.double().cpu() - expected.detach()).norm()) <= near * size

    towards = numbers(3, *expected.shape)
    (expected * towards).sum().backward()
    to_x, sums = kernels.gradients(actual, towards.to(DEVICE, dtype), slope, to_bias)
    assert x.grad is not None
    assert bias.grad is not None
    assert float((to_x.double().cpu() - x.grad).norm()) <= near * float(towards.norm())
    assert (sums is not None) == to_bias
    if sums is not None:
        # Sums in which numbers cancel are measured by the numbers.
        assert float((sums.double().cpu() - bias.grad).norm()) <= near * float(towards.norm())


def test_what_is_written_is_the_place_of_the_product() -> None:
    x = numbers(1, 1, 5, 32).float().to(DEVICE)
    address = x.data_ptr()
    kernels.activate(x, torch.zeros(1, 32, device=DEVICE), 0.0)
    assert x.data_ptr() == address
    assert distance(x, numbers(1, 1, 5, 32).clamp_min(0)) < 1e-6
