"""The supervised baseline [1]: the encoder learns from a few labels only.

[1] Locatello, Tschannen, Bauer, Rätsch, Schölkopf, Bachem: Disentangling factors of variation using few
labels, ICLR 2020.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, Literal, TypeAlias

import torch
from torch import Tensor, nn

from unweave.data.supervision import Chosen
from unweave.errors import UnweaveError
from unweave.methods.method import Blueprint, LabelledCodes, Losses, Method, Player, StepContext
from unweave.methods.sampling import Labels, Sampling
from unweave.methods.semi_supervised import CITATION, cross_entropy, embedding_loss, squared_error
from unweave.methods.step import network_of
from unweave.nn.distributions.categorical import Categorical
from unweave.nn.distributions.gaussian import Gaussian, certain
from unweave.nn.networks.label_maps import Places, Scale
from unweave.nn.networks.vae import Decoder

ENCODER, DECODER = "encoder", "decoder"
SupervisedLoss: TypeAlias = Literal["xent", "l2", "embed", "softmax"]


class LabelEncoder(nn.Module):
    """The usual encoder, whose first dimensions predict the labels, and the parameters of the loss."""

    def __init__(self, plan: Blueprint, loss: SupervisedLoss) -> None:
        super().__init__()
        self.sizes, self.loss, self.latents = plan.label_sizes, loss, plan.latents
        if plan.latents < len(self.sizes):
            raise UnweaveError(
                f"supervised needs a latent for each of the {len(self.sizes)} labels; got {plan.latents}. "
                "Take more latents."
            )
        outputs = sum(self.sizes) if loss == "softmax" else plan.latents
        self.encoder = replace(plan, latents=outputs).encoder()
        self.label_map: Scale | Places | None = None
        if loss == "l2":
            self.label_map = Scale(plan.streams)
        elif loss == "embed":
            self.label_map = Places(plan.streams, self.sizes)

    def forward(self, images: Tensor) -> Tensor:
        """(P, B, D): codes; with "softmax", the expected numbers of the labels, and zeros."""
        outputs: Tensor = self.encoder(images).mean
        if self.loss != "softmax":
            return outputs
        numbers = torch.cat([q.as_code().mean for q in self._categorical(outputs)], dim=-1)
        return nn.functional.pad(numbers, (0, self.latents - len(self.sizes)))

    def encode(self, images: Tensor) -> Gaussian:
        """Codes with a negligible variance."""
        return certain(self(images))

    def supervised_loss(self, images: Tensor, labels: Tensor) -> Tensor:
        """(P,): the loss for labels (P, B, k), summed over labels, mean over images."""
        outputs: Tensor = self.encoder(images).mean
        labelled = LabelledCodes(certain(outputs), labels, self.sizes)
        if self.loss == "softmax":
            parts = [
                q.log_probabilities.gather(-1, labels[..., j, None]).squeeze(-1)
                for j, q in enumerate(self._categorical(outputs))
            ]
            return -torch.stack(parts).sum(0).mean(-1)
        if isinstance(self.label_map, Places):
            return embedding_loss(labelled, self.label_map)
        summed = squared_error(labelled, self.label_map) if self.label_map else cross_entropy(labelled)
        return summed / labels.shape[-2]

    def predict(self, images: Tensor) -> Tensor:
        """(P, B, k): the value of each label that is closest to the output."""
        outputs: Tensor = self.encoder(images).mean
        if self.loss == "softmax":
            return torch.stack([q.log_probabilities.argmax(-1) for q in self._categorical(outputs)], dim=-1)
        codes, sizes = outputs[..., : len(self.sizes)], outputs.new_tensor(self.sizes)
        if isinstance(self.label_map, Places):
            return torch.stack([distance.argmin(-1) for distance in self.label_map(codes)], dim=-1)
        numbers = self.label_map(codes) if self.label_map else torch.sigmoid(codes) * sizes
        return torch.minimum(numbers.round().clamp(min=0), sizes - 1).long()

    def _categorical(self, outputs: Tensor) -> list[Categorical]:
        return [Categorical(part.log_softmax(-1)) for part in outputs.split(list(self.sizes), dim=-1)]


@dataclass(frozen=True)
class Supervised(Method):
    """Supervised baseline: an encoder that learns from labelled images only.

    R(labelled codes), the supervised loss of the semi-supervised methods without their base loss; [1].

    Dimension j of the code belongs to label j; the others are free. xent, l2 and embed are those of
    `SemiSupervised`, as means over the batch. softmax is a classifier: a softmax for each factor, whose code
    is the expected number of the value, scaled to mean 0 and variance 1 over all values; other dimensions are
    zero. A decoder is trained on the codes of all images to visualise them, and does not change the encoder.

    `factors` are the names of the labelled factors with commas between them, "first" or "all".

    Differs from the published code: the decoder gets mean codes; there, codes are drawn with a variance that
    is not trained.
    """

    supervised_loss: SupervisedLoss = "xent"
    """The loss: xent, l2, embed or softmax."""
    factors: str = "all"
    """The labelled factors: names with commas between them, class (the first categorical factor), first
    or all."""
    labels: int = 100
    """Number of labelled images."""

    name: ClassVar[str] = "supervised"
    own_networks: ClassVar[bool] = True
    has_prior: ClassVar[bool] = False
    least: ClassVar[Mapping[str, int]] = {"labels": 1}
    citation: ClassVar[str] = CITATION

    @property
    def players(self) -> tuple[Player, ...]:
        """The encoder, and a decoder for pictures."""
        return (
            Player(ENCODER, lambda plan: LabelEncoder(plan, self.supervised_loss)),
            Player(DECODER, lambda plan: plan.decoder()),
        )

    @property
    def sampling(self) -> Sampling:
        """Images for the decoder, and a batch with labels of the chosen factors."""
        return Labels(self.labels, Chosen(self.factors))

    @property
    def stochastic(self) -> bool:
        """False: codes are deterministic."""
        return False

    def predict(self, networks: Mapping[str, nn.Module], images: Tensor) -> Tensor:
        """(P, B, k): the predicted value of each labelled factor, for images (P, B, c, h, w)."""
        return network_of(networks, ENCODER, LabelEncoder).predict(images)

    def losses(self, step: StepContext) -> Losses:
        """The supervised loss, and the reconstruction loss for the decoder."""
        encoder, decoder = step.network(ENCODER, LabelEncoder), step.network(DECODER, Decoder)
        supervised = encoder.supervised_loss(step.labelled.images, step.labelled.labels)
        with torch.no_grad():
            codes = encoder(step.batch.images)
        reconstruction = decoder.reconstruction(codes, step.batch.images, step.likelihood)
        return Losses(
            {ENCODER: supervised, DECODER: reconstruction},
            {"supervised_loss": supervised, "reconstruction": reconstruction},
        )
