"""Batch normalisation by Triton's kernels against torch's own, in float64."""

import pytest
import torch
import torch.nn.functional as F
from hypothesis import example, given, settings
from hypothesis import strategies as st

from nn.triton_device import DEVICE, LOW, distance, numbers, poison  # noqa: F401

from unweave.nn.kernels import norm as kernels  # isort: skip
from unweave.nn.layers import batch_norm
from unweave.nn.layers.batch_norm import EPSILON, BatchNorm

WHOLE = torch.float32


@settings(max_examples=15, deadline=None)
@given(
    st.integers(1, 3),
    st.integers(2, 150),
    st.sampled_from([1, 3, 32, 40, 128]),
    st.sampled_from([WHOLE, LOW]),
)
@example(2, 300, 70, WHOLE)
def test_values_and_gradients(runs: int, rows: int, features: int, dtype: torch.dtype) -> None:
    x = 3 * numbers(1, runs, rows, features) + 20 * numbers(2, runs, 1, features)
    x = x.to(dtype).double().requires_grad_()
    scale, shift = (numbers(seed, runs, features).requires_grad_() for seed in (3, 4))
    expected = torch.stack(
        [F.batch_norm(x[i], None, None, scale[i], shift[i], training=True, eps=EPSILON) for i in range(runs)]
    )
    on_device = [tensor.detach().to(DEVICE) for tensor in (x, scale, shift)]
    rounded_x, float_scale, float_shift = on_device[0].to(dtype), on_device[1].float(), on_device[2].float()
    actual, moments = kernels.normalise(rounded_x, float_scale, float_shift, EPSILON)
    near = 1e-4 if dtype == WHOLE else 1e-2
    assert distance(actual, expected.detach()) < near

    towards = numbers(5, *expected.shape)
    (expected * towards).sum().backward()
    gradients = kernels.gradients(rounded_x, moments, towards.to(DEVICE, dtype), float_scale, EPSILON)
    to_x, *to_parameters = gradients
    for ours, exact in zip(to_parameters, (scale.grad, shift.grad), strict=True):
        assert exact is not None
        assert distance(ours, exact) < near
    assert x.grad is not None
    # With two rows the gradient cancels for all x: the error is measured relative to its first term.
    slope = (scale / (x.var(1, correction=0) + EPSILON).sqrt())[:, None]
    assert float((to_x.double().cpu() - x.grad).norm()) < near * float((slope * towards).detach().norm())


@pytest.mark.parametrize("shape", [(2, 9, 3), (2, 4, 16, 4, 2)])
def test_the_module_is_the_same_by_both_ways(shape: tuple[int, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    norm = BatchNorm(2, shape[2])
    norm.scale.data, norm.shift.data = (numbers(seed, 2, shape[2]).float() for seed in (1, 2))
    norm.to(DEVICE)
    results = []
    for by_kernels in (False, True):
        monkeypatch.setattr(batch_norm, "is_on_kernels", lambda _, answer=by_kernels: answer)
        x = numbers(3, *shape).float().to(DEVICE).requires_grad_()
        values = norm(x)
        (values * numbers(4, *shape).float().to(DEVICE)).sum().backward()
        assert x.grad is not None
        assert norm.scale.grad is not None
        assert norm.shift.grad is not None
        results.append([values, x.grad, norm.scale.grad.clone(), norm.shift.grad.clone()])
        norm.zero_grad()
    for plain, fast in zip(*results, strict=True):
        torch.testing.assert_close(fast, plain, rtol=1e-3, atol=1e-3)
