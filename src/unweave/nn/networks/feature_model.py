"""M2 of the codes of another model: q(y|h), q(z|h,y) and p(h|y,z) as dense networks.

Labels y are categorical with a uniform prior, z and h are Gaussian. The code has one dimension for each
label, first, and then z.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from unweave.errors import UnweaveError
from unweave.nn.distributions.categorical import Categorical, from_code
from unweave.nn.distributions.gaussian import Gaussian
from unweave.nn.layers import Linear, at_least_float32
from unweave.streams import Stream

HIDDEN = 500


class FeatureModel(nn.Module):
    """Dense networks of a model of h (P, B, features), for labels of these sizes and a code of `latents`."""

    def __init__(self, streams: Sequence[Stream], features: int, latents: int, sizes: Sequence[int]) -> None:
        super().__init__()
        if latents <= len(sizes):
            raise UnweaveError(
                f"a code of {len(sizes)} labels and z needs at least {len(sizes) + 1} latents; got {latents}."
            )
        self.sizes = tuple(sizes)
        width, classes = latents - len(sizes), sum(sizes)
        self.classifier = _dense(streams, "classifier", features, classes)
        self.encoder = _dense(streams, "encoder", features + classes, 2 * width)
        self.decoder = _dense(streams, "decoder", classes + width, 2 * features)

    def features(self, h: Tensor) -> Tensor:
        """The input of q(z|h,y): h itself."""
        return h

    def label_posteriors(self, h: Tensor, _features: Tensor) -> list[Categorical]:
        """q(y_j|h) of each label."""
        logits = at_least_float32(self.classifier(h))
        return [Categorical(part.log_softmax(-1)) for part in logits.split(list(self.sizes), dim=-1)]

    def latent_posterior(self, h: Tensor, labels: Sequence[Tensor]) -> Gaussian:
        """q(z|h,y) for indicators (P, B, size) of each label."""
        return _gaussian(self.encoder, [h, *labels])

    def generated(self, labels: Sequence[Tensor], z: Tensor) -> Gaussian:
        """p(h|y,z)."""
        return _gaussian(self.decoder, [*labels, z])

    def log_likelihood(self, labels: Sequence[Tensor], z: Tensor, h: Tensor) -> Tensor:
        """(P, S, B): log p(h|y,z) of h (P, B, features), for S values of y and z each."""
        p = self.generated(labels, z)
        many = Gaussian(*(part.unflatten(1, (-1, h.shape[1])) for part in (p.mean, p.log_var)))
        return many.log_density(h.unsqueeze(1)).sum(-1)

    def code_of(self, h: Tensor) -> Gaussian:
        """The code: numbers of the labels, and q(z|h,y) at the probabilities of y."""
        labels = self.label_posteriors(h, h)
        z = self.latent_posterior(h, [q.log_probabilities.exp() for q in labels])
        parts = [*(q.as_code() for q in labels), z]
        return Gaussian(torch.cat([p.mean for p in parts], -1), torch.cat([p.log_var for p in parts], -1))

    def mean_of(self, codes: Tensor) -> Tensor:
        """(P, B, features): the mean of p(h|y,z) for codes (P, B, latents)."""
        *numbers, z = codes.split([*(1 for _ in self.sizes), codes.shape[-1] - len(self.sizes)], dim=-1)
        labels = [from_code(number, size) for number, size in zip(numbers, self.sizes, strict=True)]
        return self.generated(labels, z).mean


def _dense(streams: Sequence[Stream], name: str, inputs: int, outputs: int) -> nn.Sequential:
    return nn.Sequential(
        Linear(streams, f"{name}.dense1", inputs, HIDDEN, "relu"),
        Linear(streams, f"{name}.dense2", HIDDEN, outputs),
    )


def _gaussian(network: nn.Module, inputs: Sequence[Tensor]) -> Gaussian:
    output: Tensor = network(torch.cat(list(inputs), dim=-1))
    return Gaussian(*at_least_float32(output).chunk(2, dim=-1))
