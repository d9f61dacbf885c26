"""Sparse autoencoders of a population: all tensors have the runs in front, (P, ...)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from unweave.sparse.spec import Kind, SparseSpec
from unweave.streams import Stream

PROBES = 256  # random unit vectors by which the initial scale of the encoder is set


class Activations(NamedTuple):
    """What the encoder computes: (P, B, m) each."""

    before: Tensor  # before the activation function
    features: Tensor


class PopulationSAE(nn.Module):
    """P sparse autoencoders with m features of codes with d dimensions.

        features = activation((x - bias) W_e + shift)        (P, B, d) -> (P, B, m)
        reconstruction = features W_d + bias                 (P, B, m) -> (P, B, d)

    The rows of W_d, the directions of the features, have unit norm. Initially W_e is the transpose of W_d,
    scaled such that unit vectors are reconstructed with unit norm on average, as in the code of Gao et al.,
    "Scaling and evaluating sparse autoencoders", 2024.

    All specs have the same number of features and the same kind; k may differ.
    """

    active: Tensor
    threshold: Tensor

    def __init__(self, specs: Sequence[SparseSpec], dimensions: int) -> None:
        super().__init__()
        features, self.kind = specs[0].features, specs[0].kind
        streams = [Stream.of(spec.seed).child("sparse autoencoder") for spec in specs]
        directions = _unit_vectors(streams, "directions", features, dimensions)
        self.decoder = nn.Parameter(directions)
        self.encoder = nn.Parameter(directions.transpose(1, 2).clone(memory_format=torch.contiguous_format))
        self.shift = nn.Parameter(torch.zeros(len(specs), features))
        self.bias = nn.Parameter(torch.zeros(len(specs), dimensions))
        self.register_buffer("active", torch.tensor([spec.active for spec in specs]))
        # Activations below it are cut off at inference by "batch_topk", which has no batch then.
        self.register_buffer("threshold", torch.zeros(len(specs)))
        self.most_active = max(spec.active for spec in specs)
        with torch.no_grad():
            probes = _unit_vectors(streams, "probes", PROBES, dimensions)
            size = self.decode(self.encode(probes).features).norm(dim=-1).mean(dim=1)
            self.encoder.div_(size.clamp(min=1e-6)[:, None, None])

    def encode(self, codes: Tensor, *, inference: bool = False) -> Activations:
        """(P, B, d) -> (P, B, m)."""
        centred = codes - self.bias.unsqueeze(1)
        before = torch.baddbmm(self.shift.unsqueeze(1), centred, self.encoder)
        if self.kind == "batch_topk" and inference:
            features = F.relu(before) * (before >= self.threshold[:, None, None])
        else:
            features = sparsified(before, self.kind, self.active, self.most_active)
        return Activations(before, features)

    def decode(self, features: Tensor) -> Tensor:
        """(P, B, m) -> (P, B, d)."""
        return torch.baddbmm(self.bias.unsqueeze(1), features, self.decoder)

    @torch.no_grad()
    def normalise(self) -> None:
        """Scale the direction of each feature to unit norm."""
        self.decoder.div_(self.decoder.norm(dim=-1, keepdim=True).clamp(min=1e-12))


def sparsified(before: Tensor, kind: Kind, active: Tensor, most: int) -> Tensor:
    """Keep the largest activations, (P, B, m) -> (P, B, m); what is negative becomes 0.

    `active` (P,) is how many stay, for each code or on average over the batch; `most` is its maximum.
    """
    if kind == "relu":
        return F.relu(before)
    if kind == "batch_topk":
        return kept(before.flatten(1), active * before.shape[1], most * before.shape[1]).view_as(before)
    return kept(before, active[:, None], most)


def kept(values: Tensor, counts: Tensor, most: int) -> Tensor:
    """Keep the `counts` largest positive numbers along the last axis; all others become 0."""
    largest, places = values.topk(most, dim=-1)
    rank = torch.arange(most, device=values.device)
    chosen = F.relu(largest) * (rank < counts.unsqueeze(-1))
    return torch.zeros_like(values).scatter(-1, places, chosen)


def _unit_vectors(streams: Sequence[Stream], purpose: str, rows: int, dimensions: int) -> Tensor:
    drawn = torch.stack(
        [torch.from_numpy(stream.child(purpose).normal(rows, dimensions)) for stream in streams]
    )
    return F.normalize(drawn, dim=-1).float()
