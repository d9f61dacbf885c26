"""A trained run: its networks as functions of plain arrays, its log, its pictures."""

from __future__ import annotations

import re
from dataclasses import fields
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from unweave.data import CATALOGUE
from unweave.data import load as load_data
from unweave.errors import UnweaveError, did_you_mean
from unweave.methods.method import Blueprint, Method
from unweave.nn.gaussian import Gaussian
from unweave.nn.likelihood import reconstruction_loss
from unweave.spec import RunSpec
from unweave.store import RunFolder
from unweave.streams import Stream
from unweave.training.batches import Data
from unweave.training.trainer import Plan, Tell, default_precision, pick_device, train_runs

if TYPE_CHECKING:
    import pandas as pd

# What comes in as NumPy goes out as NumPy, what comes in as torch goes out as torch.
Array = TypeVar("Array", NDArray[Any], Tensor)

# Images at a time: on a CPU what a layer gives should stay in the cache, on a GPU calls should be few.
CHUNK = {"cpu": 128, "cuda": 4096}


class Run:
    """A finished run, read from its folder.

    Images are (n, c, h, w), uint8 or numbers in [0, 1]; codes are (n, d). All functions take and give NumPy
    arrays or torch tensors, whichever comes in.

    `data` is what it was trained on, where that is at hand; if not, it is opened by its name when asked for.
    """

    def __init__(
        self,
        folder: RunFolder,
        device: str | torch.device = "cpu",
        data: Data | None = None,
        data_root: str | Path | None = None,
    ) -> None:
        self.folder, self.spec, self._data, self._data_root = folder, folder.spec, data, data_root
        self.device = pick_device(str(device))
        self._chunk = CHUNK.get(self.device.type, 1024)
        weights = folder.weights()
        self.shape: tuple[int, int, int] = tuple(folder.origin["image_shape"])
        # Initial weights, which are replaced at once, of networks for a population of one.
        plan = Blueprint(
            [Stream.of(0)],
            self.shape,
            self.spec.latents,
            self.spec.architecture,
            tuple(folder.origin.get("label_sizes", ())),
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
        if self._data is not None:
            return self._data
        name, origin = self.spec.data, self.folder.origin
        source, drawn = origin["data_source"], origin["data_drawn"]
        if name not in [entry.name for entry in CATALOGUE]:
            raise UnweaveError(
                f'the run was trained on data that was given as an object, "{name}" ({source}), which cannot '
                "be opened by its name. Make the object again and use that."
            )
        found = load_data(name, self._data_root)
        if (found.source, found.drawn) != (source, drawn):
            raise UnweaveError(
                f"the run was trained on another {name} ({source}; drawn {drawn}) than the one that is here "
                f"({found.source}; drawn {found.drawn}). Make that one again and use it."
            )
        return found

    def posterior(self, images: Array) -> Gaussian:
        """q(z|x) of each image; mean and log_var are (n, d) tensors."""
        method, given = self.spec.method, self._images(images)
        parts = [method.encode(self.networks, part[None]) for part in given.split(self._chunk)]
        return Gaussian(
            torch.cat([part.mean[0] for part in parts]), torch.cat([part.log_var[0] for part in parts])
        )

    def encode(self, images: Array) -> Array:
        """The mean codes of images, (n, d)."""
        return _like(images, self.posterior(images).mean)

    def logits(self, codes: Array) -> Array:
        """What the decoder gives for codes, (n, c, h, w); its sigmoid is the mean image."""
        return _like(codes, self._logits(codes))

    def decode(self, codes: Array) -> Array:
        """The mean images of codes, (n, c, h, w) in [0, 1]."""
        return _like(codes, torch.sigmoid(self._logits(codes)))

    def reconstruct(self, images: Array) -> Array:
        """What is left of images after encoding and decoding, (n, c, h, w) in [0, 1]."""
        return self.decode(self.encode(images))

    def losses(self, images: Array, codes: Array) -> Array:
        """How badly codes explain images, -log p(x|z), (n,)."""
        targets, logits = self._images(images), self._logits(codes)
        parts = zip(logits.split(self._chunk), targets.split(self._chunk), strict=True)
        each = [reconstruction_loss(a[:, None], b[:, None], self.spec.likelihood) for a, b in parts]
        return _like(images, torch.cat(each))

    def sample(self, n: int, seed: int | Stream = 0) -> NDArray[np.float32]:
        """Images of n codes drawn from the prior."""
        codes = Stream.of(seed).child("prior").normal(n, self.spec.latents)
        return self.decode(codes.astype(np.float32))

    def _logits(self, codes: Array) -> Tensor:
        given = _tensor(codes, "codes").to(self.device, torch.float32)
        if given.ndim != 2 or given.shape[1] != self.spec.latents:
            raise UnweaveError(f"codes must be (n, {self.spec.latents}); got {tuple(given.shape)}.")
        method, parts = self.spec.method, given.split(self._chunk)
        return torch.cat([method.decode(self.networks, part[None])[0] for part in parts])

    def _images(self, images: Array) -> Tensor:
        given = _tensor(images, "images").to(self.device)
        if given.ndim != 4 or tuple(given.shape[1:]) != self.shape:
            raise UnweaveError(
                f"images must be (n, {', '.join(map(str, self.shape))}); got {tuple(given.shape)}."
            )
        if given.dtype == torch.uint8:
            return given.float() / 255
        scaled = given.float()
        if scaled.numel() and not (float(scaled.min()) >= 0 and float(scaled.max()) <= 1):
            raise UnweaveError(
                f"images must be uint8, or numbers in [0, 1]; these reach from {float(scaled.min()):g} to "
                f"{float(scaled.max()):g}."
            )
        return scaled


def load(path: str | Path, device: str | torch.device = "cpu", data_root: str | Path | None = None) -> Run:
    """Open the folder of a finished run; `data_root` is the folder of the official files of data sets."""
    return Run(RunFolder(Path(path).expanduser()), device, data_root=data_root)


def _tensor(given: NDArray[Any] | Tensor, what: str) -> Tensor:
    if isinstance(given, Tensor):
        return given
    array = np.array(given, order="C")  # a copy: torch takes neither read-only nor reversed arrays
    if array.dtype.kind not in "biuf":
        raise UnweaveError(f"{what} must be an array of numbers; got {array.dtype}.")
    return torch.from_numpy(array)


def _like(given: Array, result: Tensor) -> Array:
    return result if isinstance(given, Tensor) else result.cpu().numpy()


def _load_weights(module: torch.nn.Module, weights: dict[str, Tensor], path: Path) -> None:
    wanted = {name: tuple(tensor.shape) for name, tensor in module.state_dict().items()}
    given = {name: tuple(tensor.shape) for name, tensor in weights.items()}
    if wanted != given:
        odd = min(set(wanted.items()) ^ set(given.items()))[0]
        raise UnweaveError(
            f'{path / "weights.safetensors"} does not fit the run\'s networks, first at "{odd}". Delete this '
            "file and run the same command again."
        )
    module.load_state_dict(weights)


def folder_name(spec: RunSpec) -> str:
    """A name that people can read, and that no other run has."""
    data = re.sub(r"[^\w.-]+", "-", spec.data)
    return f"{spec.method.name}-{data}-seed{spec.seed}-{spec.id}"


def train(
    method: Method,
    data: str | Data = "dsprites",
    *,
    out: str | Path = "runs",
    device: str = "auto",
    tell: Tell | None = None,
    **settings: Any,
) -> Run:
    """Train one model, or open it if it has been trained before; returns the run.

    `settings` are the fields of RunSpec: seed, steps, batch, latents, architecture, ... `data` is the name
    of a data set, or a ground truth or collection of your own. The run's folder is made in `out`. If
    training is stopped, the same call goes on with it. The precision is bf16 on a GPU and
    float32 on a CPU, if none is given.

    >>> import unweave
    >>> run = unweave.train(unweave.methods.BetaVAE(beta=4), data="dsprites", steps=1000)  # doctest: +SKIP
    """
    source = load_data(data) if isinstance(data, str) else data
    known = [f.name for f in fields(RunSpec)]
    for name in settings:
        if name not in known:
            raise UnweaveError(f'a run has no setting "{name}". {did_you_mean(name, known)}')
    settings.setdefault("precision", default_precision(device, method))
    spec = RunSpec(method=method, data=source.name, **settings)
    [folder] = train_runs([spec], source, [Path(out).expanduser() / folder_name(spec)], Plan(device), tell)
    return Run(folder, data=source)
