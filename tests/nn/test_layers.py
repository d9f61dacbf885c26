from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import cast

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from unweave.errors import UnweaveError
from unweave.nn.layers import (
    Activation,
    Conv2d,
    ConvTranspose2d,
    Layer,
    Linear,
    glorot_uniform,
    heads,
    num_runs,
    select_runs,
    set_precision,
    through,
)
from unweave.nn.layers import convolution as layers
from unweave.streams import Stream

BATCH = 2
ACTIVATIONS: dict[Activation, Callable[[Tensor], Tensor]] = {
    "none": lambda y: y,
    "relu": torch.relu,
    "leaky_relu": lambda y: torch.where(y > 0, y, 0.2 * y),
    "tanh": torch.tanh,
}


def runs(*seeds: int) -> list[Stream]:
    return [Stream.of(seed) for seed in seeds]


def numbers(*shape: int) -> Tensor:
    """Different numbers in (-1, 1) in float64 that ask for their gradient."""
    values = Stream.of(1).child("input").uniform(1, math.prod(shape)).reshape(shape)
    return torch.from_numpy(2 * values - 1).requires_grad_()


def with_biases(layer: Layer) -> Layer:
    """The layer in float64, with biases that are not zero."""
    layer.double()
    with torch.no_grad():
        layer.bias.copy_(numbers(*layer.bias.shape))
    return layer


def own_layer(layer: Layer, run: int) -> nn.Module:
    """torch's own layer with the weights of one run."""
    weight, bias = layer.weight[run].detach(), layer.bias[run].detach()
    own: nn.Module
    if isinstance(layer, Linear):
        own, weight = nn.Linear(*weight.shape), weight.T
    elif isinstance(layer, Conv2d):
        outputs, inputs, kernel, _ = weight.shape
        own = nn.Conv2d(inputs, outputs, kernel, stride=2, padding=layer.padding)
    else:
        inputs, outputs, kernel, _ = weight.shape
        padding = cast(ConvTranspose2d, layer).padding
        own = nn.ConvTranspose2d(inputs, outputs, kernel, stride=2, padding=padding)
    own.load_state_dict({"weight": weight, "bias": bias})
    return own.double().requires_grad_()


def make(kind: str, seeds: tuple[int, ...], activation: Activation = "none") -> tuple[Layer, Tensor]:
    """A layer and an input for it."""
    streams, count = runs(*seeds), len(seeds)
    kernel, padding = (2, 0) if kind.endswith("2x2") else (4, 1)
    if kind == "linear":
        return Linear(streams, "layer", 5, 3, activation), numbers(count, BATCH, 5)
    if kind.startswith("conv "):
        layer: Layer = Conv2d(streams, "layer", 3, 4, kernel, padding, activation)
    else:
        layer = ConvTranspose2d(streams, "layer", 3, 4, kernel, padding, activation)
    return layer, numbers(count, BATCH, 3, 6, 8)


KINDS = ["linear", "conv 4x4", "conv 2x2", "transposed 4x4", "transposed 2x2"]


