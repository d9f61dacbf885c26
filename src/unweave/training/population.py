"""Populations: runs that train together in one set of tensors, with the same results as alone."""

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
from unweave.methods.method import AUTOENCODER, Blueprint, Method, Phase, Player, numeric_settings
from unweave.methods.sampling import Sampling
from unweave.nn.draws import PopulationDraws
from unweave.nn.kernels.dispatch import has_triton
from unweave.nn.layers import keep_rounded_copies, lay_out_for_kernels, select_runs, set_precision
from unweave.nn.optimiser import Adam, Optimiser, PopulationOptimiser, optimiser_named
from unweave.nn.schedule import Schedule, curve_of
from unweave.runs.spec import RunSpec
from unweave.runs.store import weights_in
from unweave.streams import Stream

# Fields of RunSpec in which runs of one population may differ. They must agree in all others.
MAY_DIFFER = ("method", "seed", "steps", "learning_rate", "plugins")


def shared_fields() -> list[str]:
    """Names of the fields of RunSpec in which all runs of a population agree."""
    return [field.name for field in dataclasses.fields(RunSpec) if field.name not in MAY_DIFFER]


def shared_by(spec: RunSpec) -> tuple[Any, ...]:
    """The key of a population: runs with equal keys can train together.

    Autoencoders that learn from the same kind of batches share one forward pass. A population with custom
    networks holds a single method.
    """
    method = spec.method
    family = _group_key(spec) if method.own_networks else repr(method.sampling)
    return *(getattr(spec, name) for name in shared_fields()), family


@dataclass(eq=False)
class PlayerState:
    """A player of some neighbouring runs: networks that one optimiser trains for one objective."""

    name: str
    first: int
    last: int
    networks: dict[str, nn.Module]
    optimiser: PopulationOptimiser
    own_rate: float | None  # None: the runs' learning rates apply
    schedule: str | Schedule
    begins: Tensor | None = None  # (last - first): its first step in each run; None: 0 in all runs
    first_step: int = 0  # the smallest value of `begins`
    # The player whose parameters a phase trains; None for a player, which owns its networks.
    owner: PlayerState | None = None
    rate_factors: Tensor | None = None  # (last - first): of a phase; None: 1 in all runs
    skip_above: float = 0.0  # the norm of a gradient at which an update is skipped; 0: none is

    @property
    def runs(self) -> slice:
        """The slice of the population that its runs occupy."""
        return slice(self.first, self.last)

    def parameters(self) -> list[nn.Parameter]:
        """Parameters of all its networks."""
        return [parameter for network in self.networks.values() for parameter in network.parameters()]


@dataclass
class Group:
    """Neighbouring runs of a population with the same method, whose numeric settings may differ."""

    first: int
    last: int
    method: Method  # its numbers are tensors of shape (last - first,)
    players: list[PlayerState]  # besides the autoencoder that all groups share

    @property
    def runs(self) -> slice:
        """The slice of the population that its runs occupy."""
        return slice(self.first, self.last)

    @property
    def networks(self) -> dict[str, nn.Module]:
        """Networks of its players by name."""
        owners = [player for player in self.players if player.owner is None]
        return {name: network for player in owners for name, network in player.networks.items()}


