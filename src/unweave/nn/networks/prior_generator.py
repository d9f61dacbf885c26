"""A generator of images whose categories have learned probabilities: Elastic-InfoGAN [1].

[1] Ojha, Singh, Hsieh, Lee: Elastic-InfoGAN: unsupervised disentangled representation learning in
class-imbalanced data, NeurIPS 2020.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from unweave.nn.layers import num_runs
from unweave.nn.networks.gan import Generator


class PriorGenerator(nn.Module):
    """A generator, and the logits (P, K) of its K categories, which are equally likely before training."""

    def __init__(self, generator: Generator) -> None:
        super().__init__()
        self.generator = generator
        self.prior_logits = nn.Parameter(torch.zeros(num_runs(generator), generator.categories))

    def forward(self, z: Tensor) -> Tensor:
        """Logits of images, as `Generator`."""
        logits: Tensor = self.generator(z)
        return logits

    def decode(self, codes: Tensor) -> Tensor:
        """Logits of images, as `Generator.decode`."""
        return self.generator.decode(codes)

    def takes_codes(self) -> str:
        """The part that `Generator.takes_codes` names."""
        return f"generator{self.generator.takes_codes()}"

    @property
    def drawn(self) -> int:
        """How many numbers are drawn for an image."""
        return self.generator.drawn

    def from_normal(self, numbers: Tensor) -> Tensor:
        """Logits of standard normal numbers, as `Generator.from_normal`; categories have their prior."""
        return self.generator.from_normal(numbers, self.log_prior().exp())

    def log_prior(self) -> Tensor:
        """(P, K): the logarithms of the probabilities of the categories."""
        return self.prior_logits.log_softmax(-1)
