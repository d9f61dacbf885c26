"""Training of sparse autoencoders on codes, many at once.

The recipe is that of Gao et al., "Scaling and evaluating sparse autoencoders", 2024 [1]: reconstruction error
relative to the variance, unit-norm directions whose gradients are projected, and an auxiliary loss that lets
dead features explain what the others leave. The loss of "relu" is that of Bricken et al., "Towards
Monosemanticity", 2023 [2], without resampling of dead features.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import overload

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from unweave.errors import UnweaveError
from unweave.metrics.checks import check_codes
from unweave.nn.draws import PopulationDraws
from unweave.nn.optimiser import Adam, PopulationOptimiser
from unweave.progress import Progress, no_progress
from unweave.sparse.autoencoder import SparseAutoencoder
from unweave.sparse.network import Activations, PopulationSAE, kept
from unweave.sparse.spec import SparseSpec
from unweave.streams import Stream
from unweave.training.trainer import pick_device

EPSILON = 6.25e-10  # Adam's, as in [1]
DECAY = 0.2  # share of the steps over which the learning rate falls to 0
EVERY = 100  # steps from one row of the log to the next
MEDIAN_ROWS, MEDIAN_ROUNDS = 32_768, 50  # for the geometric median
THRESHOLD_BATCHES = 50  # from which the threshold of "batch_topk" is estimated


@overload
def train(
    codes: ArrayLike, specs: SparseSpec, *, device: str = "auto", tell: Progress = no_progress
) -> SparseAutoencoder: ...


@overload
def train(
    codes: ArrayLike, specs: Sequence[SparseSpec], *, device: str = "auto", tell: Progress = no_progress
) -> list[SparseAutoencoder]: ...


def train(
    codes: ArrayLike,
    specs: SparseSpec | Sequence[SparseSpec],
    *,
    device: str = "auto",
    tell: Progress = no_progress,
) -> SparseAutoencoder | list[SparseAutoencoder]:
    """Train a sparse autoencoder on codes (n, d), or one for each of several specs.

    Specs with the same kind, features, batch and steps are trained at once. Each model is, up to rounding,
    the same as if it were trained alone. The loss of a batch of codes x is

        mean |x - reconstruction|^2 / variance + l1 mean |features|_1 / sqrt(variance)
        + auxiliary mean |error - error explained by dead features|^2 / mean |error|^2

    where variance = mean |x - mean x|^2 over all codes. The d / 2 dead features with the largest activations
    take part in the auxiliary loss, which "relu" does not have.

    As in [1], the bias starts at the geometric median of the codes. Differs from [1]: codes are divided by
    one number, and not normalised each by itself; weights are not averaged.

    >>> codes = np.eye(6)[np.arange(600) % 6] + 1.0
    >>> model = train(codes, SparseSpec(features=6, k=1, steps=300, batch=64), device="cpu")
    >>> model.encode(codes).shape, bool(model.unexplained(codes) < 0.5)
    ((600, 6), True)
    """
    asked = [specs] if isinstance(specs, SparseSpec) else list(specs)
    if not asked or not all(isinstance(spec, SparseSpec) for spec in asked):
        raise UnweaveError(
            "train takes a SparseSpec, or a list of one or more, such as SparseSpec(features=64, k=4); got "
            f"{specs!r}."
        )
    table = check_codes(codes)
    mean = table.mean(axis=0)
    scale = float(np.sqrt(np.square(table - mean).sum(axis=1).mean()))
    if scale == 0:
        raise UnweaveError("codes must differ from each other; all rows are the same.")
    rows = torch.from_numpy((table - mean) / scale).float().to(pick_device(device))
    models: dict[int, SparseAutoencoder] = {}
    for numbers in _populations(asked):
        trained = _Training([asked[i] for i in numbers], rows).run(tell)
        models |= dict(zip(numbers, trained.models(mean, scale), strict=True))
    ordered = [models[i] for i in range(len(asked))]
    return ordered[0] if isinstance(specs, SparseSpec) else ordered


def _populations(specs: Sequence[SparseSpec]) -> list[list[int]]:
    """The places of specs that can be trained together."""
    groups: dict[tuple[object, ...], list[int]] = {}
    for i, spec in enumerate(specs):
        groups.setdefault((spec.kind, spec.features, spec.batch, spec.steps), []).append(i)
    return list(groups.values())


class _Training:
    """The training of one population; codes have mean 0 and mean squared norm 1."""

    def __init__(self, specs: Sequence[SparseSpec], rows: Tensor) -> None:
        self.specs, self.rows = specs, rows
        self.network = PopulationSAE(specs, rows.shape[1]).to(rows.device)
        self.network.bias.data.copy_(geometric_median(rows[:MEDIAN_ROWS]))
        self.parameters = list(self.network.parameters())
        self.optimiser = PopulationOptimiser(self.parameters, Adam(epsilon=EPSILON))
        self.step = torch.zeros((), dtype=torch.int64, device=rows.device)
        streams = [Stream.of(spec.seed).child("sparse autoencoder") for spec in specs]
        self.draws = PopulationDraws(streams, self.step)
        self.rate, self.l1, self.auxiliary = (
            torch.tensor([getattr(spec, name) for spec in specs], device=rows.device, dtype=torch.float32)
            for name in ("learning_rate", "l1", "auxiliary")
        )
        self.dead_after = torch.tensor([[spec.dead_after] for spec in specs], device=rows.device)
        # Codes seen since a feature fired last, (P, m).
        self.silent = torch.zeros(len(specs), specs[0].features, dtype=torch.int64, device=rows.device)
        self.logs: list[list[dict[str, float]]] = [[] for _ in specs]

    def run(self, tell: Progress) -> _Training:
        """Train to the end."""
        steps = self.specs[0].steps
        for step in range(steps):
            terms = self.update(min(1.0, (steps - step) / max(DECAY * steps, 1)))
            if (step + 1) % EVERY == 0 or step + 1 == steps:
                self._log(step + 1, terms)
                tell(step + 1, steps, "training sparse autoencoders")
        if self.network.kind == "batch_topk":
            self._set_threshold()
        return self

    def update(self, share_of_rate: float) -> dict[str, Tensor]:
        """Make one update and return the terms of the loss, (P,) each."""
        terms = self.losses(self.batch())
        loss = terms["reconstruction"] + self.l1 * terms["l1"] + self.auxiliary * terms["auxiliary"]
        gradients = torch.autograd.grad(loss.sum(), self.parameters)
        network = self.network
        projected = [
            _tangential(gradient, network.decoder.detach()) if parameter is network.decoder else gradient
            for parameter, gradient in zip(self.parameters, gradients, strict=True)
        ]
        self.optimiser.update(projected, self.step, self.rate * share_of_rate)
        network.normalise()
        self.step += 1
        return {name: term.detach() for name, term in terms.items()}

    def batch(self) -> Tensor:
        """(P, B, d): each run draws its own codes."""
        places = self.draws.integers("batch", self.specs[0].batch, [len(self.rows)])
        return self.rows[places.squeeze(-1)]

    def losses(self, x: Tensor) -> dict[str, Tensor]:
        """The terms of the loss, (P,) each; counts which features fired."""
        activations = self.network.encode(x)
        features = activations.features
        error = x - self.network.decode(features)
        with torch.no_grad():
            fired = (features > 0).any(dim=1)
            self.silent = torch.where(fired, 0, self.silent + x.shape[1])
        terms = {
            "reconstruction": error.square().sum(dim=-1).mean(dim=-1),
            "l1": features.sum(dim=-1).mean(dim=-1),
            "active": (features > 0).float().sum(dim=-1).mean(dim=-1),
        }
        return terms | {"auxiliary": self._auxiliary(activations, error.detach())}

    def _auxiliary(self, activations: Activations, error: Tensor) -> Tensor:
        """How badly dead features explain the error, (P,); 0 without dead features.

        The activations of a dead feature of "relu" are all negative, so this has no gradient there.
        """
        dead = self.silent > self.dead_after
        if self.network.kind == "relu" or not bool(dead.any()):
            return torch.zeros_like(self.rate)
        masked = activations.before.masked_fill(~dead.unsqueeze(1), -torch.inf)
        most = min(max(error.shape[-1] // 2, 1), masked.shape[-1])
        explained = torch.bmm(
            kept(masked, torch.full_like(self.network.active, most)[:, None], most), self.network.decoder
        )
        missed = (error - explained).square().sum(dim=(1, 2))
        relative = missed / error.square().sum(dim=(1, 2)).clamp(min=1e-12)
        return torch.where(dead.any(dim=1), relative, 0.0)

    def _log(self, step: int, terms: dict[str, Tensor]) -> None:
        dead = (self.silent > self.dead_after).float().mean(dim=1)
        values = {name: term.tolist() for name, term in (terms | {"dead": dead}).items()}
        for run, log in enumerate(self.logs):
            log.append({"step": float(step)} | {name: column[run] for name, column in values.items()})

    @torch.no_grad()
    def _set_threshold(self) -> None:
        """Set the threshold to the mean over batches of the smallest activation that is kept.

        Batches in which no feature fires, as small ones may be, do not count.
        """
        smallest, counted = (torch.zeros_like(self.network.threshold) for _ in range(2))
        for _ in range(THRESHOLD_BATCHES):
            features = self.network.encode(self.batch()).features.flatten(1)
            least = features.masked_fill(features <= 0, torch.inf).amin(dim=1)
            fires = least.isfinite()
            smallest += torch.where(fires, least, 0.0) / THRESHOLD_BATCHES
            counted += fires
            self.step += 1
        self.network.threshold.copy_(smallest * (THRESHOLD_BATCHES / counted.clamp(min=1)))

    def models(
        self, mean: np.ndarray[tuple[int], np.dtype[np.float64]], scale: float
    ) -> list[SparseAutoencoder]:
        """The trained models, in the units of the codes."""
        state = self.network.state_dict()
        centre = torch.from_numpy(mean).float().to(self.rows.device)
        state["bias"] = state["bias"] * scale + centre
        state["shift"], state["threshold"] = state["shift"] * scale, state["threshold"] * scale
        models = []
        for run, (spec, log) in enumerate(zip(self.specs, self.logs, strict=True)):
            network = PopulationSAE([spec], self.rows.shape[1]).to(self.rows.device)
            network.load_state_dict({name: tensor[run : run + 1] for name, tensor in state.items()})
            models.append(SparseAutoencoder(spec, network, log))
        return models


def geometric_median(rows: Tensor) -> Tensor:
    """The point (d,) with the least sum of distances to rows (n, d), by Weiszfeld's iteration."""
    median = rows.mean(dim=0)
    for _ in range(MEDIAN_ROUNDS):
        weights = 1 / (rows - median).norm(dim=1, keepdim=True).clamp(min=1e-6)
        median = (weights * rows).sum(dim=0) / weights.sum()
    return median


def _tangential(gradient: Tensor, directions: Tensor) -> Tensor:
    """The part of a gradient that is orthogonal to the direction of each feature."""
    return gradient - (gradient * directions).sum(dim=-1, keepdim=True) * directions
