"""Populations: runs that train together in one set of tensors, and yet each as if it were alone."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import torch
from torch import Tensor, nn

from unweave.errors import UnweaveError
from unweave.methods import settings_of
from unweave.methods.method import Adam, Method, numeric_settings
from unweave.nn.draws import PopulationDraws
from unweave.nn.layers import has_triton, lay_out_for_kernels, select_runs, set_precision
from unweave.nn.networks import Decoder, Encoder
from unweave.spec import RunSpec
from unweave.streams import Stream
from unweave.training.adam import PopulationAdam

# What all runs of a population have in common. Method, seed, steps and learning rate may differ.
SHARED = ("data", "batch", "latents", "architecture", "likelihood", "schedule", "gradient_clip", "precision")


def shared_by(spec: RunSpec) -> tuple[Any, ...]:
    """Runs for which this is equal can train in one population."""
    return tuple(getattr(spec, name) for name in SHARED)


@dataclass
class Group:
    """Neighbouring runs of a population with the same method, whose numeric settings may differ."""

    first: int
    last: int
    method: Method  # its numbers are tensors of shape (last - first,)
    networks: dict[str, nn.Module]  # of the players besides the autoencoder
    adams: dict[str, PopulationAdam]

    @property
    def runs(self) -> slice:
        """Where its runs are in the population."""
        return slice(self.first, self.last)


class Population:
    """Networks, optimisers and random streams of some runs, all at the same step."""

    def __init__(self, specs: Sequence[RunSpec], shape: tuple[int, int, int], device: torch.device) -> None:
        if len({shared_by(spec) for spec in specs}) != 1:
            raise UnweaveError(f"runs of one population must agree in {', '.join(SHARED)}.")
        self.specs = sorted(specs, key=_group_key)
        self.shape, self.device = shape, device
        self.step = torch.zeros((), dtype=torch.int64, device=device)
        spec, streams = self.specs[0], [Stream.of(spec.seed) for spec in self.specs]
        self.draws = PopulationDraws(streams, self.step)
        self.encoder = Encoder(streams, shape, spec.latents, spec.architecture).to(device)
        self.decoder = Decoder(streams, shape, spec.latents, spec.architecture).to(device)
        if device.type == "cuda" and has_triton():
            lay_out_for_kernels(self.encoder)
            lay_out_for_kernels(self.decoder)
        self.adam = PopulationAdam(self.parameters(), Adam())
        self.groups = self._make_groups()
        for module in self.modules().values():
            set_precision(module, spec.precision)
        self.adam.attach(self.parameters())
        for group in self.groups:
            for name, module in group.networks.items():
                group.adams[name].attach(list(module.parameters()))
        self._tabulate()

    def __len__(self) -> int:
        return len(self.specs)

    def parameters(self) -> list[nn.Parameter]:
        """Of the autoencoder."""
        return [*self.encoder.parameters(), *self.decoder.parameters()]

    def modules(self) -> dict[str, nn.Module]:
        """All networks; those of a group's players under names of their own."""
        found: dict[str, nn.Module] = {"encoder": self.encoder, "decoder": self.decoder}
        for group in self.groups:
            found |= {f"{group.first}/{name}": module for name, module in group.networks.items()}
        return found

    def run_state(self, run: int) -> dict[str, Tensor]:
        """Weights and moments of one run: all that is needed, with the step, to go on with it."""
        return {name: tensor[at].detach().contiguous() for name, tensor, at in self._tensors_of(run)}

    @torch.no_grad()
    def load_run_state(self, run: int, state: dict[str, Tensor]) -> None:
        """Put a run back to where `run_state` was taken."""
        tensors = list(self._tensors_of(run))
        wanted = {name: tensor[at].shape for name, tensor, at in tensors}
        given = {name: tensor.shape for name, tensor in state.items()}
        if wanted != given:
            odd = sorted(set(wanted.items()) ^ set(given.items()))[0][0]
            raise UnweaveError(f'the state does not fit the run\'s networks, first at "{odd}".')
        for name, tensor, at in tensors:
            tensor[at] = state[name].to(tensor.device)
        for adam in (self.adam, *(adam for group in self.groups for adam in group.adams.values())):
            adam.round()

    def select(self, keep: Sequence[int]) -> None:
        """Go on with some of the runs only."""
        chosen = torch.as_tensor(list(keep), device=self.device)
        select_runs(self.encoder, keep)
        select_runs(self.decoder, keep)
        self.adam.select(chosen, self.parameters())
        groups = []
        for group in self.groups:
            kept = [run - group.first for run in keep if group.first <= run < group.last]
            if kept:
                within = torch.as_tensor(kept, device=self.device)
                for name, module in group.networks.items():
                    select_runs(module, kept)
                    group.adams[name].select(within, list(module.parameters()))
                groups.append(group)
        self.specs = [self.specs[run] for run in keep]
        self.draws = PopulationDraws([Stream.of(spec.seed) for spec in self.specs], self.step)
        self.groups = groups
        first = 0
        for group, (_, specs) in zip(self.groups, groupby(self.specs, _group_key), strict=True):
            found = list(specs)
            group.first, group.last = first, first + len(found)
            group.method = _stacked([spec.method for spec in found], self.device)
            first = group.last
        self._tabulate()

    def _make_groups(self) -> list[Group]:
        groups, first = [], 0
        for _, specs in groupby(self.specs, _group_key):
            found = list(specs)
            streams = [Stream.of(spec.seed) for spec in found]
            method = found[0].method
            networks = {p.name: p.build(streams, found[0].latents).to(self.device) for p in method.players}
            adams = {
                p.name: PopulationAdam(list(networks[p.name].parameters()), p.adam) for p in method.players
            }
            stacked = _stacked([spec.method for spec in found], self.device)
            groups.append(Group(first, first + len(found), stacked, networks, adams))
            first += len(found)
        return groups

    def _tabulate(self) -> None:
        """Settings of the runs as tensors: rates (P,), steps (P,), and 1 where z is drawn, 0 where not."""
        self.rates = torch.tensor([spec.learning_rate for spec in self.specs], device=self.device)
        self.steps = torch.tensor([float(spec.steps) for spec in self.specs], device=self.device)
        drawn = [float(spec.method.stochastic) for spec in self.specs]
        self.spread = torch.tensor(drawn, device=self.device)[:, None, None]

    def _tensors_of(self, run: int) -> list[tuple[str, Tensor, int]]:
        """(name, tensor of the population, place in it) of all that belongs to a run."""
        found: list[tuple[str, Tensor, int]] = []

        def add(prefix: str, module: nn.Module, adam: PopulationAdam, part: slice, at: int) -> None:
            names = [name for name, _ in module.named_parameters()]
            for kind, tensors in (
                ("weights", adam.masters),
                ("first_moment", adam.first),
                ("second_moment", adam.second),
            ):
                found.extend(
                    (f"{kind}.{prefix}.{name}", tensor, at)
                    for name, tensor in zip(names, tensors[part], strict=True)
                )

        count = len(list(self.encoder.parameters()))
        add("encoder", self.encoder, self.adam, slice(None, count), run)
        add("decoder", self.decoder, self.adam, slice(count, None), run)
        group = next(group for group in self.groups if group.first <= run < group.last)
        for name, module in group.networks.items():
            add(name, module, group.adams[name], slice(None), run - group.first)
        return found


def _group_key(spec: RunSpec) -> str:
    """Equal for runs whose losses are one formula: the method's name and all settings but its numbers."""
    numbers = numeric_settings(spec.method)
    others = {name: value for name, value in settings_of(spec.method).items() if name not in numbers}
    return repr((spec.method.name, others))


def _stacked(methods: Sequence[Method], device: torch.device) -> Method:
    """One method for all of them: its numbers are tensors of shape (P,)."""
    stacked = {
        name: torch.tensor([float(getattr(method, name)) for method in methods], device=device)
        for name in numeric_settings(methods[0])
    }
    return dataclasses.replace(methods[0], **stacked)
