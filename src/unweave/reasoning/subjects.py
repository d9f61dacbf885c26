"""What reasons: runs, encoders and arrays of codes, each as the codes of all panels of the matrices."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from unweave.data import GroundTruth
from unweave.data.opening import open_data
from unweave.errors import UnweaveError
from unweave.evaluation.encoders import encoder_of, is_run
from unweave.layout import SPEC_FILE, runs_inside
from unweave.metrics.checks import as_array
from unweave.progress import Progress
from unweave.reasoning.matrices import PanelGrid
from unweave.runs.run import Run
from unweave.runs.store import RunFolder
from unweave.zoo import run_path

CHUNK = 4096  # images that are made and encoded at once

# Images as an array and on the device -> codes (n, d).
Encode: TypeAlias = Callable[[NDArray[np.uint8], Tensor], Tensor]


@dataclass(frozen=True, eq=False)
class Subject:
    """Something with codes: how it is called, its data, and how it encodes.

    Subjects of the same `kind` may share a population: they have the same data and as many codes.
    `open` loads what encodes; a stored result needs no loading.
    """

    name: str
    kind: Hashable
    truth: Callable[[], GroundTruth]
    open: Callable[[], Encode] | None = None
    codes: NDArray[Any] | None = None  # of the whole grid of the data, if there is no encoder
    folder: Path | None = None  # of a run


@dataclass
class OpenOptions:
    """Where data and runs are found, and on which device runs encode."""

    device: torch.device
    data: str | Path | GroundTruth | None = None
    data_root: str | Path | None = None
    truths: dict[Hashable, GroundTruth] = field(default_factory=dict)  # of runs, opened once


def subjects_of(asked: Any, options: OpenOptions) -> list[Subject]:
    """The subjects that a user named: one, or a list or tuple of them."""
    items = list(asked) if isinstance(asked, list | tuple) else [asked]
    found: list[Subject] = []
    for item in items:
        if isinstance(item, str | Path):
            found += [_of_folder(folder, options) for folder in run_folders(item)]
        elif is_run(item):
            found.append(_of_run(item, options))
        else:
            found.append(_of_codes_or_encoder(item, options, len(found)))
    if not found:
        raise UnweaveError("reason needs folders of runs, encoders or codes. The list is empty.")
    return found


def run_folders(path: str | Path) -> list[Path]:
    """The folder of a run, or the folders of all runs in it if it is that of a study or of several runs."""
    folder = run_path(path)
    if (folder / SPEC_FILE).exists():
        return [folder]
    inside = runs_inside(folder)
    if not inside:
        raise UnweaveError(
            f"{folder} is not the folder of a run or a study, and there is no run in it."
            if folder.is_dir()
            else f"there is no folder {folder}. Name the folder of a run or of a study."
        )
    return inside


def _of_folder(path: Path, options: OpenOptions) -> Subject:
    folder = RunFolder(path)

    def load() -> Run:
        outcome = (folder.result or {"outcome": "not finished"})["outcome"]
        if outcome != "finished":
            raise UnweaveError(f"the run in {path} is {outcome}, so it has no codes. Train it to the end.")
        place = options.data if isinstance(options.data, str | Path) else None
        return Run(folder, options.device, place, options.data_root)

    return _of_loaded(path, folder, load, options)


def _of_run(run: Any, options: OpenOptions) -> Subject:
    return _of_loaded(run.path, run.folder, lambda: run, options)


def _of_loaded(path: Path, folder: RunFolder, load: Callable[[], Any], options: OpenOptions) -> Subject:
    spec, origin = folder.spec, folder.origin
    kind = (spec.data, str(origin.get("data_source")), spec.latents)

    def truth() -> GroundTruth:
        if isinstance(options.data, GroundTruth):
            return options.data
        if kind not in options.truths:
            options.truths[kind] = _checked_truth(load().data)
        return options.truths[kind]

    return Subject(str(path), kind, truth, lambda: _run_encoder(load()), folder=Path(path))


def _run_encoder(run: Any) -> Encode:
    """The mean codes of a run; images on its device are not copied for each run."""

    def encode(_images: NDArray[np.uint8], on_device: Tensor) -> Tensor:
        mean: Tensor = run.posterior(on_device).mean
        return mean

    return encode


def _of_codes_or_encoder(item: Any, options: OpenOptions, number: int) -> Subject:
    if options.data is None:
        raise UnweaveError('codes and encoders need the data that they encode: reason(codes, data="rooms").')
    data = options.data
    opened = data if isinstance(data, GroundTruth) else open_data(data, options.data_root)
    truth = _checked_truth(opened)
    if callable(item) or hasattr(item, "transform"):
        encode = encoder_of(item)

        def means(images: NDArray[np.uint8], on_device: Tensor) -> Tensor:
            return torch.as_tensor(np.asarray(encode(images).mean, np.float32), device=on_device.device)

        return Subject(f"{type(item).__name__} {number}", id(item), lambda: truth, lambda: means)
    codes, whole = as_array(item), truth.full or truth
    if codes.ndim != 2 or len(codes) != len(whole):
        raise UnweaveError(
            f"codes must be those of all {len(whole):,} images of {whole.name}, (n, d) in the order of the "
            f"grid; got {codes.shape}."
        )
    return Subject(f"codes {number}", (truth.name, codes.shape[1]), lambda: truth, codes=codes)


def _checked_truth(data: Any) -> GroundTruth:
    if not isinstance(data, GroundTruth):
        raise UnweaveError(
            f"matrices need data with a full grid of factors; {getattr(data, 'name', 'this data')} has none."
        )
    return data


def code_tables(
    subjects: Sequence[Subject], grid: PanelGrid, device: torch.device, tell: Progress | None = None
) -> list[Tensor | UnweaveError]:
    """(rows, d): the codes of all panels of each subject, or why it has none; images are made only once."""
    encoders: dict[int, Encode] = {}
    tables: dict[int, Tensor | UnweaveError] = {}
    for number, subject in enumerate(subjects):
        try:
            if subject.open is None:
                tables[number] = _looked_up(subject, grid, device)
            else:
                encoders[number] = subject.open()
        except UnweaveError as error:
            tables[number] = error
    parts: dict[int, list[Tensor]] = {number: [] for number in encoders}
    for first in range(0, len(grid) if encoders else 0, CHUNK):
        images = np.ascontiguousarray(grid.images(first, min(first + CHUNK, len(grid))))
        on_device = torch.from_numpy(images).to(device)
        for number, encode in encoders.items():
            parts[number].append(encode(images, on_device).to(device, torch.float32))
        if tell:
            tell(min(first + CHUNK, len(grid)), len(grid), "encoding panels")
    tables |= {number: torch.cat(codes) for number, codes in parts.items()}
    return [_finite(subjects[number].name, tables[number]) for number in range(len(subjects))]


def _looked_up(subject: Subject, grid: PanelGrid, device: torch.device) -> Tensor:
    rows = grid.truth.index(grid.factors(np.arange(len(grid))))
    chosen = np.asarray(subject.codes)[rows].astype(np.float32)
    return torch.from_numpy(chosen).to(device)


def _finite(name: str, codes: Tensor | UnweaveError) -> Tensor | UnweaveError:
    if isinstance(codes, UnweaveError) or bool(torch.isfinite(codes).all()):
        return codes
    return UnweaveError(f"{name} has codes that are not finite numbers.")