class Population:
    """Networks, optimisers and random streams of some runs, all at the same step."""

    def __init__(
        self,
        specs: Sequence[RunSpec],
        shape: tuple[int, int, int],
        device: torch.device,
        label_sizes: tuple[int, ...] = (),
    ) -> None:
        if len({shared_by(spec) for spec in specs}) != 1:
            raise UnweaveError(
                f"runs of one population must agree in {', '.join(shared_fields())}, and in batches."
            )
        self.specs = sorted(specs, key=_group_key)
        self.shape, self.device, self.label_sizes = shape, device, label_sizes
        self.step = torch.zeros((), dtype=torch.int64, device=device)
        self.draws = PopulationDraws([Stream.of(spec.seed) for spec in self.specs], self.step)
        self.autoencoder = self._make_autoencoder()
        self.groups = self._make_groups()
        self._tabulate()

    def __len__(self) -> int:
        return len(self.specs)

    @property
    def players(self) -> list[PlayerState]:
        """All players: the shared autoencoder, if there is one, then those of each group."""
        shared = [] if self.autoencoder is None else [self.autoencoder]
        return shared + [player for group in self.groups for player in group.players]

    @property
    def sampling(self) -> Sampling:
        """How the batches of its runs are sampled."""
        return self.groups[0].method.sampling

    def run_state(self, run: int) -> dict[str, Tensor]:
        """Weights and optimiser moments of one run: together with the step, all that resuming needs."""
        return {name: tensor[at].detach().contiguous() for name, tensor, at in self._tensors_of(run)}

    def trained_weights(self, run: int) -> dict[str, Tensor]:
        """The weights of one run, by the names of its networks' parameters."""
        return weights_in(self.run_state(run))

    @torch.no_grad()
    def load_run_state(self, run: int, state: dict[str, Tensor]) -> None:
        """Restore a run from its `run_state`."""
        tensors = self._tensors_of(run)
        expected = {name: tensor[at].shape for name, tensor, at in tensors}
        received = {name: tensor.shape for name, tensor in state.items()}
        if expected != received:
            wrong = sorted(set(expected.items()) ^ set(received.items()))[0][0]
            raise UnweaveError(f'the state does not fit the run\'s networks, first at "{wrong}".')
        for name, tensor, at in tensors:
            tensor[at] = state[name].to(tensor.device)
        for player in self.players:
            player.optimiser.round()

    def select(self, keep: Sequence[int]) -> None:
        """Keep only the runs with these numbers."""
        for player in self.players:
            within = [run - player.first for run in keep if player.first <= run < player.last]
            if within:
                for network in player.networks.values() if player.owner is None else ():
                    select_runs(network, within)
                    keep_rounded_copies(network)
                player.optimiser.select(torch.as_tensor(within, device=self.device), player.parameters())
            if player.owner is not None:
                player.optimiser.masters = _masters_of(player.parameters(), player.owner)
        self.specs = [self.specs[run] for run in keep]
        self.draws = PopulationDraws([Stream.of(spec.seed) for spec in self.specs], self.step)
        self.groups = [g for g in self.groups if any(g.first <= run < g.last for run in keep)]
        first = 0
        for group, (_, specs) in zip(self.groups, groupby(self.specs, _group_key), strict=True):
            of_group = list(specs)
            group.first, group.last = first, first + len(of_group)
            for player in group.players:
                player.first, player.last = group.first, group.last
            group.method = _stacked([spec.method for spec in of_group], self.device)
            first = group.last
        if self.autoencoder is not None:
            self.autoencoder.last = first
        self._tabulate()

    def _make_autoencoder(self) -> PlayerState | None:
        method = self.specs[0].method
        if method.own_networks:
            return None
        plan = self._blueprint(self.specs)
        return self._player_state(AUTOENCODER, 0, {"encoder": plan.encoder(), "decoder": plan.decoder()})

    def _make_groups(self) -> list[Group]:
        groups, first = [], 0
        for _, specs in groupby(self.specs, _group_key):
            of_group = list(specs)
            plan, method = self._blueprint(of_group), of_group[0].method
            players = [
                self._player_state(player.name, first, {player.name: player.build(plan)}, player)
                for player in method.players
            ]
            players += [self._phase_state(phase, players) for phase in method.phases]
            stacked = _stacked([spec.method for spec in of_group], self.device)
            groups.append(Group(first, first + len(of_group), stacked, players))
            first += len(of_group)
        return groups

    def _player_state(
        self, name: str, first: int, networks: dict[str, nn.Module], player: Player | None = None
    ) -> PlayerState:
        """The state of a player; without a `player`, of the autoencoder that groups share."""
        spec = self.specs[0]
        player_settings = None if player is None else player.optimiser
        schedule = spec.schedule if player is None or player.schedule is None else player.schedule
        curve_of(schedule)  # an unknown name is an error before the first step
        for network in networks.values():
            network.to(self.device)
            if self.device.type == "cuda" and has_triton():
                lay_out_for_kernels(network)
        named = [pair for network in networks.values() for pair in network.named_parameters()]
        names, parameters = [name for name, _ in named], [parameter for _, parameter in named]
        settings = player_settings or optimiser_named(spec.optimiser, spec.weight_decay)
        decay, skip_above = (
            (0.0, 0.0) if player is None else (float(player.average), float(player.skip_above))
        )
        precise = player is not None and player.precise and spec.precision == "bf16"
        compact = not precise and has_compact_moments(spec, settings, self.device)
        optimiser = PopulationOptimiser(parameters, settings, names, decay, skip_above > 0, compact)
        for network in networks.values():  # after the optimiser, whose masters must stay float32
            set_precision(network, "tf32" if precise else spec.precision)
            keep_rounded_copies(network)
        rate = None if player_settings is None else player_settings.learning_rate
        last = first + len(parameters[0])
        state = PlayerState(name, first, last, networks, optimiser, rate, schedule, skip_above=skip_above)
        optimiser.attach(state.parameters())
        return state

    def _phase_state(self, phase: Phase, players: Sequence[PlayerState]) -> PlayerState:
        """The state of a phase: moments of its own for parameters that one of the players owns."""
        name, _, part = phase.trains.partition(".")
        (owner,) = [player for player in players if player.name == name]
        network, spec = owner.networks[name].get_submodule(part), self.specs[0]
        parameters = list(network.parameters())
        settings = phase.optimiser or optimiser_named(spec.optimiser, spec.weight_decay)
        optimiser = PopulationOptimiser(_masters_of(parameters, owner), settings)
        optimiser.attach(parameters)
        rate = None if phase.optimiser is None else phase.optimiser.learning_rate
        networks = {phase.name: network}
        return PlayerState(
            phase.name, owner.first, owner.last, networks, optimiser, rate, owner.schedule, owner=owner
        )

    def _blueprint(self, specs: Sequence[RunSpec]) -> Blueprint:
        streams = [Stream.of(spec.seed) for spec in specs]
        shared = specs[0]
        return Blueprint(
            streams,
            self.shape,
            shared.latents,
            shared.architecture,
            self.label_sizes,
            shared.likelihood,
        )

    def _tabulate(self) -> None:
        """Settings of the runs as tensors: rates (P,), steps (P,), and noise_scale.

        noise_scale, (P, 1, 1), is 1 for runs that sample codes, and 0 for runs that use the mean.
        """
        self.rates = torch.tensor([spec.learning_rate for spec in self.specs], device=self.device)
        steps = torch.tensor([float(spec.steps) for spec in self.specs])
        self.steps = steps.to(self.device)
        drawn = [float(spec.method.stochastic) for spec in self.specs]
        self.noise_scale = torch.tensor(drawn, device=self.device)[:, None, None]
        for group in self.groups:
            if any(callable(player.schedule) for player in group.players):
                # A function may depend on settings in which the runs of a group differ.
                for player, stacked in zip(group.players, group.method.players, strict=False):
                    player.schedule = stacked.schedule or player.schedule
            of_runs = zip(*[spec.method.players for spec in self.specs[group.runs]], strict=True)
            for player, run_players in zip(group.players, of_runs, strict=False):  # phases come last
                begins = torch.ceil(
                    torch.tensor([run_player.starts for run_player in run_players]) * steps[group.runs]
                )
                player.first_step = int(begins.min())
                player.begins = begins.to(self.device) if bool(begins.any()) else None
            phases = [player for player in group.players if player.owner is not None]
            of_phases = zip(*[spec.method.phases for spec in self.specs[group.runs]], strict=True)
            for player, run_phases in zip(phases, of_phases, strict=True):
                rates = torch.tensor([float(phase.rate) for phase in run_phases])
                player.rate_factors = rates.to(self.device)

    def _tensors_of(self, run: int) -> list[tuple[str, Tensor, int]]:
        """(name, tensor of the population, index of the run in it) for each tensor of a run's state."""
        tensors_of_run: list[tuple[str, Tensor, int]] = []
        for player in self.players:
            if not player.first <= run < player.last:
                continue
            names = [
                f"{n}.{p}" for n, network in player.networks.items() for p, _ in network.named_parameters()
            ]
            weights = {} if player.owner is not None else {"weights": player.optimiser.masters}
            for kind, tensors in {**weights, **player.optimiser.moments}.items():
                tensors_of_run += [
                    (f"{kind}.{name}", tensor, run - player.first)
                    for name, tensor in zip(names, tensors, strict=True)
                ]
            if player.optimiser.skipped is not None:
                skipped = player.optimiser.skipped
                tensors_of_run.append((f"skipped.{player.name}", skipped, run - player.first))
        return tensors_of_run


