"""The Wild Relation Network against plain loops over panels, and against the sizes of disentanglement_lib."""

import math

import numpy as np
import pytest
import torch
from torch import Tensor

from unweave.nn.layers import Linear
from unweave.reasoning.spec import ReasoningSpec
from unweave.reasoning.wren import WildRelationNetwork, dense, loss_of
from unweave.streams import Stream


def by_loops(network: WildRelationNetwork, panels: Tensor, run: int) -> Tensor:
    """The score of one answer from nine panels (9, d): all 81 ordered pairs, one at a time."""

    def apply(layer: torch.nn.Module, x: Tensor) -> Tensor:
        assert isinstance(layer, Linear)
        return x @ layer.weight[run] + layer.bias[run]

    tagged = torch.cat([panels, torch.eye(9)], dim=1)
    total = torch.zeros(())
    for first in tagged:
        for second in tagged:
            hidden = torch.relu(apply(network.first, torch.cat([first, second])))
            for layer in network.edge:
                hidden = torch.relu(apply(layer, hidden))
            total = total + hidden
    for layer in network.graph:
        total = torch.relu(apply(layer, total))
    return apply(network.score, total)[0]


@pytest.mark.parametrize("edge", [(6,), (8, 5)])
def test_scores_are_those_of_loops_over_all_pairs(edge: tuple[int, ...]) -> None:
    network = WildRelationNetwork(Stream.of(0), 2, 3, edge, (7, 4))
    with torch.no_grad():
        for number, parameter in enumerate(network.parameters()):  # runs and biases differ
            noise = Stream.of(number).normal(len(parameter), parameter[0].numel())
            parameter.add_(torch.from_numpy(noise.astype(np.float32)).view_as(parameter) * 0.3)
        panels = torch.from_numpy(Stream.of(5).normal(2 * 2 * 14, 3).astype(np.float32)).view(2, 2, 14, 3)
        scores = network(panels)
        for run in range(2):
            for row, answer in ((0, 0), (1, 5)):
                nine = torch.cat([panels[run, row, :8], panels[run, row, 8 + answer][None]])
                assert scores[run, row, answer] == pytest.approx(
                    float(by_loops(network, nine, run)), rel=1e-4
                )


def test_short_products_change_scores_a_little() -> None:
    network = WildRelationNetwork(Stream.of(0), 1, 3, (32, 32, 32), (16,))
    panels = torch.from_numpy(Stream.of(5).normal(4 * 14, 3).astype(np.float32)).view(1, 4, 14, 3)
    with torch.no_grad():
        exact = network(panels)
        network.set_precision("bf16")
        rounded = network(panels)
    assert rounded.dtype == torch.float32
    assert 0 < float((rounded - exact).abs().max()) < 0.05 * float(exact.abs().max())


def test_sizes_are_those_of_the_example_configuration() -> None:
    spec = ReasoningSpec()
    network = WildRelationNetwork(Stream.of(0), 1, 10, spec.edge, spec.graph)
    # Pairs of ten codes and nine places: 2 (10 + 9) inputs; edge_mlp 4 x 512, graph_mlp 2 x 256, one score.
    assert network.first.weight.shape == (1, 38, 512)
    by_hand = 38 * 512 + 512 + 3 * (512**2 + 512) + (512 * 256 + 256) + (256**2 + 256) + (256 + 1)
    assert sum(parameter.numel() for parameter in network.parameters()) == by_hand == 1_005_313
    assert (spec.batch, spec.steps, spec.learning_rate) == (32, 100_000, 1e-3)


def test_initial_weights_are_normal_and_cut_off() -> None:
    layer = dense(Stream.of(0), "a", 3, 400, 100, "relu")
    weight = layer.weight.detach().numpy()
    assert (weight == weight[0]).all()  # all runs start alike
    assert weight.std() == pytest.approx(1 / 20, rel=0.02)
    assert abs(weight.mean()) < 0.001
    assert 2 < np.abs(weight).max() * 20 < 2 / 0.8796 + 1e-3
    assert not layer.bias.detach().any()


def test_dropped_units_change_nothing() -> None:
    network = WildRelationNetwork(Stream.of(0), 1, 2, (4,), (6,))
    panels = torch.ones(1, 2, 14, 2)
    with torch.no_grad():
        kept = torch.tensor([[1.0, 0.0, 1.0, 0.0, 1.0, 1.0]])
        expected = network(panels, kept)
        network.score.weight[0, [1, 3]] = 99.0
        assert torch.equal(network(panels, kept), expected)


def test_the_loss_of_equal_scores_is_that_of_a_guess() -> None:
    scores = torch.zeros(2, 5, 6)
    position = torch.arange(5)
    assert loss_of(scores, position).tolist() == pytest.approx([math.log(6)] * 2)
    scores[1, torch.arange(5), position] = 100.0
    assert loss_of(scores, position).tolist() == pytest.approx([math.log(6), 0.0])
