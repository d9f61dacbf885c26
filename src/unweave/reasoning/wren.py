"""The Wild Relation Network on the codes of panels, for all runs of a population at once.

Each answer completes the matrix to nine panels. A panel's code is followed by its place in the matrix, one of
nine, as a one-hot vector. An edge network g sees all 81 ordered pairs of panels, and a graph network f scores
the sum of what it returns:

    score(answer) = f(sum over panels i, j of g(panel_i, panel_j))

The probability of an answer is the softmax of the six scores.

Barrett, Hill, Santoro, Morcos, Lillicrap: Measuring abstract reasoning in neural networks, ICML 2018. Sizes,
initial weights and dropout are those of disentanglement_lib (van Steenkiste et al., NeurIPS 2019). The pairs
of two context panels are the same for all answers and are computed once, which changes nothing but the time.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from unweave.nn.layers import Activation, Linear
from unweave.nn.layers.precision import Precision
from unweave.reasoning.matrices import ANSWERS, CONTEXT
from unweave.streams import Stream

PANELS = CONTEXT + 1
CUT = 2.0  # standard deviations at which the normal distribution of initial weights is cut off
CUT_DEVIATION = 0.87962566103423978  # of a standard normal number that is cut off there


class WildRelationNetwork(nn.Module):
    """Codes of panels (P, B, 14, d), context first -> scores of the answers (P, B, 6)."""

    def __init__(
        self, stream: Stream, runs: int, codes: int, edge: Sequence[int], graph: Sequence[int]
    ) -> None:
        super().__init__()
        inputs = codes + PANELS
        self.first = dense(stream, "edge.dense1", runs, 2 * inputs, edge[0], "relu")
        self.edge = _dense_layers(stream, "edge", runs, edge, 2)
        self.graph = _dense_layers(stream, "graph", runs, (edge[-1], *graph), 1)
        self.score = dense(stream, "score", runs, graph[-1], 1, "none")

    def set_precision(self, precision: Precision) -> None:
        """Set how the edge network computes, which takes nearly all of the time."""
        for layer in (self.first, *self.edge):
            if isinstance(layer, Linear):
                layer.precision = precision

    def forward(self, panels: Tensor, kept: Tensor | None = None) -> Tensor:
        """(P, B, 6): `kept`, (P, w), multiplies the last hidden units of the graph network (dropout)."""
        runs, batch = panels.shape[:2]
        as_first, as_second = self._first_layer(panels)
        context = slice(None, CONTEXT)
        pairs = as_first[:, :, context, None] + as_second[:, :, None, context]
        shared = self._summed(pairs.flatten(2, 3))
        own = self._summed(self._pairs_with_answers(as_first, as_second))
        hidden = (shared.unsqueeze(2) + own.unflatten(1, (batch, ANSWERS))).flatten(1, 2)
        hidden = self.graph(hidden)
        if kept is not None:
            hidden = hidden * kept.unsqueeze(1)
        scores: Tensor = self.score(hidden)
        return scores.view(runs, batch, ANSWERS)

    def _first_layer(self, panels: Tensor) -> tuple[Tensor, Tensor]:
        """(P, B, 14, w) twice: what a panel adds to the first hidden layer as first and as second of a pair.

        A dense layer of two panels side by side is the sum of a dense layer of each.
        """
        runs, batch, count, codes = panels.shape
        layer = self.first
        dtype = torch.bfloat16 if layer.precision == "bf16" else panels.dtype
        parts = []
        for weight, bias in zip(layer.weight.chunk(2, dim=1), (layer.bias, None), strict=True):
            seen = torch.bmm(panels.reshape(runs, batch * count, codes), weight[:, :codes])
            places = weight[:, codes:]
            last = places[:, CONTEXT:].expand(-1, ANSWERS, -1)  # where each answer goes
            tag = torch.cat([places[:, :CONTEXT], last], dim=1)
            if bias is not None:
                tag = tag + bias.unsqueeze(1)
            parts.append((seen.view(runs, batch, count, -1) + tag.unsqueeze(1)).to(dtype))
        return parts[0], parts[1]

    def _pairs_with_answers(self, as_first: Tensor, as_second: Tensor) -> Tensor:
        """(P, 6 B, 17, w): the pairs of each answer with the context, in both orders, and with itself."""
        first, second = as_first[:, :, :CONTEXT].unsqueeze(2), as_second[:, :, :CONTEXT].unsqueeze(2)
        answer_first, answer_second = (part[:, :, CONTEXT:].unsqueeze(3) for part in (as_first, as_second))
        pairs = [first + answer_second, answer_first + second, answer_first + answer_second]
        return torch.cat(pairs, dim=3).flatten(1, 2)

    def _summed(self, pairs: Tensor) -> Tensor:
        """(P, n, m, w) first hidden layers of pairs -> (P, n, w): the sum of the edge network's outputs."""
        runs, rows, count, _ = pairs.shape
        hidden: Tensor = self.edge(F.relu_(pairs).flatten(1, 2))
        return hidden.view(runs, rows, count, -1).sum(dim=2, dtype=torch.float32)


def loss_of(scores: Tensor, position: Tensor) -> Tensor:
    """(P,): the cross-entropy of the right answers (B,), mean over the batch; scores are (P, B, 6)."""
    right = position.expand(scores.shape[:2]).unsqueeze(-1)
    return -F.log_softmax(scores, dim=-1).gather(-1, right).squeeze(-1).mean(dim=1)


def dense(stream: Stream, name: str, runs: int, inputs: int, outputs: int, activation: Activation) -> Linear:
    """A dense layer with the same initial weights in all runs: normal, cut off, variance 1 / inputs [1].

    [1] LeCun, Bottou, Orr, Müller: Efficient BackProp, 1998; "lecun_normal" of Keras.
    """
    from scipy.special import ndtr, ndtri

    layer = Linear([stream], name, inputs, outputs, activation)
    uniform = stream.child("weights", name).uniform(inputs, outputs)
    low, high = ndtr(-CUT), ndtr(CUT)
    normal = ndtri(low + (high - low) * uniform) / (CUT_DEVIATION * math.sqrt(inputs))
    weight = torch.from_numpy(normal.astype(np.float32))
    layer.weight = nn.Parameter(weight.repeat(runs, 1, 1))
    layer.bias = nn.Parameter(torch.zeros(runs, outputs))
    return layer


def _dense_layers(
    stream: Stream, network: str, runs: int, widths: Sequence[int], number: int
) -> nn.Sequential:
    """Dense layers from one width to the next; the first one has that number in its name."""
    return nn.Sequential(
        *(
            dense(stream, f"{network}.dense{place}", runs, inputs, outputs, "relu")
            for place, (inputs, outputs) in enumerate(pairwise(widths), number)
        )
    )
