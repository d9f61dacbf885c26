"""The Triton kernels against torch's own convolutions: on a GPU, or in Triton's interpreter."""

import os

import pytest
import torch
from torch import Tensor

CUDA = torch.cuda.is_available()
if not CUDA:
    os.environ["TRITON_INTERPRET"] = "1"
pytest.importorskip("triton", reason="Triton is not installed")

from unweave.nn import kernels  # noqa: E402

DEVICE = "cuda" if CUDA else "cpu"

# runs, images, inputs, outputs, size of the big image, kernel, padding
CASES = [
    (2, 3, 1, 32, 8, 4, 1),
    (1, 2, 3, 5, 8, 4, 1),
    (3, 2, 32, 32, 4, 4, 1),
    (2, 3, 32, 64, 4, 2, 0),
    (2, 5, 64, 64, 8, 2, 0),
]


def reference(layer: str, x: Tensor, weight: Tensor, bias: Tensor, padding: int, relu: bool) -> Tensor:
    apply = torch.nn.functional.conv2d if layer == "conv2d" else torch.nn.functional.conv_transpose2d
    out = [apply(x[p], weight[p], bias[p], stride=2, padding=padding) for p in range(len(x))]
    return torch.stack(out).relu() if relu else torch.stack(out)


def random(*shape: int) -> Tensor:
    count = torch.tensor(shape).prod().item()
    return (torch.arange(count, dtype=torch.float64) * 0.7548776662466927 % 1 - 0.5).reshape(shape)


@pytest.mark.parametrize("layer", ["conv2d", "conv_transpose2d"])
@pytest.mark.parametrize("relu", [False, True])
@pytest.mark.parametrize("case", CASES)
def test_forward_and_gradients(layer: str, relu: bool, case: tuple[int, ...]) -> None:
    runs, images, inputs, outputs, size, kernel, padding = case
    small = layer == "conv_transpose2d"
    x = random(runs, images, inputs, *(2 * [size // 2 if small else size]))
    weight = random(runs, *((inputs, outputs) if small else (outputs, inputs)), kernel, kernel)
    bias = random(runs, outputs)
    exact = [tensor.clone().requires_grad_() for tensor in (x, weight, bias)]
    ours = [tensor.float().to(DEVICE).requires_grad_() for tensor in (x, weight, bias)]
    expected = reference(layer, exact[0], exact[1], exact[2], padding, relu)
    got = getattr(kernels, layer)(*ours, padding, relu, tf32=False)
    torch.testing.assert_close(got.double().cpu(), expected, rtol=1e-5, atol=1e-5)
    upstream = random(*expected.shape)
    expected.backward(upstream)
    got.backward(upstream.float().to(DEVICE))
    for mine, true in zip(ours, exact, strict=True):
        assert mine.grad is not None
        torch.testing.assert_close(mine.grad.double().cpu(), true.grad, rtol=1e-4, atol=1e-4)
