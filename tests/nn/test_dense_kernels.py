"""Dense layers by Triton's kernels against torch's own products, in float64."""

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from hypothesis import example, given, settings
from hypothesis import strategies as st

from nn.triton_device import DEVICE, LOW, numbers, poison  # noqa: F401

from unweave.nn.kernels import dense as kernels  # isort: skip
from unweave.nn.layers import dense as layers
from unweave.streams import Stream

WHOLE = torch.float32
NEAR = {WHOLE: 1e-5, LOW: 1e-2}


def tensors(runs: int, rows: int, inputs: int, outputs: int) -> list[torch.Tensor]:
    """x, weight and bias in float64."""
    shapes = (runs, rows, inputs), (runs, inputs, outputs), (runs, outputs)
    return [numbers(seed, *shape).requires_grad_() for seed, shape in enumerate(shapes)]


def dense(layer: list[torch.Tensor], slope: float, dtype: torch.dtype | None = None) -> torch.Tensor:
    """By the kernels."""
    x, weight, bias = layer
    return kernels.dense(x, weight, bias, slope=slope, dtype=dtype)


def check(
    actual: torch.Tensor | None, expected: torch.Tensor | None, size: float, dtype: torch.dtype
) -> None:
    """Equal to the precision of the type, measured by the size of what was summed."""
    assert actual is not None
    assert expected is not None
    assert float((actual.detach().double().cpu() - expected.detach()).norm()) <= NEAR[dtype] * size


@settings(max_examples=15, deadline=None)
@given(
    st.integers(1, 3),
    st.integers(1, 70),
    st.sampled_from([1, 3, 10, 64]),
    st.sampled_from([2, 20, 40, 64]),
    st.sampled_from([0.0, 0.2, 1.0]),
    st.sampled_from([WHOLE, LOW]),
    st.booleans(),
)
@example(2, 130, 70, 90, 0.2, LOW, True)
@example(40, 64, 33, 100, 0.0, LOW, False)
def test_values_and_gradients(
    runs: int, rows: int, inputs: int, outputs: int, slope: float, dtype: torch.dtype, last: bool
) -> None:
    true = tensors(runs, rows, inputs, outputs)
    product = torch.baddbmm(true[2].unsqueeze(1), true[0], true[1])
    expected = F.leaky_relu(product, slope)
    x_type = WHOLE if last else dtype
    mine = [
        tensor.detach().to(DEVICE, kind).requires_grad_()
        for tensor, kind in zip(true, (x_type, dtype, dtype), strict=True)
    ]
    actual = dense(mine, slope, WHOLE if last else None)
    assert actual.dtype == (WHOLE if last else dtype)
    check(actual, expected.detach(), float(product.detach().norm()), dtype)

    towards = numbers(3, *expected.shape)
    # Where rounding changes the sign of the product, the slope differs.
    towards[product.detach().abs() < 0.05] = 0
    (expected * towards).sum().backward()
    actual.backward(towards.to(DEVICE, actual.dtype))
    for ours, exact in zip(mine, true, strict=True):
        assert ours.grad is not None
        assert exact.grad is not None
        assert ours.grad.dtype == ours.dtype
        check(ours.grad, exact.grad, float(exact.grad.norm() + towards.norm()), dtype)


def test_a_layer_whose_input_needs_no_gradient() -> None:
    true = tensors(2, 5, 20, 30)
    mine = [tensor.detach().to(DEVICE, LOW).requires_grad_(n > 0) for n, tensor in enumerate(true)]
    dense(mine, 0.0).float().square().sum().backward()
    F.relu(torch.baddbmm(true[2].unsqueeze(1), true[0], true[1])).square().sum().backward()
    assert mine[0].grad is None
    for ours, exact in zip(mine[1:], true[1:], strict=True):
        assert exact.grad is not None
        check(ours.grad, exact.grad, float(exact.grad.norm()), LOW)


@pytest.mark.parametrize("dtype", [WHOLE, LOW])
def test_second_derivatives_are_those_of_torch(dtype: torch.dtype) -> None:
    def penalty(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        [gradient] = torch.autograd.grad(y.sum(), x, create_graph=True)
        return gradient.square().sum()

    true = tensors(2, 4, 6, 5)
    mine = [tensor.detach().to(DEVICE, dtype).requires_grad_() for tensor in true]
    product = torch.baddbmm(true[2].unsqueeze(1), true[0], true[1])
    exact = torch.autograd.grad(penalty(true[0], F.leaky_relu(product, 0.2)), true[1])[0]
    ours = torch.autograd.grad(penalty(mine[0], dense(mine, 0.2)), mine[1])[0]
    check(ours, exact, 3 * float(exact.norm()), dtype)


def test_second_derivatives_reach_weights_that_are_not_contiguous() -> None:
    """Such as transposed ones: the kernels read a copy."""
    x, weight, bias = (t.detach().to(DEVICE, LOW) for t in tensors(2, 4, 6, 5))
    x.requires_grad_()

    def penalty_gradient(stored: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        [to_x] = torch.autograd.grad(dense([x, weight, bias], 0.2).sum(), x, create_graph=True)
        return torch.autograd.grad(to_x.float().square().sum(), stored)[0]

    turned = weight.mT.contiguous().requires_grad_()
    expected = penalty_gradient(weight.requires_grad_(), weight)
    assert torch.equal(penalty_gradient(turned, turned.mT).mT, expected)


@pytest.mark.parametrize("small", [True, False])
@pytest.mark.parametrize("activation", ["none", "relu", "leaky_relu", "tanh"])
@pytest.mark.parametrize("precision", ["float32", "bf16"])
def test_layers_are_the_same_by_both_ways(
    activation: Any, precision: Any, small: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if precision == "bf16" and DEVICE == "cpu":
        pytest.skip("the interpreter has no bfloat16")
    layer = layers.Linear([Stream.of(seed) for seed in range(2)], "layer", 12, 17, activation, last=True)
    layer.bias.data = numbers(6, *layer.bias.shape).float()
    layer.to(DEVICE).precision = precision
    x = numbers(7, 2, 3, 12).float().to(DEVICE)
    monkeypatch.setattr(layers, "is_on_kernels", lambda *_: False)
    expected = layer(x)
    monkeypatch.setattr(layers, "is_on_kernels", lambda _, name: name in layers.SLOPES)
    monkeypatch.setattr(kernels, "LARGEST", 1 << 18 if small else 0)
    actual = layer(x)
    assert actual.dtype == WHOLE
    torch.testing.assert_close(actual, expected, rtol=2e-2 if precision == "bf16" else 1e-4, atol=1e-2)
