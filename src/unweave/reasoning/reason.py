"""`reason`: how quickly a network learns to solve matrices from codes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
import torch
from torch import Tensor

from unweave.data import GroundTruth
from unweave.data.opening import open_data
from unweave.errors import UnweaveError
from unweave.nn.layers.precision import Precision
from unweave.nn.networks.architectures import DEFAULT, build_encoder
from unweave.progress import Progress
from unweave.reasoning.curves import Check, Curve, Reasoning
from unweave.reasoning.matrices import PanelGrid, panel_grid
from unweave.reasoning.records import complete_curve, store_curve
from unweave.reasoning.spec import ReasoningSpec
from unweave.reasoning.subjects import CHUNK, OpenOptions, Subject, code_tables, subjects_of
from unweave.reasoning.training import Embedding, FrozenCodes, ReasoningTraining, TrainedEncoder
from unweave.streams import Stream
from unweave.training.trainer import use_device

Baseline: TypeAlias = Literal["values", "one_hot", "end_to_end"]

BASELINES: tuple[Baseline, ...] = ("values", "one_hot", "end_to_end")
TOGETHER = {"cpu": 8, "cuda": 256}  # runs that are trained at once
DEFAULT_SPEC = ReasoningSpec()
SHORT = "ReasoningSpec(steps=1_000)"  # which messages show
LATENTS = 10  # codes of the encoder that is trained end to end, as many as the published models have


def reason(
    subjects: Any,
    spec: ReasoningSpec = DEFAULT_SPEC,
    *,
    data: str | Path | GroundTruth | None = None,
    device: str = "auto",
    precision: Precision | None = None,
    data_root: str | Path | None = None,
    tell: Progress | None = None,
) -> Reasoning:
    """Train a Wild Relation Network on the codes of each subject, and measure it on held-out matrices.

    `subjects` is one of these, or a list of them:

    - a run, the folder of a run, or that of a study, which stands for all runs in it;
    - an encoder, as `unweave.evaluate` takes it, which encodes the images of `data`;
    - codes (n, d) of all images of `data`, in the order of its grid.

    Runs on the same data with as many codes are trained at once as a population. All get the same matrices,
    so their accuracies can be compared pair by pair. A run's learning curve is stored in its folder as
    reasoning.json at each check; a complete one with the same settings is returned from there.

    For a run, `data` is the new path of your own data, if it has moved. `precision` is float32, tf32 or bf16;
    by default float32 on a CPU and bf16 on a GPU. Of several subjects, those that cannot be used are left out
    and noted.

    >>> from unweave.data import Factor, GroundTruth, Card
    >>> import numpy as np
    >>> factors = (Factor("a", 3), Factor("b", 3), Factor("c", 3))
    >>> card = Card("", "", "")
    >>> truth = GroundTruth("tiny", factors, (1, 1, 1), lambda f, _: f[:, :1, None, None], card, "")
    >>> spec = ReasoningSpec(steps=2, batch=4, tests=50, edge=(8,), graph=(8,))
    >>> curve = reason(truth.factors_at(np.arange(27)), spec, data=truth, device="cpu").curves[0]
    >>> [check.matrices for check in curve.checks]
    [8]
    """
    _check_spec(spec)
    options = OpenOptions(use_device(device), data, data_root)
    asked = subjects_of(subjects, options)
    curves: dict[Subject, Curve] = {}
    groups: dict[Any, list[Subject]] = {}
    for subject in asked:
        stored = None if subject.folder is None else complete_curve(subject.folder, spec)
        if stored is not None:
            curves[subject] = stored
        else:
            groups.setdefault(subject.kind, []).append(subject)
    notes: list[str] = []
    for members in groups.values():
        try:
            grid = _grid_of(members, spec)
            tables = code_tables(members, grid, options.device, tell)
        except UnweaveError as error:
            tables = [error] * len(members)
        failures = [(s, table) for s, table in zip(members, tables, strict=True) if not _has_codes(table)]
        if failures and len(asked) == 1:
            raise UnweaveError(str(failures[0][1]))
        notes += [f"Left out {subject.name}: {error}" for subject, error in failures]
        usable = {s: table for s, table in zip(members, tables, strict=True) if isinstance(table, Tensor)}
        for population in _populations(usable, options.device):
            embedding = FrozenCodes(torch.stack([usable[subject] for subject in population]))
            curves |= _trained(population, embedding, grid, spec, options.device, precision, tell)
    if not curves:
        raise UnweaveError(f"none of the {len(asked)} subjects can be used. {' '.join(notes[:1])}")
    return Reasoning(tuple(curves[subject] for subject in asked if subject in curves), tuple(notes))


def baselines(
    data: str | Path | GroundTruth,
    spec: ReasoningSpec = DEFAULT_SPEC,
    kinds: Baseline | Sequence[Baseline] = BASELINES,
    *,
    architecture: str = DEFAULT,
    device: str = "auto",
    precision: Precision | None = None,
    data_root: str | Path | None = None,
    tell: Progress | None = None,
) -> Reasoning:
    """Learning curves without a trained run, to compare runs with.

    - values: the true factors as codes, each from -0.5 to 0.5;
    - one_hot: a code for each value of each factor;
    - end_to_end: the encoder of an architecture with ten mean codes, trained together with the network.

    Differs from disentanglement_lib: its convolutions hand over all of their 1,024 features.
    """
    _check_spec(spec)
    asked = [kinds] if isinstance(kinds, str) else list(kinds)
    for kind in asked:
        if kind not in BASELINES:
            raise UnweaveError(f"a baseline is one of {', '.join(BASELINES)}; got {kind!r}.")
    chosen = use_device(device)
    truth = data if isinstance(data, GroundTruth) else open_data(data, data_root)
    if not isinstance(truth, GroundTruth):
        raise UnweaveError(f"matrices need data with a full grid of factors; {truth.name} has none.")
    grid = panel_grid(truth, spec.levels)
    curves: list[Curve] = []
    for kind in asked:
        embedding: Embedding
        if kind == "end_to_end":
            embedding = _encoder_of_images(grid, architecture, spec, chosen)
        else:
            embedding = FrozenCodes(true_codes(grid, kind)[None].to(chosen))
        subject = Subject(kind, kind, lambda: truth)
        curves += _trained([subject], embedding, grid, spec, chosen, precision, tell).values()
    return Reasoning(tuple(curves))


def _check_spec(spec: object) -> None:
    if not isinstance(spec, ReasoningSpec):
        raise UnweaveError(f"spec must be a ReasoningSpec, such as {SHORT}; got {spec!r}.")


def true_codes(grid: PanelGrid, kind: Baseline) -> Tensor:
    """(rows, d): the true factors of all panels as codes: values from -0.5 to 0.5, or one-hot vectors."""
    panels = np.arange(len(grid)) // grid.variants
    values = np.stack(np.unravel_index(panels, grid.sizes), axis=1)
    if kind == "values":
        return torch.from_numpy((values / (np.array(grid.sizes) - 1) - 0.5).astype(np.float32))
    columns = [np.eye(size, dtype=np.float32)[values[:, j]] for j, size in enumerate(grid.sizes)]
    return torch.from_numpy(np.concatenate(columns, axis=1))


def _encoder_of_images(
    grid: PanelGrid, architecture: str, spec: ReasoningSpec, device: torch.device
) -> TrainedEncoder:
    images = [grid.images(i, min(i + CHUNK, len(grid))) for i in range(0, len(grid), CHUNK)]
    streams = [Stream.of(spec.seed).child("reasoning", "encoder")]
    encoder = build_encoder(streams, grid.truth.shape, LATENTS, architecture)
    return TrainedEncoder(torch.from_numpy(np.concatenate(images)).to(device), encoder)


def _grid_of(members: Sequence[Subject], spec: ReasoningSpec) -> PanelGrid:
    """The panels of the data that subjects share; a run that cannot be opened does not stop the others."""
    errors: list[UnweaveError] = []
    for subject in members:
        try:
            return panel_grid(subject.truth(), spec.levels)
        except UnweaveError as error:
            errors.append(error)
    raise errors[0]


def _has_codes(table: Tensor | UnweaveError) -> bool:
    return isinstance(table, Tensor)


def _populations(tables: Mapping[Subject, Tensor], device: torch.device) -> Iterator[list[Subject]]:
    """Subjects with as many codes, at most so many together as fit into memory."""
    widths: dict[int, list[Subject]] = {}
    for subject, table in tables.items():
        widths.setdefault(table.shape[1], []).append(subject)
    most = TOGETHER[device.type]
    for members in widths.values():
        yield from (members[i : i + most] for i in range(0, len(members), most))


def _trained(
    members: Sequence[Subject],
    embedding: Embedding,
    grid: PanelGrid,
    spec: ReasoningSpec,
    device: torch.device,
    precision: Precision | None,
    tell: Progress | None,
) -> dict[Subject, Curve]:
    """The learning curves of a population; those of runs are stored at each check."""
    usual: Precision = "bf16" if device.type == "cuda" else "float32"
    training = ReasoningTraining(embedding, grid, spec, device, precision or usual)
    checks: list[list[Check]] = [[] for _ in members]
    curves: dict[Subject, Curve] = {}
    for step, right in training.run(tell):
        for subject, found, count in zip(members, checks, right, strict=True):
            found.append(Check(step, step * spec.batch, count, spec.tests))
            curves[subject] = Curve(subject.name, grid.truth.name, spec, tuple(found))
            if subject.folder is not None:
                store_curve(subject.folder, curves[subject])
    return curves
