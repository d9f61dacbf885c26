"""A trained run: its networks as functions of plain arrays, its log, its pictures."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from unweave.data.grid import Images
from unweave.data.opening import check_recorded, reopen
from unweave.display.pictures import to_bytes
from unweave.errors import PluginChangedWarning, UnweaveError
from unweave.layout import WEIGHTS_FILE
from unweave.methods.method import Blueprint
from unweave.nn.distributions.gaussian import Gaussian
from unweave.nn.distributions.likelihood import likelihood_named, reconstruction_loss
from unweave.nn.draws import PopulationDraws
from unweave.runs.exporting import export_onnx, export_programs
from unweave.runs.figures import loss_figure, sheet_figure
from unweave.runs.modules import Modules, modules_of
from unweave.runs.spec import RunSpec
from unweave.runs.store import RunFolder
from unweave.runs.summary import summary_html
from unweave.runs.views import (
    CONTENTS,
    ROWS,
    SHOWN,
    example_images,
    reconstructions,
    swap_title,
    swaps,
    title,
    traversal_title,
    traversals,
)
from unweave.streams import Stream
from unweave.training.batches import Data
from unweave.training.trainer import use_device
from unweave.zoo import run_path

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

# What comes in as NumPy goes out as NumPy, what comes in as torch goes out as torch.
Array = TypeVar("Array", NDArray[Any], Tensor)

# Images at a time: on a CPU what a layer gives should stay in the cache, on a GPU calls should be few.
CHUNK = {"cpu": 128, "cuda": 4096}
LONGEST_NAME = 100  # characters of a data set in the name of a folder, since file systems allow 255 in all
SAMPLES = 8  # images that a notebook shows of a run without pictures


class Run:
    """A finished run, read from its folder.

    Images are (n, c, h, w), uint8 or numbers in [0, 1]; codes are (n, d). All functions return NumPy arrays
    for NumPy arrays and torch tensors for torch tensors.

    `data` is the data set of the run, or its new path. By default, the data set is opened by its recorded
    name or path when it is needed. `checkpoint` is the step of a checkpoint whose weights are used instead of
    the trained ones; such a run has not finished.
    """

    def __init__(
        self,
        folder: RunFolder,
        device: str | torch.device = "cpu",
        data: Data | str | Path | None = None,
        data_root: str | Path | None = None,
        checkpoint: int | None = None,
    ) -> None:
        self.folder, self.spec, self._data, self._data_root = folder, folder.spec, data, data_root
        for sentence in self.spec.changed_plugins():
            text = f"{folder.path}: {sentence} Codes and images may differ."
            warnings.warn(text, PluginChangedWarning, stacklevel=2)
        self.device = use_device(str(device))
        self._chunk = min(CHUNK.get(self.device.type, 1024), self.spec.method.largest_batch)
        weights = folder.weights() if checkpoint is None else folder.checkpoint_weights(checkpoint)
        self.shape: tuple[int, int, int] = tuple(folder.origin["image_shape"])
        # Initial weights, which are replaced at once, of networks for a population of one.
        plan = Blueprint(
            [Stream.of(0)],
            self.shape,
            self.spec.latents,
            self.spec.architecture,
            tuple(folder.origin.get("label_sizes", ())),
            self.spec.likelihood,
        )
        self.networks = self.spec.method.networks(plan)
        for name, module in self.networks.items():
            own = {
                k.removeprefix(f"{name}."): v[None] for k, v in weights.items() if k.startswith(f"{name}.")
            }
            _load_weights(module, own, folder.path)
            module.to(self.device).requires_grad_(False)

    def __repr__(self) -> str:
        spec = self.spec
        return (
            f"Run({str(self.path)!r}, {spec.method}, data={spec.data!r}, seed={spec.seed}, "
            f"{self.result['outcome']})"
        )

    def _repr_html_(self) -> str:
        is_finished = self.result["outcome"] == "finished"
        shows_samples = is_finished and self.spec.method.has_samples(self.spec.latents)
        samples = to_bytes(self.sample(SAMPLES)) if shows_samples else None
        return summary_html(self.folder, self.result, samples)

    @property
    def path(self) -> Path:
        """Its folder."""
        return self.folder.path

    @cached_property
    def log(self) -> pd.DataFrame:
        """The losses: one row every so many steps, means over the steps since the row before."""
        import pandas as pd

        return pd.DataFrame(self.folder.log())

    @property
    def result(self) -> dict[str, Any]:
        """How it ended: outcome (finished, or diverged: its codes are then NaN), steps, last losses."""
        return self.folder.result or {"outcome": "unfinished"}

    @cached_property
    def data(self) -> Data:
        """The data set it was trained on."""
        if self._data is None or isinstance(self._data, str | Path):
            return reopen(self.spec.data, self.folder.origin, self._data_root, self._data)
        return self._data

    def posterior(self, images: Array) -> Gaussian:
        """q(z|x) of each image; mean and log_var are (n, d) tensors."""
        method, tensor = self.spec.method, self._images(images)
        parts = [method.encode(self.networks, part[None]) for part in tensor.split(self._chunk)]
        return Gaussian(
            torch.cat([part.mean[0] for part in parts]), torch.cat([part.log_var[0] for part in parts])
        )

    def layers(self, images: Array, seed: int | Stream | None = None) -> dict[str, Gaussian]:
        """q(z|x) of each image by layers or blocks of the code, such as 8x8/2; tensors (n, ...).

        A hierarchy such as `vd_vae` has the codes of all its layers here, the top one first, in units of
        their prior; `posterior` has a choice of them. A layer is given the means of the layers above or,
        with a `seed`, latents that are drawn. Empty for codes without layers or blocks.
        """
        method, chunks = self.spec.method, self._images(images).split(self._chunk)
        draws = [self._draws(seed, number) for number in range(len(chunks))]
        parts = [
            method.code_layers(self.networks, chunk[None], noise)
            for chunk, noise in zip(chunks, draws, strict=True)
        ]
        return {
            name: Gaussian(
                torch.cat([part[name].mean[0] for part in parts]),
                torch.cat([part[name].log_var[0] for part in parts]),
            )
            for name in parts[0]
        }

    @property
    def code_notes(self) -> tuple[str, ...]:
        """What readers of its scores must know about its codes."""
        return self.spec.method.code_notes(self.networks)

    def encode(self, images: Array) -> Array:
        """The mean codes of images, (n, d)."""
        return _like(images, self.posterior(images).mean)

    def logits(self, codes: Array) -> Array:
        """The output of the decoder for codes, (n, k c, h, w); the likelihood's `mean` makes images of it.

        k is 1, or 2 for a likelihood whose variance is learned.
        """
        return _like(codes, self._logits(codes))

    def decode(self, codes: Array) -> Array:
        """The mean images of codes, (n, c, h, w) in [0, 1]."""
        return _like(codes, likelihood_named(self.spec.likelihood).mean(self._logits(codes)))

    def reconstruct(self, images: Array) -> Array:
        """What is left of images after encoding and decoding, (n, c, h, w) in [0, 1].

        A method whose codes are a choice of its latents, such as `vd_vae`, uses all of them here.
        """
        method, parts = self.spec.method, self._images(images).split(self._chunk)
        codes = (method.encode_all(self.networks, part[None]) for part in parts)
        return _like(images, self._images_by(method.decode_all, codes))

    @property
    def levels(self) -> tuple[str, ...]:
        """Names of the levels at which codes enter the decoder, the coarsest first; empty without levels."""
        return tuple(self.spec.method.latent_levels(self.networks, self.spec.latents))

    def mix(self, coarse: Array, fine: Array, levels: int) -> Array:
        """Images of all pairs, row by row: `levels` levels from `coarse`, the others from `fine`."""
        method = self.spec.method
        sizes = list(method.latent_levels(self.networks, self.spec.latents).values())
        if len(sizes) < 2:
            raise UnweaveError(f"codes of {method.name} have no levels, so there is nothing to mix.")
        if isinstance(levels, bool) or not isinstance(levels, int) or not 0 < levels < len(sizes):
            raise UnweaveError(f"levels must be a whole number from 1 to {len(sizes) - 1}; got {levels!r}.")
        upper, lower = (self._all_codes(images) for images in (coarse, fine))
        size = sum(sizes[:levels])
        pairs = [
            torch.cat([code[:size].expand(len(part), -1), part[:, size:]], dim=1)[None]
            for code in upper
            for part in lower.split(self._chunk)
        ]
        return _like(coarse, self._images_by(method.decode_all, pairs or [lower[None, :0]]))

    def losses(self, images: Array, codes: Array) -> Array:
        """How badly codes explain images, -log p(x|z), (n,)."""
        targets, logits = self._images(images), self._logits(codes)
        parts = zip(logits.split(self._chunk), targets.split(self._chunk), strict=True)
        losses = [reconstruction_loss(a[:, None], b[:, None], self.spec.likelihood) for a, b in parts]
        return _like(images, torch.cat(losses))

    def sample(self, n: int, seed: int | Stream = 0) -> NDArray[np.float32]:
        """Images of n codes drawn from the prior, of all latents of a method that has more than its codes."""
        if isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 0:
            raise UnweaveError(f"sample(n) draws n images, a whole number >= 0; got {n!r}.")
        method = self.spec.method
        if not method.has_samples(self.spec.latents):
            raise UnweaveError(
                f"{method.name} cannot draw images: its codes have no prior. "
                "Use reconstruct(images) or traversals()."
            )
        size = method.prior_size(self.networks, self.spec.latents)
        stream, starts = Stream.of(seed).child("prior"), range(0, max(n, 1), self._chunk)
        drawn = (stream.skip(start).normal(min(self._chunk, n - start), size) for start in starts)
        numbers = (torch.from_numpy(part[None].astype(np.float32)).to(self.device) for part in drawn)
        return self._images_by(method.from_prior, numbers).cpu().numpy()

    def traversals(
        self,
        images: NDArray[Any] | Tensor | None = None,
        *,
        dimensions: int | Sequence[int] | None = None,
        columns: int = SHOWN,
    ) -> Figure:
        """What each dimension of the code does, as a figure: one row a dimension, the most used first.

        All rows start from the first of `images`; the others only say how much each dimension is used.
        Default: images of the data set. `dimensions` is how many rows to show, or which dimensions.
        """
        rows = traversals(self, self._examples(images), columns, dimensions)
        return sheet_figure(traversal_title(self), rows)

    def reconstructions(
        self, images: NDArray[Any] | Tensor | None = None, *, columns: int = SHOWN, rows: int = ROWS
    ) -> Figure:
        """Images, by default of the data set, above their reconstructions, as a figure."""
        return sheet_figure(title(self), reconstructions(self, self._examples(images), columns, rows))

    def swaps(
        self,
        images: NDArray[Any] | Tensor | None = None,
        *,
        rows: int = CONTENTS,
        columns: int = SHOWN,
        levels: int | None = None,
    ) -> Figure:
        """Content of some images with the style of others, as a figure; for methods that split their code.

        The first `rows` images give the content of each row, the next `columns - 1` the style of each column.
        If codes have levels, content is the first `levels` of them, by default half of them.
        """
        rows_of_images = swaps(self, self._examples(images), rows, columns, levels)
        return sheet_figure(swap_title(self, levels), rows_of_images)

    def plot_losses(self, terms: str | Sequence[str] | None = None) -> Figure:
        """The logged losses over the steps, as a figure with one panel each; by default all of them."""
        return loss_figure(self.log, terms, f"{title(self)}, seed {self.spec.seed}")

    def modules(self) -> Modules:
        """Encoder and decoder as modules of torch for images (B, c, h, w).

        They are copies on the CPU, whose weights can be trained.
        """
        return modules_of(
            self.spec.method, self.networks, self.shape, self.spec.latents, self.spec.likelihood
        )

    def to_onnx(self, folder: str | Path) -> list[Path]:
        """Write encoder.onnx (images -> mean, log_var) and decoder.onnx (codes -> images) into a folder."""
        return export_onnx(self.modules(), self.shape, self.spec.latents, Path(folder).expanduser())

    def to_torch_export(self, folder: str | Path) -> list[Path]:
        """Write encoder.pt2 and decoder.pt2 into a folder, which `torch.export.load` reads."""
        return export_programs(self.modules(), self.shape, self.spec.latents, Path(folder).expanduser())

    def _all_codes(self, images: Array) -> Tensor:
        """The mean codes of all latents, (n, all latents)."""
        method, parts = self.spec.method, self._images(images).split(self._chunk)
        return torch.cat([method.encode_all(self.networks, part[None])[0] for part in parts])

    def _draws(self, seed: int | Stream | None, number: int) -> PopulationDraws | None:
        """Noise for the chunk of images with that number; none without a seed."""
        step = torch.tensor(number, device=self.device)
        return None if seed is None else PopulationDraws([Stream.of(seed)], step)

    def _examples(self, images: NDArray[Any] | Tensor | None) -> Images:
        """The images to show as uint8; those of the data set if none are given."""
        if images is None:
            return example_images(self)
        checked = to_bytes(self._images(images).cpu().numpy())
        if not len(checked):
            raise UnweaveError("there is nothing to show: images has no rows.")
        return checked

    def _images_by(self, decode: Callable[..., Tensor], parts: Iterable[Tensor]) -> Tensor:
        """The mean images of numbers (1, n, all latents), part after part."""
        mean = likelihood_named(self.spec.likelihood).mean
        return torch.cat([mean(decode(self.networks, part)[0]) for part in parts])

    def _logits(self, codes: Array) -> Tensor:
        tensor = _tensor(codes, "codes").to(self.device, torch.float32)
        if tensor.ndim != 2 or tensor.shape[1] != self.spec.latents:
            raise UnweaveError(f"codes must be (n, {self.spec.latents}); got {tuple(tensor.shape)}.")
        method, parts = self.spec.method, tensor.split(self._chunk)
        return torch.cat([method.decode(self.networks, part[None])[0] for part in parts])

    def _images(self, images: NDArray[Any] | Tensor) -> Tensor:
        tensor = _tensor(images, "images").to(self.device)
        if tensor.ndim != 4 or tuple(tensor.shape[1:]) != self.shape:
            raise UnweaveError(
                f"images must be (n, {', '.join(map(str, self.shape))}); got {tuple(tensor.shape)}."
            )
        if tensor.dtype == torch.uint8:
            return tensor.float() / 255
        scaled = tensor.float()
        if scaled.numel() and not (float(scaled.min()) >= 0 and float(scaled.max()) <= 1):
            raise UnweaveError(
                f"images must be uint8, or numbers in [0, 1]; these reach from {float(scaled.min()):g} to "
                f"{float(scaled.max()):g}."
            )
        return scaled


def load(
    path: str | Path,
    device: str | torch.device = "cpu",
    data_root: str | Path | None = None,
    data: Data | str | Path | None = None,
) -> Run:
    """Open the folder of a finished run, or a trained model by name: `load("zoo:beta_tcvae-10")`.

    Your own data is opened where it lay when the run was trained. If it has moved, `data` is its new path,
    or the data as an object. `data_root` is the folder of the official files of data sets.
    """
    folder = RunFolder(run_path(path))
    if data is not None and not isinstance(data, str | Path):
        check_recorded(data, folder.spec.data, folder.origin)
    return Run(folder, device, data, data_root)


def _tensor(values: NDArray[Any] | Tensor, what: str) -> Tensor:
    if isinstance(values, Tensor):
        return values
    array = np.array(values, order="C")  # a copy: torch takes neither read-only nor reversed arrays
    if array.dtype.kind not in "biuf":
        raise UnweaveError(f"{what} must be an array of numbers; got {array.dtype}.")
    return torch.from_numpy(array)


def _like(values: Array, result: Tensor) -> Array:
    return result if isinstance(values, Tensor) else result.cpu().numpy()


def _load_weights(module: torch.nn.Module, weights: dict[str, Tensor], path: Path) -> None:
    wanted = {name: tuple(tensor.shape) for name, tensor in module.state_dict().items()}
    stored = {name: tuple(tensor.shape) for name, tensor in weights.items()}
    if wanted != stored:
        odd = min(set(wanted.items()) ^ set(stored.items()))[0]
        raise UnweaveError(
            f'{path / WEIGHTS_FILE} does not fit the run\'s networks, first at "{odd}". Delete this '
            "file and run the same command again."
        )
    module.load_state_dict(weights)


def folder_name(spec: RunSpec) -> str:
    """A name that people can read, and that no other run has."""
    data = re.sub(r"[^\w.-]+", "-", spec.data)[:LONGEST_NAME]
    return f"{spec.method.name}-{data}-seed{spec.seed}-{spec.id}"
