"""Training of Wild Relation Networks, one for each run of a population, all on the same matrices.

All runs see the same matrices, start from the same weights and drop the same units. They differ in the codes
of the panels only, and a run gets the same result alone as in a population.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple, Protocol

import torch
from torch import Tensor, nn

from unweave.nn.draws import PopulationDraws
from unweave.nn.kernels.dispatch import has_triton
from unweave.nn.layers import lay_out_for_kernels
from unweave.nn.layers.precision import Precision, precision_context
from unweave.nn.networks.vae import Encoder
from unweave.nn.optimiser import Adam, PopulationOptimiser
from unweave.progress import Progress
from unweave.reasoning.matrices import PanelGrid, draw_matrices, panel_rows
from unweave.reasoning.spec import ReasoningSpec
from unweave.reasoning.wren import WildRelationNetwork, loss_of
from unweave.streams import Stream

BLOCK = 250  # steps whose matrices are drawn at once
TESTED = 64  # matrices that are tested at once
REPORTED = 50  # steps from one report of progress to the next


class Embedding(Protocol):
    """What turns rows of the table of panels into codes."""

    codes: int  # d

    @property
    def runs(self) -> int:
        """P."""

    @property
    def trained(self) -> list[nn.Parameter]:
        """The parameters that are trained with the network."""

    def embed(self, rows: Tensor) -> Tensor:
        """(n,) rows -> (P, n, d)."""


class FrozenCodes:
    """The codes of all panels, (P, rows, d), which do not change."""

    def __init__(self, table: Tensor) -> None:
        self.table = table
        self.codes: int = table.shape[2]
        self.trained: list[nn.Parameter] = []

    @property
    def runs(self) -> int:
        """P."""
        return len(self.table)

    def embed(self, rows: Tensor) -> Tensor:
        """Look the codes up."""
        return self.table.index_select(1, rows)


class TrainedEncoder:
    """An encoder that is trained together with the network, for a population of one."""

    runs = 1

    def __init__(self, images: Tensor, encoder: Encoder) -> None:
        self.images, self.encoder = images, encoder.to(images.device)
        if images.is_cuda and has_triton():
            lay_out_for_kernels(self.encoder)
        self.codes = encoder.heads.weight.shape[2] // 2
        # The log variances have no part in the task.
        self.trained = list(self.encoder.parameters())

    def embed(self, rows: Tensor) -> Tensor:
        """Encode the images."""
        posterior = self.encoder.encode(self.images.index_select(0, rows)[None])
        return posterior.mean


class _Batch(NamedTuple):
    """Rows of the table of panels (n, 14), context first, and the places of the right answers (n,)."""

    rows: Tensor
    position: Tensor


class ReasoningTraining:
    """The training of a population from its first step to its end."""

    def __init__(
        self,
        embedding: Embedding,
        grid: PanelGrid,
        spec: ReasoningSpec,
        device: torch.device,
        precision: Precision,
    ) -> None:
        self.embedding, self.grid, self.spec, self.device = embedding, grid, spec, device
        self.precision = precision
        self.stream = Stream.of(spec.seed).child("reasoning")
        self.network = WildRelationNetwork(
            self.stream.child("network"), embedding.runs, embedding.codes, spec.edge, spec.graph
        ).to(device)
        self.network.set_precision(precision)
        self.parameters = [*self.network.parameters(), *embedding.trained]
        self.optimiser = PopulationOptimiser(self.parameters, Adam())
        self.step = torch.zeros((), dtype=torch.int64, device=device)
        self.draws = PopulationDraws([self.stream], self.step)
        self.rate = torch.full((embedding.runs,), spec.learning_rate, device=device)
        self.block = self._matrices("training", 0, BLOCK * spec.batch)
        self.held_out = self._matrices("test", 0, spec.tests)
        self._graph: torch.cuda.CUDAGraph | None = None

    def run(self, tell: Progress | None = None) -> Iterator[tuple[int, list[int]]]:
        """Train to the end; at each check, the step and how many held-out matrices each run solves."""
        done = 0
        for check in self.spec.checked_steps:
            while done < check:
                if done and done % BLOCK == 0:
                    self._refill(done)
                self._advance()
                done += 1
                if tell and (done % REPORTED == 0 or done == check):
                    tell(done, self.spec.steps, "reasoning")
            yield check, self.test()

    @torch.no_grad()
    def test(self) -> list[int]:
        """How many of the held-out matrices each run solves."""
        right = torch.zeros(self.embedding.runs, dtype=torch.int64, device=self.device)
        with precision_context(self.precision):
            for rows, position in zip(*(part.split(TESTED) for part in self.held_out), strict=True):
                chosen = self.network(self._panels(rows)).argmax(dim=-1)
                right += (chosen == position).sum(dim=1)
        return [int(count) for count in right.tolist()]

    def update(self) -> None:
        """Make one update of all runs, with the batch that the step counter says."""
        batch = torch.arange(self.spec.batch, device=self.device) + self.step % BLOCK * self.spec.batch
        rows, position = (part.index_select(0, batch) for part in self.block)
        with precision_context(self.precision):
            scores = self.network(self._panels(rows), self._kept())
            gradients = torch.autograd.grad(
                loss_of(scores, position).sum(), self.parameters, materialize_grads=True
            )
        self.optimiser.update(gradients, self.step, self.rate)
        self.step += 1

    def _advance(self) -> None:
        """Make one update; on CUDA the first one is recorded as a graph, which is replayed from then on."""
        if self.device.type != "cuda":
            self.update()
        elif self._graph is None:
            self._record()
        else:
            self._graph.replay()

    def _record(self) -> None:
        """Make an update, which warms up all kernels, then record one."""
        current, recording = torch.cuda.current_stream(), torch.cuda.Stream()
        recording.wait_stream(current)
        with torch.cuda.stream(recording):
            self.update()
        current.wait_stream(recording)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=recording, capture_error_mode="thread_local"):
            self.update()
        self._graph = graph

    def _panels(self, rows: Tensor) -> Tensor:
        """(n, 14) rows of the table -> (P, n, 14, d)."""
        codes: Tensor = self.embedding.embed(rows.flatten()).unflatten(1, rows.shape)
        return codes

    def _kept(self) -> Tensor | None:
        """(1, w): 0 for hidden units that are dropped in this step, the same in the whole batch."""
        dropout, width = self.spec.dropout, self.spec.graph[-1]
        if dropout == 0:
            return None
        kept = self.draws.uniform("dropout", 1, width)[:, 0] >= dropout
        return kept.float() / (1 - dropout)

    def _refill(self, step: int) -> None:
        drawn = self._matrices("training", step * self.spec.batch, len(self.block.rows))
        for buffer, new in zip(self.block, drawn, strict=True):
            buffer.copy_(new)

    def _matrices(self, purpose: str, first: int, n: int) -> _Batch:
        """Matrices first .. first + n - 1 of a purpose, on the device."""
        stream = self.stream.child(purpose).skip(first)
        matrices = draw_matrices(
            self.grid.sizes,
            n,
            stream,
            alternatives=self.spec.alternatives,
            relations=self.spec.relations,
        )
        arrays: Sequence[object] = panel_rows(self.grid, matrices, stream), matrices.position
        rows, position = (torch.as_tensor(array, device=self.device) for array in arrays)
        return _Batch(rows, position)
