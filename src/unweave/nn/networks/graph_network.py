"""Networks for a graph of variables: q(y, z|x) and p(x, y, z), each variable given its parents.

The usual convolutions compute features of the image. Labels may have convolutions of their own. Each variable
of q has a small dense network. Its inputs are the features of the image, if that is a parent, and the values
of its other parents. Each variable of p that has parents has one, too. Labels without parents are uniform,
Gaussians without parents standard normal. The usual decoder gets the concatenated parents of the image.

Values are (P, B, width) by name: labels as indicators of their K values, or, if they are continuous, as one
number; Gaussians as they are. The code of an image has one dimension for each label, first, and then those of
the Gaussians.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TypeAlias

import torch
from torch import Tensor, nn

from unweave.errors import UnweaveError
from unweave.nn.distributions.categorical import Categorical, from_code
from unweave.nn.distributions.gaussian import Gaussian
from unweave.nn.distributions.likelihood import reconstruction_loss
from unweave.nn.layers import Linear, as_numbers, at_least_float32
from unweave.nn.networks.architectures import build_decoder, build_encoder
from unweave.nn.networks.graph import IMAGE, LABELS, Graph, Node
from unweave.nn.networks.vae import Encoder
from unweave.streams import Stream

HIDDEN = 256  # features of the dense network of a variable

Values: TypeAlias = Mapping[str, Tensor]


class GraphNetwork(nn.Module):
    """q and p of a graph, for labels of these sizes and a code of `latents` dimensions."""

    def __init__(
        self,
        streams: Sequence[Stream],
        shape: tuple[int, int, int],
        latents: int,
        architecture: str,
        graph: Graph,
        sizes: Sequence[int],
        likelihood: str = "bernoulli",
        own_label_features: bool = False,
        continuous: Sequence[int] = (),
    ) -> None:
        super().__init__()
        self.graph = graph.of_labels(len(sizes))
        self.sizes = tuple(sizes)
        self.continuous = frozenset(f"{LABELS}{label + 1}" for label in continuous)
        shown = [1 if f"{LABELS}{label}" in self.continuous else size for label, size in enumerate(sizes, 1)]
        self.widths = _widths(self.graph, latents, shown)
        self.features = build_encoder(streams, shape, 1, architecture)
        inputs = self.widths | {IMAGE: self.features.width}
        del self.features.heads  # each variable has its own output layer
        self.classifier: Encoder | None = None
        if own_label_features:
            # Initial weights depend on layer names, which both encoders share: each gets separate streams.
            label_streams = [stream.child("labels") for stream in streams]
            self.classifier = build_encoder(label_streams, shape, 1, architecture)
            del self.classifier.heads
        self.inference = self._networks(streams, "inference", self.graph.inference, inputs)
        self.generation = self._networks(streams, "generation", self.graph.generation[:-1], inputs)
        decoder_inputs = sum(self.widths[name] for name in self.graph.generation[-1].parents)
        self.decoder = build_decoder(streams, shape, decoder_inputs, architecture, likelihood)

    def image_features(self, images: Tensor) -> Tensor:
        """(P, B, width): what the usual encoder computes before its last layer."""
        return self.features.features(images)

    def label_features(self, images: Tensor, features: Tensor) -> Tensor:
        """(P, B, width): the features that labels are inferred from; `features`, or the labels' own."""
        return features if self.classifier is None else self.classifier.features(images)

    def infer(self, node: Node, features: Tensor, values: Values) -> Gaussian | Categorical:
        """q of a variable, given features of the image and values of its parents."""
        return (
            self.infer_label(node, features, values)
            if self.is_categorical(node.name)
            else self.infer_latent(node, features, values)
        )

    def infer_label(self, node: Node, features: Tensor, values: Values) -> Categorical:
        """q of a categorical label."""
        return self._categorical(self.inference, node, {**values, IMAGE: features}, features)

    def infer_latent(self, node: Node, features: Tensor, values: Values) -> Gaussian:
        """q of a Gaussian variable."""
        return self._gaussian(self.inference, node, {**values, IMAGE: features}, features)

    def generate(self, node: Node, values: Values) -> Gaussian | Categorical:
        """p of a variable, given values of its parents."""
        make = self._categorical if self.is_categorical(node.name) else self._gaussian
        return make(self.generation, node, values, values[node.name])

    def log_likelihood(self, values: Values, images: Tensor, likelihood: str) -> Tensor:
        """(P, S, B): log p(x|...) of images (P, B, ...) for S values each, (P, S x B, width)."""
        logits: Tensor = self.decoder(self._decoder_input(values)).unflatten(1, (-1, images.shape[1]))
        targets = as_numbers(images).unsqueeze(1)
        return -reconstruction_loss(logits.unsqueeze(3), targets.unsqueeze(3), likelihood)

    def encode(self, images: Tensor) -> Gaussian:
        """The code of images: each variable's q, given the means of those before it."""
        posteriors = self._posteriors(images)
        ordered = [posteriors[name] for name in self.widths]
        codes = [q.as_code() if isinstance(q, Categorical) else q for q in ordered]
        return Gaussian(
            torch.cat([code.mean for code in codes], -1), torch.cat([code.log_var for code in codes], -1)
        )

    def is_categorical(self, name: str) -> bool:
        """Whether a variable is a categorical label; all others are Gaussian."""
        return name.startswith(LABELS) and name not in self.continuous

    def predict(self, images: Tensor) -> Tensor:
        """(P, B, k): the most likely value of each label, given the means of other variables."""
        posteriors = self._posteriors(images)
        values = []
        for label, size in enumerate(self.sizes, 1):
            q = posteriors[f"{LABELS}{label}"]
            if isinstance(q, Categorical):
                values.append(q.log_probabilities.argmax(-1))
            else:
                centre, spread = _scale(size)
                values.append((q.mean[..., 0] * spread + centre).round().clamp(0, size - 1).long())
        return torch.stack(values, dim=-1)

    def standardised(self, labels: Tensor, name: str) -> Tensor:
        """(..., 1): a continuous label as a number of mean 0 and variance 1 over all its values."""
        centre, spread = _scale(self.sizes[int(name.removeprefix(LABELS)) - 1])
        return ((labels - centre) / spread).unsqueeze(-1)

    def decode(self, codes: Tensor) -> Tensor:
        """Logits of images; a number between two values of a label interpolates between them."""
        widths = [1 if name.startswith(LABELS) else width for name, width in self.widths.items()]
        parts = codes.split(widths, dim=-1)
        values = {
            name: from_code(part, width) if self.is_categorical(name) else part
            for (name, width), part in zip(self.widths.items(), parts, strict=True)
        }
        return self.decoder.decode(self._decoder_input(values))

    def _posteriors(self, images: Tensor) -> dict[str, Gaussian | Categorical]:
        """q of each variable, given the means of those before it."""
        features = self.image_features(images)
        label_features = self.label_features(images, features)
        values: dict[str, Tensor] = {}
        posteriors: dict[str, Gaussian | Categorical] = {}
        for node in self.graph.inference:
            q = self.infer(node, label_features if node.is_label else features, values)
            values[node.name] = q.mean if isinstance(q, Gaussian) else q.log_probabilities.exp()
            posteriors[node.name] = q
        return posteriors

    def _decoder_input(self, values: Values) -> Tensor:
        return torch.cat([values[name] for name in self.graph.generation[-1].parents], dim=-1)

    def _networks(
        self, streams: Sequence[Stream], which: str, nodes: Sequence[Node], inputs: Mapping[str, int]
    ) -> nn.ModuleDict:
        networks = nn.ModuleDict()
        for node in nodes:
            if not node.parents:
                continue
            width = self.widths[node.name] * (1 if self.is_categorical(node.name) else 2)
            parents_width, name = sum(inputs[parent] for parent in node.parents), f"{which}.{node.name}"
            hidden = Linear(streams, f"{name}.dense1", parents_width, HIDDEN, "relu")
            networks[node.name] = nn.Sequential(hidden, Linear(streams, f"{name}.dense2", HIDDEN, width))
        return networks

    def _categorical(self, networks: nn.ModuleDict, node: Node, values: Values, like: Tensor) -> Categorical:
        if node.parents:
            return Categorical(_outputs(networks, node, values).log_softmax(-1))
        return Categorical(self._zeros(node, like) - math.log(self.widths[node.name]))

    def _gaussian(self, networks: nn.ModuleDict, node: Node, values: Values, like: Tensor) -> Gaussian:
        if node.parents:
            return Gaussian(*_outputs(networks, node, values).chunk(2, dim=-1))
        zeros = self._zeros(node, like)
        return Gaussian(zeros, zeros)

    def _zeros(self, node: Node, like: Tensor) -> Tensor:
        return at_least_float32(like.new_zeros(*like.shape[:-1], self.widths[node.name]))


def _scale(size: int) -> tuple[float, float]:
    """Mean and standard deviation of the values 0 to size - 1, each as a cell of width 1."""
    return (size - 1) / 2, size / math.sqrt(12)


def _outputs(networks: nn.ModuleDict, node: Node, values: Values) -> Tensor:
    """The output of a variable's network for the values of its parents."""
    parents = torch.cat([values[parent] for parent in node.parents], dim=-1)
    return at_least_float32(networks[node.name](parents))


def _widths(graph: Graph, latents: int, sizes: Sequence[int]) -> dict[str, int]:
    """How many numbers each variable has, in the order of the code; Gaussians share the remaining latents."""
    left, count = latents - len(sizes), len(graph.gaussian)
    if left < count:
        raise UnweaveError(
            f"a code of {len(sizes)} labels and {count} Gaussian variables needs at least "
            f"{len(sizes) + count} latents; got {latents}."
        )
    labels = {f"{LABELS}{number}": size for number, size in enumerate(sizes, 1)}
    return labels | {
        name: left // count + (number < left % count) for number, name in enumerate(graph.gaussian)
    }