def has_compact_moments(spec: RunSpec, settings: Optimiser, device: torch.device) -> bool:
    """Whether a player of the run keeps the moments of its optimiser in bfloat16."""
    of_run = optimiser_named(spec.optimiser, spec.weight_decay)
    wanted = isinstance(settings, Adam) and isinstance(of_run, Adam) and of_run.compact
    return wanted and spec.precision == "bf16" and device.type == "cuda" and has_triton()


def _masters_of(parameters: Sequence[Tensor], owner: PlayerState) -> list[Tensor]:
    """The float32 weights that the owner's optimiser keeps of some of its parameters."""
    optimiser = owner.optimiser
    masters = {id(p): master for p, master in zip(optimiser.parameters, optimiser.masters, strict=True)}
    return [masters[id(parameter)] for parameter in parameters]


def _group_key(spec: RunSpec) -> str:
    """The key of a group: equal for runs that share one call of the loss and one optimiser per player.

    It holds the method's name and source, its settings except for numbers, and how each player is optimised.
    """
    numbers = numeric_settings(spec.method)
    others = {name: value for name, value in settings_of(spec.method).items() if name not in numbers}
    optimised: list[tuple[object, object]] = [(p.optimiser, p.schedule) for p in spec.method.players]
    optimised += [(phase.optimiser, None) for phase in spec.method.phases]
    optimised += [(p.average, p.skip_above) for p in spec.method.players if p.average or p.skip_above]
    return repr((spec.method.name, others, optimised, spec.plugins))


def _stacked(methods: Sequence[Method], device: torch.device) -> Method:
    """One method for several runs: its numbers are tensors of shape (P,)."""
    stacked = {
        name: torch.tensor([float(getattr(method, name)) for method in methods], device=device)
        for name in numeric_settings(methods[0])
    }
    return dataclasses.replace(methods[0], **stacked)