@pytest.mark.parametrize("together", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_layer_equals_torchs_own_in_each_run(
    kind: str, together: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    # On a GPU the runs are computed together; this tests that path on the CPU.
    monkeypatch.setattr(layers, "_runs_together", lambda *_: together)
    for seeds, activation in itertools.product([(7,), (7, 8, 9)], ACTIVATIONS):
        assert_equals_torchs_own(kind, seeds, activation)


def assert_equals_torchs_own(kind: str, seeds: tuple[int, ...], activation: Activation) -> None:
    layer, x = make(kind, seeds, activation)
    with_biases(layer)
    y = layer(x)
    weights_of_loss = numbers(*y.shape).detach()
    torch.autograd.backward((y * weights_of_loss).sum())
    gradients = [cast(Tensor, tensor.grad) for tensor in (x, layer.weight, layer.bias)]
    for run in range(len(seeds)):
        own, own_x = own_layer(layer, run), x[run].detach().clone().requires_grad_()
        own_y = ACTIVATIONS[activation](own(own_x))
        torch.autograd.backward((own_y * weights_of_loss[run]).sum())
        torch.testing.assert_close(y[run], own_y)
        weight_gradient = own.get_parameter("weight").grad
        own_gradients = [
            own_x.grad,
            weight_gradient.T
            if isinstance(layer, Linear) and weight_gradient is not None
            else weight_gradient,
            own.get_parameter("bias").grad,
        ]
        torch.testing.assert_close([gradient[run] for gradient in gradients], own_gradients)


@pytest.mark.parametrize(
    ("layer", "shape"),
    [
        (Linear(runs(0, 1), "layer", 3, 2, "leaky_relu"), (2, 2, 3)),
        (Conv2d(runs(0, 1), "layer", 2, 1, activation="relu"), (2, 1, 2, 4, 2)),
        (Conv2d(runs(0, 1), "layer", 1, 2, 2, 0, "tanh"), (2, 1, 1, 4, 2)),
        (ConvTranspose2d(runs(0, 1), "layer", 2, 1, activation="leaky_relu"), (2, 1, 2, 1, 2)),
    ],
)
def test_gradients(layer: Layer, shape: tuple[int, ...]) -> None:
    with_biases(layer)
    assert torch.autograd.gradcheck(layer.compute, (numbers(*shape), layer.weight, layer.bias))


@pytest.mark.parametrize("size", [4, 6])
def test_other_kernels_and_paddings(size: int) -> None:
    layer = with_biases(Conv2d(runs(0, 1), "layer", 2, 3, kernel=3, padding=2))
    x = numbers(2, BATCH, 2, size, size)
    expected = F.conv2d(x[1], layer.weight[1], layer.bias[1], stride=2, padding=2)
    torch.testing.assert_close(layer(x)[1], expected)


@pytest.mark.parametrize("together", [False, True])
@pytest.mark.parametrize("channels", [1, 3])
def test_through_equals_one_layer_after_another(
    channels: int, together: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(layers, "_runs_together", lambda *_: together)
    streams = runs(0, 1, 2)
    stack = nn.ModuleList(
        [
            with_biases(Conv2d(streams, "first", channels, 4, activation="relu")),
            with_biases(Conv2d(streams, "second", 4, 5, kernel=2, padding=0, activation="tanh")),
            with_biases(ConvTranspose2d(streams, "third", 5, channels)),
        ]
    )
    x = numbers(3, BATCH, channels, 8, 8)
    y = through(stack, x)
    expected = stack[2](stack[1](stack[0](x)))
    torch.testing.assert_close(y, expected)
    for parameter in (x, *stack.parameters()):
        gradient = torch.autograd.grad(y.square().sum(), parameter, retain_graph=True)
        expected_gradient = torch.autograd.grad(expected.square().sum(), parameter, retain_graph=True)
        torch.testing.assert_close(gradient, expected_gradient)


@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize("channels", [1, 3])
def test_convolutions_leave_images_channels_last(channels: int, count: int) -> None:
    layer = Conv2d(runs(*range(count)), "layer", channels, 4)
    y = layer(torch.zeros(count, BATCH, channels, 8, 8))
    assert y.permute(0, 1, 3, 4, 2).is_contiguous()
    y = ConvTranspose2d(runs(*range(count)), "layer", 4, 6)(y)
    assert y.permute(0, 1, 3, 4, 2).is_contiguous()


@pytest.mark.parametrize(
    ("layer", "bound"),
    [
        (Linear(runs(0, 1), "layer", 300, 200), math.sqrt(6 / 500)),
        (Conv2d(runs(0, 1), "layer", 32, 64), math.sqrt(6 / (16 * 96))),
        (Conv2d(runs(0, 1), "layer", 64, 32, kernel=2, padding=0), math.sqrt(6 / (4 * 96))),
        (ConvTranspose2d(runs(0, 1), "layer", 64, 32), math.sqrt(6 / (16 * 96))),
    ],
)
def test_initial_weights_are_glorot_uniform(layer: Layer, bound: float) -> None:
    weights = layer.weight.detach().double().numpy()
    assert layer.weight.dtype == layer.bias.dtype == torch.float32
    assert not layer.bias.any()
    for run in weights:
        count = run.size
        assert 0.999 * bound < np.abs(run).max() < bound
        assert abs(run.mean()) < 5 * bound / math.sqrt(3 * count)
        # The variance of x^2 is 4/45 for x uniform in (-1, 1).
        assert abs((run**2).mean() / bound**2 - 1 / 3) < 5 * math.sqrt(4 / 45 / count)
    correlation = np.corrcoef(weights[0].ravel(), weights[1].ravel())[0, 1]
    assert abs(correlation) < 5 / math.sqrt(weights[0].size)


def test_initial_weights_are_addressed_by_seed_and_name() -> None:
    stream = Stream.of(3)
    expected = (2 * stream.child("weights", "dense").uniform(4, 6) - 1) * math.sqrt(6 / 10)
    actual = glorot_uniform([Stream.of(2), stream], "dense", (4, 6), 10)
    np.testing.assert_array_equal(actual[1].numpy(), expected.astype(np.float32))
    assert not torch.equal(actual[0], actual[1])
    assert not torch.equal(actual, glorot_uniform([Stream.of(2), stream], "other", (4, 6), 10))


def test_a_runs_weights_do_not_depend_on_other_runs() -> None:
    alone = Conv2d(runs(5), "layer", 3, 8)
    in_company = Conv2d(runs(9, 2, 5), "layer", 3, 8)
    assert torch.equal(alone.weight[0], in_company.weight[2])


def test_heads_start_as_if_each_stood_alone() -> None:
    streams = runs(0, 1)
    both = heads(streams, ("mean", "log_var"), 7, 3)
    mean, log_var = Linear(streams, "mean", 7, 3), Linear(streams, "log_var", 7, 3)
    assert torch.equal(both.weight, torch.cat([mean.weight, log_var.weight], dim=-1))
    assert both.bias.shape == (2, 6)
    x = numbers(2, BATCH, 7).float()
    torch.testing.assert_close(both(x), torch.cat([mean(x), log_var(x)], dim=-1))


def test_a_population_without_runs_is_refused() -> None:
    with pytest.raises(UnweaveError, match="at least one run"):
        Linear([], "layer", 2, 2)


@pytest.mark.parametrize("kind", KINDS)
def test_bf16_rounds(kind: str) -> None:
    layer, x = make(kind, (0, 1), "relu")
    x = x.detach().float()
    exact = layer(x)
    set_precision(layer, "bf16")
    rounded = layer(x)
    assert rounded.dtype == torch.bfloat16
    assert not torch.equal(rounded.float(), exact)
    torch.testing.assert_close(rounded.float(), exact, rtol=0.02, atol=0.02)
    rounded.float().sum().backward()
    # The optimiser keeps the unrounded weights of dense layers.
    dtype = torch.bfloat16 if kind == "linear" else torch.float32
    assert layer.weight.dtype == cast(Tensor, layer.weight.grad).dtype == dtype


def test_set_precision_reaches_every_layer() -> None:
    network = nn.Sequential(
        Linear(runs(0), "a", 2, 2), nn.Sequential(Conv2d(runs(0), "b", 1, 1)), nn.Identity()
    )
    set_precision(network, "tf32")
    actual = [part.precision for part in network.modules() if isinstance(part, Layer)]
    assert actual == ["tf32", "tf32"]


def test_select_runs_keeps_the_chosen_ones_in_order() -> None:
    layer, x = make("conv 4x4", (0, 1, 2, 3), "relu")
    before = layer(x.detach().float())
    before.sum().backward()
    select_runs(layer, [3, 1])
    assert num_runs(layer) == 2
    as_if_made_so = Conv2d(runs(3, 1), "layer", 3, 4, activation="relu")
    assert torch.equal(layer.weight, as_if_made_so.weight)
    # They can be trained on, even while the graph of an earlier loss still lives.
    after = layer(x.detach().float()[[3, 1]])
    torch.testing.assert_close(after, before[[3, 1]])
    after.sum().backward()
    assert cast(Tensor, layer.weight.grad).shape == layer.weight.shape == (2, 4, 3, 4, 4)


@pytest.mark.parametrize("index", [[], [2], [-1], [0, 5]])
def test_select_runs_refuses_runs_that_are_not_there(index: list[int]) -> None:
    with pytest.raises(UnweaveError, match=r"from 0 to 1; got \["):
        select_runs(Linear(runs(0, 1), "layer", 2, 2), index)


def test_num_runs_refuses_mixed_populations() -> None:
    mixed = nn.ModuleList([Linear(runs(0), "a", 2, 2), Linear(runs(0, 1), "b", 2, 2)])
    with pytest.raises(UnweaveError, match=r"got lengths \[1, 2\]"):
        num_runs(mixed)
