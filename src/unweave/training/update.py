"""One update of all runs of a population: a forward pass, a gradient for each player, an optimiser step.

All players are updated at once, or, if a method defines turns, turn by turn, each with its own forward pass.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from typing import NamedTuple

import torch
from torch import Tensor

from unweave.methods.method import AUTOENCODER
from unweave.methods.step import Batch, Forward, Losses, StepContext
from unweave.nn.layers.precision import precision_context
from unweave.nn.schedule import Schedule, is_always_one, rate_share
from unweave.training.batches import Batches
from unweave.training.forward import shared_passes
from unweave.training.gradients import Gradients, gradients_of, skipped_together
from unweave.training.population import Group, PlayerState, Population
from unweave.training.recording import joined_on_error

# The purposes of a run's streams while it trains.
BATCH, SECOND_BATCH = "batch", "other batch"

# Updates of one graph, where so many are due. Each launch of a graph costs tens of microseconds.
GRAPH_STEPS = 8

SKIPPED = "skipped_updates"  # the logged share of updates that were skipped for a large gradient

_recording = threading.Lock()  # populations may train in threads, and torch records one graph at a time


class Update:
    """Trains a population step by step.

    `terms` are sums over the steps since `take_terms`: (P,) for each group and name. On CUDA, where
    batches come from the device, the whole update is captured as a graph and replayed. It is captured again
    when a player starts after the first step.
    """

    def __init__(self, population: Population, batches: Batches, data_size: int) -> None:
        self.population, self.batches, self.data_size = population, batches, data_size
        self.terms: list[dict[str, Tensor]] = []
        self.counted = 0
        self._graph: torch.cuda.CUDAGraph | None = None
        self._long_graph: torch.cuda.CUDAGraph | None = None  # of GRAPH_STEPS updates
        self._stream: torch.cuda.Stream | None = None  # on which they are recorded
        self._group_streams = [torch.cuda.Stream(population.device) for _ in _branching_groups(population)]
        self._begins = {player.first_step for player in population.players}
        self._inputs: list[Batch] = []
        self._step = int(population.step)
        self._on_device = batches.on_device(population.sampling)

    def run(self, steps: int, stop: Sequence[int] = ()) -> int:
        """Make some updates, or fewer if `stop` is no longer empty; return how many."""
        done = 0
        while done < steps and not stop:
            if self._step == 0:
                self._initialise()
            made = 1
            if self.population.device.type == "cuda":
                made = self._run_graph(steps - done)
            else:
                self._advance(self._draw())
            self._step += made
            self.counted += made
            done += made
        return done

    def take_terms(self) -> list[dict[str, Tensor]]:
        """Means of the logged terms over the steps since the last call, on the host; then reset them."""
        means = [
            {name: (t / max(self.counted, 1)).cpu() for name, t in group.items()} for group in self.terms
        ]
        for group in self.terms:
            for total in group.values():
                total.zero_()
        self.counted = 0
        return means

    def gradients(self) -> Iterator[tuple[PlayerState, list[Tensor]]]:
        """Gradients of the players of all turns at the current weights, without an update."""
        batches = self._draw()
        for turn in self._turns():
            played = self._play(batches, turn)
            self._join()
            for player, gradients in zip(turn, played.gradients, strict=True):
                yield player, gradients.tensors

    def log_state(self, run: int) -> dict[str, Tensor]:
        """The logged sums of one run since `take_terms`, and the number of steps they cover."""
        state = {"log.steps": torch.tensor(self.counted)}
        for group, terms in zip(self.population.groups, self.terms, strict=False):
            if group.first <= run < group.last:
                state |= {f"log.{name}": total[run - group.first] for name, total in terms.items()}
        return state

    def load_log_states(self, states: Sequence[Mapping[str, Tensor]]) -> None:
        """Restore the logged sums from `log_state`, one state a run."""
        self.counted = int(states[0]["log.steps"])
        names = [[n.removeprefix("log.") for n in s if n != "log.steps"] for s in states]
        self.terms = []
        for group in self.population.groups if names[0] else ():
            runs = range(group.first, group.last)
            totals = {n: torch.stack([states[run][f"log.{n}"] for run in runs]) for n in names[group.first]}
            self.terms.append({name: total.to(self.population.device) for name, total in totals.items()})

    def _initialise(self) -> None:
        """Let methods set the initial weights that depend on data."""
        batch, population = self._draw()[0], self.population
        with torch.no_grad(), precision_context(population.specs[0].precision):
            for group in population.groups:
                group.method.initialise(self._context(group, batch, (), None))

    def _draw(self) -> list[Batch]:
        """The batches of this step: one for all runs, and a second one for each group that asks for it."""
        population, size = self.population, self.population.specs[0].batch
        batches = [self.batches.draw(population.draws, self._step, BATCH, size, population.sampling)]
        for group in population.groups:
            if group.method.second_batch_needed:
                draws = population.draws.of_runs(group.first, group.last)
                batches.append(self.batches.draw(draws, self._step, SECOND_BATCH, size, population.sampling))
        return batches

    def _run_graph(self, steps: int) -> int:
        """Make one update, or several of at most `steps`, and return how many."""
        if self._graph is None or self._step in self._begins:
            self._capture()
            return 1
        next_start = min((begin for begin in self._begins if begin > self._step), default=math.inf)
        if self._on_device and steps >= GRAPH_STEPS and next_start >= self._step + GRAPH_STEPS:
            if self._long_graph is None:
                self._long_graph = self._recorded(GRAPH_STEPS, self._graph)
            self._long_graph.replay()
            return GRAPH_STEPS
        if not self._on_device:
            for static, new in zip(self._inputs, self._draw(), strict=True):
                for buffer, tensor in zip(static.tensors(), new.tensors(), strict=True):
                    buffer.copy_(tensor)
        self._graph.replay()
        return 1

    def _capture(self) -> None:
        """Make the first update without a graph, which also warms up all kernels, then record one update.

        Graphs are recorded on a separate stream: those of one stream share scratch memory and must not be
        replayed at the same time. Earlier graphs go first: their memory may be needed for the new ones.
        """
        self._graph = self._long_graph = None
        current = torch.cuda.current_stream()
        self._stream = torch.cuda.Stream(priority=current.priority)
        with _recording:
            self._stream.wait_stream(current)
            with torch.cuda.stream(self._stream):
                self._inputs = self._draw()
                self._advance(self._inputs)
            current.wait_stream(self._stream)
        self._graph = self._recorded(1, None)

    def _recorded(self, steps: int, other: torch.cuda.CUDAGraph | None) -> torch.cuda.CUDAGraph:
        """A graph of some updates; it shares the memory of the other one, which is never replayed with it."""
        graph, pool = torch.cuda.CUDAGraph(), None if other is None else other.pool()
        with (
            _recording,
            torch.cuda.graph(graph, pool, stream=self._stream, capture_error_mode="thread_local"),
            joined_on_error(self._group_streams),
        ):
            for _ in range(steps):
                self._advance(self._draw() if self._on_device else self._inputs)
        return graph

    def _advance(self, batches: list[Batch]) -> None:
        turns, shares = self._turns(), self._rate_shares()
        for number, turn in enumerate(turns):
            rates = [self._rates(player, shares) for player in turn]
            moves = [self._moves(player, turns, number) for player in turn]
            played = self._play(batches, turn)
            for player, gradient, move, rate in zip(turn, played.gradients, moves, rates, strict=True):
                with self._on_stream_of(player):
                    player.optimiser.update(gradient.tensors, move, rate, gradient.skip)
            self._join()
            if number == 0:
                self._add_terms(self._with_skipped(played, turn))
            del played  # streams of groups read tensors of this one until they are joined
        self.population.step += 1

    def _rate_shares(self) -> dict[str | Schedule, Tensor]:
        """(P,) for each schedule that a player follows, if the share is not always 1."""
        population = self.population
        warmup, step, steps = population.specs[0].warmup, population.step, population.steps
        schedules = dict.fromkeys(player.schedule for player in population.players)
        return {s: rate_share(s, step, steps, warmup) for s in schedules if not is_always_one(s, warmup)}

    def _rates(self, player: PlayerState, shares: Mapping[str | Schedule, Tensor]) -> Tensor:
        """(P,): learning rates; 0 in runs in which the player has not started."""
        rates = self.population.rates[player.runs]
        if player.own_rate is not None:
            rates = torch.full_like(rates, player.own_rate * self.population.specs[0].player_rate)
        if player.rate_factors is not None:
            rates = rates * player.rate_factors
        if player.begins is not None:
            rates = rates * (self.population.step >= player.begins)
        return rates * shares[player.schedule][player.runs] if player.schedule in shares else rates

    def _turns(self) -> list[list[PlayerState]]:
        """The players that the next update trains, turn by turn."""
        if self.population.autoencoder is not None:
            return [self.population.players]  # all groups are updated at once
        (group,) = self.population.groups  # a population with custom networks holds a single method
        active = {player.name: player for player in group.players if self._step >= player.first_step}
        return [[active[name] for name in turn if name in active] for turn in group.method.turns]

    def _moves(self, player: PlayerState, turns: list[list[PlayerState]], turn: int) -> Tensor:
        """How many updates a player had before this turn: () or (P,)."""
        step, before = self.population.step, sum(player in others for others in turns[:turn])
        if player.begins is not None:
            step = (step - player.begins).clamp_min(0)
        per_step = sum(player in others for others in turns)
        return step if per_step == 1 else step * per_step + before

    def _play(self, batches: list[Batch], turn: list[PlayerState]) -> Played:
        """Losses and gradients of the players of a turn, before any of them is updated.

        The shared autoencoder is the first player. The gradients of other players are computed next to its
        own, on the streams of their groups, and must not be used elsewhere before these are joined.
        """
        spec = self.population.specs[0]
        with precision_context(spec.precision), _only(turn, self.population.players):
            contexts, encoded = self._contexts(batches, turn)
            losses, gradients = self._losses(contexts, encoded), []
            for player in turn:
                with self._on_stream_of(player):
                    objective, keep = self._objective(player, losses), player is not turn[-1]
                    gradients.append(gradients_of(objective, player, spec.gradient_clip, keep))
        if any(gradient.skip is not None for gradient in gradients):
            self._join()
            gradients = skipped_together(gradients, turn, self.population.groups)
            self._fork()
        return Played(losses, gradients, contexts)

    def _on_stream_of(self, player: PlayerState) -> AbstractContextManager[object]:
        """The stream on which a player's loss was computed."""
        pairs = zip(self._group_streams, self.population.groups, strict=False)  # there may be no streams
        own = [stream for stream, group in pairs if any(player is one for one in group.players)]
        return torch.cuda.stream(own[0]) if own else nullcontext()

    def _objective(self, player: PlayerState, losses: list[Losses]) -> Tensor:
        """(P,): what a player minimises; 0 in runs in which it has not started."""
        if player.name == AUTOENCODER:
            objectives = [loss.players[AUTOENCODER] for loss in losses]
            return objectives[0] if len(objectives) == 1 else torch.cat(objectives)
        groups = zip(self.population.groups, losses, strict=True)
        (loss,) = [loss for group, loss in groups if player in group.players]
        objective = loss.players[player.name]
        return objective if player.begins is None else objective * (self.population.step >= player.begins)

    def _contexts(
        self, batches: list[Batch], turn: list[PlayerState]
    ) -> tuple[list[StepContext], torch.cuda.Event | None]:
        """What the losses of each group may use, and when it is there: see `SharedPasses`."""
        population = self.population
        passes: Sequence[Forward | None] = [None] * len(population.groups)
        encoded = None
        if population.autoencoder is not None:
            passes, encoded = shared_passes(population, population.autoencoder, batches)
        names = tuple(player.name for player in turn)
        groups = zip(population.groups, passes, strict=True)
        return [self._context(group, batches[0], names, one) for group, one in groups], encoded

    def _losses(self, contexts: Sequence[StepContext], encoded: torch.cuda.Event | None) -> list[Losses]:
        """The losses of each group.

        Groups on a GPU may have a stream each, because their many small kernels would otherwise run one
        after another, and next to the decoder. Their gradients use the same streams. In a graph these are
        parallel branches.
        """
        groups = zip(self.population.groups, contexts, strict=True)
        if encoded is None or not self._group_streams:
            return [group.method.losses(context) for group, context in groups]
        losses = []
        for stream, (group, context) in zip(self._group_streams, groups, strict=True):
            stream.wait_event(encoded)
            with torch.cuda.stream(stream):
                losses.append(group.method.losses(context))
        self._join()
        return losses

    def _join(self) -> None:
        """Let the current stream wait for those of the groups."""
        for stream in self._group_streams:
            torch.cuda.current_stream().wait_stream(stream)

    def _fork(self) -> None:
        """Let the streams of the groups wait for the current one."""
        for stream in self._group_streams:
            stream.wait_stream(torch.cuda.current_stream())

    def _context(
        self, group: Group, batch: Batch, turn: tuple[str, ...], shared_pass: Forward | None
    ) -> StepContext:
        """All that the losses of a group may use, without networks of players that have not started."""
        population = self.population
        owners = [player for player in group.players if player.owner is None]
        active = [player for player in owners if self._step >= player.first_step]
        return StepContext(
            batch=batch.of_runs(group.runs),
            networks={name: network for player in active for name, network in player.networks.items()},
            draws=population.draws.of_runs(group.first, group.last),
            step=population.step,
            steps=population.steps[group.runs],
            data_size=self.data_size,
            likelihood=population.specs[0].likelihood,
            turn=turn,
            shared_pass=shared_pass,
        )

    def _with_skipped(self, played: Played, turn: list[PlayerState]) -> list[Losses]:
        """Losses that also log which runs skip an update, in groups with a player that may."""
        skips = {id(player): gradient.skip for player, gradient in zip(turn, played.gradients, strict=True)}
        logged = []
        for group, loss in zip(self.population.groups, played.losses, strict=True):
            own = [skip for player in group.players if (skip := skips.get(id(player))) is not None]
            skipped = {SKIPPED: torch.stack(own).any(0).float()} if own else {}
            logged.append(replace(loss, terms={**loss.terms, **skipped}))
        return logged

    def _add_terms(self, losses: list[Losses]) -> None:
        if not self.terms:
            self.terms = [{name: torch.zeros_like(t) for name, t in loss.terms.items()} for loss in losses]
        elif any(list(totals) != list(loss.terms) for totals, loss in zip(self.terms, losses, strict=True)):
            # Checkpoints do not keep the order of names, but the columns of a log must.
            self.terms = [
                {name: totals[name] for name in loss.terms}
                for totals, loss in zip(self.terms, losses, strict=True)
            ]
        pairs = [
            (totals[name], term)
            for totals, loss in zip(self.terms, losses, strict=True)
            for name, term in loss.terms.items()
        ]
        torch._foreach_add_([total for total, _ in pairs], [term.detach() for _, term in pairs])


def _branching_groups(population: Population) -> list[Group]:
    """The groups that have streams of their own: all, if they can do anything next to each other.

    Several groups can, and so can the players of one group and the autoencoder.
    """
    groups = population.groups
    can_branch = len(groups) > 1 or (population.autoencoder is not None and bool(groups[0].players))
    return groups if population.device.type == "cuda" and can_branch else []


@contextmanager
def _only(active: Sequence[PlayerState], players: Sequence[PlayerState]) -> Iterator[None]:
    """Compute no gradients of players that are not active in this turn."""
    trained = {id(parameter) for player in active for parameter in player.parameters()}
    frozen = [p for player in players for p in player.parameters() if id(p) not in trained]
    for parameter in frozen:
        parameter.requires_grad_(False)
    try:
        yield
    finally:
        for parameter in frozen:
            parameter.requires_grad_(True)


class Played(NamedTuple):
    """A turn before its updates: losses of the groups, gradients of the players, and what they come from."""

    losses: list[Losses]
    gradients: list[Gradients]
    contexts: list[StepContext]
