"""One update of all runs of a population: a forward pass, a gradient for each player, an optimiser step."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import torch
from torch import Tensor

from unweave.methods.method import AUTOENCODER, Losses, Pass
from unweave.nn.layers import precision_context
from unweave.nn.schedule import scale
from unweave.training.adam import PopulationAdam, clip
from unweave.training.batches import Batches
from unweave.training.population import Group, Population

# The purposes of a run's streams while it trains.
BATCH, OTHER_BATCH, NOISE, OTHER_NOISE = "batch", "other batch", "noise", "other noise"


class Update:
    """Trains a population step by step.

    `terms` are sums over the steps since they were last taken: (P,) for each group and name. On CUDA, where
    batches come from the device, the whole update is captured once as a graph and replayed.
    """

    def __init__(self, population: Population, batches: Batches, data_size: int) -> None:
        self.population, self.batches, self.data_size = population, batches, data_size
        self.terms: list[dict[str, Tensor]] = []
        self.counted = 0
        self._graph: torch.cuda.CUDAGraph | None = None
        self._inputs: list[Tensor] = []
        self._step = int(population.step)

    def run(self, steps: int, stop: Sequence[int] = ()) -> int:
        """Make some updates, or fewer if `stop` is no longer empty; return how many."""
        for done in range(steps):
            if stop:
                return done
            if self.population.device.type == "cuda":
                self._run_graph()
            else:
                self._advance(self._draw())
            self._step += 1
            self.counted += 1
        return steps

    def take_terms(self) -> list[dict[str, Tensor]]:
        """Means of the logged terms over the steps since the last call, on the host; then start anew."""
        means = [
            {name: (t / max(self.counted, 1)).cpu() for name, t in group.items()} for group in self.terms
        ]
        for group in self.terms:
            for total in group.values():
                total.zero_()
        self.counted = 0
        return means

    def log_state(self, run: int) -> dict[str, Tensor]:
        """The sums of one run that have not been taken yet, and over how many steps they go."""
        state = {"log.steps": torch.tensor(self.counted)}
        for group, terms in zip(self.population.groups, self.terms, strict=False):
            if group.first <= run < group.last:
                state |= {f"log.{name}": total[run - group.first] for name, total in terms.items()}
        return state

    def load_log_states(self, states: Sequence[Mapping[str, Tensor]]) -> None:
        """Put the sums back to where `log_state` was taken, one state a run."""
        self.counted = int(states[0]["log.steps"])
        names = [[n.removeprefix("log.") for n in s if n != "log.steps"] for s in states]
        self.terms = []
        for group in self.population.groups if names[0] else ():
            runs = range(group.first, group.last)
            totals = {n: torch.stack([states[run][f"log.{n}"] for run in runs]) for n in names[group.first]}
            self.terms.append({name: total.to(self.population.device) for name, total in totals.items()})

    def _draw(self) -> list[Tensor]:
        """The batches of this step: the one of all runs, and, for each group that asks for it, another."""
        population, size = self.population, self.population.specs[0].batch
        images = [self.batches.draw(population.draws, self._step, BATCH, size)]
        for group in population.groups:
            if group.method.other_batch:
                draws = population.draws.of_runs(group.first, group.last)
                images.append(self.batches.draw(draws, self._step, OTHER_BATCH, size))
        return images

    def _run_graph(self) -> None:
        if self._graph is None:
            self._capture()
            return
        if not self.batches.on_device:
            for static, new in zip(self._inputs, self._draw(), strict=True):
                static.copy_(new)
        self._graph.replay()

    def _capture(self) -> None:
        """Make the first update by hand, which also warms everything up, then record the following ones."""
        aside = torch.cuda.Stream()
        aside.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(aside):
            self._inputs = self._draw()
            self._advance(self._inputs)
        torch.cuda.current_stream().wait_stream(aside)
        self._graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self._graph):
            self._advance(self._draw() if self.batches.on_device else self._inputs)

    def _advance(self, images: list[Tensor]) -> None:
        population = self.population
        spec = population.specs[0]
        with precision_context(spec.precision):
            losses = self._losses(images)
            rates = population.rates * scale(spec.schedule, population.step, population.steps)
            objective = torch.cat([loss.players[AUTOENCODER] for loss in losses])
            others = list(_other_players(population.groups, losses))
            # The gradients of all players are taken before any of them moves.
            gradients = [_gradients(objective, population.adam, spec.gradient_clip, keep=bool(others))]
            for i, (_, adam, loss) in enumerate(others):
                gradients.append(_gradients(loss, adam, spec.gradient_clip, keep=i + 1 < len(others)))
        population.adam.update(gradients[0], population.step, rates)
        for (group, adam, _), gradient in zip(others, gradients[1:], strict=True):
            share = rates[group.runs] / population.rates[group.runs]
            adam.update(gradient, population.step, adam.settings.learning_rate * share)
        self._add_terms(losses)
        population.step += 1

    def _losses(self, images: list[Tensor]) -> list[Losses]:
        population, spec = self.population, self.population.specs[0]
        posterior = population.encoder(images[0])
        noise = population.draws.normal(NOISE, spec.batch, spec.latents)
        sample = posterior.sample(noise * population.spread)
        reconstruction = population.decoder.reconstruction(sample, images[0], spec.likelihood)
        found, other = [], iter(images[1:])
        for group in population.groups:
            draws = population.draws.of_runs(group.first, group.last)
            forward = Pass(
                reconstruction=reconstruction[group.runs],
                posterior=posterior[group.runs],
                sample=sample[group.runs],
                step=population.step,
                data_size=self.data_size,
                draws=draws,
                networks=group.networks,
                other_sample=self._other_sample(group, next(other)) if group.method.other_batch else None,
            )
            found.append(group.method.loss(forward))
        return found

    def _other_sample(self, group: Group, images: Tensor) -> Tensor:
        spec, encoder = self.population.specs[0], self.population.encoder
        noise = self.population.draws.of_runs(group.first, group.last).normal(
            OTHER_NOISE, spec.batch, spec.latents
        )
        with torch.no_grad():  # only other players see it, and they do not move the encoder
            weights = {name: weight[group.runs] for name, weight in encoder.named_parameters()}
            sample: Tensor = torch.func.functional_call(encoder, weights, images).sample(noise)
        return sample

    def _add_terms(self, losses: list[Losses]) -> None:
        if not self.terms:
            self.terms = [{name: torch.zeros_like(t) for name, t in loss.terms.items()} for loss in losses]
        totals = [total for group in self.terms for total in group.values()]
        torch._foreach_add_(totals, [term.detach() for loss in losses for term in loss.terms.values()])


def _other_players(
    groups: list[Group], losses: list[Losses]
) -> Iterator[tuple[Group, PopulationAdam, Tensor]]:
    for group, loss in zip(groups, losses, strict=True):
        for name, adam in group.adams.items():
            yield group, adam, loss.players[name]


def _gradients(loss: Tensor, adam: PopulationAdam, largest: float | None, keep: bool) -> list[Tensor]:
    """Of a player's own parameters only: what it shares with others does not move them."""
    gradients = list(torch.autograd.grad(loss.sum(), adam.parameters, retain_graph=keep))
    return gradients if largest is None else clip(gradients, largest)
